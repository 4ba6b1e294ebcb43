// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"errors"
	"fmt"
)

// ErrorKind classifies an Error; it crosses process borders.
type ErrorKind string

// The kinds of errors that callers branch on.
const (
	NotFound   ErrorKind = "not found"
	Exists     ErrorKind = "already exists"
	Permission ErrorKind = "permission denied"
	NotLeader  ErrorKind = "not leader"
	Invalid    ErrorKind = "invalid"
	Quota      ErrorKind = "quota exceeded"
)

// Error is an error with a kind. Its message is what Juju prints.
type Error struct {
	Kind    ErrorKind `json:"kind"`
	Message string    `json:"message"`
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// KindOf returns the kind of the first *Error in err's chain, or "".
func KindOf(err error) ErrorKind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

func errf(kind ErrorKind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

func notFound(what, name string) error { return errf(NotFound, "%s %q not found", what, name) }
