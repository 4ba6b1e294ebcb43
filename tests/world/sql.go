// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package world

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// SQL is the backend's server: databases and users.
type SQL struct {
	Users      map[string]string // name to password
	Databases  map[string]bool
	Statements []string
	// Err makes every statement fail.
	Err error

	path string
}

func newSQL() *SQL { return &SQL{Users: map[string]string{}, Databases: map[string]bool{}} }

// keep makes the users and databases survive the process, in a file.
func (s *SQL) keep(path string) {
	s.path = path
	if text, err := os.ReadFile(path); err == nil {
		if err := json.Unmarshal(text, s); err != nil {
			panic("internal error: " + path + ": " + err.Error())
		}
	}
}

// save writes the file, whole or not at all.
func (s *SQL) save() error {
	if s.path == "" {
		return nil
	}
	text, err := json.Marshal(map[string]any{"Users": s.Users, "Databases": s.Databases})
	if err != nil {
		return err
	}
	if err := os.WriteFile(s.path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(s.path+".new", s.path)
}

// Forget is a server that lost its data.
func (s *SQL) Forget() { s.Users, s.Databases = map[string]string{}, map[string]bool{} }

func (s *SQL) do(statement string, effect func()) error {
	if s.Err != nil {
		return s.Err
	}
	s.Statements = append(s.Statements, statement)
	effect()
	return s.save()
}

// EnsureDatabase is the charm's call.
func (s *SQL) EnsureDatabase(_ context.Context, name string) error {
	return s.do("database "+name, func() { s.Databases[name] = true })
}

// EnsureUser is the charm's call.
func (s *SQL) EnsureUser(_ context.Context, user, password, database string) error {
	return s.do("user "+user+" on "+database, func() { s.Users[user] = password })
}

// DropUser is the charm's call.
func (s *SQL) DropUser(_ context.Context, user string) error {
	return s.do("drop "+user, func() { delete(s.Users, user) })
}

// ClientUsers is the charm's call.
func (s *SQL) ClientUsers(_ context.Context, backendUser string) (map[int]string, error) {
	if s.Err != nil {
		return nil, s.Err
	}
	users := map[int]string{}
	for name := range s.Users {
		var id int
		if rest, ok := strings.CutPrefix(name, backendUser+"-"); ok {
			if _, err := fmt.Sscan(rest, &id); err == nil {
				users[id] = name
			}
		}
	}
	return users, nil
}

// Close is the charm's call.
func (s *SQL) Close() error { return nil }
