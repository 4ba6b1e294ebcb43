// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import "time"

// Status is everything that `juju status`, `show-unit` and `config` print, read
// in one transaction.
type Status struct {
	Model Info `json:"model"`
	// ModelSince is when the model was made available.
	ModelStatus  StatusValue                  `json:"model-status"`
	Life         Life                         `json:"life"`
	Applications map[string]ApplicationStatus `json:"applications"`
	Relations    []RelationStatus             `json:"relations"` // by id
	Storage      []StorageStatus              `json:"storage"`   // by number
	// Remotes are the offers of other models that this one consumes, by alias.
	Remotes map[string]RemoteStatus `json:"remotes,omitempty"`
	Offers  map[string]OfferStatus  `json:"offers,omitempty"`
}

// ApplicationStatus is one application as status shows it.
type ApplicationStatus struct {
	Name  string `json:"name"`
	Life  Life   `json:"life"`
	Scale int    `json:"scale"` // desired
	// Current counts units whose agent is executing, idle or running.
	Current  int    `json:"current"`
	Charm    string `json:"charm"`     // "local:foo-0"
	CharmRev int    `json:"charm-rev"` // starts at 0
	// CharmVersion counts the changes of charm and resources, from 1.
	CharmVersion int `json:"charm-version"`
	// CharmHash names the archive; it changes with a refresh.
	CharmHash string      `json:"charm-hash"`
	CharmName string      `json:"charm-name"`
	Base      Base        `json:"base"`
	Version   string      `json:"version,omitempty"` // application-version-set
	Status    StatusValue `json:"status"`            // as displayed
	Address   string      `json:"address,omitempty"`
	// ProviderID is the uid of the application's Service.
	ProviderID string            `json:"provider-id,omitempty"`
	Trust      bool              `json:"trust"`
	Resources  map[string]string `json:"resources,omitempty"`
	Leader     string            `json:"leader,omitempty"`
	// Endpoints are the charm's endpoints, juju-info not included.
	Endpoints map[string]Endpoint `json:"endpoints"`
	// Containers are the workload containers, by name.
	Containers map[string]Container `json:"containers"`
	// Ports is the union of the units' opened ports, "8080/tcp", sorted.
	Ports  []string              `json:"ports,omitempty"`
	Units  map[string]UnitStatus `json:"units"`
	Config []ConfigValue         `json:"config"` // by name, trust not included
}

// RemoteStatus is an application of another model, under the name that it has here.
type RemoteStatus struct {
	URL       string              `json:"url"`
	Life      Life                `json:"life"`
	Status    StatusValue         `json:"status"`
	Endpoints map[string]Endpoint `json:"endpoints"`
	// Relations are the related applications by endpoint.
	Relations map[string][]string `json:"relations,omitempty"`
}

// OfferStatus is what a model offers to others.
type OfferStatus struct {
	Name        string              `json:"name"`
	URL         string              `json:"url"`
	Application string              `json:"application"`
	Charm       string              `json:"charm"`
	CharmName   string              `json:"charm-name"`
	CharmRev    int                 `json:"charm-rev"`
	Description string              `json:"description"`
	Endpoints   map[string]Endpoint `json:"endpoints"`
	Connections []OfferConnection   `json:"connections,omitempty"`
}

// OfferConnection is one use of an offer.
type OfferConnection struct {
	Model    string    `json:"model"` // id of the consuming one
	Relation int       `json:"relation"`
	Endpoint string    `json:"endpoint"`
	Status   string    `json:"status"` // joined or removing
	Since    time.Time `json:"since"`
}

// UnitStatus is one unit as status shows it.
type UnitStatus struct {
	Name    string `json:"name"`
	Ordinal int    `json:"ordinal"`
	Life    Life   `json:"life"`
	Leader  bool   `json:"leader"`
	// Workload and Agent are as displayed: a hook error is shown in Workload.
	Workload StatusValue `json:"workload"`
	Agent    StatusValue `json:"agent"`
	// RawWorkload is what the charm set last.
	RawWorkload StatusValue `json:"raw-workload"`
	Version     string      `json:"workload-version,omitempty"`
	Ports       []string    `json:"ports,omitempty"`
	Pod         PodStatus   `json:"pod"`
	// Error is the failed hook's name while the agent is in error.
	Error string `json:"error,omitempty"`
	// Started says that the start hook has succeeded at least once.
	Started bool `json:"started"`
	// Dead says that the unit's agent has run its last hook: the pod can go.
	Dead bool `json:"dead,omitempty"`
	// Idle says that the agent has nothing left to do. While a pod is gone, and until the agent of the next one has begun,
	// the agent's status is still what it was, as in Juju; Idle is not.
	Idle bool `json:"idle"`
}

// RelationStatus is one relation with its databags.
type RelationStatus struct {
	ID     int           `json:"id"`
	Life   Life          `json:"life"`
	Status string        `json:"status"` // "joined" or "removing"
	Ends   []EndpointRef `json:"ends"`   // provider first; one for a peer relation
	// Cross says that one side is of another model; Proxy that it is the consuming
	// one, which juju's status leaves out.
	Cross bool `json:"cross,omitempty"`
	Proxy bool `json:"proxy,omitempty"`
	// InScope are the units that have entered, sorted.
	InScope []string `json:"in-scope"`
	// Bags are the databags by owner: application or unit name.
	Bags map[string]map[string]string `json:"bags"`
}

// StorageStatus is one storage instance with its filesystem, volume and claim.
type StorageStatus struct {
	ID     string `json:"id"`     // data/0
	Number int    `json:"number"` // of its filesystem and its volume
	Name   string `json:"name"`
	Kind   string `json:"kind"` // filesystem
	// Unit is what it is attached to; "" if it is detached.
	Unit     string `json:"unit,omitempty"`
	Life     Life   `json:"life"`
	Pool     string `json:"pool"`
	Size     uint64 `json:"size"`     // MiB
	Location string `json:"location"` // in the charm container
	ReadOnly bool   `json:"read-only,omitempty"`
	// Volume names the volume; Claim and ClaimUID the PersistentVolumeClaim.
	Volume   string `json:"volume"`
	Claim    string `json:"claim"`
	ClaimUID string `json:"claim-uid"`
	// Status is pending, attached or detached.
	Status StatusValue `json:"status"`
}

// ConfigValue is one option as `juju config` shows it.
type ConfigValue struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Description string `json:"description"`
	Source      string `json:"source"` // unset, default or user
	Default     any    `json:"default,omitempty"`
	Value       any    `json:"value,omitempty"`
}
