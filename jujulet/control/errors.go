// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package control

import (
	"errors"
	"net/http"
)

// Kind says what sort of refusal an [Error] is.
type Kind string

// The kinds of refusal.
const (
	KindInvalid     Kind = "invalid"     // the request can never succeed as it is
	KindNotFound    Kind = "not-found"   // what it names does not exist
	KindConflict    Kind = "conflict"    // the present state forbids it
	KindUnsupported Kind = "unsupported" // jujulet does not do this
	KindTimeout     Kind = "timeout"     // it took longer than allowed
	KindUnavailable Kind = "unavailable" // no cluster process answers, or it is stopping
	KindInternal    Kind = "internal"    // a fault of jujulet
)

// Error is a refusal by the cluster process. Message is complete: the command
// line prints it behind "ERROR ".
type Error struct {
	Kind    Kind   `json:"kind"`
	Message string `json:"message"`
}

// Error returns the message alone.
func (e *Error) Error() string { return e.Message }

// KindOf returns the kind of a refusal found in err, and KindInternal for any
// other error.
func KindOf(err error) Kind {
	var refusal *Error
	if errors.As(err, &refusal) {
		return refusal.Kind
	}
	return KindInternal
}

// HTTPStatus returns the HTTP status that carries a kind.
func (k Kind) HTTPStatus() int {
	switch k {
	case KindInvalid, KindUnsupported:
		return http.StatusBadRequest
	case KindNotFound:
		return http.StatusNotFound
	case KindConflict:
		return http.StatusConflict
	case KindTimeout:
		return http.StatusGatewayTimeout
	case KindUnavailable:
		return http.StatusServiceUnavailable
	case KindInternal:
		return http.StatusInternalServerError
	default:
		return http.StatusInternalServerError
	}
}
