// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package pod_test

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/canonical/pebble/client"
	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/jujulet/pod"
)

// newManager returns a manager whose pods are gone after the test.
func newManager(t *testing.T, change func(*pod.Options)) *pod.Manager {
	t.Helper()
	o := pod.Options{Dir: shortDir(t)}
	if change != nil {
		change(&o)
	}
	m, err := pod.NewManager(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	return m
}

// shortDir returns a temporary folder with a path that is short enough for sockets.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/run", "podtest-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

// start starts a pod.
func start(t *testing.T, m *pod.Manager, s pod.Spec) *pod.Pod {
	t.Helper()
	if s.Name == "" {
		s.Name = "app-0"
	}
	if s.Namespace == "" {
		s.Namespace = "dev"
	}
	p, err := m.Start(t.Context(), s)
	require.NoError(t, err)
	return p
}

// charmOnly is a pod with a charm container alone.
func charmOnly() pod.Spec { return pod.Spec{Containers: []pod.Container{{Name: pod.CharmContainer}}} }

// sh runs a script in a container and returns what it wrote.
func sh(t *testing.T, p *pod.Pod, container, script string) (string, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var out bytes.Buffer
	exit, err := p.Exec(ctx, container, pod.Command{Args: []string{"sh", "-c", script}, Stdout: &out, Stderr: &out})
	require.NoError(t, err, out.String())
	return strings.TrimSpace(out.String()), exit
}

// eventually polls until the condition holds.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, 10*time.Second, 5*time.Millisecond, what)
}

func TestPod_PebbleAnswers(t *testing.T) {
	pebble := os.Getenv("JUJULET_PEBBLE")
	if pebble == "" {
		t.Skip("skipped: JUJULET_PEBBLE does not name a Pebble daemon")
	}
	m := newManager(t, func(o *pod.Options) { o.Pebble = pebble })
	began := time.Now()
	p := start(t, m, pod.Spec{Containers: []pod.Container{
		{Name: pod.CharmContainer}, {Name: "work", Workload: true}, {Name: "beta", Workload: true},
	}})
	t.Logf("pod of three containers started in %v", time.Since(began))
	socket := p.PebbleSocket("work")
	eventually(t, "Pebble's socket can be dialled", func() bool {
		c, err := net.Dial("unix", socket)
		if err != nil {
			return false
		}
		return c.Close() == nil
	})
	t.Logf("Pebble's socket answered after %v", time.Since(began))
	c, err := client.New(&client.Config{Socket: socket})
	require.NoError(t, err)
	info, err := c.SysInfo()
	require.NoError(t, err)
	require.NotEmpty(t, info.BootID)

	require.Equal(t, 38813, p.HealthPort("beta"))
	require.Equal(t, 38814, p.HealthPort("work"))
	require.Zero(t, p.HealthPort(pod.CharmContainer))
	out, exit := sh(t, p, pod.CharmContainer, "ls /charm/containers; test -S /charm/containers/work/pebble.socket")
	require.Zero(t, exit)
	require.Equal(t, "beta\nwork", out)
	out, exit = sh(t, p, "work", "/charm/bin/pebble version --client; echo $JUJU_CONTAINER_NAME $PEBBLE; ls -d /var/lib/juju/agents 2>/dev/null")
	require.NotZero(t, exit)
	require.Contains(t, out, "work /charm/container/pebble")
	_, exit = sh(t, p, "work", "echo x > /charm/bin/pebble")
	require.NotZero(t, exit, "Pebble's binary must be read-only")
	_ = http.StatusOK
	_ = filepath.Join
}
