// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package agent_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	pebble "github.com/canonical/pebble/client"
	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/jujulet/agent"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// buildPebble returns the Pebble daemon of this module's tool line.
var buildPebble = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("go", "tool", "-n", "pebble").Output()
	return strings.TrimSpace(string(out)), err
})

// daemon is a real Pebble.
type daemon struct {
	socket string
	client *pebble.Client
	stop   func()
}

// startPebble runs Pebble in a folder with a short path; layer may be "".
func startPebble(t *testing.T, layer string) *daemon {
	t.Helper()
	program, err := buildPebble()
	require.NoError(t, err, "cannot build Pebble")
	dir, err := os.MkdirTemp("", "pb")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	if layer != "" {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "layers"), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "layers", "001-test.yaml"), []byte(layer), 0o644))
	}
	d := &daemon{socket: filepath.Join(dir, ".pebble.socket")}
	d.client, err = pebble.New(&pebble.Config{Socket: d.socket})
	require.NoError(t, err)
	d.start(t, program, dir)
	return d
}

func (d *daemon) start(t *testing.T, program, dir string) {
	t.Helper()
	cmd := exec.Command(program, "run", "--create-dirs", "--hold")
	cmd.Env = append(os.Environ(), "PEBBLE="+dir, "PEBBLE_SOCKET="+d.socket)
	require.NoError(t, cmd.Start())
	var once sync.Once
	d.stop = func() { once.Do(func() { cmd.Process.Kill(); cmd.Wait() }) }
	t.Cleanup(d.stop)
	require.Eventually(t, func() bool { _, err := d.client.SysInfo(); return err == nil }, 20*time.Second, 10*time.Millisecond)
}

func (d *daemon) notify(t *testing.T, key string, repeat time.Duration) string {
	t.Helper()
	id, err := d.client.Notify(&pebble.NotifyOptions{Type: pebble.CustomNotice, Key: key, RepeatAfter: repeat})
	require.NoError(t, err)
	return id
}

// startAgent runs a whole agent of the unit; the result stops it.
func (w *world) startAgent(unit string, o agent.Options) (stop func() error) {
	w.t.Helper()
	if w.roots[unit] == "" {
		w.newPod(unit)
	}
	if o.Controller == nil {
		o.Controller = w.model
	}
	o.Unit, o.Root, o.Seed = unit, w.roots[unit], 1
	o.RestartDelay = 50 * time.Millisecond
	a, err := agent.New(o)
	require.NoError(w.t, err)
	w.agents[unit] = a
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	var once sync.Once
	var result error
	stop = func() error {
		once.Do(func() { cancel(); result = <-done })
		return result
	}
	w.t.Cleanup(func() { stop() })
	return stop
}

// eventually waits until the unit's trace ends with the wanted hooks.
func (w *world) eventually(unit string, want ...string) {
	w.t.Helper()
	var got []string
	ok := func() bool {
		got = append(got, w.trace(unit)...)
		return len(got) >= len(want) && slices.Equal(got[len(got)-len(want):], want)
	}
	deadline := time.Now().Add(20 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			w.t.Fatalf("%s: want %q at the end of %q", unit, want, got)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// ready waits until the unit has run start and a successful pebble-ready, and is idle.
func (w *world) ready(unit string) {
	w.t.Helper()
	done := func(hook string) bool {
		entries, err := w.model.Journal(0, 0)
		require.NoError(w.t, err)
		return slices.ContainsFunc(entries, func(e model.JournalEntry) bool { return e.Hook == hook && e.Failed == "" })
	}
	w.waitFor(func() bool { return done("web-pebble-ready") && done("start") && w.unit(unit).Idle })
	w.collect(unit)
}

func count(list []string, want string) int {
	n := 0
	for _, s := range list {
		if s == want {
			n++
		}
	}
	return n
}

const noticeScript = `
case "$hook" in
web-pebble-custom-notice)
  say "$JUJU_NOTICE_ID $JUJU_NOTICE_TYPE $JUJU_NOTICE_KEY $JUJU_WORKLOAD_NAME"
  if [ -e "$DIR/hold" ]; then touch "$DIR/held"; while [ -e "$DIR/hold" ]; do sleep 0.02; done; fi
  [ -e "$DIR/fail" ] && rm "$DIR/fail" && exit 1;;
esac
true`

func realClock(w *world) { w.clock.Add(time.Since(w.clock.Now())) }

func traceT10(t *testing.T) {
	w := newWorld(t)
	realClock(w)
	p := startPebble(t, "")
	w.deploy(charm{name: "foo", meta: peerMeta, script: noticeScript}, 1)
	o := agent.Options{
		PebbleSocket: func(string) string { return p.socket }, PebblePoll: 50 * time.Millisecond,
	}
	stop := w.startAgent("foo/0", o)
	w.ready("foo/0")

	// Three of one key while its hook runs: exactly one more, with the same id.
	w.touch("hold")
	id := p.notify(t, "example.com/a", 0)
	w.await("held")
	for range 3 {
		p.notify(t, "example.com/a", 0)
	}
	w.untouch("hold")
	const notice = "web-pebble-custom-notice"
	w.eventually("foo/0", notice, notice)
	line := id + " custom example.com/a web"
	require.Equal(t, []string{line, line}, w.hear("foo/0", 2))

	// A notice that repeats too soon wakes nobody; another key does.
	w.waitIdle("foo/0")
	p.notify(t, "example.com/r", time.Hour)
	w.hear("foo/0", 1)
	w.waitIdle("foo/0")
	p.notify(t, "example.com/r", time.Hour)
	other := p.notify(t, "example.com/b", 0)
	require.Equal(t, []string{other + " custom example.com/b web"}, w.hear("foo/0", 1))

	// A bounce replays every stored notice in the order of its last repetition.
	w.waitIdle("foo/0")
	require.NoError(t, stop())
	w.startAgent("foo/0", o)
	w.waitFor(func() bool { w.collect("foo/0"); return len(w.seen["foo/0"]) == 5 })
	require.Equal(t, "start", w.seen["foo/0"][0])
	require.ElementsMatch(t, []string{"start", notice, notice, notice, "web-pebble-ready"}, w.seen["foo/0"])
	var keys []string
	for _, l := range w.hear("foo/0", 3) {
		keys = append(keys, strings.Fields(l)[2])
	}
	require.Equal(t, []string{"example.com/a", "example.com/r", "example.com/b"}, keys)
}

func trap21(t *testing.T) {
	w := newWorld(t)
	realClock(w)
	p := startPebble(t, "")
	const script = noticeScript + `
[ "$hook" = web-pebble-ready ] && [ -e "$DIR/unready" ] && rm "$DIR/unready" && exit 1
true`
	w.deploy(charm{name: "foo", meta: peerMeta, script: script}, 1)
	w.touch("unready")
	w.startAgent("foo/0", agent.Options{
		PebbleSocket: func(string) string { return p.socket }, PebblePoll: 50 * time.Millisecond,
	})
	// pebble-ready: fired again by the next poll, without a restart.
	w.ready("foo/0")
	require.Equal(t, 2, count(w.seen["foo/0"], "web-pebble-ready"))
	require.NotEqual(t, "error", w.unit("foo/0").Workload.Status)
	w.seen["foo/0"] = nil
	// A notice: the agent starts over and everything is replayed.
	w.touch("fail")
	p.notify(t, "example.com/a", 0)
	w.waitFor(func() bool { w.collect("foo/0"); return len(w.seen["foo/0"]) == 4 })
	require.Equal(t, "web-pebble-custom-notice", w.seen["foo/0"][0])
	require.Equal(t, "start", w.seen["foo/0"][1])
	require.ElementsMatch(t, []string{"web-pebble-custom-notice", "web-pebble-ready"}, w.seen["foo/0"][2:])
}

func TestAgent_CheckHooks(t *testing.T) {
	w := newWorld(t)
	realClock(w)
	flag := filepath.Join(w.dir, "healthy")
	p := startPebble(t, `checks:
  up:
    override: replace
    level: ready
    period: 100ms
    timeout: 90ms
    threshold: 1
    exec: {command: test -e `+flag+`}
`)
	const script = `case "$hook" in *check*) say "$hook $JUJU_PEBBLE_CHECK_NAME";; esac
true`
	w.deploy(charm{name: "foo", meta: peerMeta, script: script}, 1)
	w.startAgent("foo/0", agent.Options{
		PebbleSocket: func(string) string { return p.socket }, PebblePoll: 50 * time.Millisecond,
	})
	require.Equal(t, []string{"web-pebble-check-failed up"}, w.hear("foo/0", 1))
	w.touch("healthy")
	require.Equal(t, []string{"web-pebble-check-recovered up"}, w.hear("foo/0", 1))
}

// TestAgent_OverSocket runs T1 and a relation with agents that reach the model
// over the socket only.
func TestAgent_OverSocket(t *testing.T) {
	w := newWorld(t)
	realClock(w)
	const foo = `
case "$hook" in
db-relation-changed) say "$(relation-get - bar/0 --format json)"; status-set active "$(config-get a)";;
act) action-set x=1;;
esac
true`
	w.deploy(charm{name: "foo", meta: provides, config: "options:\n  a: {type: int, default: 7}\n", actions: "act: {}\n", script: foo}, 1)
	w.deploy(charm{name: "bar", meta: requires, script: `[ "$hook" = db-relation-created ] && relation-set a=b
true`}, 1)
	for _, unit := range []string{"foo/0", "bar/0"} {
		dir, err := os.MkdirTemp("", "ctl")
		require.NoError(t, err)
		t.Cleanup(func() { os.RemoveAll(dir) })
		l, err := net.Listen("unix", filepath.Join(dir, "s"))
		require.NoError(t, err)
		served := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { served <- agent.Serve(ctx, l, w.model, unit) }()
		t.Cleanup(func() { cancel(); <-served })
		c, err := agent.Dial(ctx, filepath.Join(dir, "s"))
		require.NoError(t, err)
		t.Cleanup(func() { c.Close() })
		w.startAgent(unit, agent.Options{Controller: c, NoPebble: true})
	}
	_, err := w.model.Integrate("foo", "bar")
	require.NoError(t, err)
	w.eventually("foo/0", "db-relation-joined [bar/0,bar]", "db-relation-changed [bar/0,bar]")
	w.waitFor(func() bool { return w.unit("foo/0").Workload.Message == "7" })
	require.Equal(t, `{"a":"b"}`, w.hear("foo/0", 1)[0])
	_, tasks, err := w.model.EnqueueAction([]string{"foo/0"}, "act", nil)
	require.NoError(t, err)
	w.waitFor(func() bool { a, err := w.model.Action(tasks[0].ID); return err == nil && a.Status.Finished() })
	act, err := w.model.Action(tasks[0].ID)
	require.NoError(t, err)
	require.Equal(t, model.ActionCompleted, act.Status)
	require.NoError(t, w.model.RemoveApplication("bar"))
	w.waitFor(func() bool { return w.unit("bar/0").Life == model.Dead })
	require.NoError(t, w.model.UnitGone("bar/0"))
	w.waitFor(func() bool {
		s, _ := w.model.Status()
		_, ok := s.Applications["bar"]
		return !ok && len(s.Relations) == 0
	})
}
