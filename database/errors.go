// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package database

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"unicode"

	"github.com/go-sql-driver/mysql"
)

// Error numbers of the server that callers tell apart.
const (
	CodeTooManyConnections   uint16 = 1040
	CodeDatabaseAccessDenied uint16 = 1044
	CodeAccessDenied         uint16 = 1045
	CodeHostBlocked          uint16 = 1129
)

const codeParse uint16 = 1064

// maxServerMessage is how many characters of the server's text are shown.
const maxServerMessage = 200

// serverError is a refusal that the server itself sent.
type serverError struct {
	code uint16
	text string
}

func (e *serverError) Error() string { return e.text }

// Code returns the server's error number that err carries, 0 when it has none.
func Code(err error) uint16 {
	var refused *serverError
	if errors.As(err, &refused) {
		return refused.code
	}
	return 0
}

// Unresolved reports whether err says that a host name has no address (yet).
func Unresolved(err error) bool {
	var dns *net.DNSError
	return errors.As(err, &dns) && dns.IsNotFound
}

// newError says that verb, the rest of "cannot ...", failed because of err.
// Texts in hidden never reach the message.
func newError(verb string, err error, hidden ...string) error {
	var refused *mysql.MySQLError
	switch {
	case errors.As(err, &refused):
		err = &serverError{code: refused.Number, text: serverText(refused, hidden)}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		err = &causeError{"timed out", context.DeadlineExceeded}
	case errors.Is(err, syscall.ECONNREFUSED):
		err = syscall.ECONNREFUSED
	case errors.Is(err, driver.ErrBadConn), errors.Is(err, mysql.ErrInvalidConn), errors.Is(err, io.EOF):
		err = errors.New("the connection was closed before the database had answered")
	case Unresolved(err):
		var dns *net.DNSError
		errors.As(err, &dns)
		err = &causeError{dns.Name + " has no address", dns}
	}
	return fmt.Errorf("cannot %s: %w", verb, err)
}

// causeError says text instead of what its cause says.
type causeError struct {
	text  string
	cause error
}

func (e *causeError) Error() string { return e.text }

func (e *causeError) Unwrap() error { return e.cause }

// serverText is our own text for the refusals that matter, since the server's
// texts name users, and otherwise the server's without what must not be seen.
// The text of a parse error quotes the statement and is never shown.
func serverText(e *mysql.MySQLError, hidden []string) string {
	switch e.Number {
	case CodeTooManyConnections:
		return "the server has no connection left (error 1040)"
	case CodeDatabaseAccessDenied, CodeAccessDenied:
		return fmt.Sprintf("the server refuses these credentials (error %d)", e.Number)
	case CodeHostBlocked:
		return "the server has blocked this host because of connect errors (error 1129); FLUSH HOSTS on the server lifts it"
	case codeParse:
		return "the server does not understand the statement (error 1064)"
	}
	text := e.Message
	for _, secret := range hidden {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "...")
		}
	}
	return fmt.Sprintf("%s (error %d)", printable(text, maxServerMessage), e.Number)
}

// printable replaces control characters and cuts text to at most n characters.
func printable(text string, n int) string {
	out := make([]rune, 0, n)
	for _, r := range text {
		if len(out) == n {
			return string(out) + "..."
		}
		if !unicode.IsPrint(r) {
			r = '?'
		}
		out = append(out, r)
	}
	return string(out)
}
