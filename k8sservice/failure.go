// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package k8sservice

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// FailureKind says what to do about an error of the Kubernetes API.
type FailureKind string

// The kinds of failure.
const (
	Forbidden    FailureKind = "forbidden"    // rights are missing: juju trust
	Unauthorized FailureKind = "unauthorized" // the token was refused, also after it was read again
	Busy         FailureKind = "busy"         // 409, 429, 5xx, no connection, timeout: later
	Invalid      FailureKind = "invalid"      // Kubernetes, a quota or a webhook refuses the content
	OurBug       FailureKind = "bug"          // a request that makes no sense; asking again does not help
	NotFound     FailureKind = "not-found"    // the object or its namespace is not there
)

// Failure is an error of the Kubernetes API, read.
type Failure struct {
	Kind     FailureKind
	Verb     string // of Forbidden: "patch"
	Resource string // of Forbidden: "services"
	Cluster  bool   // of Forbidden: at the cluster scope, not in the namespace
	Field    string // of Invalid: the first field that is refused, if it is known
	Message  string // one line, from Kubernetes where it gave one
}

// denied is how RBAC words a refusal. Quotas and webhooks answer 403 too, and
// no trust helps there.
var denied = regexp.MustCompile(`cannot (\S+) resource "([^"]+)"`)

// typeErrorText is in the 500 that answers an apply whose body does not fit
// the type: a number in the place of a text, an unknown field, one port twice.
const typeErrorText = "failed to create typed patch object"

// Classify reads an error that a method of Client returned. The zero Failure
// is for nil.
func Classify(err error) Failure {
	if err == nil {
		return Failure{}
	}
	var unnamed *UnnamedPortError
	if errors.As(err, &unnamed) {
		return Failure{Kind: Invalid, Field: "spec.ports", Message: unnamed.Error()}
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return Failure{Kind: Busy, Message: connectionText(err)}
	}
	s := status.Status()
	f := Failure{Message: oneLine(s.Message)}
	if s.Details != nil && len(s.Details.Causes) > 0 {
		f.Field = s.Details.Causes[0].Field
	}
	f.Kind = kindOf(err, int(s.Code), s.Message)
	if f.Kind == Forbidden {
		found := denied.FindStringSubmatch(s.Message)
		f.Verb, f.Resource = found[1], found[2]
		f.Cluster = strings.Contains(s.Message, "at the cluster scope")
	}
	return f
}

func kindOf(err error, code int, message string) FailureKind {
	switch {
	case strings.Contains(message, typeErrorText):
		return OurBug
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return Busy
	case apierrors.IsForbidden(err) && denied.MatchString(message):
		return Forbidden
	case apierrors.IsUnauthorized(err):
		return Unauthorized
	case apierrors.IsNotFound(err):
		return NotFound
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), code == 413:
		return Invalid
	case code == 408, code == 409, code == 429, code >= 500:
		return Busy
	case strings.Contains(message, "admission webhook"):
		return Invalid
	}
	return OurBug
}

// retryable reports whether asking again soon may help.
func retryable(err error) bool {
	var status apierrors.APIStatus
	if errors.As(err, &status) || errors.As(err, new(net.Error)) {
		return Classify(err).Kind == Busy
	}
	return false
}

// connectionText words an error that is not an answer of the API.
func connectionText(err error) string {
	const what = "cannot reach the Kubernetes API: "
	var timeout *timeoutError
	switch {
	case errors.As(err, &timeout):
		return what + timeout.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return what + "timed out"
	case errors.Is(err, context.Canceled):
		return what + "interrupted"
	}
	var op *net.OpError
	if errors.As(err, &op) {
		return what + oneLine(op.Err.Error())
	}
	return oneLine(err.Error())
}

// oneLine makes a text fit for a status message.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	const most = 300
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "..."
	}
	return text
}

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

// unnamedPort finds a port that makes Kubernetes refuse ours.
func unnamedPort(live *corev1.Service) error {
	if live == nil {
		return nil
	}
	ours := map[*corev1.ServicePort]bool{findPort(live, PortReadWrite): true, findPort(live, PortReadOnly): true}
	for i := range live.Spec.Ports {
		p := &live.Spec.Ports[i]
		if p.Name == "" && !ours[p] {
			protocol := string(p.Protocol)
			if protocol == "" {
				protocol = string(corev1.ProtocolTCP)
			}
			return &UnnamedPortError{Service: live.Name, Port: p.Port, Protocol: protocol}
		}
	}
	return nil
}
