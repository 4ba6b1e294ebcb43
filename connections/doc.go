// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

// Package connections decides about connected ConfigMaps and connected applications: which are wanted, what the document
// for the workload (configmeta.json) says, whether it has changed, and what people are told. It is pure: no I/O, no
// clock, no other package of the project. Package connections/carry does what is decided here; cmd/connq reads the
// document with it.
//
// # Words
//
//   - an *item* is one connection: a ConfigMap that the option connected-configmaps lists, or the application on the
//     other side of a relation on the endpoint `connections`;
//   - its *digest* is a hash of its content, and nothing else: not of versions, times, annotations or the order of a list;
//   - the *hash* of a document is a hash of its items' digests. Two documents with one hash say the same.
//
// Desired and applied are hashes of content. So a replayed event, a new leader, a lost file or a change that was taken
// back decide nothing by themselves: whoever looks finds a difference, or finds none.
//
// Everything that comes from outside (options, ConfigMaps, databags of other applications, the file in the container) is
// taken for hostile: bounded, checked, and never quoted in a status without bounds.
package connections

// What Juju, Kubernetes and the workload call things.
const (
	// Domain is the domain of our labels and notices.
	Domain = "drawbridge-k8s.charm"
	// LabelType is the label of a ConfigMap that says what it is for.
	LabelType = Domain + "/connection-type"
	// LabelKubeDirector is KubeDirector's label of the same meaning; it counts where ours is absent.
	LabelKubeDirector = "kubedirector.hpe.com/cmType"
	// Untyped is the type of a ConfigMap with neither label.
	Untyped = "untyped"

	// EndpointProvided is the endpoint that shows our metadata to others, EndpointRequired the one that takes theirs in.
	EndpointProvided = "connection"
	EndpointRequired = "connections"
	// Interface is the interface of both.
	Interface = "app_connection"

	// OptConfigMaps and the others are options, as `juju config` spells them.
	OptConfigMaps  = "connected-configmaps"
	OptConnectable = "connectable-to"
	OptCategory    = "connection-category"
	OptHook        = "connections-hook"
	OptHookTimeout = "connections-hook-timeout"

	// ActionGet and the others are actions.
	ActionGet    = "get-connections"
	ActionQuery  = "query-connection"
	ActionResync = "resync-connections"

	// Path is where the document is in the workload container; Dir is its folder, with mode 0700.
	Path = Dir + "/configmeta.json"
	Dir  = "/etc/drawbridge"
	// Tool is where the program that queries the document is in the workload container.
	Tool = "/usr/local/bin/connq"

	// NoticeKey is the key of the Pebble notice that says that a connected ConfigMap has changed. It has no name in it:
	// Pebble refuses names with dots.
	NoticeKey = Domain + "/connections-changed"

	// Schema is the version of the document and of every databag value of this package.
	Schema = 1
)

// Bounds.
const (
	// MaxNames is how many ConfigMaps may be listed.
	MaxNames = 64
	// MaxConfigMap and MaxTotal bound the content of one ConfigMap and of all, in bytes.
	MaxConfigMap = 1 << 20
	MaxTotal     = 4 << 20
	// MaxMetadata bounds the metadata of one application, in bytes of JSON.
	MaxMetadata = 64 << 10
)

// Kind is the kind of an item.
type Kind string

// The kinds of items. An application is called cluster, as in KubeDirector.
const (
	KindConfigMap Kind = "configmap"
	KindCluster   Kind = "cluster"
)

// State says how it stands with one item.
type State string

// The states of items.
const (
	OK        State = "ok"
	Missing   State = "missing"   // required, and not there
	Absent    State = "absent"    // optional, and not there
	Forbidden State = "forbidden" // rights are missing
	Stale     State = "stale"     // cannot be read now
	TooLarge  State = "too-large"
	Invalid   State = "invalid"
	Pending   State = "pending" // related, and no metadata yet
	Rejected  State = "rejected"
)
