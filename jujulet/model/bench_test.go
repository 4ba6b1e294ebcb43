// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"fmt"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// benchModel is an application with 500 clients, each related and with a secret.
func benchModel(b *testing.B) *Model {
	b.Helper()
	m, err := Open(filepath.Join(b.TempDir(), "model.db"), Options{NoSync: true})
	require.NoError(b, err)
	b.Cleanup(func() { m.Close() })
	err = m.update(func(t *txn) error {
		c := &Charm{Hash: "h", Meta: Meta{Name: "c", Endpoints: map[string]Endpoint{
			"db": {Name: "db", Role: Provider, Interface: "i"},
		}}}
		if err := put(t, bucketCharms, "h", c); err != nil {
			return err
		}
		for i := -1; i < 500; i++ {
			name := "server"
			if i >= 0 {
				name = "client" + strconv.Itoa(i)
			}
			a := &appDoc{Name: name, Charm: "h", Life: Alive, Scale: 1, Settings: map[string]any{}, Leader: name + "/0", Lease: t.now.Add(LeaseDuration)}
			if err := t.putApp(a); err != nil {
				return err
			}
			if err := t.addUnits(a); err != nil {
				return err
			}
			if i < 0 {
				continue
			}
			id, err := t.addRelation(EndpointRef{"server", "db", "i", Provider}, EndpointRef{name, "db", "i", Requirer})
			if err != nil {
				return err
			}
			r, err := t.relation(id)
			if err != nil {
				return err
			}
			for _, app := range []*appDoc{{Name: "server"}, a} {
				if err := t.enterScope(app, app.Name+"/0", r); err != nil {
					return err
				}
			}
			err = t.putSecret(&secretDoc{
				ID: fmt.Sprintf("%020d", i), OwnerKind: "application", Owner: "server", App: "server", Label: "l" + name, Latest: 1,
				Revisions: map[int]revisionDoc{1: {Content: map[string]string{"password": "cGFzc3dvcmQ=", "username": "dXNlcg=="}}},
				Grants:    []grantDoc{{Subject: name, Relation: id}}, Consumers: map[string]consumerDoc{name + "/0": {Revision: 1}},
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	require.NoError(b, err)
	return m
}

func BenchmarkModel_500Clients(b *testing.B) {
	m := benchModel(b)
	run := func(name string, f func(i int) error) {
		b.Run(name, func(b *testing.B) {
			for i := range b.N {
				if err := f(i); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	ctx := b.Context()
	run("snapshot of the server", func(int) error { _, err := m.Snapshot(ctx, "server/0"); return err })
	run("snapshot of a client", func(int) error { _, err := m.Snapshot(ctx, "client7/0"); return err })
	run("context", func(int) error { _, err := m.ContextInfo(ctx, "server/0"); return err })
	run("goal state", func(int) error { _, err := m.GoalState(ctx, "server/0"); return err })
	run("secret by label", func(int) error {
		_, err := m.ReadSecret(ctx, "server/0", SecretRead{Label: "lclient499"})
		return err
	})
	run("commit to all", func(n int) error {
		c := HookCommit{}
		for i := range 500 {
			c.Relations = append(c.Relations, RelationWrite{Relation: i, App: true, Values: map[string]string{"endpoints": strconv.Itoa(n)}})
		}
		_, err := m.CommitHook(ctx, "server/0", c)
		return err
	})
	run("status", func(int) error { _, err := m.Status(); return err })
}
