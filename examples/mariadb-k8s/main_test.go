// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/database"
	"github.com/drawbridge-k8s/drawbridge/database/databasetest"
	"github.com/drawbridge-k8s/drawbridge/examples/exampletest"
	"github.com/drawbridge-k8s/drawbridge/hooks"
	"github.com/drawbridge-k8s/drawbridge/workload/workloadtest"
)

// rig is the charm with a real Pebble and a real server.
type rig struct {
	charm
	*exampletest.Juju
	pebble  *workloadtest.Pebble
	address string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{Juju: exampletest.New("mariadb-k8s"), pebble: workloadtest.StartPebble(t, workloadtest.Options{}), address: databasetest.FreeAddress(t)}
	_, port, err := net.SplitHostPort(r.address)
	require.NoError(t, err)
	number, err := strconv.Atoi(port)
	require.NoError(t, err)
	r.charm = charm{
		server:     server{socket: r.pebble.Socket, folder: filepath.Join(r.pebble.Folder(), "db"), port: number},
		resolvConf: filepath.Join(t.TempDir(), "resolv.conf"),
	}
	require.NoError(t, os.WriteFile(r.resolvConf, []byte("search dev.svc.k8s.test svc.k8s.test k8s.test\nnameserver 10.152.183.10\n"), 0o644))
	return r
}

func (r *rig) run(t *testing.T, e hooks.Event) { t.Helper(); r.Hook(t, r.handle, e) }

var updateStatus = hooks.Event{Kind: hooks.UpdateStatus, RelationID: -1}

func (r *rig) credentials(relation, secret string) database.Credentials {
	from := r.Relations[relation].Bags[r.App]
	if secret != "" {
		from = r.Secrets[secret].Content
	}
	return database.Credentials{Username: from["username"], Password: from["password"]}
}

func TestCharm_ServesRelations(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	bag := map[string]string{"database": "app", "requested-secrets": `["username", "password"]`}
	app := r.Relate("database:2", "client", bag)
	plain := r.Relate("database:3", "old-client", map[string]string{"database": "app"})
	router := r.Relate("database:4", "front", map[string]string{
		"database": "drawbridge", "extra-user-roles": "mysqlrouter", "requested-secrets": `["username", "password", "tls", "tls-ca", "uris"]`})
	r.Relate("database:5", "early", map[string]string{})
	r.run(t, hooks.Event{Kind: hooks.PebbleReady, Workload: "mariadb", RelationID: -1})
	require.Equal(t, "active", r.Status, r.Message)
	require.Regexp(t, `^[0-9.]+$`, r.Version)

	endpoint := "mariadb-k8s-0.mariadb-k8s-endpoints.dev.svc.k8s.test." + r.address[len("127.0.0.1"):]
	for _, answered := range []*exampletest.Relation{app, plain, router} {
		own := answered.Bags[r.App]
		require.Equal(t, endpoint, own["endpoints"])
		require.Equal(t, endpoint, own["read-only-endpoints"])
		require.Equal(t, answered.Bags[answered.Remote]["database"], own["database"])
		require.Contains(t, own["version"], "MariaDB")
	}
	require.Equal(t, "secret:s1", app.Bags[r.App]["secret-user"])
	require.Equal(t, "database:2", r.Secrets["s1"].Granted)
	require.NotContains(t, app.Bags[r.App], "password")
	require.Equal(t, "relation-3", plain.Bags[r.App]["username"])

	client, other := r.credentials("database:2", "s1"), r.credentials("database:3", "")
	for _, c := range []database.Credentials{client, other} {
		require.NoError(t, c.Session(t.Context(), r.address))
		_, err := c.Query(t.Context(), r.address, "mysql", "SELECT 1", 1)
		require.Equal(t, database.CodeDatabaseAccessDenied, database.Code(err))
	}
	admin, err := database.Open(t.Context(), r.credentials("database:4", "s2"), r.address)
	require.NoError(t, err)
	defer admin.Close()
	require.NoError(t, admin.EnsureDatabase(t.Context(), "orders"))
	require.NoError(t, admin.EnsureUser(t.Context(), "relation-4-7", "p", "orders"))

	r.Writes = nil
	r.run(t, updateStatus)
	require.Empty(t, r.Writes, "a hook that finds nothing changed writes nothing")

	delete(r.Relations, "database:4")
	r.run(t, hooks.Event{Kind: hooks.RelationBroken, Endpoint: "database", RelationID: 4, RemoteApp: "front"})
	require.NotContains(t, r.Secrets, "s2")
	users := database.Credentials{Username: "relation-4-7", Password: "p"}
	require.Equal(t, database.CodeAccessDenied, database.Code(users.Session(t.Context(), r.address)))
	require.NoError(t, client.Session(t.Context(), r.address))
}

// A replaced pod starts empty, with the users and passwords of before.
func TestCharm_ReplacedPod(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.Relate("database:2", "client", map[string]string{"database": "app", "requested-secrets": `["username", "password"]`})
	r.run(t, updateStatus)
	client := r.credentials("database:2", "s1")
	_, err := client.Query(t.Context(), r.address, "app", "CREATE TABLE t (id INT)", 1)
	require.NoError(t, err)

	r.pebble.Replace()
	r.Writes = nil
	r.run(t, updateStatus)
	require.Equal(t, []string{"application-version-set"}, r.Writes)
	rows, err := client.Query(t.Context(), r.address, "app", "SHOW TABLES", 1)
	require.NoError(t, err)
	require.Empty(t, rows.Values)
}

func TestCharm_BadRequestsBlockThemselvesOnly(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.Relate("database:1", "good", map[string]string{"database": "app"})
	for i, bag := range []map[string]string{
		{"database": "mysql"}, {"database": "x`; DROP DATABASE app; --"},
		{"database": "a", "extra-user-roles": "admin"}, {"database": "a", "requested-secrets": "{"},
	} {
		id := fmt.Sprintf("database:%d", i+2)
		bad := r.Relate(id, "bad", bag)
		r.run(t, updateStatus)
		require.Equal(t, "blocked", r.Status)
		require.Contains(t, r.Message, id)
		require.Empty(t, bad.Bags[r.App])
		delete(r.Relations, id)
		require.NoError(t, r.credentials("database:1", "").Session(t.Context(), r.address))
	}
	r.run(t, updateStatus)
	require.Equal(t, "active", r.Status)
}

func TestCharm_Statuses(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	socket := r.server.socket
	r.server.socket = filepath.Join(t.TempDir(), "none")
	r.run(t, updateStatus)
	require.Equal(t, "waiting for the container", r.Message)
	r.server.socket = socket

	r.Unit = "mariadb-k8s/1"
	r.run(t, updateStatus)
	require.Equal(t, [2]string{"blocked", "only one unit is supported"}, [2]string{r.Status, r.Message})
	r.Unit = "mariadb-k8s/0"

	bag := r.Relate("database:1", "client", map[string]string{"database": "app"}).Bags
	bag[r.Unit] = map[string]string{}
	r.Leader = false
	r.run(t, updateStatus)
	require.Equal(t, "waiting for leadership", r.Message)
	r.Leader, r.Dying = true, true
	r.run(t, updateStatus)
	require.Equal(t, "stopping", r.Message)
	require.Empty(t, bag[r.App])
}
