// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package controller

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cli"
	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// maxStatus bounds a status of 100 units and 100 relations.
const maxStatus = 200 * time.Millisecond

// TestStatusOfHundred measures the status of a model with 100 units, in ten
// applications that are all related to each other, and 100 relations with the
// databags of all units: through the control socket, and on the command line.
func TestStatusOfHundred(t *testing.T) {
	const apps, units = 10, 10
	state := t.TempDir()
	k := newKubelet(t, state)
	hundred(t, k.model, apps, units)
	l, err := listenControl(k.config.Runtime)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- k.serveControl(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-served)
	})
	socket := control.SocketPath(k.config.Runtime)
	client := control.New(socket)
	t.Cleanup(client.Close)
	require.Eventually(t, func() bool { // what has to be done for new pods is done
		s, err := k.model.Status()
		require.NoError(t, err)
		for _, app := range s.Applications {
			for _, u := range app.Units {
				if !u.Pod.Ready {
					return false
				}
			}
		}
		return true
	}, 120*time.Second, 200*time.Millisecond)

	var status model.Status
	socketTime := fastest(t, func() error {
		var err error
		status, err = client.Status(t.Context())
		return err
	})
	require.Len(t, status.Relations, 100)
	require.Len(t, status.Applications, apps)
	require.Len(t, status.Applications["app3"].Units, units)
	var out bytes.Buffer
	cliTime := fastest(t, func() error {
		out.Reset()
		code := cli.Main(t.Context(), cli.Environment{
			In: &bytes.Buffer{}, Out: &out, Err: os.Stderr, Getenv: func(string) string { return "" }, Now: time.Now, Zone: time.UTC,
			StateFolder: func(string, func(string) string) (string, error) { return state, nil },
			Socket:      func(string) string { return socket },
		}, []string{"status", "--relations"})
		if code != 0 {
			return fmt.Errorf("exit code %d", code)
		}
		return nil
	})
	require.Contains(t, out.String(), "app9/9")
	fmt.Printf("status of 100 units and 100 relations: %d ms through the socket, %d ms on the command line\n",
		socketTime.Milliseconds(), cliTime.Milliseconds())
	require.Less(t, socketTime, maxStatus)
	require.Less(t, cliTime, maxStatus)
}

// hundred fills a model: every application is related to every other, and to
// itself by a peer relation; all units are in all of them.
func hundred(t *testing.T, m *model.Model, apps, units int) {
	t.Helper()
	dir := t.TempDir()
	options := "options:\n"
	for i := range 50 {
		options += fmt.Sprintf("  option%d: {type: string, default: value, description: %q}\n", i, "What it is for, in a line of text.")
	}
	for name, text := range map[string]string{
		"metadata.yaml": "name: many\nsummary: s\ndescription: d\nprovides:\n  a: {interface: i}\nrequires:\n  b: {interface: i}\npeers:\n  c: {interface: p}\n",
		"config.yaml":   options, "dispatch": "#!/bin/sh\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755))
	}
	charm, err := model.ReadCharm(dir)
	require.NoError(t, err)
	var relations []int
	for i := range apps {
		relations = append(relations, i) // its peers
		require.NoError(t, m.Deploy(model.DeployArgs{App: fmt.Sprintf("app%d", i), Charm: charm, Units: units}))
	}
	for i := range apps {
		for j := range apps {
			if i == j {
				continue
			}
			id, err := m.Integrate(fmt.Sprintf("app%d:a", i), fmt.Sprintf("app%d:b", j))
			require.NoError(t, err)
			relations = append(relations, id)
		}
	}
	s, err := m.Status()
	require.NoError(t, err)
	for name, app := range s.Applications {
		var own []int
		for _, r := range s.Relations {
			if slices.ContainsFunc(r.Ends, func(e model.EndpointRef) bool { return e.App == name }) {
				own = append(own, r.ID)
			}
		}
		for unit := range app.Units {
			require.NoError(t, m.Save(t.Context(), unit, model.Save{Enter: own}))
			writes := []model.RelationWrite{}
			for _, id := range own {
				writes = append(writes, model.RelationWrite{Relation: id, Values: map[string]string{"endpoints": "10.1.2.3:3306", "data": unit}})
			}
			_, err := m.CommitHook(t.Context(), unit, model.HookCommit{Relations: writes})
			require.NoError(t, err)
		}
	}
	require.Len(t, relations, 100)
}

// fastest runs f some times and returns how long it takes when nothing else goes
// on. On a machine that is busy with other things the processor time of this
// process, in which client and server are, is nearer to that than the clock.
func fastest(t *testing.T, f func() error) time.Duration {
	t.Helper()
	best := time.Hour
	for range 10 {
		began, used := time.Now(), processorTime(t)
		require.NoError(t, f())
		best = min(best, time.Since(began), processorTime(t)-used)
	}
	return best
}

// processorTime is what this process has used so far.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var usage unix.Rusage
	require.NoError(t, unix.Getrusage(unix.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
