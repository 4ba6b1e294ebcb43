// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cluster

// Kind names a kind of the closed table, spelled as in manifests.
type Kind string

// The kinds that are stored. SelfSubjectAccessReview is answered, not stored.
const (
	Service       Kind = "Service"
	Pod           Kind = "Pod"
	Node          Kind = "Node"
	StatefulSet   Kind = "StatefulSet"
	ConfigMap     Kind = "ConfigMap"
	Secret        Kind = "Secret"
	EventKind     Kind = "Event"
	EndpointSlice Kind = "EndpointSlice"
	Namespace     Kind = "Namespace"
)
