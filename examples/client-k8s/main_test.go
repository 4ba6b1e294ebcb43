// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/connections"
	"github.com/drawbridge-k8s/drawbridge/database"
	"github.com/drawbridge-k8s/drawbridge/database/databasetest"
	"github.com/drawbridge-k8s/drawbridge/examples/exampletest"
	"github.com/drawbridge-k8s/drawbridge/hooks"
)

var changed = hooks.Event{Kind: hooks.RelationChanged, Endpoint: "database", RelationID: 3}

func newJuju() *exampletest.Juju {
	j := exampletest.New("client-k8s")
	j.Config = map[string]any{"database": "app", "secrets": true}
	return j
}

func TestClient_FromRequestToQuery(t *testing.T) {
	t.Parallel()
	s := databasetest.Start(t)
	admin, err := database.Open(t.Context(), s.Root, s.Address)
	require.NoError(t, err)
	defer admin.Close()
	require.NoError(t, admin.EnsureDatabase(t.Context(), "app"))
	require.NoError(t, admin.EnsureUser(t.Context(), "u", "p", "app"))

	j := newJuju()
	j.Hook(t, handle, hooks.Event{Kind: hooks.Start, RelationID: -1})
	require.Equal(t, "blocked", j.Status)

	r := j.Relate("database:3", "front", map[string]string{})
	j.Hook(t, handle, changed)
	require.Equal(t, "app", r.Bags["client-k8s"]["database"])
	require.Contains(t, r.Bags["client-k8s"]["requested-secrets"], `"password"`)
	require.Equal(t, "waiting", j.Status)
	j.Params = map[string]any{"sql": "SELECT 1"}
	j.Hook(t, handle, hooks.Event{Kind: hooks.Action, Action: "query", RelationID: -1})
	require.Contains(t, j.Failure, "waiting for")

	r.Bags["front"] = map[string]string{"database": "app", "endpoints": databasetest.FreeAddress(t) + "," + s.Address,
		"read-only-endpoints": s.Address, "secret-user": "secret:s9", "data": "{}"}
	j.Hook(t, handle, changed)
	require.Equal(t, "waiting for the secret of front", j.Message)
	j.Secrets["s9"] = &exampletest.Secret{Content: map[string]string{"username": "u", "password": "p"}}
	j.Hook(t, handle, changed)
	require.Equal(t, "active", j.Status, j.Message)
	require.Contains(t, j.Message, s.Address)
	require.Contains(t, r.Bags["client-k8s/0"]["data"], `"secret-user": "secret:s9"`)

	j.Writes = nil
	j.Hook(t, handle, changed)
	require.Empty(t, j.Writes, "a hook that finds nothing changed writes nothing")

	for _, readOnly := range []bool{false, true} {
		j.Params = map[string]any{"sql": "SELECT 1 AS one, 'x' AS letter UNION SELECT 2, NULL", "read-only": readOnly}
		j.Hook(t, handle, hooks.Event{Kind: hooks.Action, Action: "query", RelationID: -1})
		require.Equal(t, map[string]string{"address": s.Address, "columns": "one,letter", "count": "2", "rows": `[["1","x"],["2","NULL"]]`}, j.Results)
	}
	j.Params = map[string]any{"sql": "SELEKT"}
	j.Hook(t, handle, hooks.Event{Kind: hooks.Action, Action: "query", RelationID: -1})
	require.Contains(t, j.Failure, "error 1064")
}

func TestClient_AsksOnceAndAsToldTo(t *testing.T) {
	t.Parallel()
	j := newJuju()
	j.Config["secrets"] = false
	r := j.Relate("database:3", "front", map[string]string{})
	j.Leader = false
	j.Hook(t, handle, changed)
	require.Empty(t, r.Bags["client-k8s"])
	j.Leader = true
	j.Hook(t, handle, changed)
	require.Equal(t, map[string]string{"database": "app"}, r.Bags["client-k8s"])
	j.Config["database"] = "other"
	j.Hook(t, handle, changed)
	require.Equal(t, "app", r.Bags["client-k8s"]["database"])
	require.Equal(t, "blocked", j.Status)
	require.Contains(t, j.Message, "remove the relation")
}

// The client takes in what it is connected to, and says so to the other side; without its container it waits.
func TestClient_Connections(t *testing.T) {
	t.Parallel()
	j := newJuju()
	j.Config["connectable-to"] = "mysql-gateway"
	j.Relate("client-peers:1", "client-k8s", map[string]string{})
	text, err := connections.Metadata{Name: "front", Category: "mysql-gateway"}.Text()
	require.NoError(t, err)
	r := j.Relate("connections:5", "front", map[string]string{"metadata": text})
	event := hooks.Event{Kind: hooks.RelationChanged, Endpoint: "connections", RelationID: 5}
	j.Hook(t, handle, event)
	require.Equal(t, "accepted", r.Bags["client-k8s"]["status"])
	require.Empty(t, r.Bags["client-k8s"]["applied"], "its workload does not have it yet")
	r.Bags["front"]["metadata"], err = connections.Metadata{Name: "front", Category: "db"}.Text()
	require.NoError(t, err)
	j.Hook(t, handle, event)
	require.Equal(t, "rejected", r.Bags["client-k8s"]["status"])
	j.Hook(t, handle, hooks.Event{Kind: hooks.Action, Action: "query-connection", RelationID: -1})
	require.Equal(t, "there is no document in the workload yet", j.Failure)
	j.Dying = true
	j.Writes = nil
	j.Hook(t, handle, event)
	require.Empty(t, j.Writes)
}
