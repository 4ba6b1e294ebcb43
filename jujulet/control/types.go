// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package control

import (
	"time"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// Info describes a running cluster process.
type Info struct {
	Version      string        `json:"version"`       // of jujulet
	PID          int           `json:"pid"`           // on the host
	State        string        `json:"state"`         // state folder
	Runtime      string        `json:"runtime"`       // runtime folder
	Model        string        `json:"model"`         // model name, also the namespace
	ModelUUID    string        `json:"model-uuid"`    // stays over restarts
	Controller   string        `json:"controller"`    // controller name as status shows it
	Started      time.Time     `json:"started"`       // of this process
	UpdateStatus time.Duration `json:"update-status"` // mean interval; 0 is off
	Ready        bool          `json:"ready"`         // the API, DNS, proxy and network are up
}

// DeployRequest asks for a new application. Charm is a .charm file or an
// unpacked charm folder; the client makes it and resource folders absolute.
type DeployRequest struct {
	Charm       string            `json:"charm"`
	Application string            `json:"application,omitempty"` // "": the charm's name
	Units       int               `json:"units"`                 // at least 0; the command line's default is 1
	Config      map[string]string `json:"config,omitempty"`      // option to text as typed
	Resources   map[string]string `json:"resources,omitempty"`   // "host", a root filesystem folder, an image (see model.PinImage), or a file
	Storage     []string          `json:"storage,omitempty"`     // directives, "name=pool,count,size"
	Trust       bool              `json:"trust,omitempty"`
}

// RefreshRequest replaces the charm of an application. Charm is as in
// [DeployRequest].
type RefreshRequest struct {
	Application string            `json:"application"`
	Charm       string            `json:"charm"`
	Config      map[string]string `json:"config,omitempty"`
	Resources   map[string]string `json:"resources,omitempty"`
	Trust       *bool             `json:"trust,omitempty"`
}

// ResourceRequest gives resources anew.
type ResourceRequest struct {
	Application string            `json:"application"`
	Resources   map[string]string `json:"resources"`
}

// DeployResult is what a deploy made.
type DeployResult struct {
	Application string `json:"application"`
	Charm       string `json:"charm"` // name
	CharmURL    string `json:"charm-url"`
	Revision    int    `json:"revision"`
	// DefaultImages are resources for which no image was given: their containers run on this machine's files.
	DefaultImages []string `json:"default-images,omitempty"`
}

// ConfigOption is one charm or application option as "juju config" prints it.
// Value and Default are nil when there is none.
type ConfigOption struct {
	Default     any    `json:"default,omitempty" yaml:"default,omitempty"`
	Description string `json:"description" yaml:"description"`
	Source      string `json:"source" yaml:"source"` // unset, default or user
	Type        string `json:"type" yaml:"type"`
	Value       any    `json:"value,omitempty" yaml:"value,omitempty"`
}

// Config is an application's configuration.
type Config struct {
	Application       string                  `json:"application" yaml:"application"`
	ApplicationConfig map[string]ConfigOption `json:"application-config" yaml:"application-config"`
	Charm             string                  `json:"charm" yaml:"charm"`
	Settings          map[string]ConfigOption `json:"settings" yaml:"settings"`
}

// ConfigChange sets options from text as typed and resets others.
type ConfigChange struct {
	Application string            `json:"application"`
	Set         map[string]string `json:"set,omitempty"`
	Reset       []string          `json:"reset,omitempty"`
}

// Endpoints names the two sides of a relation: "app" or "app:endpoint".
type Endpoints struct {
	A string `json:"a"`
	B string `json:"b"`
}

// Relation is what an integrate made.
type Relation struct {
	ID        int    `json:"id"`
	Interface string `json:"interface"`
	Provider  string `json:"provider"` // "app:endpoint"
	Requirer  string `json:"requirer"`
}

// ApplicationRequest names an application.
type ApplicationRequest struct {
	Application string `json:"application"`
}

// ScaleRequest sets the number of units, or (Change not 0) changes it.
type ScaleRequest struct {
	Application string `json:"application"`
	Units       int    `json:"units"`
	Change      int    `json:"change,omitempty"`
	// Force removes surplus units without their hooks.
	Force bool `json:"force,omitempty"`
}

// RemoveRequest removes an application. Force skips the hooks of its units.
type RemoveRequest struct {
	Application    string `json:"application"`
	Force          bool   `json:"force,omitempty"`
	DestroyStorage bool   `json:"destroy-storage,omitempty"`
}

// StorageRequest names a storage instance.
type StorageRequest struct {
	ID string `json:"id"`
}

// TrustRequest gives or takes rights in the whole cluster.
type TrustRequest struct {
	Application string `json:"application"`
	Trust       bool   `json:"trust"`
}

// RunRequest enqueues an action. Units are "app/0" or "app/leader".
type RunRequest struct {
	Units  []string       `json:"units"`
	Action string         `json:"action"`
	Params map[string]any `json:"params,omitempty"`
}

// Operation is a group of tasks enqueued together.
type Operation = model.Operation

// ExecRequest runs a shell command in a hook context ("juju exec"). Units,
// "app/leader" and whole applications may be named.
type ExecRequest struct {
	Units        []string      `json:"units,omitempty"`
	Applications []string      `json:"applications,omitempty"`
	Command      string        `json:"command"` // for "bash -s" in the charm's folder
	Timeout      time.Duration `json:"timeout,omitempty"`
}

// ResolvedRequest resolves hook errors. All means every unit in error.
type ResolvedRequest struct {
	Units   []string `json:"units,omitempty"`
	All     bool     `json:"all,omitempty"`
	NoRetry bool     `json:"no-retry,omitempty"`
}

// LeaderRequest moves leadership at once, without waiting for the lease.
type LeaderRequest struct {
	Application string `json:"application"`
	Unit        string `json:"unit"`
}

// FireRequest queues a hook as if its cause had happened, such as
// "update-status" or "database-relation-changed". Relation hooks need the
// argument "relation" ("database:3") and, for joined, changed and departed,
// "remote" (a unit or application).
type FireRequest struct {
	Unit string            `json:"unit"`
	Hook string            `json:"hook"`
	Args map[string]string `json:"args,omitempty"`
}

// KillTarget is what "kill" ends, always by SIGKILL.
type KillTarget string

// What can be killed.
const (
	KillPod   KillTarget = "pod"   // no stop hook; made again after 1 s
	KillAgent KillTarget = "agent" // started again after 1 s
	KillHook  KillTarget = "hook"  // the charm process that runs now
)

// KillRequest names what to end.
type KillRequest struct {
	Target KillTarget `json:"target"`
	Unit   string     `json:"unit"`
}

// LogRequest selects log lines. The zero value is everything kept, then end.
type LogRequest struct {
	Follow  bool     `json:"follow,omitempty"`  // go on with new lines
	Lines   int      `json:"lines,omitempty"`   // only the last n of what is there; 0 is all
	Replay  bool     `json:"replay,omitempty"`  // with Follow: start with everything kept
	Level   string   `json:"level,omitempty"`   // least level
	Include []string `json:"include,omitempty"` // entities, or "app"
	Exclude []string `json:"exclude,omitempty"`
	Modules []string `json:"modules,omitempty"` // prefixes of modules
	// NotModules are prefixes of modules that are left out.
	NotModules []string `json:"not-modules,omitempty"`
	First      int      `json:"first,omitempty"` // with Replay: only the first n of what is there; 0 is all
}

// JournalRequest selects entries of the commit journal.
type JournalRequest struct {
	Since  uint64 `json:"since,omitempty"`  // entries with a greater Seq
	Follow bool   `json:"follow,omitempty"` // go on with new entries
	Unit   string `json:"unit,omitempty"`   // only of this unit
}
