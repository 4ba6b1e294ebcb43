// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package agent_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

const peerMeta = "peers:\n  cluster: {interface: c}\ncontainers:\n  web: {resource: img}\nresources:\n  img: {type: oci-image}\n"

const leaderWrites = `
case "$hook" in
install) say "ids $(relation-ids cluster --format json)";;
leader-elected) relation-set -r "$(relation-ids cluster)" --app k=1;;
cluster-relation-changed) [ "$(is-leader)" = False ] || relation-set --app k=1;;
esac`

// TestTraces are the worked traces of Juju's rules, T1 to T11.
func TestTraces(t *testing.T) {
	t.Run("trace-T1 one unit, a peer relation", traceT1)
	t.Run("trace-T2 scaled to two", traceT2)
	t.Run("trace-T3 integrate", traceT3)
	t.Run("trace-T4 remove-relation", traceT4)
	t.Run("trace-T5 scale down", traceT5)
	t.Run("trace-T6 failing hook", traceT6)
	t.Run("trace-T7 exit 0, flush refused", traceT7)
	t.Run("trace-T8 pod replaced", traceT8)
	t.Run("trace-T9 agent restarted", traceT9)
	t.Run("trace-T10 custom notices", traceT10)
	t.Run("trace-T11 action during error", traceT11)
}

func traceT1(t *testing.T) {
	w := newWorld(t)
	w.deploy(charm{name: "foo", meta: peerMeta, script: leaderWrites}, 1)
	require.Equal(t, "install charm", w.step("foo/0"))
	w.settle("foo/0")
	require.Equal(t, []string{
		"install", "cluster-relation-created [,foo]", "leader-elected", "config-changed", "start",
		"cluster-relation-changed [,foo]",
	}, w.trace("foo/0"))
	require.Equal(t, []string{"ids []"}, w.said("foo/0"))

	done := w.agent("foo/0").Post(model.HookInfo{Kind: "pebble-ready", Workload: "web"})
	w.settle("foo/0")
	require.NoError(t, <-done)
	w.agent("foo/0").Tick()
	w.settle("foo/0")
	require.Equal(t, []string{"web-pebble-ready", "update-status"}, w.trace("foo/0"))
}

func traceT2(t *testing.T) {
	w := newWorld(t)
	script := leaderWrites + `
[ "$hook" = cluster-relation-joined ] && [ "$unit" = foo/1 ] && relation-set u=1
true`
	w.deploy(charm{name: "foo", meta: peerMeta, script: script}, 1)
	w.settle("foo/0")
	w.trace("foo/0")
	require.NoError(t, w.model.Scale("foo", 2))

	require.Equal(t, "install charm", w.step("foo/1"))
	require.Equal(t, "install", w.step("foo/1"))
	require.Equal(t, "cluster-relation-created", w.step("foo/1"))
	// The leader sees the new unit as soon as it has entered the scope.
	w.settle("foo/0")
	require.Equal(t, []string{
		"cluster-relation-joined [foo/1,foo]", "cluster-relation-changed [foo/1,foo]",
	}, w.trace("foo/0"))
	w.settle("foo/1")
	require.Equal(t, []string{
		"install", "cluster-relation-created [,foo]", "leader-settings-changed", "config-changed", "start",
		"cluster-relation-changed [,foo]", "cluster-relation-joined [foo/0,foo]", "cluster-relation-changed [foo/0,foo]",
	}, w.trace("foo/1"))
	w.settle("foo/0")
	require.Equal(t, []string{"cluster-relation-changed [foo/1,foo]"}, w.trace("foo/0"))
}

const provides = "provides:\n  db: {interface: pg}\n"
const requires = "requires:\n  db: {interface: pg}\n"

// pair deploys foo (provider) and bar (requirer) and runs them to idle.
func (w *world) pair(fooScript, barScript string, bars int) {
	w.t.Helper()
	w.deploy(charm{name: "foo", meta: provides, script: fooScript}, 1)
	w.deploy(charm{name: "bar", meta: requires + "peers:\n  mates: {interface: m}\n", script: barScript}, bars)
	units := []string{"foo/0", "bar/0", "bar/1"}[:1+bars]
	w.settleAll(units...)
	for _, u := range units {
		w.trace(u)
	}
}

func traceT3(t *testing.T) {
	const script = `[ "$hook" = db-relation-created ] && relation-set --app from=bar
true`
	for _, first := range []string{"foo", "bar"} {
		t.Run(first+" first", func(t *testing.T) {
			w := newWorld(t)
			w.pair("true", script, 1)
			_, err := w.model.Integrate("foo:db", "bar:db")
			require.NoError(t, err)
			order := []string{"bar/0", "foo/0", "bar/0"}
			want := []string{
				"db-relation-created [,bar]", "db-relation-changed [,bar]", "db-relation-joined [bar/0,bar]",
				"db-relation-changed [bar/0,bar]",
			}
			if first == "foo" {
				order = []string{"foo/0", "bar/0", "foo/0", "bar/0"}
				want = []string{
					"db-relation-created [,bar]", "db-relation-changed [,bar]", "db-relation-joined [bar/0,bar]",
					"db-relation-changed [bar/0,bar]",
				}
			}
			for _, u := range order {
				w.settle(u)
			}
			require.Equal(t, want, w.trace("foo/0"))
			require.Equal(t, []string{
				"db-relation-created [,foo]", "db-relation-joined [foo/0,foo]", "db-relation-changed [foo/0,foo]",
			}, w.trace("bar/0"))
		})
	}
}

func traceT4(t *testing.T) {
	w := newWorld(t)
	const foo = `[ "$hook" = db-relation-broken ] && say "$(relation-ids db --format json) $(relation-get -r "$JUJU_RELATION_ID" - "$JUJU_REMOTE_APP" --app --format json)"
true`
	const bar = `[ "$hook" = db-relation-created ] && relation-set --app from=bar
true`
	w.pair(foo, bar, 1)
	id, err := w.model.Integrate("foo", "bar")
	require.NoError(t, err)
	w.settleAll("foo/0", "bar/0")
	w.trace("foo/0")
	w.trace("bar/0")
	require.NoError(t, w.model.RemoveRelation("foo", "bar:db"))
	w.settle("foo/0")
	require.Equal(t, []string{
		"db-relation-departed [bar/0,bar] departing=bar/0", "db-relation-broken [,bar]",
	}, w.trace("foo/0"))
	require.Equal(t, []string{`[] {"from":"bar"}`}, w.said("foo/0"))
	require.NotNil(t, w.bag(id, "bar"), "the relation lives while bar/0 is in it")
	w.settle("bar/0")
	require.Equal(t, []string{
		"db-relation-departed [foo/0,foo] departing=foo/0", "db-relation-broken [,foo]",
	}, w.trace("bar/0"))
	require.Nil(t, w.bag(id, "bar"))
}

func traceT5(t *testing.T) {
	w := newWorld(t)
	w.pair("true", "true", 2)
	_, err := w.model.Integrate("foo", "bar")
	require.NoError(t, err)
	w.settleAll("foo/0", "bar/0", "bar/1")
	for _, u := range []string{"foo/0", "bar/0", "bar/1"} {
		w.trace(u)
	}
	require.NoError(t, w.model.Scale("bar", 1))
	ran := w.settle("bar/1")
	require.Equal(t, "dead", ran[len(ran)-1])
	w.settle("foo/0")
	w.settle("bar/0")
	require.Equal(t, []string{"db-relation-departed [bar/1,bar] departing=bar/1"}, w.trace("foo/0"))
	require.Equal(t, []string{"mates-relation-departed [bar/1,bar] departing=bar/1"}, w.trace("bar/0"))
	require.Equal(t, []string{
		"db-relation-departed [foo/0,foo] departing=bar/1", "db-relation-broken [,foo]",
		"mates-relation-departed [bar/0,bar] departing=bar/1", "stop", "remove",
	}, w.trace("bar/1"))
	require.NoError(t, w.model.UnitGone("bar/1"))
	s, err := w.model.Status()
	require.NoError(t, err)
	require.NotContains(t, s.Applications["bar"].Units, "bar/1")
}

func traceT6(t *testing.T) {
	w := newWorld(t)
	const script = `
case "$hook" in
config-changed)
  status-set maintenance x
  [ -e "$DIR/fail" ] || exit 0
  say "$(config-get a) $JUJU_CONTEXT_ID"
  for id in $(relation-ids db); do relation-set -r $id k=v; done
  state-set s=1
  exit 1;;
esac`
	w.deploy(charm{
		name: "foo", meta: provides, config: "options:\n  a: {type: string, default: one}\n", script: script,
	}, 1)
	w.deploy(charm{name: "bar", meta: requires, script: `[ "$hook" = update-status ] && relation-set -r $(relation-ids db) n=$(date +%N)
true`}, 1)
	id, err := w.model.Integrate("foo", "bar")
	require.NoError(t, err)
	w.settleAll("foo/0", "bar/0")
	w.trace("foo/0")

	w.touch("fail")
	require.NoError(t, w.model.SetConfig("foo", map[string]string{"a": "two"}))
	require.Equal(t, []string{"failed config-changed"}, w.settle("foo/0"))
	u := w.unit("foo/0")
	require.Equal(t, "error", u.Workload.Status)
	require.Equal(t, `hook failed: "config-changed"`, u.Workload.Message)
	require.Equal(t, "idle", u.Agent.Status)
	require.Equal(t, "x", u.RawWorkload.Message, "status-set survives")
	require.NotContains(t, w.bag(id, "foo/0"), "k")
	state, err := w.model.CharmState(t.Context(), "foo/0")
	require.NoError(t, err)
	require.Empty(t, state)

	// Backoff: about 5, 10, 20, 40 seconds, the config of the moment, a new id.
	require.NoError(t, w.model.SetConfig("foo", map[string]string{"a": "three"}))
	for _, delay := range []time.Duration{5, 10, 20, 40} {
		w.clock.Add(delay * time.Second * 96 / 100)
		require.Empty(t, w.settle("foo/0"), "before %d s", delay)
		w.clock.Add(delay * time.Second * 8 / 100)
		require.Equal(t, []string{"failed config-changed"}, w.settle("foo/0"), "after %d s", delay)
	}
	for range 3 { // what happens meanwhile is seen once
		w.agent("bar/0").Tick()
		w.settle("bar/0")
	}
	said := w.said("foo/0")
	require.Contains(t, said[1], "three ")
	require.NotEqual(t, said[0], said[1])
	w.untouch("fail")
	require.NoError(t, w.model.Resolve("foo/0", model.ResolveRetry))
	w.trace("foo/0")
	w.settle("foo/0")
	require.Equal(t, []string{"config-changed", "db-relation-changed [bar/0,bar]"}, w.trace("foo/0"))
	require.Equal(t, "maintenance", w.unit("foo/0").Workload.Status)
}

func traceT7(t *testing.T) {
	w := newWorld(t)
	const script = `
case "$hook" in
update-status)
  is-leader >/dev/null && say "leader $(is-leader)"
  [ "$(is-leader)" = True ] || exit 0
  relation-set -r "$(relation-ids cluster)" --app k=v && touch "$DIR/wrote"
  while [ ! -e "$DIR/go" ]; do sleep 0.02; done;;
esac`
	w.deploy(charm{name: "foo", meta: "peers:\n  cluster: {interface: c}\n", script: script}, 2)
	w.settleAll("foo/0", "foo/1")
	w.agent("foo/0").Tick()
	go func() {
		w.await("wrote")
		w.model.SetLeader("foo/1")
		w.touch("go")
	}()
	require.Equal(t, "failed update-status", w.step("foo/0"))
	w.step("foo/0")
	require.Equal(t, `hook failed: "update-status"`, w.unit("foo/0").Workload.Message)
	require.Empty(t, w.bag(0, "foo"))
	w.clock.Add(6 * time.Second)
	require.Equal(t, "update-status", w.step("foo/0"))
	require.Equal(t, []string{"leader True", "leader False"}, w.said("foo/0"))
}

func traceT8(t *testing.T) {
	w := newWorld(t)
	w.deploy(charm{name: "foo", meta: peerMeta, script: leaderWrites}, 1)
	w.settle("foo/0")
	w.trace("foo/0")
	w.agent("foo/0").Shutdown()
	require.Equal(t, []string{"stop", "stopped"}, w.settle("foo/0"))
	w.newPod("foo/0")
	w.settle("foo/0")
	w.agent("foo/0").Post(model.HookInfo{Kind: "pebble-ready", Workload: "web"})
	w.settle("foo/0")
	require.Equal(t, []string{"stop", "upgrade-charm", "config-changed", "start", "web-pebble-ready"}, w.trace("foo/0"))
}

func traceT9(t *testing.T) {
	w := newWorld(t)
	w.deploy(charm{name: "foo", meta: peerMeta, script: leaderWrites}, 2)
	w.settleAll("foo/0", "foo/1")
	for _, u := range []string{"foo/0", "foo/1"} {
		w.trace(u)
		w.bounce(u)
		w.settle(u)
	}
	require.Equal(t, []string{"start"}, w.trace("foo/0"))
	require.Equal(t, []string{"start", "leader-settings-changed"}, w.trace("foo/1"))
}

func traceT11(t *testing.T) {
	w := newWorld(t)
	const script = `
case "$hook" in
config-changed) [ -e "$DIR/fail" ] && exit 1 || exit 0;;
act) state-set from=action; action-set a.b=c; action-log hello; echo out;;
esac`
	w.deploy(charm{name: "foo", config: "options:\n  a: {type: string}\n", actions: "act: {}\n", script: script}, 1)
	w.settle("foo/0")
	w.touch("fail")
	require.NoError(t, w.model.SetConfig("foo", map[string]string{"a": "x"}))
	w.settle("foo/0")
	_, tasks, err := w.model.EnqueueAction([]string{"foo/leader"}, "act", nil)
	require.NoError(t, err)
	require.Equal(t, []string{"action act"}, w.settle("foo/0"))
	act, err := w.model.Action(tasks[0].ID)
	require.NoError(t, err)
	require.Equal(t, model.ActionCompleted, act.Status)
	require.Equal(t, map[string]any{"a": map[string]any{"b": "c"}, "return-code": 0.0, "stdout": "out\n"}, act.Results)
	require.Equal(t, "hello", act.Log[0].Message)
	state, err := w.model.CharmState(t.Context(), "foo/0")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"from": "action"}, state)
	require.Equal(t, "error", w.unit("foo/0").Workload.Status)
}
