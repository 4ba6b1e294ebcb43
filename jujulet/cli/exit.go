// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
)

// Exit codes, as juju's: a command line that cannot be understood is 2, all that goes wrong later is 1. A command that
// runs another one (shell) exits with that one's code.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// commandError is an error with an exit code. A nil cause is silent: everything has been said.
type commandError struct {
	code  int
	cause error
	hint  string
}

// Error returns the cause's text.
func (e *commandError) Error() string {
	if e.cause == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.cause.Error()
}

// Unwrap returns the cause.
func (e *commandError) Unwrap() error { return e.cause }

func usageErrorf(format string, args ...any) error {
	return &commandError{code: exitUsage, cause: fmt.Errorf(format, args...)}
}

func runErrorf(format string, args ...any) error {
	return &commandError{code: exitFailed, cause: fmt.Errorf(format, args...)}
}

// exitSilently ends a command with a code after it has printed all there is to say.
func exitSilently(code int) error { return &commandError{code: code} }

// hintf adds what to do about an error.
func hintf(err error, format string, args ...any) error {
	var known *commandError
	code := exitFailed
	if errors.As(err, &known) {
		code = known.code
	}
	return &commandError{code: code, cause: err, hint: fmt.Sprintf(format, args...)}
}

// report prints the error of a command, if there is one, and returns the exit code.
func report(stderr io.Writer, err error) int {
	if err == nil {
		return exitOK
	}
	var known *commandError
	if !errors.As(err, &known) {
		known = &commandError{code: exitFailed, cause: err}
	}
	if known.cause != nil {
		if errors.Is(err, context.Canceled) && known.code == exitFailed {
			fmt.Fprintln(stderr, "ERROR interrupted")
			return exitInterrupted
		}
		fmt.Fprintf(stderr, "ERROR %v\n", err)
		if known.hint == "" && control.KindOf(err) == control.KindUnavailable {
			known.hint = "\"jujulet up\" starts a cluster; --state names another one"
		}
	}
	if known.hint != "" {
		fmt.Fprintf(stderr, "hint: %s\n", known.hint)
	}
	return known.code
}
