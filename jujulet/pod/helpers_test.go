// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package pod_test

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/jujulet/pod"
	"github.com/drawbridge-k8s/drawbridge/jujulet/pod/podtest"
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
	dir, err := os.MkdirTemp(runFolder(), "podtest-")
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

// runFolder is where runtime folders belong.
func runFolder() string {
	if podtest.Ordinary() {
		return ""
	}
	return "/run"
}

// podFolders lists what a manager's pods have in its folder.
func podFolders(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		if e.Name() != "skeleton" { // it belongs to the manager
			names = append(names, e.Name())
		}
	}
	return names
}
