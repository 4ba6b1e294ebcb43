// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package pod_test

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/jujulet/pod"
)

func TestCheck(t *testing.T) {
	require.NoError(t, pod.Check())
}

func TestFindPebble(t *testing.T) {
	program := filepath.Join(t.TempDir(), "daemon")
	none := func(string) string { return "" }
	named := func(key string) string { return map[string]string{"JUJULET_PEBBLE": program}[key] }

	_, err := pod.FindPebble(none)
	require.ErrorContains(t, err, "github.com/canonical/pebble/cmd/pebble", "the error says how to build it")
	_, err = pod.FindPebble(named)
	require.ErrorContains(t, err, program)
	require.NoError(t, os.WriteFile(program, nil, 0o644))
	_, err = pod.FindPebble(named)
	require.Error(t, err, "it cannot be executed")
	require.NoError(t, os.Chmod(program, 0o755))
	got, err := pod.FindPebble(named)
	require.NoError(t, err)
	require.Equal(t, program, got)
}

// The cluster process sees itself as process 1, and its network is empty but for loopback.
func TestClusterInit(t *testing.T) {
	require.Equal(t, 1, os.Getpid())
	self, err := os.Readlink("/proc/self")
	require.NoError(t, err)
	require.Equal(t, "1", self)
	forward, err := os.ReadFile("/proc/sys/net/ipv4/ip_forward")
	require.NoError(t, err)
	require.Equal(t, "1", strings.TrimSpace(string(forward)))
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(t, err)
	require.NotContains(t, string(mounts), "shared:")
}

// The death of the cluster process takes along all that is in it.
func TestCluster_Kill(t *testing.T) {
	for _, test := range []struct {
		name string
		kill func(*testing.T, *pod.Cluster)
	}{
		{"by who started it", func(_ *testing.T, c *pod.Cluster) { c.Kill() }},
		{"by another", func(t *testing.T, c *pod.Cluster) { require.NoError(t, pod.KillCluster(t.Context(), c.PID())) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := shortDir(t)
			mounts, err := os.ReadFile("/proc/self/mountinfo")
			require.NoError(t, err)
			read, write, err := os.Pipe()
			require.NoError(t, err)
			defer read.Close()
			c, err := pod.StartCluster(t.Context(), pod.ClusterOptions{Env: []string{clusterOnly + "=" + dir}, Stdout: write, Stderr: write})
			require.NoError(t, err)
			require.NoError(t, write.Close())
			lines := bufio.NewScanner(read)
			require.True(t, lines.Scan())
			require.Equal(t, "ready", lines.Text())
			require.Len(t, sleepers(t), 3)
			test.kill(t, c)
			require.Empty(t, sleepers(t))
			require.Error(t, c.Wait())
			entries, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Empty(t, entries, "the pods' folders were on a file system of the cluster process")
			after, err := os.ReadFile("/proc/self/mountinfo")
			require.NoError(t, err)
			require.Equal(t, string(mounts), string(after))
			require.NoError(t, pod.KillCluster(t.Context(), c.PID()), "it is gone already")
		})
	}
}

// sleepers returns the processes that sleep in the pods of TestCluster_Kill.
func sleepers(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	var found []string
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && string(text) == "sleep\x00967\x00" {
			found = append(found, file)
		}
	}
	return found
}

// BenchmarkStart measures a pod of a charm container and one workload container from nothing to killed.
func BenchmarkStart(b *testing.B) {
	dir, err := os.MkdirTemp(runFolder(), "podtest-")
	require.NoError(b, err)
	m, err := pod.NewManager(pod.Options{Dir: dir})
	require.NoError(b, err)
	for b.Loop() {
		p, err := m.Start(b.Context(), pod.Spec{Name: "app-0", Containers: []pod.Container{
			{Name: pod.CharmContainer}, {Name: "work", Workload: true, Command: []string{"sleep", "971"}},
		}})
		require.NoError(b, err)
		p.Kill()
	}
	require.NoError(b, m.Close())
	require.NoError(b, os.Remove(dir))
}
