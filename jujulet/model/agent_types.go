// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"strings"
	"time"
)

// HookInfo says which hook runs, or ran, with what about it.
type HookInfo struct {
	// Kind is the hook without its prefix: "install", "relation-changed",
	// "pebble-ready", "secret-changed".
	Kind string `json:"kind"`
	// Relation hooks.
	Endpoint      string `json:"endpoint,omitempty"`
	RelationID    int    `json:"relation-id,omitempty"`
	RemoteUnit    string `json:"remote-unit,omitempty"`
	RemoteApp     string `json:"remote-app,omitempty"`
	DepartingUnit string `json:"departing-unit,omitempty"`
	// Version is the databag version that the hook delivers.
	Version int64 `json:"version,omitempty"`
	// Workload hooks.
	Workload   string `json:"workload,omitempty"`
	NoticeID   string `json:"notice-id,omitempty"`
	NoticeType string `json:"notice-type,omitempty"`
	NoticeKey  string `json:"notice-key,omitempty"`
	CheckName  string `json:"check-name,omitempty"`
	// Secret hooks.
	SecretID       string `json:"secret-id,omitempty"` // bare id
	SecretLabel    string `json:"secret-label,omitempty"`
	SecretRevision int    `json:"secret-revision,omitempty"`
	// Storage hooks.
	StorageID string `json:"storage-id,omitempty"` // data/0
	// Fired says that an operator asked for the hook: it delivers nothing.
	Fired bool `json:"fired,omitempty"`
}

// Name is the hook's full name, as in JUJU_HOOK_NAME.
func (h HookInfo) Name() string {
	switch {
	case h.Endpoint != "":
		return h.Endpoint + "-" + h.Kind
	case h.Workload != "":
		return h.Workload + "-" + h.Kind
	case h.StorageID != "":
		name, _, _ := strings.Cut(h.StorageID, "/")
		return name + "-" + h.Kind
	}
	return h.Kind
}

// OpKind is what a unit agent is doing.
type OpKind string

// The kinds of operations, as Juju's uniter names them.
const (
	OpInstall   OpKind = "install"
	OpUpgrade   OpKind = "upgrade"
	OpRunHook   OpKind = "run-hook"
	OpRunAction OpKind = "run-action"
	OpContinue  OpKind = "continue"
)

// OpStep is how far the operation is.
type OpStep string

// The steps of an operation.
const (
	StepQueued  OpStep = "queued"
	StepPending OpStep = "pending"
	StepDone    OpStep = "done"
)

// RelationState is what the agent of a unit has delivered to its charm of one
// relation.
type RelationState struct {
	Created bool `json:"created,omitempty"`
	// Members maps a unit to the databag version delivered last.
	Members map[string]int64 `json:"members,omitempty"`
	// Apps is the same for application databags.
	Apps map[string]int64 `json:"apps,omitempty"`
	// ChangedPending is the unit whose relation-changed is owed after its
	// relation-joined.
	ChangedPending string `json:"changed-pending,omitempty"`
	// Broken says that relation-broken has succeeded.
	Broken bool `json:"broken,omitempty"`
}

// UnitState is the persisted state of a unit agent. It outlives the pod.
type UnitState struct {
	Installed bool `json:"installed,omitempty"`
	Started   bool `json:"started,omitempty"`
	Stopped   bool `json:"stopped,omitempty"`
	Removed   bool `json:"removed,omitempty"`
	Leader    bool `json:"leader,omitempty"`

	Kind   OpKind    `json:"op"`
	Step   OpStep    `json:"step"`
	Hook   *HookInfo `json:"hook,omitempty"`
	Action string    `json:"action,omitempty"`

	// Charm is the hash of the charm that was deployed last.
	Charm       string `json:"charm,omitempty"`
	ConfigHash  string `json:"config-hash,omitempty"`
	TrustHash   string `json:"trust-hash,omitempty"`
	AddressHash string `json:"address-hash,omitempty"`

	Relations map[int]*RelationState `json:"relations,omitempty"`
	// Storage lists the instances whose storage-attached has succeeded.
	Storage []string `json:"storage,omitempty"`
	// Secrets maps a bare id to the revision delivered by secret-changed last.
	Secrets map[string]int `json:"secrets,omitempty"`
	// Obsolete maps a bare id to the revisions delivered by secret-remove.
	Obsolete map[string][]int `json:"obsolete,omitempty"`
}

// Snapshot is what a unit's resolver needs to know of the model: versions only.
type Snapshot struct {
	Unit string `json:"unit"`
	App  string `json:"app"`
	// Generation is for WaitChange.
	Generation uint64 `json:"generation"`
	Life       Life   `json:"life"`
	AppLife    Life   `json:"app-life"`
	Leader     bool   `json:"leader"`
	// Holder is the unit that leads, "" if none.
	Holder string `json:"holder,omitempty"`
	// LeaseExpires is when leadership, whoever holds it, ends if not renewed.
	LeaseExpires time.Time `json:"lease-expires"`
	// UpdateStatus is the interval of update-status that the model's configuration
	// names; 0 if it names none.
	UpdateStatus time.Duration `json:"update-status,omitempty"`
	// NoRetry keeps failed hooks from being run again without the operator.
	NoRetry bool `json:"no-retry,omitempty"`
	// WakeAt is when the snapshot changes by itself (secrets); zero if never.
	WakeAt time.Time `json:"wake-at"`
	// Charm is the hash of the charm that the unit is to run: its application's.
	Charm string `json:"charm"`
	// Outdated says that charm or resources have changed since the unit's pod was
	// made: it is to be replaced, and all here is as the old charm knows it.
	Outdated    bool   `json:"outdated,omitempty"`
	ConfigHash  string `json:"config-hash"`
	TrustHash   string `json:"trust-hash"`
	AddressHash string `json:"address-hash"`
	// LeaderSettings is the version of the legacy leader settings.
	LeaderSettings int64                    `json:"leader-settings"`
	Resolve        ResolveMode              `json:"resolve,omitempty"`
	Relations      map[int]RelationSnapshot `json:"relations"`
	// Secrets maps a consumed secret to its latest revision.
	Secrets map[string]SecretSnapshot `json:"secrets,omitempty"`
	// Owned events: only of secrets that this unit owns, or leads.
	Obsolete []SecretRevision `json:"obsolete,omitempty"`
	Expired  []SecretRevision `json:"expired,omitempty"`
	Rotate   []SecretRevision `json:"rotate,omitempty"`
	// Storage are the ids of the instances attached to the unit.
	Storage []string `json:"storage,omitempty"`
	// Actions are the ids of this unit's pending actions, in order.
	Actions []string `json:"actions,omitempty"`
	// Fires are hooks that the operator asked to fire, oldest first.
	Fires []Fire `json:"fires,omitempty"`
	// Containers and Endpoints of the charm.
	Containers []string            `json:"containers,omitempty"`
	Endpoints  map[string]Endpoint `json:"endpoints"`
}

// RelationSnapshot is one relation as a unit sees it.
type RelationSnapshot struct {
	ID int `json:"id"`
	// Key is the relation's name, "bar:db foo:db".
	Key       string `json:"key"`
	Endpoint  string `json:"endpoint"`
	Role      Role   `json:"role"`
	RemoteApp string `json:"remote-app"`
	Life      Life   `json:"life"`
	InScope   bool   `json:"in-scope"` // this unit
	// Members are the other units in scope, with their databag versions.
	Members map[string]int64 `json:"members"`
	// AppVersion is the version of the counterpart's application databag; 0 if
	// it was never written.
	AppVersion int64 `json:"app-version"`
}

// SecretSnapshot is a secret that a unit has read.
type SecretSnapshot struct {
	Latest int    `json:"latest"`
	Label  string `json:"label,omitempty"`
}

// SecretRevision names one revision of a secret.
type SecretRevision struct {
	ID       string `json:"id"`
	Revision int    `json:"revision,omitempty"`
	Label    string `json:"label,omitempty"`
}

// Fire is a hook that an operator wants to run now (a verb that Juju has not).
type Fire struct {
	ID   uint64   `json:"id"`
	Hook HookInfo `json:"hook"`
}

// RelationWrite is the buffered relation-set of one databag; "" deletes.
type RelationWrite struct {
	Relation int               `json:"relation"`
	App      bool              `json:"app"`
	Values   map[string]string `json:"values"`
}

// SecretOp is one buffered secret operation.
type SecretOp struct {
	// Op is add, set, remove, grant, revoke or track.
	Op          string            `json:"op"`
	ID          string            `json:"id"`
	Owner       string            `json:"owner,omitempty"` // application or unit
	Label       *string           `json:"label,omitempty"`
	Description *string           `json:"description,omitempty"`
	Rotate      *string           `json:"rotate,omitempty"`
	Expire      *time.Time        `json:"expire,omitempty"`
	Content     map[string]string `json:"content,omitempty"` // base64 values
	Revision    int               `json:"revision,omitempty"`
	Relation    *int              `json:"relation,omitempty"`
	Subject     string            `json:"subject,omitempty"` // app or unit
}

// HookCommit is what the success of a hook, action or command commits, in one
// transaction.
type HookCommit struct {
	// Journal is completed by the model (Seq, Time, Writes, Secrets, State).
	Journal     JournalEntry      `json:"journal"`
	Relations   []RelationWrite   `json:"relations,omitempty"`
	Secrets     []SecretOp        `json:"secrets,omitempty"`
	StateSet    map[string]string `json:"state-set,omitempty"`
	StateDelete []string          `json:"state-delete,omitempty"`
	OpenPorts   []string          `json:"open-ports,omitempty"`
	ClosePorts  []string          `json:"close-ports,omitempty"`
	// Network says that the unit databags get Juju's own network keys again, as
	// config-changed does.
	Network bool `json:"network,omitempty"`
	// Leave are relations whose scope the unit leaves.
	Leave []int `json:"leave,omitempty"`
	// SecretFired says that secret-expired or secret-rotate has run, by the kind of
	// the hook: it fires again in 5 minutes unless the charm has acted.
	SecretFired     *SecretRevision `json:"secret-fired,omitempty"`
	SecretFiredKind string          `json:"secret-fired-kind,omitempty"`
	// DetachStorage is the instance whose storage-detaching has run.
	DetachStorage string `json:"detach-storage,omitempty"`
	// ClearResolve forgets the operator's `resolved`.
	ClearResolve bool `json:"clear-resolve,omitempty"`
	// State is the agent's new state; nil keeps the old.
	State *UnitState `json:"state,omitempty"`
	// Agent, if set, is the new agent status.
	Agent *StatusValue `json:"agent,omitempty"`
	// ActionDone, if set, finishes an action.
	ActionDone *ActionResult `json:"action-done,omitempty"`
}

// ActionResult ends an action.
type ActionResult struct {
	ID      string         `json:"id"`
	Status  ActionStatus   `json:"status"`
	Message string         `json:"message,omitempty"`
	Results map[string]any `json:"results,omitempty"`
}

// SecretMeta is what secret-info-get shows of a secret that the unit manages.
type SecretMeta struct {
	ID          string         `json:"id"`
	Owner       string         `json:"owner"` // application or unit
	Label       string         `json:"label,omitempty"`
	Description string         `json:"description,omitempty"`
	Rotate      string         `json:"rotate,omitempty"`
	Expire      *time.Time     `json:"expire,omitempty"`
	NextRotate  *time.Time     `json:"next-rotate,omitempty"`
	Latest      int            `json:"latest"`
	Access      []SecretAccess `json:"access,omitempty"`
}

// SecretAccess is one grant.
type SecretAccess struct {
	Target string `json:"target"` // "application-foo" is written "foo"
	Scope  string `json:"scope"`  // "relation db:3" by id
	Role   string `json:"role"`
}

// SecretValue is the content of one revision.
type SecretValue struct {
	ID       string            `json:"id"`
	Revision int               `json:"revision"`
	Latest   int               `json:"latest"`
	Content  map[string]string `json:"content"` // base64 values
}

// GoalStatus is one entry of goal-state.
type GoalStatus struct {
	Status string    `json:"status"`
	Since  time.Time `json:"since"`
}

// GoalState is what goal-state prints: units by name, and for each endpoint the
// applications and units on the other side.
type GoalState struct {
	Units     map[string]GoalStatus            `json:"units"`
	Relations map[string]map[string]GoalStatus `json:"relations"`
}

// RelationView is a relation as the hook tools of a unit see it.
type RelationView struct {
	ID int `json:"id"`
	// Key is the relation's name, "bar:db foo:db".
	Key       string `json:"key"`
	Endpoint  string `json:"endpoint"`
	Role      Role   `json:"role"`
	RemoteApp string `json:"remote-app"`
	Life      Life   `json:"life"`
	InScope   bool   `json:"in-scope"`
	// Model is the id of the model of the other side.
	Model string `json:"model"`
}

// ContextInfo is what a hook context needs at its start.
type ContextInfo struct {
	Info      Info           `json:"info"`
	App       string         `json:"app"`
	Relations []RelationView `json:"relations"` // by id
	// Proxies are the model's juju-*-proxy, by HTTP, HTTPS, FTP and NO.
	Proxies map[string]string `json:"proxies,omitempty"`
	// PodAddress, Ingress (the application Service's addresses).
	PodAddress string   `json:"pod-address"`
	Ingress    []string `json:"ingress"`
	Trust      bool     `json:"trust"`
	// Endpoints of the charm, juju-info not included.
	Endpoints map[string]Endpoint `json:"endpoints"`
	Resources map[string]string   `json:"resources,omitempty"`
	// Declared are the charm's resources.
	Declared map[string]Resource `json:"declared,omitempty"`
	Base     Base                `json:"base"`
	// Storage are the instances attached to the unit, by id; StorageMeta is what
	// the charm declares.
	Storage     map[string]StorageView `json:"storage,omitempty"`
	StorageMeta map[string]Storage     `json:"storage-meta,omitempty"`
}

// StorageView is a storage instance as the hook tools of a unit see it.
type StorageView struct {
	Kind     string `json:"kind"`
	Location string `json:"location"`
}
