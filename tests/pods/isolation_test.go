// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package pods

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/jujulet/controller"
)

// place is a container of a unit.
type place struct{ unit, container string }

func (p place) String() string { return strings.ReplaceAll(p.unit, "/", "-") + " " + p.container }

// places are all containers of the shared cluster.
func places() []place {
	return []place{
		{backend + "/0", "charm"}, {backend + "/0", "mariadb"},
		{bridge + "/0", "charm"}, {bridge + "/0", "gateway"},
		{bridge + "/1", "charm"}, {bridge + "/1", "gateway"},
		{clientA + "/0", "charm"}, {clientB + "/0", "charm"},
	}
}

func testIsolation(t *testing.T, c *cluster) {
	t.Run("listeners", func(t *testing.T) { testListeners(t, c) })
	t.Run("files", func(t *testing.T) { testFiles(t, c) })
	t.Run("databases", func(t *testing.T) { testDatabases(t, c) })
}

// Ports by which the kubelet asks a Pebble daemon for its health: one for the charm's container, one more for each
// workload container.
const charmHealth, firstHealth = "38812", "38813"

// testListeners compares what listens in each container with what is the unit's own.
func testListeners(t *testing.T, c *cluster) {
	// One on the host and one in a client's pod: neither may be seen elsewhere.
	host, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer host.Close()
	_, ownPort, err := net.SplitHostPort(host.Addr().String())
	require.NoError(t, err)
	seen, err := exec.CommandContext(t.Context(), "ss", "-Hltn").Output()
	require.NoError(t, err)
	require.Contains(t, listeners(t, string(seen)), ownPort, "the command must be able to show a listener")

	own := map[string][]string{
		backend: {"3306"},
		bridge:  {"6446", "6447"},
		clientA: nil,
		clientB: nil,
	}
	for _, p := range places() {
		out, code := c.run(t, p.unit, p.container, "ss", "-Hltn")
		require.Zero(t, code, "%s: %s", p, out)
		app, _, _ := strings.Cut(p.unit, "/")
		found := listeners(t, out)
		for _, port := range own[app] {
			require.Contains(t, found, port, "%s: %s", p, out)
		}
		var foreign []string
		for _, port := range found {
			health := slices.Contains([]string{charmHealth, firstHealth}, port)
			if !slices.Contains(own[app], port) && !health && !(app == bridge && loopbackOnly(out, port)) {
				foreign = append(foreign, port)
			}
		}
		require.Empty(t, foreign, "%s listens at more than its own: %s", p, out)
		require.NotContains(t, found, ownPort, "%s sees the host's listeners", p)
	}
}

var listenerPattern = regexp.MustCompile(`(?m)^LISTEN\s+\d+\s+\d+\s+(\S+):(\d+)\s`)

// listeners are the ports in the output of ss.
func listeners(t *testing.T, out string) []string {
	t.Helper()
	var ports []string
	for _, match := range listenerPattern.FindAllStringSubmatch(out, -1) {
		ports = append(ports, match[2])
	}
	require.Equal(t, strings.Count(out, "LISTEN"), len(ports), out)
	slices.Sort(ports)
	return slices.Compact(ports)
}

// loopbackOnly reports whether nobody outside the pod reaches a port.
func loopbackOnly(out, port string) bool {
	for _, match := range listenerPattern.FindAllStringSubmatch(out, -1) {
		if match[2] == port && !net.ParseIP(strings.Trim(match[1], "[]")).IsLoopback() {
			return false
		}
	}
	return true
}

// testFiles looks for what one container wrote, and for what is the host's, in all others.
func testFiles(t *testing.T, c *cluster) {
	const written = "/etc/written-by-a-charm"
	writer := place{bridge + "/0", "charm"}
	out, code := c.run(t, writer.unit, writer.container, "sh", "-c", "echo x > "+written+" && cat "+written)
	require.Zero(t, code, out)
	require.Equal(t, "x\n", out)
	require.NoFileExists(t, written)

	marker, err := os.CreateTemp("/root", ".drawbridge-test-")
	require.NoError(t, err)
	marker.Close()
	defer os.Remove(marker.Name())
	require.FileExists(t, filepath.Join(c.state, "model.db"))
	require.DirExists(t, controller.RuntimeFolder(c.state))
	hidden := []string{marker.Name(), filepath.Join(c.state, "model.db"), filepath.Join(c.state, "charms"), controller.RuntimeFolder(c.state)}
	for _, p := range places() {
		for _, path := range hidden {
			_, code := c.run(t, p.unit, p.container, "test", "-e", path)
			require.NotZero(t, code, "%s sees %s of the host", p, path)
		}
		if p != writer {
			_, code := c.run(t, p.unit, p.container, "test", "-e", written)
			require.NotZero(t, code, "%s sees what %s has written", p, writer)
		}
		// Neither another pod's folders nor the control sockets of another unit.
		out, _ := c.run(t, p.unit, p.container, "sh", "-c", "ls -d /run/jujulet-* /run/ctl/* /var/lib/juju/agents/* /charm/containers/* 2>/dev/null")
		for _, other := range places() {
			if name := strings.ReplaceAll(other.unit, "/", "-"); other.unit != p.unit {
				require.NotContains(t, out, name, "%s sees folders of %s", p, other)
			}
		}
		require.NotContains(t, out, "/run/jujulet-", "%s sees a runtime folder", p)
		if p.container != "charm" {
			require.NotContains(t, out, "/run/ctl/", "%s sees the control sockets of its charm", p)
		}
		// Processes of other pods, or of the host.
		out, code := c.run(t, p.unit, p.container, "sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
		require.Zero(t, code, out)
		for _, other := range []string{"__cluster", "go test", "pods.test"} {
			require.NotContains(t, out, other, "%s sees processes of the host", p)
		}
		require.Equal(t, p.unit == backend+"/0" && p.container == "mariadb", strings.Contains(out, "mariadbd"), "%s: %s", p, out)
	}
}

// testDatabases tries each client's database with the other's session, through the published address.
func testDatabases(t *testing.T, c *cluster) {
	clients := []struct{ app, database, other string }{{clientA, databaseA, databaseB}, {clientB, databaseB, databaseA}}
	for _, client := range clients {
		unit := client.app + "/0"
		c.mustQuery(t, unit, "CREATE TABLE IF NOT EXISTS diary (entry VARCHAR(20))")
		c.mustQuery(t, unit, fmt.Sprintf("INSERT INTO diary VALUES ('of %s')", client.app))
		require.Equal(t, [][]string{{"of " + client.app}}, c.mustQuery(t, unit, "SELECT entry FROM "+client.database+".diary"))
	}
	for _, client := range clients {
		unit := client.app + "/0"
		for _, sql := range []string{
			"SELECT entry FROM " + client.other + ".diary",
			"INSERT INTO " + client.other + ".diary VALUES ('was here')",
			"CREATE TABLE " + client.other + ".mine (n INT)",
			"DROP DATABASE " + client.other,
			"SELECT user FROM mysql.user",
			"GRANT ALL ON " + client.other + ".* TO CURRENT_USER()",
		} {
			require.Regexp(t, `error (1044|1142)\b`, c.query(t, unit, sql).Error, "%s: %s", client.app, sql)
		}
		for _, row := range c.mustQuery(t, unit, "SHOW DATABASES") {
			require.NotEqual(t, client.other, row[0])
		}
	}
	for _, client := range clients {
		require.Equal(t, [][]string{{"of " + client.app}}, c.mustQuery(t, client.app+"/0", "SELECT entry FROM diary"), "untouched by the other")
	}
}
