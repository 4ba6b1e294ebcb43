// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package charm

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/relation"
)

// ask makes a relation one of a client that speaks v1 and asks for this resource.
func (r *fakeRelation) ask(resource, id string) {
	r.remoteApp = map[string]string{"version": "v1", "requests": fmt.Sprintf(
		`[{"resource": %q, "request-id": %q, "salt": "salt", "extra-user-roles": null, "external-node-connectivity": false, "entity-type": null}]`, resource, id)}
}

// v1 is a world whose client speaks v1.
func v1(t *testing.T) (*world, *fakeRelation) {
	t.Helper()
	w := newWorld(t)
	r := w.juju.relation("database:7")
	r.ask("orders", "abc1")
	return w, r
}

// response is the only response in our databag; the keys that are null are left out.
func response(t *testing.T, r *fakeRelation) map[string]string {
	t.Helper()
	require.Equal(t, "v1", r.ownApp["version"])
	var responses []map[string]*string
	require.NoError(t, json.Unmarshal([]byte(r.ownApp["requests"]), &responses))
	require.Len(t, responses, 1)
	set := map[string]string{}
	for key, value := range responses[0] {
		if value != nil {
			set[key] = *value
		}
	}
	return set
}

// mirrorV1 is what the units of a v1 client do when they see our databag.
func (w *world) mirrorV1(r *fakeRelation) {
	seen := response(w.t, r)
	text, err := json.Marshal(map[string]any{seen["request-id"]: seen})
	require.NoError(w.t, err)
	for _, unit := range r.units {
		r.remoteUnits[unit] = map[string]string{"data": string(text)}
	}
}

// secret is the content of a secret of ours.
func (w *world) secret(uri string) map[string]string {
	w.t.Helper()
	found := w.juju.secrets[strings.TrimPrefix(uri, "secret:")]
	require.NotNil(w.t, found, uri)
	return found.content
}

func TestV1_ServedBesideV0(t *testing.T) {
	t.Parallel()
	w, r := v1(t)
	w.client("database:8", "old-client")
	backend := w.juju.relation("backend-database:4")
	backend.remoteApp["tls"], backend.remoteApp["tls-ca"] = "True", "PEM"
	require.Zero(t, w.hook("config-changed"))
	got := response(t, r)
	require.Equal(t, clusterHost+":6446", got["endpoints"])
	require.Equal(t, clusterHost+":6447", got["read-only-endpoints"])
	require.Equal(t, "orders", got["resource"])
	require.Equal(t, "abc1", got["request-id"])
	require.Equal(t, "salt", got["salt"])
	require.Equal(t, "10.11", got["version"])
	require.Len(t, r.ownApp, 3, "version, requests, data and nothing plain")
	require.JSONEq(t, `{"abc1": {"resource": "orders", "request-id": "abc1", "salt": "salt"}}`, r.ownApp["data"])
	user := w.secret(got["secret-user"])
	require.Equal(t, map[string]string{"username": "relation-4-7", "password": w.sql.users["relation-4-7"]}, user)
	require.Equal(t, map[string]string{"tls": "true", "tls-ca": "PEM"}, w.secret(got["secret-tls"]), "in v1 `tls` is JSON")
	require.True(t, w.juju.secrets[strings.TrimPrefix(got["secret-user"], "secret:")].granted["database:7"])
	require.Equal(t, "True", w.secret(w.bag("database:8")["secret-tls"])["tls"], "and in v0 as the backend spells it")
	require.Equal(t, clusterHost+":6446", w.bag("database:8")["endpoints"])
	w.settle()
	require.Equal(t, "active", w.juju.status)
	w.mirrorV1(r)
	require.Zero(t, w.relationHook(r, "changed", "client-k8s/0"))
	require.Empty(t, w.juju.writes)
	w.quiet("update-status")

	backend.remoteApp["tls"] = "False"
	w.settle()
	require.Equal(t, "true", w.secret(got["secret-tls"])["tls"], "nothing else changed")
	backend.remoteApp["version"] = "10.12"
	w.settle()
	require.Equal(t, "false", w.secret(got["secret-tls"])["tls"])
	require.Equal(t, "10.12", response(t, r)["version"])
	require.Equal(t, got["secret-tls"], response(t, r)["secret-tls"], "in place")
	w.quiet("update-status")
}

func TestV1_FollowsTheAddress(t *testing.T) {
	t.Parallel()
	w, r := v1(t)
	w.settle()
	before := response(t, r)
	w.juju.config["expose-external"] = "loadbalancer"
	w.settle()
	require.Equal(t, before, response(t, r), "pending: nothing changes")
	w.kube.ingress("10.64.140.43")
	w.answer(lbReadWrite, lbReadOnly)
	w.settle()
	before["endpoints"], before["read-only-endpoints"] = lbReadWrite, lbReadOnly
	require.Equal(t, before, response(t, r))
	w.quiet("update-status")
	require.Zero(t, w.hook("actions/get-endpoints"))
	require.Equal(t, lbReadWrite, w.juju.results["clients.database-7.endpoints"])
	require.Equal(t, "orders", w.juju.results["clients.database-7.database"])
	// I1 counts what stands in a v1 client's databag too: a second client may be given it.
	second := w.client("database:8", "second")
	second.ask("more", "f00")
	w.settle()
	require.Equal(t, lbReadWrite, response(t, second)["endpoints"])
}

func TestV1_BackendReplaced(t *testing.T) {
	t.Parallel()
	w, r := v1(t)
	w.settle()
	w.mirrorV1(r)
	first := response(t, r)
	w.juju.relation("backend-database:4").broken = true
	require.Zero(t, w.relationHook(w.juju.relation("backend-database:4"), "broken", ""))
	gone := response(t, r)
	require.Equal(t, map[string]string{"resource": "orders", "request-id": "abc1", "salt": "salt"}, gone)
	require.NotContains(t, w.juju.secrets, strings.TrimPrefix(first["secret-user"], "secret:"))
	w.quiet("update-status")

	w.backend("backend-database:10")
	w.settle()
	require.Equal(t, gone, response(t, r))
	require.Contains(t, w.juju.message, "once client-k8s has noticed")
	w.quiet("update-status")
	w.mirrorV1(r)
	require.Zero(t, w.relationHook(r, "changed", "client-k8s/0"))
	got := response(t, r)
	require.NotEqual(t, first["secret-user"], got["secret-user"])
	require.Equal(t, "relation-10-7", w.secret(got["secret-user"])["username"])
	require.Equal(t, first["endpoints"], got["endpoints"])
	w.quiet("update-status")
}

// A client that asks in the other version, or for something else, is given that, and keeps no rights on what it had.
func TestV1_AsksAnew(t *testing.T) {
	t.Parallel()
	v0 := func(r *fakeRelation) {
		r.remoteApp = map[string]string{"database": "orders", "requested-secrets": `["username", "password"]`}
	}
	for name, c := range map[string]struct{ before, after func(*fakeRelation) }{
		"v0 to v1":        {v0, func(r *fakeRelation) { r.ask("orders", "abc1") }},
		"v1 to v0":        {func(r *fakeRelation) { r.ask("orders", "abc1") }, v0},
		"another request": {func(r *fakeRelation) { r.ask("orders", "abc1") }, func(r *fakeRelation) { r.ask("bills", "abc2") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, r := v1(t)
			c.before(r)
			w.settle()
			password := w.sql.users["relation-4-7"]
			require.NotEmpty(t, password)

			c.after(r)
			w.sql.err = errors.New("cannot drop a user: the server is in read-only mode")
			before := fmt.Sprint(r.ownApp)
			require.Zero(t, w.hook("update-status"))
			require.Equal(t, before, fmt.Sprint(r.ownApp), "the old user is still there")
			require.Contains(t, w.juju.message, "database:7")
			w.sql.err = nil

			require.Zero(t, w.hook("update-status"))
			require.False(t, relation.HoldsCredentials(r.ownApp))
			require.Contains(t, w.sql.statements, "drop relation-4-7")
			w.settle()
			given := relation.Given(r.ownApp)
			want, err := relation.ParseRequest(r.remoteApp)
			require.NoError(t, err)
			require.Equal(t, want.Database, given["database"])
			require.Equal(t, want.ID, relation.GivenID(r.ownApp))
			require.NotEqual(t, password, w.sql.users["relation-4-7"])
			require.Equal(t, w.sql.users["relation-4-7"], w.secret(given["secret-user"])["password"])
			require.True(t, w.sql.databases[want.Database])
			if want.V1() {
				require.Contains(t, r.ownApp["data"], want.ID)
			} else {
				require.NotContains(t, r.ownApp, "requests")
				require.Equal(t, "10.11", r.ownApp["version"], "of the engine, in v0")
			}
			w.quiet("update-status")
			require.Equal(t, "active", w.juju.status)
		})
	}
}

// A client that held credentials and then writes nonsense keeps what it has.
func TestV1_NonsenseLater(t *testing.T) {
	t.Parallel()
	for _, requests := range []string{"", "[]", "[{", `[{"resource": "x", "request-id": "status"}]`} {
		w, r := v1(t)
		w.settle()
		before := fmt.Sprint(r.ownApp)
		r.remoteApp["requests"] = requests
		w.settle()
		require.Equal(t, before, fmt.Sprint(r.ownApp), requests)
		w.quiet("update-status")
	}
}

// I3, I6: a hook that is killed at any write of a v1 client's first answer, and of its end, converges.
func TestV1_KilledAnywhereConverges(t *testing.T) {
	t.Parallel()
	for at := 1; at <= 12; at++ {
		w, r := v1(t)
		w.juju.killAt = at
		w.hook("config-changed")
		w.juju.killAt = 0
		w.settle()
		given := relation.Given(r.ownApp)
		require.NotEmpty(t, given["endpoints"])
		require.Equal(t, w.sql.users["relation-4-7"], w.secret(given["secret-user"])["password"])
		require.Len(t, w.juju.secrets, 2, "the backend's and the client's")
		w.quiet("update-status")

		r.broken = true
		w.juju.killAt = at
		w.relationHook(r, "broken", "")
		w.juju.killAt = 0
		require.Zero(t, w.relationHook(r, "broken", ""))
		w.juju.relations = w.juju.relations[:2]
		w.settle()
		require.Empty(t, w.sql.users)
		require.Len(t, w.juju.secrets, 1)
	}
}

// I7: a follower writes nothing for a v1 client either; I8: nothing of its credentials shows.
func TestV1_FollowersAndCredentials(t *testing.T) {
	t.Parallel()
	w, r := v1(t)
	w.settle()
	require.NotContains(t, fmt.Sprint(w.juju.calls, w.juju.logs, w.juju.message, r.ownApp), w.sql.users["relation-4-7"])
	w.juju.leader = false
	before := fmt.Sprint(r.ownApp)
	r.ask("other", "abc2")
	require.Zero(t, w.hook("update-status"))
	require.Empty(t, w.sql.statements)
	require.Equal(t, before, fmt.Sprint(r.ownApp))
}

// The budgets of calls hold for v1 clients as for others.
func TestBudget_V1Calls(t *testing.T) {
	t.Parallel()
	for _, clients := range []int{1, 5} {
		w := newWorld(t)
		w.juju.relations = w.juju.relations[:2]
		for i := range clients {
			w.client(fmt.Sprintf("database:%d", 10+i), fmt.Sprintf("app%d", i)).ask("orders", fmt.Sprintf("abc%d", i))
		}
		w.settle()
		for _, r := range w.juju.relations[2:] {
			w.mirrorV1(r)
		}
		w.quiet("update-status")
		require.LessOrEqual(t, len(w.juju.calls)+len(w.juju.logs), 16+4*clients, w.juju.calls)
		require.Equal(t, 1, w.kube.requests)
		for _, call := range w.juju.calls {
			require.False(t, strings.HasPrefix(call, "secret-") && !strings.Contains(call, "backend4"), call)
		}
		r := w.juju.relation("database:10")
		require.Zero(t, w.relationHook(r, "changed", "app0/0"))
		require.LessOrEqual(t, len(w.juju.calls), 16+4*clients+1, "and the mirror that the hook is about")
		require.Empty(t, w.juju.writes)
	}
}
