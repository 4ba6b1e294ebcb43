// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import "time"

// Life is where an entity stands in its removal.
type Life string

// The lives of Juju. A dead entity is removed from the model.
const (
	Alive Life = "alive"
	Dying Life = "dying"
	Dead  Life = "dead"
)

// Role is an endpoint's side of a relation.
type Role string

// The roles, spelled as Juju spells them.
const (
	Provider Role = "provider"
	Requirer Role = "requirer"
	Peer     Role = "peer"
)

// StatusValue is one status with its message and the moment it was set.
type StatusValue struct {
	Status  string         `json:"status"`
	Message string         `json:"message,omitempty"`
	Data    map[string]any `json:"data,omitempty"`
	Since   time.Time      `json:"since"`
}

// DeployArgs is what `juju deploy` asks for.
type DeployArgs struct {
	// App is the application's name; the charm's name when empty.
	App string
	// Charm comes from ReadCharm.
	Charm *Charm
	// Units is the scale; 0 means 0 units. The CLI's default is 1.
	Units int
	// Config holds option values as text, parsed by the option's type.
	Config map[string]string
	// Resources maps a resource name to what was given for it: "host", a root
	// filesystem folder, an image (see [PinImage]), or a file. An oci-image resource
	// that is not here is "host".
	Resources map[string]string
	// Storage holds the operator's storage directives by name.
	Storage map[string]StorageSpec
	// Trust gives the application the cluster-wide rights of `juju trust`.
	Trust bool
}

// RefreshArgs is what `juju refresh --path` asks for.
type RefreshArgs struct {
	App string
	// Charm comes from ReadCharm; its name is that of the old one.
	Charm *Charm
	// Resources and Config are what is given anew; the rest stays.
	Resources map[string]string
	Config    map[string]string
	// Trust, if set, is given or taken.
	Trust *bool
}

// EndpointRef names one end of a relation.
type EndpointRef struct {
	App       string `json:"app"`
	Name      string `json:"name"`
	Interface string `json:"interface"`
	Role      Role   `json:"role"`
}

// String is "app:endpoint".
func (e EndpointRef) String() string { return e.App + ":" + e.Name }

// PodStatus is what the Kubernetes half reports about the pod of a unit.
type PodStatus struct {
	// Address is the pod's IP; "" while there is none.
	Address string `json:"address"`
	// UID changes when the pod is replaced; informative.
	UID string `json:"uid,omitempty"`
	// Ready is the pod's readiness.
	Ready bool `json:"ready"`
	// State is "" (nothing to say), "waiting", "error", "blocked" or
	// "allocating"; with Message it overrides what the unit claims, as Juju's
	// display does.
	State   string `json:"state,omitempty"`
	Message string `json:"message,omitempty"`
	// CharmVersion is the ApplicationStatus.CharmVersion of the moment when the pod
	// was made: its agent runs no other charm. 0 leaves the agent free.
	CharmVersion int `json:"charm-version,omitempty"`
}

// ResolveMode says how a failed hook is resolved.
type ResolveMode string

// The modes of `juju resolved`.
const (
	ResolveNone  ResolveMode = ""
	ResolveRetry ResolveMode = "retry-hooks"
	ResolveSkip  ResolveMode = "no-hooks"
)

// ActionStatus is where an action stands.
type ActionStatus string

// The statuses of actions.
const (
	ActionPending   ActionStatus = "pending"
	ActionRunning   ActionStatus = "running"
	ActionCompleted ActionStatus = "completed"
	ActionFailed    ActionStatus = "failed"
	ActionCancelled ActionStatus = "cancelled"
	ActionAborting  ActionStatus = "aborting" // the agent is killing it
	ActionAborted   ActionStatus = "aborted"
	ActionError     ActionStatus = "error" // of an operation without a task
)

// Finished says whether the action has ended.
func (s ActionStatus) Finished() bool {
	return s != ActionPending && s != ActionRunning && s != ActionAborting
}

// ExecAction is the name of the action that runs a command: `juju exec`. Its
// parameter "command" is a shell script.
const ExecAction = "juju-exec"

// Operation is a group of tasks that were asked for together.
type Operation struct {
	ID      string `json:"id"`
	Summary string `json:"summary"`
	// Fail is why tasks could not be made.
	Fail     string    `json:"fail,omitempty"`
	Enqueued time.Time `json:"enqueued"`
	// Tasks are the operation's, by id; they are stored on their own.
	Tasks []Action `json:"tasks,omitempty"`
	// Errors says, to the one who enqueues, what each unit without a task lacks.
	Errors []string `json:"errors,omitempty"`
}

// Action is one task of an operation.
type Action struct {
	ID        string         `json:"id"`
	Operation string         `json:"operation"`
	Unit      string         `json:"unit"`
	Name      string         `json:"name"`
	Params    map[string]any `json:"params,omitempty"`
	// Parallel and ExecutionGroup are from actions.yaml.
	Parallel       bool         `json:"parallel,omitempty"`
	ExecutionGroup string       `json:"execution-group,omitempty"`
	Status         ActionStatus `json:"status"`
	Message        string       `json:"message,omitempty"`
	// Results hold "return-code", "stdout" and "stderr" beside the charm's own.
	Results   map[string]any `json:"results,omitempty"`
	Log       []ActionLog    `json:"log,omitempty"`
	Enqueued  time.Time      `json:"enqueued"`
	Started   time.Time      `json:"started"`
	Completed time.Time      `json:"completed"`
}

// ActionLog is one line of action-log.
type ActionLog struct {
	Time    time.Time `json:"time"`
	Message string    `json:"message"`
}

// JournalWrite is one databag key that a commit changed.
type JournalWrite struct {
	Relation int    `json:"relation"`
	Endpoint string `json:"endpoint"` // of the writer
	// Owner is "app" or "unit": whose databag it is.
	Owner string `json:"owner"`
	// Bag is the name of the databag: an application or a unit.
	Bag     string `json:"bag"`
	Key     string `json:"key"`
	Value   string `json:"value"`
	Deleted bool   `json:"deleted,omitempty"`
}

// JournalEntry is one commit of a hook, an action or a command. Time is read
// after the transaction's content is complete, immediately before it is made
// durable, on the controller's clock.
type JournalEntry struct {
	Seq    uint64         `json:"seq"`
	Time   time.Time      `json:"time"`
	Unit   string         `json:"unit"`
	Hook   string         `json:"hook"` // full name; "action <name>" for actions
	Remote string         `json:"remote,omitempty"`
	Writes []JournalWrite `json:"writes,omitempty"`
	// Secrets lists ids that the commit created, changed or removed.
	Secrets []string `json:"secrets,omitempty"`
	// State says that charm state or ports changed.
	State bool `json:"state,omitempty"`
	// Statuses are the status-set calls of the hook, in order. They were
	// applied at once, not by the commit.
	Statuses []StatusValue `json:"statuses,omitempty"`
	// Failed is the error of a hook that failed; such an entry has no writes.
	Failed string `json:"failed,omitempty"`
	// Duration of the hook process.
	Duration time.Duration `json:"duration"`
	// ToolCalls counts the hook-tool calls.
	ToolCalls int `json:"tool-calls"`
}

// LogLine is one line of `juju debug-log`.
type LogLine struct {
	Seq     uint64    `json:"seq"`
	Time    time.Time `json:"time"`
	Entity  string    `json:"entity"` // unit-foo-0
	Level   string    `json:"level"`  // TRACE DEBUG INFO WARNING ERROR CRITICAL
	Module  string    `json:"module"` // unit.foo/0.juju-log
	Message string    `json:"message"`
}
