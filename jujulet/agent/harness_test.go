// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package agent_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/jujulet/agent"
	"github.com/drawbridge-k8s/drawbridge/jujulet/hooktools"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// TestMain makes the test binary a hook tool when it is called by a tool's name.
func TestMain(m *testing.M) {
	if hooktools.IsTool(filepath.Base(os.Args[0])) {
		os.Exit(hooktools.ClientMain(os.Args))
	}
	flag.Parse()
	// Enough for every run; -rapid.checks=500 for a long one.
	if f := flag.Lookup("rapid.checks"); f != nil && f.Value.String() == f.DefValue {
		f.Value.Set("20")
	}
	os.Exit(m.Run())
}

// clock is a clock that tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// world is a model with agents that tests drive step by step, running plain sh
// charms that call the hook tools from PATH.
type world struct {
	t      *testing.T
	dir    string
	model  *model.Model
	clock  *clock
	seed   uint64 // of agents that are made from now on
	agents map[string]*agent.Agent
	roots  map[string]string
	seen   map[string][]string // hooks collected by collect
	taken  map[string]int      // bytes that take has returned, by file
}

func newWorld(t *testing.T) *world {
	t.Helper()
	if !strings.Contains(t.Name(), "trap-31") { // which makes several
		t.Parallel()
	}
	w := &world{
		t: t, dir: t.TempDir(), seed: 1, agents: map[string]*agent.Agent{}, roots: map[string]string{},
		seen: map[string][]string{}, taken: map[string]int{},
		clock: &clock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
	}
	w.open()
	return w
}

// open opens the model; after a close it is that of a restarted controller.
func (w *world) open() {
	w.t.Helper()
	m, err := model.Open(filepath.Join(w.dir, "model.db"), model.Options{NoSync: true, Clock: w.clock.Now, LogLevel: "DEBUG"})
	require.NoError(w.t, err)
	w.t.Cleanup(func() { m.Close() })
	w.model = m
}

// charm is a charm to be written: metadata beyond the names, and a script.
type charm struct {
	name, meta, config, actions string
	// script is run by dispatch with $TRACE, $hook and $unit set.
	script string
}

const dispatchHead = `#!/bin/sh
hook="${JUJU_DISPATCH_PATH#*/}"
unit="$JUJU_UNIT_NAME"
DIR=%s
say() { echo "$*" >> "$DIR/out-$(echo "$unit" | tr / -)"; }
line="$hook"
[ -n "${JUJU_RELATION+x}" ] && line="$line [$JUJU_REMOTE_UNIT,$JUJU_REMOTE_APP]"
[ -n "${JUJU_DEPARTING_UNIT+x}" ] && line="$line departing=$JUJU_DEPARTING_UNIT"
echo "$line" >> "$DIR/trace-$(echo "$unit" | tr / -)"
`

// read writes the charm's files and reads them as a charm.
func (w *world) read(c charm) *model.Charm {
	w.t.Helper()
	dir := filepath.Join(w.dir, "src-"+c.name)
	require.NoError(w.t, os.MkdirAll(dir, 0o755))
	write := func(name, text string, mode os.FileMode) {
		if text != "" {
			require.NoError(w.t, os.WriteFile(filepath.Join(dir, name), []byte(text), mode))
		}
	}
	write("metadata.yaml", fmt.Sprintf("name: %s\nsummary: s\ndescription: d\n%s", c.name, c.meta), 0o644)
	write("manifest.yaml", "bases:\n- {name: ubuntu, channel: '22.04', architectures: [amd64]}\n", 0o644)
	write("config.yaml", c.config, 0o644)
	write("actions.yaml", c.actions, 0o644)
	write("dispatch", fmt.Sprintf(dispatchHead, w.dir)+c.script+"\n", 0o755)
	out, err := model.ReadCharm(dir)
	require.NoError(w.t, err)
	return out
}

// deploy deploys a charm under its own name.
func (w *world) deploy(c charm, units int) {
	w.t.Helper()
	require.NoError(w.t, w.model.Deploy(model.DeployArgs{Charm: w.read(c), Units: units, Resources: oci(c)}))
}

// oci gives every oci-image resource of the tests' charms.
func oci(c charm) map[string]string {
	if strings.Contains(c.meta, "oci-image") {
		return map[string]string{"img": "host"}
	}
	return nil
}

// agent returns the unit's agent; a fresh one in a fresh pod at first.
func (w *world) agent(unit string) *agent.Agent {
	w.t.Helper()
	if a := w.agents[unit]; a != nil {
		return a
	}
	if w.roots[unit] == "" {
		w.newPod(unit)
	}
	a, err := agent.New(agent.Options{
		Controller: w.model, Unit: unit, Root: w.roots[unit], Clock: w.clock.Now, NoPebble: true, Seed: w.seed,
	})
	require.NoError(w.t, err)
	w.agents[unit] = a
	return a
}

// newPod gives the unit an empty disk and a fresh agent: its pod was replaced.
func (w *world) newPod(unit string) {
	w.t.Helper()
	root, err := os.MkdirTemp(w.dir, "r")
	require.NoError(w.t, err)
	w.roots[unit] = root
	delete(w.agents, unit)
}

// bounce restarts the unit's agent only.
func (w *world) bounce(unit string) { delete(w.agents, unit) }

// step runs one decision of a unit.
func (w *world) step(unit string) string {
	w.t.Helper()
	ran, err := w.agent(unit).Step(w.t.Context())
	require.NoError(w.t, err)
	return ran
}

// settle runs one unit until it has nothing to do, and returns what ran.
func (w *world) settle(unit string) []string {
	w.t.Helper()
	var out []string
	for range 200 {
		ran := w.step(unit)
		if ran == "" {
			return out
		}
		out = append(out, ran)
		if ran == "dead" || ran == "stopped" {
			return out
		}
	}
	w.t.Fatalf("%s does not settle: %v", unit, out[len(out)-20:])
	return nil
}

// settleAll runs the units in turns, one step each, until none has anything to do.
func (w *world) settleAll(units ...string) {
	w.t.Helper()
	dead := map[string]bool{}
	for range 300 {
		busy := false
		for _, u := range units {
			if dead[u] {
				continue
			}
			ran := w.step(u)
			busy = busy || ran != ""
			dead[u] = ran == "dead"
		}
		if !busy {
			return
		}
	}
	w.t.Fatal("units do not settle")
}

// trace returns the hooks of a unit with their remote side, since the last call.
func (w *world) trace(unit string) []string { return w.take("trace-", unit) }

// said returns what the unit's charm has said, since the last call.
func (w *world) said(unit string) []string { return w.take("out-", unit) }

func (w *world) take(kind, unit string) []string {
	w.t.Helper()
	name := filepath.Join(w.dir, kind+strings.ReplaceAll(unit, "/", "-"))
	raw, err := os.ReadFile(name)
	if err != nil {
		return nil
	}
	text := string(raw[w.taken[name]:])
	text = text[:strings.LastIndex(text, "\n")+1] // whole lines only
	w.taken[name] += len(text)
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimRight(text, "\n"), "\n")
}

// bag reads a databag from the model's status.
func (w *world) bag(relation int, owner string) map[string]string {
	w.t.Helper()
	s, err := w.model.Status()
	require.NoError(w.t, err)
	for _, r := range s.Relations {
		if r.ID == relation {
			return r.Bags[owner]
		}
	}
	return nil
}

func (w *world) unit(name string) model.UnitStatus {
	w.t.Helper()
	s, err := w.model.Status()
	require.NoError(w.t, err)
	app, _, _ := strings.Cut(name, "/")
	u, ok := s.Applications[app].Units[name]
	require.True(w.t, ok, "unit %s", name)
	return u
}

// touch makes a file that scripts look for in $DIR; untouch removes it.
func (w *world) touch(name string) {
	require.NoError(w.t, os.WriteFile(filepath.Join(w.dir, name), nil, 0o600))
}

func (w *world) untouch(name string) { require.NoError(w.t, os.Remove(filepath.Join(w.dir, name))) }

// await waits until a script has made a file in $DIR.
func (w *world) await(name string) {
	for range 1000 {
		if _, err := os.Stat(filepath.Join(w.dir, name)); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// waitFor polls a condition with a deadline.
func (w *world) waitFor(ok func() bool) {
	w.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			w.t.Fatalf("condition not reached; seen %v", w.seen)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// waitIdle waits until the unit's agent says that nothing is left to do.
func (w *world) waitIdle(unit string) {
	w.t.Helper()
	w.waitFor(func() bool { return w.unit(unit).Idle })
	w.collect(unit)
	w.seen[unit] = nil
}

// collect adds the unit's trace to seen.
func (w *world) collect(unit string) { w.seen[unit] = append(w.seen[unit], w.trace(unit)...) }

// hear waits until the unit's charm has said n lines more, and returns them.
func (w *world) hear(unit string, n int) []string {
	w.t.Helper()
	var out []string
	w.waitFor(func() bool { out = append(out, w.said(unit)...); return len(out) >= n })
	return out
}

// dyingController is a model that its agent can no longer reach once dead: what a
// SIGKILL of the agent looks like from the model.
type dyingController struct {
	agent.Controller
	dead atomic.Bool
}

func (d *dyingController) Save(ctx context.Context, unit string, s model.Save) error {
	if d.dead.Load() {
		return errors.New("agent is dead")
	}
	return d.Controller.Save(ctx, unit, s)
}

func (d *dyingController) CommitHook(ctx context.Context, unit string, c model.HookCommit) (model.JournalEntry, error) {
	if d.dead.Load() {
		return model.JournalEntry{}, errors.New("agent is dead")
	}
	return d.Controller.CommitHook(ctx, unit, c)
}

func (d *dyingController) FailHook(ctx context.Context, unit string, e model.JournalEntry, s model.Save) error {
	if d.dead.Load() {
		return errors.New("agent is dead")
	}
	return d.Controller.FailHook(ctx, unit, e, s)
}
