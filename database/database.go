// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

// Package database speaks SQL to the backend: the session that a probe opens
// through an address, and the databases and users that are made for clients.
//
// Every statement is valid on MySQL 8.0 and 8.4 and on MariaDB. Names and
// passwords are quoted so that the text means the same under every sql_mode,
// and no error of this package carries a password or text that the server
// quoted from a statement.
package database

import (
	"context"
	"time"
)

// Bounds on what is waited for.
const (
	// DialTimeout bounds making one TCP connection.
	DialTimeout = 3 * time.Second
	// StatementTimeout bounds one statement, or one login.
	StatementTimeout = 5 * time.Second
)

// Error numbers of the server that callers tell apart.
const (
	CodeTooManyConnections   uint16 = 1040
	CodeDatabaseAccessDenied uint16 = 1044
	CodeAccessDenied         uint16 = 1045
	CodeHostBlocked          uint16 = 1129
)

// Credentials are what a server lets somebody in with. TLS is used whenever
// the server offers it, and never verified or insisted on: giving up half way
// through a login is what makes a server lock its client's host out.
type Credentials struct {
	Username string
	Password string
}

// Session opens a session at address ("host:port"), pings and closes it as the
// protocol wants. Nil means that a database answers there and takes the
// credentials. It is bounded by ctx, by DialTimeout and by StatementTimeout.
// Code tells the server's error number; Unresolved whether the host has no
// address yet.
func (c Credentials) Session(ctx context.Context, address string) error { return nil }

// Code returns the server's error number that err carries, 0 when it has none.
func Code(err error) uint16 { return 0 }

// Unresolved reports whether err says that a host name has no address (yet).
func Unresolved(err error) bool { return false }

// Admin is a connection that makes databases and users.
type Admin struct{}

// Open logs in at address with rights to make databases and users.
func Open(ctx context.Context, c Credentials, address string) (*Admin, error) { return nil, nil }

// Close ends the connection.
func (a *Admin) Close() error { return nil }

// Version returns the server's version text.
func (a *Admin) Version(ctx context.Context) (string, error) { return "", nil }

// EnsureDatabase makes a database unless it is there. The name must be one
// that ValidDatabase takes.
func (a *Admin) EnsureDatabase(ctx context.Context, name string) error { return nil }

// EnsureUser makes '<user>'@'%' with this password and all rights on this one
// database. An existing user gets the password and the rights.
func (a *Admin) EnsureUser(ctx context.Context, user, password, database string) error { return nil }

// EnsureRouterUser makes '<user>'@'%' with this password, that may do
// everything and pass it on: what the role "mysqlrouter" asks for.
func (a *Admin) EnsureRouterUser(ctx context.Context, user, password string) error { return nil }

// DropUser removes '<user>'@'%'; one that is not there is no error.
func (a *Admin) DropUser(ctx context.Context, user string) error { return nil }

// ListUsers returns the users '<name>'@'%' whose names start with prefix, sorted.
func (a *Admin) ListUsers(ctx context.Context, prefix string) ([]string, error) { return nil, nil }

// ClientUsers returns the users that were made under backendUser for clients,
// by the id of the relation that they were made for.
func (a *Admin) ClientUsers(ctx context.Context, backendUser string) (map[int]string, error) {
	return nil, nil
}

// UserName is the name of the user made under backendUser for the relation
// with this id: "<backendUser>-<id>". Where that is longer than the 32
// characters which MySQL allows, the first part is cut and six hexadecimal
// digits of its hash are added.
func UserName(backendUser string, relationID int) string { return "" }

// ValidDatabase says why a client may not have a database of this name.
func ValidDatabase(name string) error { return nil }

// NewPassword returns a random password of letters, digits and dashes.
func NewPassword() string { return "" }
