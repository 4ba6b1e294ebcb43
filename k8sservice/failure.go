// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package k8sservice

import "fmt"

// FailureKind says what to do about an error of the Kubernetes API.
type FailureKind string

// The kinds of failure.
const (
	Forbidden    FailureKind = "forbidden"    // rights are missing: juju trust
	Unauthorized FailureKind = "unauthorized" // the token was refused, also after it was read again
	Busy         FailureKind = "busy"         // 409, 429, 5xx, no connection, timeout: later
	Invalid      FailureKind = "invalid"      // Kubernetes refuses the content
	OurBug       FailureKind = "bug"          // "failed to create typed patch object", a request that makes no sense
	NotFound     FailureKind = "not-found"    // the object or its namespace is not there
)

// Failure is an error of the Kubernetes API, read.
type Failure struct {
	Kind     FailureKind
	Verb     string // of Forbidden: "patch"
	Resource string // of Forbidden: "services"
	Cluster  bool   // of Forbidden: at the cluster scope, not in the namespace
	Field    string // of Invalid: the first field that is refused
	Message  string // one line, from Kubernetes where it gave one
}

// Classify reads an error that a method of Client returned. The zero Failure
// is for nil.
func Classify(err error) Failure { panic("unfinished") }

// UnnamedPortError says that somebody put a port without a name on our
// Service: Kubernetes refuses every Service with more than one port of which
// one has no name.
type UnnamedPortError struct {
	Service  string
	Port     int32
	Protocol string
}

// Error names the port.
func (e *UnnamedPortError) Error() string {
	return fmt.Sprintf("cannot apply Service %q: its port %d/%s, which is not ours, has no name", e.Service, e.Port, e.Protocol)
}
