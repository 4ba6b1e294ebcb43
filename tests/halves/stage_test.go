// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package halves

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/hooks/hooktool"
	"github.com/drawbridge-k8s/drawbridge/jujulet/agent"
	"github.com/drawbridge-k8s/drawbridge/jujulet/hooktools"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// socketFile stands in the folder of the tools for the exec tests and names the
// agent's socket, which Connect was kept from finding.
const socketFile = "socket"

// TestMain makes the test binary a hook tool when it is called by a tool's name.
func TestMain(m *testing.M) {
	if hooktools.IsTool(filepath.Base(os.Args[0])) {
		dir, _, _ := strings.Cut(os.Getenv("PATH"), ":")
		if socket, err := os.ReadFile(filepath.Join(dir, socketFile)); err == nil {
			os.Setenv("JUJU_AGENT_SOCKET_ADDRESS", string(socket))
		}
		os.Exit(hooktools.ClientMain(os.Args))
	}
	os.Exit(m.Run())
}

// stage is a model with two applications, `db` and `app`, related; what their
// units do in a hook is a function.
type stage struct {
	t      *testing.T
	model  *model.Model
	dir    string
	agents map[string]*agent.Agent
	do     func(ctx context.Context, unit string, c agent.Command) error
}

const providerMeta = `
peers:
  mates: {interface: mates}
provides:
  database: {interface: mysql_client}
`

const requirerMeta = `
requires:
  database: {interface: mysql_client}
`

const providerConfig = `
options:
  text: {type: string, default: "x y"}
  number: {type: int, default: 1000000}
  flag: {type: boolean, default: true}
`

const providerActions = `
look:
  params:
    p: {type: integer}
`

// newStage deploys both applications with one unit each and lets them settle.
func newStage(t *testing.T) *stage {
	t.Helper()
	dir, err := os.MkdirTemp("", "h") // short: socket paths are bounded
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &stage{t: t, dir: dir, agents: map[string]*agent.Agent{}}
	s.model, err = model.Open(filepath.Join(dir, "model.db"), model.Options{NoSync: true, LogLevel: "DEBUG"})
	require.NoError(t, err)
	t.Cleanup(func() { s.model.Close() })
	s.deploy("db", providerMeta, providerConfig, providerActions)
	s.deploy("app", requirerMeta, "", "")
	_, err = s.model.Integrate("db:database", "app:database")
	require.NoError(t, err)
	s.settle()
	return s
}

func (s *stage) deploy(name, meta, config, actions string) {
	s.t.Helper()
	dir := filepath.Join(s.dir, "charm-"+name)
	require.NoError(s.t, os.MkdirAll(dir, 0o755))
	for file, text := range map[string]string{
		"metadata.yaml": "name: " + name + "\nsummary: s\ndescription: d\n" + meta,
		"manifest.yaml": "bases:\n- {name: ubuntu, channel: '22.04', architectures: [amd64]}\n",
		"config.yaml":   config, "actions.yaml": actions, "dispatch": "#!/bin/sh\nexit 3\n",
	} {
		if text != "" {
			require.NoError(s.t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o755))
		}
	}
	charm, err := model.ReadCharm(dir)
	require.NoError(s.t, err)
	require.NoError(s.t, s.model.Deploy(model.DeployArgs{App: name, Charm: charm, Units: 1}))
	require.NoError(s.t, s.model.SetServiceAddress(name, "10.152.183.20"))
	require.NoError(s.t, s.model.SetPodStatus(name+"/0", model.PodStatus{Address: "10.1.0.2", Ready: true}))
	unit := name + "/0"
	a, err := agent.New(agent.Options{
		Controller: s.model, Unit: unit, Root: filepath.Join(s.dir, "r-"+name), NoPebble: true, Seed: 1,
		Runner: func(ctx context.Context, c agent.Command) (int, error) {
			if s.do == nil {
				return 0, nil
			}
			if err := s.do(ctx, unit, c); err != nil {
				fmt.Fprintln(c.Stderr, err)
				return 1, nil
			}
			return 0, nil
		},
	})
	require.NoError(s.t, err)
	s.agents[unit] = a
}

// settle lets both units run hooks until neither has anything to do.
func (s *stage) settle() {
	s.t.Helper()
	for range 100 {
		busy := false
		for _, unit := range []string{"app/0", "db/0"} {
			ran, err := s.agents[unit].Step(s.t.Context())
			require.NoError(s.t, err)
			busy = busy || ran != ""
		}
		if !busy {
			return
		}
	}
	s.t.Fatal("the units do not settle")
}

// connector makes the client that a hook's test works with.
type connector func(t *testing.T, c agent.Command) *hooktool.Client

// hook runs do in a hook of one unit, over a client that connect makes; other
// hooks do nothing. fail makes the hook fail at its end.
func (s *stage) hook(unit string, connect connector, fail bool, do func(ctx context.Context, c *hooktool.Client)) {
	s.t.Helper()
	require.NoError(s.t, s.model.Fire(unit, "update-status", nil))
	s.run(unit, connect, fail, do)
}

func (s *stage) run(unit string, connect connector, fail bool, do func(ctx context.Context, c *hooktool.Client)) {
	s.t.Helper()
	done := false
	s.do = func(ctx context.Context, where string, c agent.Command) error {
		if where != unit || done {
			return nil
		}
		done = true
		client := connect(s.t, c)
		defer client.Close()
		do(ctx, client)
		if fail {
			return fmt.Errorf("failed on purpose")
		}
		return nil
	}
	s.stepUntil(unit, &done)
	s.do = nil
	if !fail {
		s.settle()
		return
	}
	_, err := s.agents[unit].Step(s.t.Context()) // notices the failure
	require.NoError(s.t, err)
	status, err := s.model.Status()
	require.NoError(s.t, err)
	app, _, _ := strings.Cut(unit, "/")
	require.Equal(s.t, "update-status", status.Applications[app].Units[unit].Error)
	require.NoError(s.t, s.model.Resolve(unit, model.ResolveRetry))
	s.settle()
}

func (s *stage) stepUntil(unit string, done *bool) {
	s.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !*done; {
		require.True(s.t, time.Now().Before(deadline), "the hook of %s never ran", unit)
		_, err := s.agents[unit].Step(s.t.Context())
		require.NoError(s.t, err)
	}
}

// getenv reads a hook's environment.
func getenv(c agent.Command) func(string) string {
	return func(name string) string {
		for i := len(c.Env) - 1; i >= 0; i-- {
			if key, value, _ := strings.Cut(c.Env[i], "="); key == name {
				return value
			}
		}
		return ""
	}
}

// overSocket is the usual client, on the agent's socket.
func overSocket(t *testing.T, c agent.Command) *hooktool.Client {
	t.Helper()
	client, err := hooktool.Connect(t.Context(), getenv(c))
	require.NoError(t, err)
	return client
}

// overTools is the client where the socket is not to be found: it runs the
// tools, which are this program.
func overTools(t *testing.T, c agent.Command) *hooktool.Client {
	t.Helper()
	get := getenv(c)
	dir := t.TempDir()
	self, err := os.Executable()
	require.NoError(t, err)
	for _, name := range hooktools.Names() {
		require.NoError(t, os.Symlink(self, filepath.Join(dir, name)))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, socketFile), []byte(get("JUJU_AGENT_SOCKET_ADDRESS")), 0o600))
	client, err := hooktool.Connect(t.Context(), func(name string) string {
		switch name {
		case "PATH":
			return dir
		case "JUJU_AGENT_SOCKET_ADDRESS":
			return filepath.Join(dir, "absent")
		}
		return get(name)
	})
	require.NoError(t, err)
	return client
}
