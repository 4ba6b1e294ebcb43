// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package interop

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// given is what the Python client has seen of an answer.
type given struct {
	Event     string `json:"event"`
	Resource  string `json:"resource"`
	Endpoints string `json:"endpoints"`
	ReadOnly  string `json:"read-only-endpoints"`
	Username  string `json:"username"`
	Password  int    `json:"password-length"`
	TLS       string `json:"tls"`
	Version   string `json:"version"`
}

const (
	opsClient  = "ops-client-k8s"
	opsBackend = "ops-backend-k8s"
	bridge     = "drawbridge-k8s"
	mariadb    = "mariadb-k8s"
)

// report asks the Python client what the library told it, and what it says now; nil is nothing.
func (c *cluster) report() (events []given, now *given) {
	c.t.Helper()
	results := c.run(opsClient+"/0", "report")
	return into[[]given](c.t, results, "events"), into[*given](c.t, results, "now")
}

// awaitEvents waits until the client has seen so many events and returns them.
func (c *cluster) awaitEvents(n int) []given {
	c.t.Helper()
	c.await(fmt.Sprintf("%d events at the client", n), func() error {
		if seen := c.saw(opsClient+"/0", "resource_created") + c.saw(opsClient+"/0", "endpoints_changed"); seen < n {
			return fmt.Errorf("%d", seen)
		}
		return nil
	})
	events, _ := c.report()
	require.Len(c.t, events, n)
	return events
}

// query runs statements through every endpoint that the client has been given, on a real connection of PyMySQL, and
// returns the first column of each last row.
func (c *cluster) query(sql, endpoints string) map[string]any {
	c.t.Helper()
	rows := into[map[string][][]any](c.t, c.run(opsClient+"/0", "query", "sql="+sql, "endpoints="+endpoints), "rows")
	first := map[string]any{}
	for endpoint, values := range rows {
		require.NotEmpty(c.t, values)
		first[endpoint] = values[0][0]
	}
	return first
}

// expose switches the gateway's exposure and checks what the client hears of it: endpoints_changed, once, with endpoints
// that work and that look as they should.
func (c *cluster) expose(mode string, seen int, looks func(string) bool) {
	c.t.Helper()
	c.must("config", bridge, "expose-external="+mode)
	events := c.awaitEvents(seen)
	last := events[seen-1]
	require.Equal(c.t, "endpoints_changed", last.Event)
	require.Equal(c.t, events[seen-2].Username, last.Username, "the same credentials")
	for _, text := range []string{last.Endpoints, last.ReadOnly} {
		for endpoint := range strings.SplitSeq(text, ",") {
			require.True(c.t, looks(endpoint), "%s: %s", mode, endpoint)
		}
	}
	for _, kind := range []string{"read-write", "read-only"} {
		for endpoint, value := range c.query("SELECT COUNT(*) FROM words", kind) {
			require.EqualValues(c.t, 1, value, endpoint)
		}
	}
	c.settled("active", bridge+"/0", opsClient+"/0")
	events, _ = c.report()
	require.Len(c.t, events, seen, "no event more")
}

// How endpoints look in each mode.
func inCluster(endpoint string) bool {
	return strings.Contains(endpoint, bridge+"-service.") && strings.Contains(endpoint, ".svc.cluster.local.:644")
}
func onNode(endpoint string) bool   { return strings.HasPrefix(endpoint, "10.10.0.1") }
func balanced(endpoint string) bool { return strings.HasPrefix(endpoint, "10.64.140.") }

// The unmodified Python library, version 1, as client of drawbridge-k8s; then as its backend, beside being its client.
func TestDataInterfaces(t *testing.T) {
	c := newCluster(t, "data-interfaces")
	c.must("deploy", goCharm(t, mariadb), "--resource", "mariadb-image=host")
	c.must("deploy", goCharm(t, bridge), "--resource", "gateway-image=host", "--trust")
	c.must("deploy", pythonCharm(t, opsClient))
	c.integrate(bridge+":backend-database", mariadb+":database")
	c.integrate(opsClient+":database", bridge+":database")

	created := c.awaitEvents(1)[0]
	require.Equal(t, "resource_created", created.Event)
	require.Equal(t, "orders", created.Resource)
	require.True(t, inCluster(created.Endpoints), created.Endpoints)
	require.True(t, inCluster(created.ReadOnly), created.ReadOnly)
	require.NotEmpty(t, created.Username)
	require.NotZero(t, created.Password)
	require.Contains(t, created.Version, "MariaDB")
	c.settled("active", bridge+"/0", opsClient+"/0", mariadb+"/0")
	c.query("CREATE TABLE words (word TEXT); INSERT INTO words VALUES ('one'); SELECT COUNT(*) FROM words", "read-write")

	c.expose("nodeport", 2, onNode)
	c.expose("loadbalancer", 3, balanced)
	c.expose("false", 4, inCluster)
	c.quiet()
	c.requireV1Bag(created)

	t.Log("a second unit of the client sees its own resource_created")
	c.must("scale-application", opsClient, "2")
	c.settled("active", opsClient+"/1")
	second := into[[]given](t, c.run(opsClient+"/1", "report"), "events")
	require.Len(t, second, 1)
	require.Equal(t, "resource_created", second[0].Event)
	require.Equal(t, created.Username, second[0].Username)
	c.must("scale-application", opsClient, "1")

	t.Log("the client goes: its user and secrets go; it comes back: it is given others")
	user := "SELECT COUNT(*) FROM mysql.user WHERE User='" + created.Username + "'"
	require.Equal(t, "1", c.sql(user))
	c.must("remove-relation", opsClient, bridge)
	c.await("the user is dropped", func() error {
		if got := c.sql(user); got != "0" {
			return errors.New(got)
		}
		return nil
	})
	c.settled("waiting", opsClient+"/0")
	_, now := c.report()
	require.Nil(t, now)
	c.integrate(opsClient+":database", bridge+":database")
	again := c.awaitEvents(5)[4]
	require.Equal(t, "resource_created", again.Event)
	require.NotEqual(t, created.Username, again.Username)
	c.query("SELECT COUNT(*) FROM words", "read-write")

	c.otherBackend(again)
}

// otherBackend puts the Python charm in MariaDB's place.
func (c *cluster) otherBackend(before given) {
	t := c.t
	t.Log("the backend goes: the library sees the resource go")
	c.must("remove-relation", bridge, mariadb)
	c.settled("waiting", opsClient+"/0")
	c.settled("blocked", bridge+"/0")
	t.Log("another comes, a Python charm on the same library: the client is given others, in one event")
	c.must("deploy", pythonCharm(t, opsBackend), "--resource", "mariadb-image=host")
	c.integrate(bridge+":backend-database", opsBackend+":database")
	anew := c.awaitEvents(6)[5]
	require.Equal(t, "resource_created", anew.Event)
	require.True(t, inCluster(anew.Endpoints))
	require.NotEqual(t, before.Username, anew.Username)
	c.settled("active", bridge+"/0", opsBackend+"/0", opsClient+"/0")
	c.query("CREATE TABLE words (word TEXT); INSERT INTO words VALUES ('one'); SELECT COUNT(*) FROM words", "read-write")
	c.expose("loadbalancer", 7, balanced)
	c.expose("nodeport", 8, onNode)
	c.expose("false", 9, inCluster)
	c.quiet()

	t.Log("and goes, and the client with it")
	c.must("remove-relation", opsClient, bridge)
	c.must("remove-relation", bridge, opsBackend)
	c.settled("waiting", opsClient+"/0")
	c.settled("blocked", bridge+"/0")
	c.settled("active", opsBackend+"/0")
	for _, owner := range []string{bridge, opsBackend} {
		secrets := strings.TrimSpace(c.must("exec", "--unit", owner+"/0", "--", "secret-ids", "--format", "json"))
		require.Contains(t, []string{"null", "[]"}, secrets, "no secret of %s is left", owner)
	}
}

// requireV1Bag checks the wire: version 1 alone, and no credential in it.
func (c *cluster) requireV1Bag(g given) {
	c.t.Helper()
	out := c.must("show-unit", opsClient+"/0", "--format", "json")
	var shown map[string]struct {
		Relations []struct {
			Endpoint string            `json:"endpoint"`
			App      map[string]string `json:"application-data"`
		} `json:"relation-info"`
	}
	require.NoError(c.t, json.Unmarshal([]byte(out), &shown))
	for _, relation := range shown[opsClient+"/0"].Relations {
		if relation.Endpoint != "database" {
			continue
		}
		require.Equal(c.t, "v1", relation.App["version"])
		require.Len(c.t, relation.App, 3, "version, requests, data: %v", relation.App)
		require.NotContains(c.t, out, g.Username)
		return
	}
	c.t.Fatalf("no relation in %s", out)
}

// sql asks MariaDB itself.
func (c *cluster) sql(statement string) string {
	c.t.Helper()
	return strings.TrimSpace(c.must("shell", mariadb+"/0", "--container", "mariadb", "--",
		"mariadb", "--no-defaults", "-N", "-B", "-u", "root", "-S", "/var/lib/mariadb-k8s/socket", "-e", statement))
}

// quiet checks that a hook of the gateway that finds nothing changed wakes nobody.
func (c *cluster) quiet() {
	c.t.Helper()
	before := c.changes()
	c.must("fire", bridge+"/0", "update-status")
	c.settled("active", bridge+"/0", opsClient+"/0")
	require.Equal(c.t, before, c.changes())
}

// changes counts the hooks that told the client of a change.
func (c *cluster) changes() int {
	c.t.Helper()
	return strings.Count(c.must("debug-log", "--no-tail", "--replay", "-l", "INFO", "-i", opsClient+"/0"), `ran "database-relation-changed" hook`)
}
