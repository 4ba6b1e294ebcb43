// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) {
	if path := os.Getenv("MODEL_TEST_WRITER"); path != "" {
		writer(path)
	}
	os.Exit(m.Run())
}

// writer commits hooks and prints each number once the commit has returned.
func writer(path string) {
	m, err := Open(path, Options{})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	for i := 1; ; i++ {
		_, err := m.CommitHook(context.Background(), "foo/0", HookCommit{
			Relations: []RelationWrite{{Relation: 0, Values: map[string]string{"n": strconv.Itoa(i)}}},
			StateSet:  map[string]string{"n": strconv.Itoa(i)},
			State:     &UnitState{Kind: OpContinue, Secrets: map[string]int{"n": i}},
		})
		if err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		fmt.Println(i)
	}
}

type fixture struct {
	*Model
	t    *testing.T
	path string
	now  time.Time
}

func newModel(t *testing.T) *fixture {
	t.Helper()
	t.Parallel()
	f := &fixture{t: t, path: filepath.Join(t.TempDir(), "model.db"), now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	m, err := Open(f.path, Options{NoSync: true, Clock: func() time.Time { return f.now }})
	require.NoError(t, err)
	t.Cleanup(func() { m.Close() })
	f.Model = m
	return f
}

func (f *fixture) deploy(name, meta string, units int) {
	f.t.Helper()
	c, err := ReadCharm(writeCharm(f.t, map[string]string{
		"metadata.yaml": fmt.Sprintf("name: %s\nsummary: s\ndescription: d\n%s", name, meta),
		"config.yaml":   "options:\n  s: {type: string, default: x}\n  i: {type: int, default: 1}\n  n: {type: string}\n",
		"actions.yaml":  "act: {}\n", "dispatch": "#!/bin/sh\n",
	}))
	require.NoError(f.t, err)
	require.NoError(f.t, f.Deploy(DeployArgs{Charm: c, Units: units}))
}

func TestModel_SurvivesSIGKILL(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "model.db")
	m, err := Open(path, Options{})
	require.NoError(t, err)
	f := &fixture{t: t, Model: m}
	f.deploy("foo", "peers: {mates: m}\n", 1)
	require.NoError(t, m.Save(t.Context(), "foo/0", Save{Enter: []int{0}}))
	require.NoError(t, m.Close())
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	last := 0
	for round := range 5 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "MODEL_TEST_WRITER="+path)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		acknowledged, lines := 0, bufio.NewScanner(out)
		for lines.Scan() {
			if acknowledged, err = strconv.Atoi(lines.Text()); err != nil {
				t.Fatal(lines.Text())
			}
			if acknowledged == 3+round*2 {
				require.NoError(t, cmd.Process.Kill())
			}
		}
		cmd.Wait()
		m, err := Open(path, Options{})
		require.NoError(t, err)
		state, err := m.CharmState(t.Context(), "foo/0")
		require.NoError(t, err)
		n, err := strconv.Atoi(state["n"])
		require.NoError(t, err)
		require.GreaterOrEqual(t, n, acknowledged, "what was acknowledged is there")
		agent, err := m.LoadState(t.Context(), "foo/0")
		require.NoError(t, err)
		require.Equal(t, n, agent.Secrets["n"], "a commit is whole")
		bag, err := m.ReadBag(t.Context(), "foo/0", 0, "foo/0")
		require.NoError(t, err)
		require.Equal(t, state["n"], bag["n"])
		entries, err := m.Journal(0, 0)
		require.NoError(t, err)
		require.Equal(t, last+n, len(entries))
		last = len(entries)
		require.NoError(t, m.Close())
	}
}

func TestModel_DeployRefusals(t *testing.T) {
	f := newModel(t)
	f.deploy("foo", "", 1)
	c, err := f.CharmOf("foo")
	require.NoError(t, err)
	c.archive = []byte("x")
	require.EqualError(t, f.Deploy(DeployArgs{Charm: c}), `cannot add application "foo": application already exists`)
	require.EqualError(t, f.Deploy(DeployArgs{App: "x_y", Charm: c}), `invalid application name "x_y"`)
	require.EqualError(t, f.Deploy(DeployArgs{App: "a", Charm: c, Config: map[string]string{"z": "1"}}), `unknown option "z"`)
	require.EqualError(t, f.Deploy(DeployArgs{App: "a", Charm: c, Config: map[string]string{"i": ""}}), `option "i" expected int, got ""`)
	require.EqualError(t, f.Deploy(DeployArgs{App: "a", Charm: c, Resources: map[string]string{"z": "1"}}), `unrecognized resource "z"`)
	d := *c
	d.Meta.Resources = map[string]Resource{"b": {Name: "b", Type: "oci-image"}, "a": {Name: "a", Type: "oci-image"}, "f": {Name: "f", Type: "file"}}
	require.NoError(t, f.Deploy(DeployArgs{App: "bare", Charm: &d}), "images and files may be left out")
	d = *c
	d.Meta.Assumes = []any{"juju >= 4"}
	require.ErrorContains(t, f.Deploy(DeployArgs{App: "a", Charm: &d}), "juju >= 4")
	d = *c
	d.Meta.Containers = map[string]Container{"web": {}}
	require.EqualError(t, f.Deploy(DeployArgs{App: "a", Charm: &d}), `container "web" of charm "foo" names no resource: it cannot be made`)
}

func TestModel_Config(t *testing.T) {
	f := newModel(t)
	f.deploy("foo", "", 1)
	hash := func() string {
		s, err := f.Snapshot(t.Context(), "foo/0")
		require.NoError(t, err)
		return s.ConfigHash + s.TrustHash
	}
	before := hash()
	require.EqualError(t, f.SetConfig("foo", map[string]string{"i": "x", "s": "new"}), `option "i" expected int, got "x"`)
	require.Equal(t, before, hash(), "all or nothing")
	require.NoError(t, f.SetConfig("foo", map[string]string{"s": "x"}))
	explicit := hash()
	require.NotEqual(t, before, explicit, "setting the default explicitly is a change")
	require.NoError(t, f.SetConfig("foo", map[string]string{"s": "x"}))
	require.Equal(t, explicit, hash(), "setting it again is none")
	s, err := f.Status()
	require.NoError(t, err)
	require.Equal(t, []ConfigValue{
		{Name: "i", Type: "int", Source: "default", Default: 1.0, Value: 1.0},
		{Name: "n", Type: "string", Source: "unset"},
		{Name: "s", Type: "string", Source: "default", Default: "x", Value: "x"},
	}, s.Applications["foo"].Config)
	require.NoError(t, f.ResetConfig("foo", []string{"s"}))
	require.Equal(t, before, hash())
	require.NoError(t, f.SetConfig("foo", map[string]string{"trust": "true"}))
	require.NotEqual(t, before, hash())
}

func TestModel_Integrate(t *testing.T) {
	f := newModel(t)
	f.deploy("a", "provides: {x: i, w: j}\n", 1)
	f.deploy("b", "requires: {x: i, w: j, z: {interface: k, limit: 1}}\n", 1)
	f.deploy("c", "provides: {k1: k, k2: k}\n", 1)
	f.deploy("d", "requires: {watch: juju-info}\n", 1)
	fail := func(x, y, want string) {
		t.Helper()
		_, err := f.Integrate(x, y)
		require.EqualError(t, err, want)
	}
	fail("a", "zz", `application "zz" not found`)
	fail("a", "c", "no relations found")
	fail("a:q", "b", `application "a" has no "q" relation`)
	fail("a", "b", `ambiguous relation: "a b" could refer to "a:w b:w"; "a:x b:x"`)
	id, err := f.Integrate("a:x", "b")
	require.NoError(t, err)
	fail("b:x", "a:x", `cannot add relation "b:x a:x": relation already exists`)
	_, err = f.Integrate("b", "c:k1")
	require.NoError(t, err)
	fail("b", "c:k2", "establishing a new relation for b:z would exceed its maximum relation limit of 1")
	_, err = f.Integrate("a", "d")
	require.NoError(t, err, "juju-info is implicit")
	require.EqualError(t, f.RemoveRelation("a:w", "b"), `relation "a:w b" not found`)
	require.NoError(t, f.RemoveRelation("a", "b"))
	s, err := f.Status()
	require.NoError(t, err)
	for _, r := range s.Relations {
		require.NotEqual(t, id, r.ID, "nobody was in it")
	}
}

func TestModel_ApplicationStatus(t *testing.T) {
	t.Run("trap-33 application status is derived until set", trap33)
}

func trap33(t *testing.T) {
	f := newModel(t)
	f.deploy("foo", "", 2)
	ctx := t.Context()
	idle := &StatusValue{Status: "idle"}
	for _, u := range []string{"foo/0", "foo/1"} {
		require.NoError(t, f.Save(ctx, u, Save{Agent: idle}))
	}
	status := func() string {
		s, err := f.Status()
		require.NoError(t, err)
		v := s.Applications["foo"].Status
		return v.Status + " " + v.Message
	}
	require.NoError(t, f.SetUnitStatus(ctx, "foo/0", StatusValue{Status: "active", Message: "fine"}))
	require.NoError(t, f.SetUnitStatus(ctx, "foo/1", StatusValue{Status: "blocked", Message: "stuck"}))
	require.Equal(t, "blocked stuck", status())
	require.NoError(t, f.SetUnitStatus(ctx, "foo/1", StatusValue{Status: "active", Message: "too"}))
	require.Equal(t, "active fine", status())
	require.EqualError(t, f.SetAppStatus(ctx, "foo/0", StatusValue{Status: "waiting"}), "this unit is not the leader")
	_, err := f.ClaimLeadership(ctx, "foo/0")
	require.NoError(t, err)
	require.NoError(t, f.SetAppStatus(ctx, "foo/0", StatusValue{Status: "waiting", Message: "set"}))
	require.NoError(t, f.SetUnitStatus(ctx, "foo/1", StatusValue{Status: "blocked"}))
	require.Equal(t, "waiting set", status())
}

func TestModel_PodOverridesTheDisplay(t *testing.T) {
	f := newModel(t)
	f.deploy("foo", "", 1)
	require.NoError(t, f.SetUnitStatus(t.Context(), "foo/0", StatusValue{Status: "active", Message: "fine"}))
	require.NoError(t, f.SetPodStatus("foo/0", PodStatus{Address: "10.1.0.9", State: "error", Message: "crash loop"}))
	s, err := f.Status()
	require.NoError(t, err)
	require.Equal(t, "error crash loop", s.Applications["foo"].Units["foo/0"].Workload.Status+" "+s.Applications["foo"].Units["foo/0"].Workload.Message)
	require.NoError(t, f.SetUnitStatus(t.Context(), "foo/0", StatusValue{Status: "maintenance", Message: "busy"}))
	s, err = f.Status()
	require.NoError(t, err)
	require.Equal(t, "busy", s.Applications["foo"].Units["foo/0"].Workload.Message)
}

// What an agent said in a pod that is gone is shown, but nobody who waits for it to be idle is told that it is.
func TestModel_NotIdleWithoutItsPod(t *testing.T) {
	f := newModel(t)
	f.deploy("foo", "", 1)
	unit := func() UnitStatus {
		s, err := f.Status()
		require.NoError(t, err)
		return s.Applications["foo"].Units["foo/0"]
	}
	say := func(status string) {
		require.NoError(t, f.Save(t.Context(), "foo/0", Save{Agent: &StatusValue{Status: status}}))
	}
	require.NoError(t, f.SetPodStatus("foo/0", PodStatus{Address: "10.1.0.9", UID: "a"}))
	say("idle")
	require.NoError(t, f.SetPodStatus("foo/0", PodStatus{Address: "10.1.0.9", UID: "a", Ready: true}))
	require.True(t, unit().Idle)
	require.NoError(t, f.SetPodStatus("foo/0", PodStatus{}))
	require.False(t, unit().Idle)
	require.Equal(t, "idle", unit().Agent.Status)
	require.NoError(t, f.SetPodStatus("foo/0", PodStatus{Address: "10.1.0.10", UID: "b"}))
	require.False(t, unit().Idle, "before the new agent has begun")
	say("executing")
	require.False(t, unit().Idle)
	say("idle")
	require.True(t, unit().Idle)
	require.NoError(t, f.SetPodStatus("foo/0", PodStatus{Address: "10.1.0.11", UID: "c"}))
	require.False(t, unit().Idle, "a pod that was replaced at once")
	say("idle")
	require.True(t, unit().Idle, "the same once more")
}

func TestModel_LeaseLasts60Seconds(t *testing.T) {
	f := newModel(t)
	f.deploy("foo", "", 2)
	lead := func(unit string) bool {
		l, err := f.ClaimLeadership(t.Context(), unit)
		require.NoError(t, err)
		return l.Leader
	}
	require.True(t, lead("foo/0"))
	require.False(t, lead("foo/1"))
	f.now = f.now.Add(59 * time.Second)
	require.False(t, lead("foo/1"))
	require.True(t, lead("foo/0"))
	f.now = f.now.Add(61 * time.Second)
	require.True(t, lead("foo/1"))
	require.False(t, lead("foo/0"))
	// is-leader guarantees 30 seconds more.
	f.now = f.now.Add(40 * time.Second)
	ok, err := f.IsLeader(t.Context(), "foo/1")
	require.NoError(t, err)
	require.True(t, ok)
	s, err := f.Snapshot(t.Context(), "foo/1")
	require.NoError(t, err)
	require.Equal(t, f.now.Add(LeaseDuration), s.LeaseExpires)
}

func TestModel_WatchIsLevelTriggered(t *testing.T) {
	f := newModel(t)
	f.deploy("foo", "", 1)
	f.deploy("bar", "", 1)
	ctx, cancel := context.WithCancel(t.Context())
	w := f.Watch(ctx)
	<-w // at once
	for range 3 {
		require.NoError(t, f.SetTrust("foo", true))
	}
	<-w
	cancel()
	for range w {
	}
	s, err := f.Snapshot(t.Context(), "foo/0")
	require.NoError(t, err)
	short, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer stop()
	require.NoError(t, f.SetTrust("bar", true))
	_, err = f.WaitChange(short, "foo/0", s.Generation)
	require.ErrorIs(t, err, context.DeadlineExceeded, "another application wakes nobody")
	require.NoError(t, f.SetTrust("foo", false))
	g, err := f.WaitChange(t.Context(), "foo/0", s.Generation)
	require.NoError(t, err)
	require.NotEqual(t, s.Generation, g)
	require.NoError(t, f.Close())
	_, err = f.WaitChange(t.Context(), "foo/0", g)
	require.ErrorIs(t, err, ErrClosed)
}

func TestModel_DebugLog(t *testing.T) {
	f := newModel(t)
	f.options.LogLines = 3
	f.logs = newLogRing(3)
	for i := range 5 {
		f.AddLog(LogLine{Level: "INFO", Message: strconv.Itoa(i)})
	}
	f.AddLog(LogLine{Level: "DEBUG", Message: "below the level"})
	var got []string
	for _, l := range f.Logs(0, 0) {
		got = append(got, l.Message)
	}
	require.Equal(t, "2 3 4", strings.Join(got, " "))
	require.Equal(t, "4", f.Logs(0, 1)[0].Message)
	require.Equal(t, uint64(5), f.WaitLogs(t.Context(), 4)[0].Seq)
	require.Equal(t, "unit-my-app-0", Tag("my-app/0"))
}

func TestModel_ActionsAndResolve(t *testing.T) {
	f := newModel(t)
	f.deploy("foo", "", 1)
	_, _, err := f.EnqueueAction([]string{"foo/0"}, "nope", nil)
	require.EqualError(t, err, `action "nope" not defined on unit "foo/0"`)
	_, _, err = f.EnqueueAction([]string{"foo/leader"}, "act", nil)
	require.EqualError(t, err, `could not determine leader for "foo"`)
	op, tasks, err := f.EnqueueAction([]string{"foo/0"}, "act", nil)
	require.NoError(t, err)
	require.Equal(t, []string{"3", "4"}, []string{op, tasks[0].ID})
	require.NoError(t, f.CancelAction("4"))
	a, err := f.WaitAction(t.Context(), "4", 0)
	require.NoError(t, err)
	require.Equal(t, ActionCancelled, a.Status)
	require.EqualError(t, f.Resolve("foo/0", ResolveRetry), `unit "foo/0" is not in an error state`)
	require.EqualError(t, f.Fire("foo/0", "nope", nil), `charm of unit "foo/0" has no hook "nope"`)
	require.NoError(t, f.Fire("foo/0", "config-changed", nil))
}

// An operation has the units that can run the action, and says what the others lack.
func TestModel_Operations(t *testing.T) {
	f := newModel(t)
	f.deploy("foo", "", 2)
	o, err := f.Enqueue([]string{"foo/0", "foo/9", "foo/1"}, "act", nil)
	require.NoError(t, err)
	require.Equal(t, []string{`unit "foo/9" not found`}, o.Errors)
	o, err = f.Operation(o.ID)
	require.NoError(t, err)
	require.Equal(t, "act run on unit-foo-0,unit-foo-9,unit-foo-1", o.Summary)
	require.Equal(t, `error(s) enqueueing action(s): unit "foo/9" not found`, o.Fail)
	require.Len(t, o.Tasks, 2)
	require.Equal(t, ActionPending, o.Status())
	require.NoError(t, f.Save(t.Context(), "foo/0", Save{StartAction: "2"}))
	o, err = f.Operation(o.ID)
	require.NoError(t, err)
	require.Equal(t, ActionRunning, o.Status())
	require.Equal(t, f.now, o.Started())
	// A task that is running is aborted once its agent says that it has failed.
	require.NoError(t, f.CancelAction("2"))
	require.NoError(t, f.CancelAction("3"))
	_, err = f.CommitHook(t.Context(), "foo/0", HookCommit{ActionDone: &ActionResult{ID: "2", Status: ActionFailed}})
	require.NoError(t, err)
	o, err = f.Operation(o.ID)
	require.NoError(t, err)
	require.Equal(t, []ActionStatus{ActionAborted, ActionCancelled}, []ActionStatus{o.Tasks[0].Status, o.Tasks[1].Status})
	require.Equal(t, ActionCancelled, o.Status())
	require.Equal(t, f.now, o.Completed())

	o, err = f.Enqueue([]string{"foo/leader"}, "nope", nil)
	require.NoError(t, err)
	o, err = f.Operation(o.ID)
	require.NoError(t, err)
	require.Equal(t, ActionError, o.Status())
	require.Equal(t, "nope run on foo/leader", o.Summary)
	_, err = f.Operation("77")
	require.EqualError(t, err, `operation "77" not found`)
}

// Scaling by a number of units, as add-unit and remove-unit do.
func TestModel_ChangeScale(t *testing.T) {
	f := newModel(t)
	f.deploy("foo", "", 1)
	n, err := f.ChangeScale("foo", 2)
	require.NoError(t, err)
	require.Equal(t, 3, n)
	n, err = f.ChangeScale("foo", -1)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	_, err = f.ChangeScale("foo", -3)
	require.EqualError(t, err, "cannot remove more units than currently exist not valid")
	_, err = f.ChangeScale("bar", 1)
	require.EqualError(t, err, `application "bar" does not exist`)
	require.EqualError(t, f.Scale("bar", 1), `application "bar" does not exist`)
	s, err := f.Status()
	require.NoError(t, err)
	require.Equal(t, Dying, s.Applications["foo"].Units["foo/2"].Life)
	require.Equal(t, Alive, s.Applications["foo"].Units["foo/1"].Life)
}
