// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package world

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/rpc"
	"os"
	"path/filepath"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/charm"
	"github.com/drawbridge-k8s/drawbridge/hooks/hooktool"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
	"github.com/drawbridge-k8s/drawbridge/workload"
)

// This file is what can be put between a charm and its surroundings.

// connect opens a unit's hook tools: nil, which is the charm's own way, unless
// Tools is to stand before them.
func (w *World) connect(unit string) func(context.Context, func(string) string) (*hooktool.Client, error) {
	if w.Tools == nil {
		return nil
	}
	return func(_ context.Context, getenv func(string) string) (*hooktool.Client, error) {
		agent, err := rpc.Dial("unix", getenv("JUJU_AGENT_SOCKET_ADDRESS"))
		if err != nil {
			return nil, err
		}
		return hooktool.New(tools{w: w, unit: unit, agent: agent, getenv: getenv}), nil
	}
}

// tools calls a unit's hook tools by Juju's protocol, with Tools before them.
type tools struct {
	w      *World
	unit   string
	agent  *rpc.Client
	getenv func(string) string
}

// Run runs a tool.
func (t tools) Run(_ context.Context, call hooktool.Call) ([]byte, error) {
	return t.w.Tools(t.unit, call, func() ([]byte, error) {
		request := struct {
			ContextId, Dir, CommandName, Token string
			Args                               []string
			StdinSet                           bool
			Stdin                              []byte
		}{
			t.getenv("JUJU_CONTEXT_ID"), "/", call.Tool, t.getenv("JUJU_AGENT_TOKEN"), call.Args, call.Stdin != nil, call.Stdin,
		}
		var answer struct {
			Code           int
			Stdout, Stderr []byte
		}
		if err := t.agent.Call("Jujuc.Main", request, &answer); err != nil {
			return nil, err
		}
		if answer.Code != 0 {
			message := strings.TrimPrefix(strings.TrimSpace(string(answer.Stderr)), "ERROR ")
			return nil, &hooktool.Error{Tool: call.Tool, Code: answer.Code, Message: message}
		}
		return answer.Stdout, nil
	})
}

// Close ends the connection.
func (t tools) Close() error { return t.agent.Close() }

// transport is the gateway's way to the Kubernetes API.
type transport struct{ w *World }

// RoundTrip sends a request.
func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
	next := t.w.Cluster.RoundTripper()
	if t.w.API == nil {
		return next.RoundTrip(request)
	}
	return t.w.API(request, next)
}

// newGateway makes a unit's workload.
func (w *World) newGateway(unit string) func(*slog.Logger) charm.Gateway {
	return func(log *slog.Logger) charm.Gateway {
		if w.options.Pebble {
			return workload.New(workload.Options{Socket: w.PebbleSocket(unit), Logger: log})
		}
		return w.WorkloadOf(unit)
	}
}

// PebbleSocket is where a unit looks for its workload container's Pebble.
func (w *World) PebbleSocket(unit string) string {
	w.T.Helper()
	w.agent(unit)
	return filepath.Join(w.roots[unit], "charm/containers/gateway/pebble.socket")
}

// Write writes a databag in the name of a unit, past its charm: its own in the
// relation, or its application's. The unit of an application databag must lead.
func (w *World) Write(unit string, relation int, app bool, values map[string]string) {
	w.T.Helper()
	w.Commit(unit, model.HookCommit{Relations: []model.RelationWrite{{Relation: relation, App: app, Values: values}}})
}

// Commit commits what a hook of the unit might have buffered, past its charm.
func (w *World) Commit(unit string, commit model.HookCommit) {
	w.T.Helper()
	commit.Journal.Hook = "by hand"
	_, err := w.Model.CommitHook(w.T.Context(), unit, commit)
	require.NoError(w.T, err)
}

// related finds the relation between two endpoints.
func (w *World) related(a, b string) (id int, there bool) {
	w.T.Helper()
	for _, r := range w.status().Relations {
		ends := map[string]bool{}
		for _, end := range r.Ends {
			ends[end.String()], ends[end.App] = true, true
		}
		if ends[a] && ends[b] {
			return r.ID, true
		}
	}
	return 0, false
}

// Relation is the number of the relation between two endpoints.
func (w *World) Relation(a, b string) int {
	w.T.Helper()
	id, there := w.related(a, b)
	require.True(w.T, there, "no relation between %s and %s", a, b)
	return id
}

// Log is what hooks have logged with juju-log, one line each.
func (w *World) Log() string {
	w.T.Helper()
	var lines []string
	for _, line := range w.Model.Logs(0, 0) {
		lines = append(lines, line.Entity+" "+line.Level+" "+line.Message)
	}
	return strings.Join(lines, "\n")
}

// Refresh gives an application a new revision of its charm: the same charm with
// one more file. The pods stay; a test that wants them replaced kills them.
func (w *World) Refresh(charm, app string) {
	w.T.Helper()
	dir := w.charmFolder(charm)
	w.mu.Lock()
	w.revisions++
	revision := w.revisions
	w.mu.Unlock()
	require.NoError(w.T, os.WriteFile(filepath.Join(dir, "version"), fmt.Append(nil, revision), 0o644))
	c, err := model.ReadCharm(dir)
	require.NoError(w.T, err)
	resources := map[string]string{}
	for name := range c.Meta.Resources {
		resources[name] = "host"
	}
	_, err = w.Model.Refresh(model.RefreshArgs{App: app, Charm: c, Resources: resources})
	require.NoError(w.T, err)
}
