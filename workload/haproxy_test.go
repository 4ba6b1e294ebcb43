// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package workload_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/workload"
)

var update = flag.Bool("update", false, "write the golden files")

var gateways = map[string]workload.Gateway{
	"empty": {},
	"mysql": {
		ReadWrite: []string{"mysql-k8s-primary.prod.svc.cluster.local.:3306"},
		ReadOnly:  []string{"mysql-k8s-replicas.prod.svc.cluster.local.:3306"},
	},
	"same": {
		ReadWrite: []string{"mariadb-k8s-0.mariadb-k8s-endpoints.dev.svc.cluster.local.:3306"},
		ReadOnly:  []string{"mariadb-k8s-0.mariadb-k8s-endpoints.dev.svc.cluster.local.:3306"},
	},
	"many": {
		ReadWrite: []string{"10.1.0.7:3306", "[fd00::7]:3306", "10.1.0.7:3306"},
		ReadOnly:  []string{"b.example:3306", "A.example.:3306"},
		IPv6:      true,
	},
	"write-only": {ReadWrite: []string{"10.1.0.7:3306"}},
	"read-only":  {ReadOnly: []string{"10.1.0.8:3306"}},
}

func TestConfig_Golden(t *testing.T) {
	t.Parallel()
	for name, g := range gateways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.NoError(t, g.Validate())
			got, golden := g.Config(), filepath.Join("testdata", name+".cfg")
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), got)

			output, err := exec.Command(haproxy(t), "-c", "-f", golden).CombinedOutput()
			require.NoError(t, err, "%s", output)
		})
	}
}

func haproxy(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"haproxy", "/usr/sbin/haproxy"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("cannot check a configuration: haproxy is not installed (Debian: apt-get install haproxy)")
	return ""
}

func TestConfig_OrderDoesNotMatter(t *testing.T) {
	t.Parallel()
	g := gateways["many"]
	turned := g
	turned.ReadWrite = slices.Clone(g.ReadWrite)
	turned.ReadOnly = slices.Clone(g.ReadOnly)
	slices.Reverse(turned.ReadWrite)
	slices.Reverse(turned.ReadOnly)
	require.Equal(t, g.Config(), turned.Config())
	require.Equal(t, g.Hash(), turned.Hash())
	require.NotEqual(t, g.Hash(), gateways["mysql"].Hash())
	require.Contains(t, g.Config(), "description "+g.Hash()+"\n")
}

// What comes from a databag cannot become anything but a server.
func TestConfig_HostileEndpoints(t *testing.T) {
	t.Parallel()
	for _, endpoint := range []string{
		"", ":", "host", "host:", ":3306", "host:0", "host:65536", "host:-1", "host:+1", "host:port", "a b:3306", "host:3306 backup",
		"host\n    server evil 10.9.9.9:3306", "host:3306\nglobal", "host:3306 # x", "a\\:3306", "'a':3306", `"a":3306`, "$HOME:3306",
		"${HOME}:3306", "unix@/run/x:3306", "/run/x:3306", "ipv4@1.2.3.4:3306", "fd@1:3306", "[fe80::1%eth0]:3306", "fd00::7:3306",
		"-a:3306", "a..b:3306", ".a:3306", "host:3306,other:3306", "ü.example:3306", strings.Repeat("a", 254) + ":3306", "host:3306\x00",
	} {
		g := workload.Gateway{ReadWrite: []string{endpoint}, ReadOnly: []string{endpoint}}
		require.Error(t, g.Validate(), "%q", endpoint)
		require.Equal(t, workload.Gateway{}.Config(), g.Config(), "%q", endpoint)
	}
}
