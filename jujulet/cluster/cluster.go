// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

// Package cluster is the embedded Kubernetes API server of jujulet: a closed table of kinds, served
// over HTTP as a real API server serves them, kept in memory and, but for Pods and EndpointSlices,
// in a bbolt database.
//
// The life of one write: decode (strictly if asked) -> resourceVersion and uid -> defaults -> field
// manager -> keep or wipe allocated fields by type -> validate -> allocate -> stop here if nothing
// but times in managedFields differs -> commit: one more on the global resourceVersion, one event.
// One mutex serves the whole store; stored objects are never changed after they are committed, so
// readers and watchers share them.
//
// Three doors lead in: Handler (HTTP, with bearer tokens and rights), RoundTripper (the same without
// a socket) and Admin (Go values, no rights asked, the same rules otherwise).
package cluster

import (
	"log/slog"
	"time"

	"go.etcd.io/bbolt"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Object is a stored API object: one of *corev1.Service, *corev1.Pod, *corev1.Node,
// *appsv1.StatefulSet, *corev1.ConfigMap, *corev1.Secret, *corev1.Event,
// *discoveryv1.EndpointSlice, *corev1.Namespace.
type Object interface {
	metav1.Object
	runtime.Object
}

// Options configure a Server. The zero value is a server in memory with Kubernetes' own ranges.
type Options struct {
	// DB keeps the objects over restarts; nil means memory only. The server uses buckets of its own
	// (named "cluster-...") and never closes the database.
	DB *bbolt.DB
	// Logger receives diagnostics; nil discards them.
	Logger *slog.Logger
	// Clock is the source of timestamps; nil is time.Now.
	Clock func() time.Time
	// NodePortFirst and NodePortLast bound node ports, both inclusive; 0, 0 means 30000-32767.
	NodePortFirst, NodePortLast int32
	// ServiceCIDR is the range of cluster addresses; "" means 10.152.183.0/24. Its first address
	// belongs to the Service "kubernetes" in the namespace "default".
	ServiceCIDR string
	// Reserved are addresses of ServiceCIDR that are given out only when a Service asks for them by
	// name; nil means the tenth, where Kubernetes distributions put their DNS.
	Reserved []string
	// History is how many events are kept for watches that start in the past; 0 means 1024. A watch
	// from before that gets 410 Expired.
	History int
}

// Rule grants verbs, as an RBAC policy rule does, in one namespace.
type Rule struct {
	// Namespace limits the rule; "" means the whole cluster, cluster-scoped kinds included.
	Namespace string `json:"namespace,omitempty"`
	rbacv1.PolicyRule
}

// EventType says what happened to an object.
type EventType string

// The event types, spelled as Kubernetes does.
const (
	Added    EventType = "ADDED"
	Modified EventType = "MODIFIED"
	Deleted  EventType = "DELETED"
)

// Event is one change of one object. Object is shared with the store: read only, DeepCopy to keep a
// changed version. For Deleted it is the last state.
type Event struct {
	Type   EventType
	Kind   Kind
	Object Object
	// Version is the global resourceVersion of the change; 0 for the initial state of a watch.
	Version int64
}
