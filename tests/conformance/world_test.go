// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package conformance

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/jujulet/agent"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// world is a model with foo (2 units, foo/0 leads), bar and baz (1 unit each), foo
// and bar related by db (id 1; foo's peer relation has id 0). Their hooks can be
// held, so that a test calls hook tools in a hook's own environment.
type world struct {
	t      *testing.T
	dir    string
	client string // the folder of links from tool names to the client in use
	model  *model.Model
	agents map[string]*agent.Agent
	secret []string // ids, in the order in which they were first seen
}

// callTimeout bounds one call of a tool, startTimeout the way to a held hook.
const (
	callTimeout  = 30 * time.Second
	startTimeout = 30 * time.Second
)

const fooMeta = `name: foo
summary: s
description: d
provides:
  db: {interface: pg}
requires:
  up: {interface: x}
peers:
  mates: {interface: m}
resources:
  conf: {type: file, filename: conf.txt}
`

const fooConfig = `options:
  text: {type: string, default: hello}
  empty: {type: string, default: ""}
  unset: {type: string}
  num: {type: int, default: 3}
  big: {type: int, default: 1000000}
  on: {type: boolean, default: true}
  tags: {type: string, default: "<a&b>"}
`

const fooActions = "act:\n  params:\n    a: {type: object}\n    s: {type: string}\n    l: {type: array}\n    t: {type: boolean}\n"

// dispatch ends at once, unless its hook is to be held: then it tells its
// environment and waits for its exit code.
const dispatch = `#!/bin/sh
D=%s
unit=$(echo "$JUJU_UNIT_NAME" | tr / -)
[ -e "$D/hold-$unit-${JUJU_DISPATCH_PATH#*/}" ] || exit 0
rm "$D/hold-$unit-${JUJU_DISPATCH_PATH#*/}"
env -0 > "$D/env-$unit.new"
mv "$D/env-$unit.new" "$D/env-$unit"
until [ -e "$D/exit-$unit" ]; do sleep 0.05; done
code=$(cat "$D/exit-$unit")
rm "$D/exit-$unit"
exit "$code"
`

func newWorld(t *testing.T, client string) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "conf") // short: a socket's path holds 108 bytes
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	w := &world{t: t, dir: dir, client: client, agents: map[string]*agent.Agent{}}
	when := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	w.model, err = model.Open(filepath.Join(dir, "model.db"), model.Options{
		NoSync: true, Clock: func() time.Time { return when }, LogLevel: "DEBUG",
	})
	require.NoError(t, err)
	t.Cleanup(func() { w.model.Close() })
	w.deploy("foo", 2, map[string]string{"metadata.yaml": fooMeta, "config.yaml": fooConfig, "actions.yaml": fooActions})
	w.deploy("bar", 1, map[string]string{"metadata.yaml": "name: bar\nsummary: s\ndescription: d\nrequires:\n  db: {interface: pg}\n"})
	w.deploy("baz", 1, map[string]string{"metadata.yaml": "name: baz\nsummary: s\ndescription: d\n"})
	_, err = w.model.Integrate("foo", "bar")
	require.NoError(t, err)
	require.NoError(t, w.model.SetServiceAddress("foo", "10.152.183.9"))
	for _, u := range []string{"foo/0", "foo/1", "bar/0"} {
		require.NoError(t, w.model.SetPodStatus(u, model.PodStatus{Address: "10.1.0.5"}))
	}
	for range 2 {
		for _, u := range []string{"foo/0", "bar/0", "foo/1"} {
			w.settle(u)
		}
	}
	_, err = w.model.CommitHook(t.Context(), "bar/0", model.HookCommit{Relations: []model.RelationWrite{
		{Relation: 1, Values: map[string]string{
			"k": "v", "n1": "1", "egress-subnets": "", "ingress-address": "", "private-address": "",
		}},
		{Relation: 1, App: true, Values: map[string]string{"a": "b"}},
	}})
	require.NoError(t, err)
	gone := map[string]string{"egress-subnets": "", "ingress-address": "", "private-address": ""}
	for _, u := range []string{"foo/0", "foo/1"} {
		_, err = w.model.CommitHook(t.Context(), u, model.HookCommit{Relations: []model.RelationWrite{
			{Relation: 0, Values: gone}, {Relation: 1, Values: gone},
		}})
		require.NoError(t, err)
	}
	for _, u := range []string{"foo/0", "bar/0", "foo/1"} {
		w.settle(u)
	}
	return w
}

func (w *world) deploy(name string, units int, files map[string]string) {
	w.t.Helper()
	dir := filepath.Join(w.dir, "src", name)
	require.NoError(w.t, os.MkdirAll(dir, 0o755))
	files["dispatch"] = fmt.Sprintf(dispatch, w.dir)
	files["manifest.yaml"] = "bases:\n- {name: ubuntu, channel: '22.04', architectures: [amd64]}\n"
	for file, text := range files {
		require.NoError(w.t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o755))
	}
	c, err := model.ReadCharm(dir)
	require.NoError(w.t, err)
	args := model.DeployArgs{Charm: c, Units: units}
	if name == "foo" {
		res := filepath.Join(w.dir, "conf.txt")
		require.NoError(w.t, os.WriteFile(res, []byte("content"), 0o644))
		args.Resources = map[string]string{"conf": res}
	}
	require.NoError(w.t, w.model.Deploy(args))
}

// agent returns the unit's agent, whose hook tools are links to the client.
func (w *world) agent(unit string) *agent.Agent {
	w.t.Helper()
	if a := w.agents[unit]; a != nil {
		return a
	}
	a, err := agent.New(agent.Options{
		Controller: w.model, Unit: unit, Root: filepath.Join(w.dir, strings.ReplaceAll(unit, "/", "")),
		NoPebble: true, Seed: 1, Tools: w.client,
	})
	require.NoError(w.t, err)
	w.agents[unit] = a
	return a
}

// settle runs hooks of a unit until there is nothing to do.
func (w *world) settle(unit string) {
	w.t.Helper()
	for range 100 {
		ran, err := w.agent(unit).Step(w.t.Context())
		require.NoError(w.t, err)
		if ran == "" {
			return
		}
	}
	w.t.Fatalf("%s does not settle", unit)
}

// held is a hook or action that waits while a test calls tools in its place.
type held struct {
	w    *world
	unit string
	env  []string
	done chan string
}

// hold makes a hook or an action run and holds it.
func (w *world) hold(unit, name string, begin func() error) *held {
	w.t.Helper()
	tag := strings.ReplaceAll(unit, "/", "-")
	w.settle(unit)
	require.NoError(w.t, os.WriteFile(filepath.Join(w.dir, "hold-"+tag+"-"+name), nil, 0o600))
	require.NoError(w.t, begin())
	h := &held{w: w, unit: unit, done: make(chan string, 1)}
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ran, err := w.agent(unit).Step(ctx)
		h.done <- fmt.Sprint(ran, errText(err))
	}()
	w.t.Cleanup(func() { cancel(); <-ended })
	file := filepath.Join(w.dir, "env-"+tag)
	for deadline := time.Now().Add(startTimeout); ; time.Sleep(10 * time.Millisecond) {
		raw, err := os.ReadFile(file)
		if err == nil {
			require.NoError(w.t, os.Remove(file))
			h.env = strings.Split(strings.TrimRight(string(raw), "\x00"), "\x00")
			return h
		}
		require.True(w.t, time.Now().Before(deadline), "%s does not run on %s", name, unit)
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

// end lets the held hook exit with a code, and returns what the agent says of it.
func (h *held) end(code int) string {
	h.w.t.Helper()
	file := filepath.Join(h.w.dir, "exit-"+strings.ReplaceAll(h.unit, "/", "-"))
	require.NoError(h.w.t, os.WriteFile(file+".new", fmt.Appendln(nil, code), 0o600))
	require.NoError(h.w.t, os.Rename(file+".new", file))
	select {
	case ran := <-h.done:
		return ran
	case <-time.After(startTimeout):
		h.w.t.Fatal("the held hook does not end")
		return ""
	}
}

// getenv is a variable of the hook's environment.
func (h *held) getenv(name string) string {
	for _, e := range h.env {
		if v, ok := strings.CutPrefix(e, name+"="); ok {
			return v
		}
	}
	return ""
}

// answer is what a tool has printed, and its exit code.
type answer struct {
	code           int
	stdout, stderr string
}

func (a answer) String() string { return fmt.Sprintf("%d|%s|%s", a.code, a.stdout, a.stderr) }

// call executes a tool as the hook would: found on its PATH, in its environment.
// Later entries of env win.
func (h *held) call(stdin string, env []string, tool string, args ...string) answer {
	h.w.t.Helper()
	ctx, cancel := context.WithTimeout(h.w.t.Context(), callTimeout)
	defer cancel()
	path, _, _ := strings.Cut(h.getenv("PATH"), ":")
	cmd := exec.CommandContext(ctx, filepath.Join(path, tool), args...)
	cmd.Dir = h.w.dir
	cmd.Env = append(append([]string{}, h.env...), env...)
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !asExit(err, &exit) {
		h.w.t.Fatalf("%s %q: %v", tool, args, err)
	}
	return answer{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

func asExit(err error, exit **exec.ExitError) bool {
	e, ok := err.(*exec.ExitError)
	*exit = e
	return ok
}

// noSecret is the id of a secret that nobody has made.
const noSecret = "9m4e2mr0ui3e8a215n4g"

var secretID = regexp.MustCompile(`[0-9a-v]{20}`)

// plain replaces what differs from run to run: $S1, $S2 are secrets, $MODEL and
// $DIR the model's uuid and the world's folder.
func (w *world) plain(text string) string {
	text = strings.ReplaceAll(text, w.model.Info().UUID, "$MODEL")
	text = strings.ReplaceAll(text, w.dir, "$DIR")
	return secretID.ReplaceAllStringFunc(text, func(id string) string {
		for i, known := range w.secret {
			if known == id {
				return fmt.Sprintf("$S%d", i+1)
			}
		}
		if id == noSecret {
			return id
		}
		w.secret = append(w.secret, id)
		return fmt.Sprintf("$S%d", len(w.secret))
	})
}

// real is the other way round, for arguments.
func (w *world) real(text string) string {
	for i, id := range w.secret {
		text = strings.ReplaceAll(text, fmt.Sprintf("$S%d", i+1), id)
	}
	return strings.ReplaceAll(text, "$DIR", w.dir)
}
