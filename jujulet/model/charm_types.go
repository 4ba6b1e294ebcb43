// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

// Charm is a charm that was read and validated as Juju does, see ReadCharm.
type Charm struct {
	Meta    Meta                  `json:"meta"`
	Config  map[string]Option     `json:"config"`
	Actions map[string]ActionSpec `json:"actions"`
	Bases   []Base                `json:"bases"`
	// Hash is the SHA-256 of the archive as repacked, in hexadecimal.
	Hash string `json:"hash"`
	// Size of the repacked archive in bytes.
	Size int64 `json:"size"`
	// Revision is what the charm's file "revision" says; 0 without one.
	Revision int `json:"revision,omitempty"`

	archive []byte
}

// Meta is metadata.yaml.
type Meta struct {
	Name        string               `json:"name"`
	Summary     string               `json:"summary"`
	Description string               `json:"description"`
	Endpoints   map[string]Endpoint  `json:"endpoints"`
	Containers  map[string]Container `json:"containers"`
	Resources   map[string]Resource  `json:"resources"`
	Storage     map[string]Storage   `json:"storage"`
	Assumes     []any                `json:"assumes,omitempty"`
	CharmUser   string               `json:"charm-user,omitempty"`
}

// Endpoint is one relation endpoint of a charm.
type Endpoint struct {
	Name      string `json:"name"`
	Role      Role   `json:"role"`
	Interface string `json:"interface"`
	Limit     int    `json:"limit,omitempty"`
	Optional  bool   `json:"optional,omitempty"`
	Scope     string `json:"scope"`
}

// Container is one workload container.
type Container struct {
	Name     string  `json:"name"`
	Resource string  `json:"resource,omitempty"`
	Mounts   []Mount `json:"mounts,omitempty"`
	UID      *int    `json:"uid,omitempty"`
	GID      *int    `json:"gid,omitempty"`
}

// Mount is one storage mount of a container.
type Mount struct {
	Storage  string `json:"storage"`
	Location string `json:"location"`
}

// Resource is one declared resource.
type Resource struct {
	Name        string `json:"name"`
	Type        string `json:"type"` // oci-image or file
	Filename    string `json:"filename,omitempty"`
	Description string `json:"description,omitempty"`
}

// Option is one configuration option of a charm.
type Option struct {
	Type        string `json:"type"` // string int float boolean secret
	Description string `json:"description"`
	Default     any    `json:"default"`
}

// ActionSpec is one action of a charm.
type ActionSpec struct {
	Name           string `json:"name"`
	Description    string `json:"description,omitempty"`
	Parallel       bool   `json:"parallel,omitempty"`
	ExecutionGroup string `json:"execution-group,omitempty"`
	// Params is the JSON schema of the parameters: type object.
	Params map[string]any `json:"params,omitempty"`
}

// Base is one operating system that a charm runs on.
type Base struct {
	Name          string   `json:"name"`
	Channel       string   `json:"channel"`
	Architectures []string `json:"architectures,omitempty"`
}
