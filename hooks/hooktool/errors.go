// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package hooktool

import (
	"errors"
	"strings"
)

func hasMessage(err error, text string) bool {
	var e *Error
	return errors.As(err, &e) && strings.Contains(e.Message, text)
}

// newError makes an Error of what a tool wrote to standard error.
func newError(tool string, code int, stderr []byte) *Error {
	message := strings.TrimSpace(string(stderr))
	// Juju prints notes before the error proper, which stands last.
	if i := strings.LastIndex(message, "\nERROR "); i >= 0 {
		message = message[i+1:]
	}
	message = strings.TrimPrefix(message, "ERROR ")
	if message == "" {
		message = "no message"
	}
	return &Error{Tool: tool, Code: code, Message: message}
}
