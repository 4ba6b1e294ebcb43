// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package scenario

import (
	"context"
	"maps"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/hooks"
	"github.com/drawbridge-k8s/drawbridge/tests/world"
)

// nothing is a charm that does nothing.
func nothing(context.Context, *hooks.Hook) error { return nil }

// canary stands in hostile values: nothing that we write may repeat it with what
// comes with it.
const canary = "c4n4ry"

// clean requires that no text of ours shows what is in the hostile value: neither
// control characters, nor all of it.
func clean(t *testing.T, w *world.World, unit string) {
	t.Helper()
	status := w.Status(unit)
	require.Less(t, len(status), 600, "a status is for reading")
	for _, text := range append(strings.Split(w.Log(), "\n"), status) {
		require.NotContains(t, text, canary+"-secret", "a value of the other side")
		require.False(t, strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\t' }), "%q", text)
	}
}

// v1 is a databag of a client that speaks version 1.
func v1(requests string) map[string]string {
	return map[string]string{"version": "v1", "requests": requests}
}

// TestHostile_Clients lets a client say things that cannot be served, beside one
// that is served.
func TestHostile_Clients(t *testing.T) {
	t.Parallel()
	huge := strings.Repeat(canary, 350_000) // 2 MB
	cases := map[string]struct {
		bag  map[string]string
		says string
	}{
		"SQL in the name":      {map[string]string{"database": "a`; DROP DATABASE mysql; -- "}, "database"},
		"quotes in the name":   {map[string]string{"database": `a' OR '1'='1`}, "database"},
		"control characters":   {map[string]string{"database": "a\x1b[31m\x07" + canary + "-secret"}, "database has control characters"},
		"a line break":         {map[string]string{"database": "a\nERROR " + canary + "-secret"}, "database has control characters"},
		"a system schema":      {map[string]string{"database": "mysql"}, "mysql"},
		"another spelling":     {map[string]string{"database": "INFORMATION_SCHEMA"}, "INFORMATION_SCHEMA"},
		"a long name":          {map[string]string{"database": strings.Repeat("x", 65)}, "database is longer than 64"},
		"a path":               {map[string]string{"database": "../../etc/passwd"}, "database"},
		"a wildcard":           {map[string]string{"database": "%"}, "database"},
		"not ASCII":            {map[string]string{"database": "заказы"}, "database"},
		"a right-to-left mark": {map[string]string{"database": "a\u202eb"}, "database"},
		"a huge name":          {map[string]string{"database": huge}, "larger than"},
		"a huge other key":     {map[string]string{"database": "ok", "x": huge}, "larger than"},
		"secrets not JSON":     {map[string]string{"database": "ok", "requested-secrets": "username," + canary + "-secret"}, "requested-secrets"},
		"secrets an object":    {map[string]string{"database": "ok", "requested-secrets": `{"username":true}`}, "requested-secrets"},
		"secrets a number":     {map[string]string{"database": "ok", "requested-secrets": "7"}, "requested-secrets"},
		"secrets of numbers":   {map[string]string{"database": "ok", "requested-secrets": "[1,2]"}, "requested-secrets"},
		"secrets nested":       {map[string]string{"database": "ok", "requested-secrets": strings.Repeat("[", 30000)}, "requested-secrets"},
		"secrets cut":          {map[string]string{"database": "ok", "requested-secrets": `["username`}, "requested-secrets"},
		"secrets a text":       {map[string]string{"database": "ok", "requested-secrets": `"username"`}, "requested-secrets"},
		"too many secrets": {map[string]string{
			"database": "ok", "requested-secrets": `["a"` + strings.Repeat(`,"a"`, 100) + `]`,
		}, "requested-secrets has more than"},
		"roles":             {map[string]string{"database": "ok", "extra-user-roles": "admin"}, "extra-user-roles is not supported"},
		"roles with SQL":    {map[string]string{"database": "ok", "extra-user-roles": "x; GRANT ALL ON *.* TO 'a'"}, "extra-user-roles"},
		"group roles":       {map[string]string{"database": "ok", "extra-group-roles": "admin"}, "extra-group-roles is not supported"},
		"an entity":         {map[string]string{"database": "ok", "entity-type": "USER"}, "entity-type is not supported"},
		"entity rights":     {map[string]string{"database": "ok", "entity-permissions": `[{"x":1}]`}, "entity-permissions is not supported"},
		"a later version":   {map[string]string{"version": "v2", "requests": `[{"resource":"ok"}]`}, "versions 0 and 1"},
		"v1 not JSON":       {v1("[{" + canary + "-secret"), "requests is not a JSON list"},
		"v1 deep":           {v1(strings.Repeat("[", 30000)), "requests is not a JSON list"},
		"v1 huge":           {v1(`[{"resource": "` + huge + `"}]`), "larger than"},
		"v1 long":           {v1(`[{"resource": "` + huge[:100_000] + `"}]`), "requests is too long"},
		"v1 two requests":   {v1(`[{"resource": "a", "request-id": "1"}, {"resource": "b", "request-id": "2"}]`), "requests has 2 entries"},
		"v1 SQL":            {v1("[{\"resource\": \"a`; DROP DATABASE mysql; -- \", \"request-id\": \"1\"}]"), "database"},
		"v1 system schema":  {v1(`[{"resource": "mysql", "request-id": "1"}]`), "mysql"},
		"v1 controls":       {v1(`[{"resource": "a\u001b[31m` + canary + `-secret", "request-id": "1"}]`), "resource has control characters"},
		"v1 hostile id":     {v1(`[{"resource": "a", "request-id": "` + canary + `-secret\u0007"}]`), "request-id is not an identifier"},
		"v1 reserved id":    {v1(`[{"resource": "a", "request-id": "status"}]`), "request-id is not an identifier"},
		"v1 hostile salt":   {v1(`[{"resource": "a", "request-id": "1", "salt": "\u001b]0;` + canary + `-secret"}]`), "salt has control characters"},
		"v1 an entity":      {v1(`[{"resource": "a", "request-id": "1", "entity-type": "GROUP"}]`), "entity-type is not supported"},
		"v1 roles":          {v1(`[{"resource": "a", "request-id": "1", "extra-user-roles": "admin"}]`), "extra-user-roles is not supported"},
		"a hostile version": {map[string]string{"version": "v\x1b]0;a title\x07"}, "version"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := world.New(t, world.Options{})
			w.Standard(1)
			unit := w.Leader()
			given, users := w.Published(world.Client), maps.Clone(w.SQL.Users)
			w.Deploy(world.Client, "hostile", 1, map[string]string{"database": ""})
			id := w.Integrate(world.Gateway+":database", "hostile:database")
			w.Settle()
			w.Write("hostile/0", id, true, c.bag)
			ran := w.Settle()
			noneFailed(t, ran)
			require.Contains(t, strings.Join(ran, "\n"), unit+" database-relation-changed", "the exit code was 0")
			status := w.Status(unit)
			require.Contains(t, status, "blocked database:"+strconv.Itoa(id)+": cannot serve hostile: ")
			require.Contains(t, status, c.says)
			clean(t, w, unit)
			require.Equal(t, given, w.Published(world.Client), "nothing is lost, the other is served")
			require.Empty(t, w.Published("hostile"))
			require.Equal(t, users, w.SQL.Users)
			w.Quiet(1)

			fix := map[string]string{"database": "mended"}
			for key := range c.bag {
				if key != "database" {
					fix[key] = ""
				}
			}
			w.Write("hostile/0", id, true, fix)
			w.Settle()
			require.Equal(t, world.InModel+":6446", w.Published("hostile")["endpoints"], "it is served once it asks properly")
			require.Contains(t, w.Status(unit), "active ")
		})
	}
}

// TestHostile_ServedClientTurns lets a client that is served write nonsense: it
// keeps what it has.
func TestHostile_ServedClientTurns(t *testing.T) {
	t.Parallel()
	for name, bag := range map[string]map[string]string{
		"database":          {"database": "a\x00" + canary + "-secret"},
		"requested-secrets": {"requested-secrets": "\x1b" + canary + "-secret"},
		"huge":              {"x": strings.Repeat(canary, 350_000)},
		"another database":  {"database": "other"},
		"nothing any more":  {"database": "", "requested-secrets": ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := world.New(t, world.Options{})
			w.Standard(1)
			given := w.Published(world.Client)
			w.Handlers[world.Client] = nothing
			w.Write(clientUnit, clientRelation(w), true, bag)
			noneFailed(t, w.Settle())
			now := w.Published(world.Client)
			for _, key := range []string{"endpoints", "read-only-endpoints", "secret-user", "database"} {
				require.Equal(t, given[key], now[key], key)
			}
			require.Len(t, w.SQL.Users, 1)
			clean(t, w, w.Leader())
			for _, value := range now {
				require.NotContains(t, value, canary)
			}
			w.Config("expose-external", "loadbalancer")
			w.Settle()
			w.Ingress(lbFirst)
			w.Answer(ports(lbFirst)...)
			noneFailed(t, w.Notice(w.Leader()))
			require.Equal(t, lbFirst+":6446", w.Endpoints(), "and follows the address")
			w.Quiet(1)
		})
	}
}

// TestHostile_Mirrors lets a client's units say anything in their own databags.
func TestHostile_Mirrors(t *testing.T) {
	t.Parallel()
	for name, data := range map[string]string{
		"not JSON": "{", "a list": "[1]", "null": "null", "numbers": `{"secret-user":7,"endpoints":[]}`,
		"deep": strings.Repeat(`{"a":`, 20000), "huge": `{"a":"` + strings.Repeat("x", 2<<20) + `"}`, "control": "\x1b[2J\x00",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := world.New(t, world.Options{})
			w.Standard(1)
			given := w.Published(world.Client)
			w.Handlers[world.Client] = nothing
			w.Write(clientUnit, clientRelation(w), false, map[string]string{"data": data})
			noneFailed(t, w.Settle())
			require.Equal(t, given, w.Published(world.Client))
			clean(t, w, w.Leader())
			w.Quiet(1)
		})
	}
}

// TestHostile_Backend lets the backend answer with nonsense after it has answered
// well, and then well again.
func TestHostile_Backend(t *testing.T) {
	t.Parallel()
	cases := map[string]map[string]string{
		"endpoints with a newline":  {"endpoints": "a:1\nserver evil 6.6.6.6:1 " + canary + "-secret"},
		"endpoints with spaces":     {"endpoints": "a b c " + canary + "-secret"},
		"endpoints without ports":   {"endpoints": "a,,,b"},
		"endpoints with quotes":     {"endpoints": `"` + canary + `-secret":3306`},
		"endpoints of JSON":         {"endpoints": `["a:1"]`},
		"too many endpoints":        {"endpoints": strings.Repeat("a:1,", 1000)},
		"endpoints huge":            {"endpoints": strings.Repeat(canary, 350_000)},
		"no endpoints":              {"endpoints": ""},
		"read-only endpoints":       {"read-only-endpoints": "\x00\x01"},
		"a secret that is not":      {"secret-user": "secret:d0000000000000000000"},
		"no secret id at all":       {"secret-user": "../../" + canary + "-secret"},
		"an option for a secret id": {"secret-user": "--help"},
		"a secret with a newline":   {"secret-user": "secret:\n" + canary + "-secret"},
		"a TLS secret that is not":  {"secret-tls": "secret:d0000000000000000000"},
		"a version that moves":      {"version": "1\x1b[2J" + canary + "-secret"},
		"a database with nonsense":  {"database": "\x7f"},
		"something huge":            {"x": strings.Repeat("x", 2<<20)},
	}
	for name, bag := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := world.New(t, world.Options{})
			w.Standard(1)
			unit, given := w.Leader(), w.Published(world.Client)
			well := backendAnswer(t, w)
			w.Handlers[world.Backend] = nothing
			w.Write(backendUnit, backendRelation(w), true, bag)
			ran := w.Settle()
			noneFailed(t, ran)
			require.Contains(t, strings.Join(ran, "\n"), unit+" backend-database-relation-changed")
			require.Contains(t, w.Status(unit), "waiting for "+world.Backend+" on backend-database")
			clean(t, w, unit)
			require.Equal(t, given, w.Published(world.Client), "clients keep what they have")
			require.Len(t, w.SQL.Users, 1)
			for _, endpoint := range w.WorkloadOf(unit).Told.ReadWrite {
				require.NotContains(t, endpoint, canary)
			}
			w.Quiet(1)

			mended := maps.Clone(well)
			for key := range bag {
				if _, was := well[key]; !was {
					mended[key] = ""
				}
			}
			w.Write(backendUnit, backendRelation(w), true, mended)
			noneFailed(t, w.Settle())
			require.Contains(t, w.Status(unit), "active ")
			require.Equal(t, given, w.Published(world.Client))
		})
	}
}

// backendAnswer is what the backend has answered to the gateway.
func backendAnswer(t *testing.T, w *world.World) map[string]string {
	t.Helper()
	status, err := w.Model.Status()
	require.NoError(t, err)
	for _, r := range status.Relations {
		if r.ID == backendRelation(w) {
			return r.Bags[world.Backend]
		}
	}
	require.Fail(t, "no relation")
	return nil
}

// TestHostile_Peers garbles what the gateway itself has written for itself.
func TestHostile_Peers(t *testing.T) {
	t.Parallel()
	for name, bag := range map[string]map[string]string{
		"the flag":       {"service-pending": "maybe"},
		"the moment":     {"service-pending": "true", "service-pending-since": "yesterday\x00"},
		"the hash":       {"service-hash": strings.Repeat("z", 5000)},
		"the endpoints":  {"endpoints": "\x00,,:", "read-only-endpoints": "{}"},
		"the backend":    {"backend": "-1; DROP"},
		"the leader":     {"leader": "nobody/9"},
		"a later schema": {"schema": "99", "something-new": "kept"},
		"all of it":      {"service-pending": "", "service-hash": "", "endpoints": "", "read-only-endpoints": "", "backend": "", "leader": "", "schema": ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := published(t, 1)
			w.Write(w.Leader(), peersOf(t, w), true, bag)
			noneFailed(t, w.Settle())
			w.Round()
			require.Equal(t, lbFirst+":6446", w.Endpoints())
			require.Contains(t, w.Status(w.Leader()), "active ")
			if bag["something-new"] != "" {
				require.Equal(t, "kept", w.Peer()["something-new"])
				require.Equal(t, "99", w.Peer()["schema"])
			}
			w.Quiet(1)
		})
	}
}
