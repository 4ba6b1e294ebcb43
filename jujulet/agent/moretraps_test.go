// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package agent_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/jujulet/agent"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

const cluster = "peers:\n  cluster: {interface: c}\n"

func trap01(t *testing.T) {
	w := newWorld(t)
	const script = `
case "$hook" in
leader-elected) relation-set -r cluster:0 --app n=0;;
cluster-relation-changed)
  n=$(relation-get --app n foo)
  [ -z "$JUJU_REMOTE_UNIT" ] && [ "$(is-leader)" = True ] && [ "$n" -lt 5 ] && relation-set --app n=$((n + 1));;
esac
true`
	w.deploy(charm{name: "foo", meta: cluster, script: script}, 1)
	w.settle("foo/0")
	require.Equal(t, 6, count(w.trace("foo/0"), "cluster-relation-changed [,foo]"),
		"its own write wakes the leader, and each different one again; with nothing new it ends")
}

func trap02(t *testing.T) {
	w := newWorld(t)
	const foo = `case "$hook" in db-relation-*) say "$hook ${JUJU_REMOTE_UNIT+set}:$JUJU_REMOTE_UNIT";; esac
true`
	w.pair(foo, `[ "$hook" = db-relation-created ] && relation-set --app a=b
true`, 1)
	_, err := w.model.Integrate("foo", "bar")
	require.NoError(t, err)
	w.settle("bar/0")
	w.settle("foo/0")
	require.Equal(t, []string{
		"db-relation-created set:", "db-relation-changed set:", "db-relation-joined set:bar/0", "db-relation-changed set:bar/0",
	}, w.said("foo/0"))
}

func trap03(t *testing.T) {
	w := newWorld(t)
	w.pair(`[ "$hook" = db-relation-changed ] && say "$(relation-get --format json)"
true`, "true", 2)
	id, err := w.model.Integrate("foo", "bar")
	require.NoError(t, err)
	w.settleAll("foo/0", "bar/0", "bar/1")
	require.Empty(t, w.bag(id, "bar/0"))
	require.Equal(t, []string{
		"db-relation-created [,bar]", "db-relation-joined [bar/0,bar]", "db-relation-changed [bar/0,bar]",
		"db-relation-joined [bar/1,bar]", "db-relation-changed [bar/1,bar]",
	}, w.trace("foo/0"))
	require.Equal(t, []string{"{}", "{}"}, w.said("foo/0"))
}

func trap04(t *testing.T) {
	w := newWorld(t)
	const script = `
[ "$hook" = update-status ] || exit 0
status-set blocked kept; application-version-set 7; leader-set a=kept; juju-log kept
status-set --application waiting kept
relation-set -r cluster:0 k=lost; relation-set -r cluster:0 --app k=lost; state-set k=lost
open-port 80; secret-add password=lost
exit 1`
	w.deploy(charm{name: "foo", meta: cluster, script: script}, 1)
	w.settle("foo/0")
	w.agent("foo/0").Tick()
	require.Equal(t, "failed update-status", w.step("foo/0"))
	s, err := w.model.Status()
	require.NoError(t, err)
	app := s.Applications["foo"]
	require.Equal(t, "kept", app.Units["foo/0"].RawWorkload.Message)
	require.Equal(t, "waiting kept", app.Status.Status+" "+app.Status.Message)
	require.Equal(t, "7", app.Version)
	settings, err := w.model.LeaderSettings(t.Context(), "foo/0")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a": "kept"}, settings)
	require.Empty(t, w.bag(0, "foo/0"))
	require.Empty(t, w.bag(0, "foo"))
	state, err := w.model.CharmState(t.Context(), "foo/0")
	require.NoError(t, err)
	require.Empty(t, state)
	ports, err := w.model.OpenedPorts(t.Context(), "foo/0")
	require.NoError(t, err)
	require.Empty(t, ports)
	secrets, err := w.model.ManagedSecrets(t.Context(), "foo/0")
	require.NoError(t, err)
	require.Empty(t, secrets)
}

func trap05(t *testing.T) {
	w := newWorld(t)
	const script = `[ "$hook" = update-status ] && { relation-set -r cluster:0 k=v; open-port icmp; }
exit 0`
	w.deploy(charm{name: "foo", meta: cluster, script: script}, 1)
	w.settle("foo/0")
	w.agent("foo/0").Tick()
	require.Equal(t, "failed update-status", w.step("foo/0"))
	w.step("foo/0")
	require.Equal(t, `hook failed: "update-status"`, w.unit("foo/0").Workload.Message)
	require.Empty(t, w.bag(0, "foo/0"), "all or nothing")
}

func trap08(t *testing.T) {
	w := newWorld(t)
	const foo = `case "$hook" in
db-relation-departed) say "departed $(relation-ids db --format json) $(relation-list --format json)";;
db-relation-broken) say "broken $(relation-ids db --format json) $(relation-list --format json) $(relation-get -r $JUJU_RELATION_ID --app a bar)";;
esac
true`
	w.pair(foo, `[ "$hook" = db-relation-created ] && relation-set --app a=b
true`, 2)
	id, err := w.model.Integrate("foo", "bar")
	require.NoError(t, err)
	w.settleAll("foo/0", "bar/0", "bar/1")
	require.NoError(t, w.model.RemoveRelation("foo", "bar"))
	w.settle("foo/0")
	require.Equal(t, []string{
		fmt.Sprintf(`departed ["db:%d"] ["bar/1"]`, id), fmt.Sprintf(`departed ["db:%d"] []`, id), "broken [] [] b",
	}, w.said("foo/0"))
}

func trap09(t *testing.T) {
	w := newWorld(t)
	const script = `case "$hook" in
install|cluster-relation-created) say "$hook $(relation-ids cluster --format json) $(relation-set -r cluster:0 a=b 2>&1; echo $?)";;
esac
true`
	w.deploy(charm{name: "foo", meta: cluster, script: script}, 1)
	w.settle("foo/0")
	require.Equal(t, []string{
		`install [] ERROR invalid value "cluster:0" for option -r: relation not found`, "2",
		`cluster-relation-created ["cluster:0"] 0`,
	}, w.said("foo/0"))
	require.Equal(t, "b", w.bag(0, "foo/0")["a"])
}

func trap10(t *testing.T) {
	w := newWorld(t)
	const script = `case "$hook" in
install) touch "$CHARM_DIR/prepared";;
start|upgrade-charm) [ -e "$CHARM_DIR/prepared" ] && say "$hook: prepared" || say "$hook: empty";;
esac
true`
	w.deploy(charm{name: "foo", script: script}, 1)
	w.settle("foo/0")
	w.trace("foo/0")
	require.Equal(t, []string{"start: prepared"}, w.said("foo/0"))
	w.bounce("foo/0")
	w.settle("foo/0")
	require.Equal(t, []string{"start"}, w.trace("foo/0"))
	require.Equal(t, []string{"start: prepared"}, w.said("foo/0"))
	w.newPod("foo/0")
	w.settle("foo/0")
	require.Equal(t, []string{"upgrade-charm", "config-changed", "start"}, w.trace("foo/0"))
	require.Equal(t, []string{"upgrade-charm: empty", "start: empty"}, w.said("foo/0"), "install is not run again")
}

func trap24(t *testing.T) {
	w := newWorld(t)
	const foo = `[ "$hook" = update-status ] && [ -e "$DIR/fail" ] && exit 1
true`
	const bar = `[ "$hook" = update-status ] && relation-set -r $(relation-ids db) n=$(date +%N)
true`
	w.deploy(charm{name: "foo", meta: provides, actions: "act: {}\n", script: foo}, 1)
	w.deploy(charm{name: "bar", meta: requires, script: bar}, 1)
	_, err := w.model.Integrate("foo", "bar")
	require.NoError(t, err)
	w.settleAll("foo/0", "bar/0")
	w.touch("fail")
	w.agent("foo/0").Tick()
	w.settle("foo/0")
	w.trace("foo/0")
	for range 3 {
		w.agent("bar/0").Tick()
		w.settle("bar/0")
	}
	_, _, err = w.model.EnqueueAction([]string{"foo/0"}, "act", nil)
	require.NoError(t, err)
	require.Equal(t, []string{"action act"}, w.settle("foo/0"), "no hook, but the action")
	w.untouch("fail")
	require.NoError(t, w.model.Resolve("foo/0", model.ResolveRetry))
	w.trace("foo/0")
	w.settle("foo/0")
	require.Equal(t, []string{"update-status", "db-relation-changed [bar/0,bar]"}, w.trace("foo/0"))
}

func trap28(t *testing.T) {
	w := newWorld(t)
	// What a framework does: it keeps deferred events in its database beside the
	// charm and runs them before the event of the day, with that event's environment.
	const script = `db="$CHARM_DIR/.unit-state.db"
[ -e "$db" ] && say "$hook runs $(cat "$db") as ${JUJU_REMOTE_UNIT-nobody} reading $(config-get a)"
[ "$hook" = cluster-relation-joined ] && echo "$hook" > "$db"
true`
	w.deploy(charm{name: "foo", meta: cluster, config: "options:\n  a: {type: string}\n", script: script}, 2)
	w.settleAll("foo/0", "foo/1")
	w.said("foo/0")
	require.NoError(t, w.model.SetConfig("foo", map[string]string{"a": "fresh"}))
	w.settle("foo/0")
	require.Equal(t, []string{"config-changed runs cluster-relation-joined as nobody reading fresh"}, w.said("foo/0"))
	w.bounce("foo/0")
	w.settle("foo/0")
	require.Equal(t, []string{"start runs cluster-relation-joined as nobody reading fresh"}, w.said("foo/0"))
	w.newPod("foo/0")
	w.settle("foo/0")
	require.Empty(t, w.said("foo/0"))
}

func trap29(t *testing.T) {
	w := newWorld(t)
	const script = `say "$hook $(is-leader) $(status-set active "seen $hook" 2>&1)$?"
[ "$hook" = act ] && exit 0
true`
	w.deploy(charm{name: "foo", meta: peerMeta, actions: "act: {}\n", script: script}, 1)
	w.settle("foo/0")
	w.agent("foo/0").Post(model.HookInfo{Kind: "pebble-ready", Workload: "web"})
	_, _, err := w.model.EnqueueAction([]string{"foo/0"}, "act", nil)
	require.NoError(t, err)
	w.settle("foo/0")
	w.agent("foo/0").Tick()
	w.settle("foo/0")
	require.NoError(t, w.model.RemoveApplication("foo"))
	w.settle("foo/0")
	said := w.said("foo/0")
	require.Len(t, said, 10, said)
	for _, line := range said {
		require.Regexp(t, `^[a-z-]+ (True|False) 0$`, line)
	}
}

func trap31(t *testing.T) {
	orders := map[string]bool{}
	for seed := range uint64(12) {
		w := newWorld(t)
		w.seed = seed + 1
		w.deploy(charm{name: "foo", meta: "peers:\n  a: {interface: c}\n  b: {interface: c}\n  c: {interface: c}\n", script: "true"}, 1)
		w.settle("foo/0")
		trace := w.trace("foo/0")
		require.ElementsMatch(t, []string{"a-relation-created [,foo]", "b-relation-created [,foo]", "c-relation-created [,foo]"}, trace[1:4])
		orders[strings.Join(trace[1:4], " ")] = true
	}
	require.Greater(t, len(orders), 1, "no order to depend on")
}

func trap36(t *testing.T) {
	w := newWorld(t)
	w.deploy(charm{name: "foo", meta: cluster, script: "true"}, 1)
	w.settle("foo/0")
	require.NoError(t, w.model.RemoveApplication("foo"))
	w.settle("foo/0")
	require.Equal(t, []string{
		"install", "cluster-relation-created [,foo]", "leader-elected", "config-changed", "start", "stop", "remove",
	}, w.trace("foo/0"))
}

func trap38(t *testing.T) {
	w := newWorld(t)
	w.deploy(charm{name: "foo", script: "true"}, 2)
	w.settleAll("foo/0", "foo/1")
	w.trace("foo/1")
	for range 2 {
		w.bounce("foo/1")
		w.settle("foo/1")
		require.Equal(t, []string{"start", "leader-settings-changed"}, w.trace("foo/1"))
	}
	require.Equal(t, []string(nil), w.settle("foo/1"))
}

// trap22 adds to trace-T10: a notice of another user makes no hook, and a hook is
// told no more than which notice it is about.
func trap22(t *testing.T) {
	w := newWorld(t)
	realClock(w)
	p := startPebble(t, "")
	const script = `case "$hook" in *custom-notice) say "$(env | grep -c NOTICE) $JUJU_NOTICE_KEY";; esac
true`
	w.deploy(charm{name: "foo", meta: peerMeta, script: script}, 1)
	w.startAgent("foo/0", agent.Options{PebbleSocket: func(string) string { return p.socket }, PebblePoll: 50 * time.Millisecond})
	w.ready("foo/0")
	if os.Getuid() == 0 {
		notifyAs(t, p, 1, "example.com/of-another")
	} else {
		t.Log("not root: cannot notify as another user; that part is not tested here")
	}
	p.notify(t, "example.com/own", 0)
	require.Equal(t, []string{"3 example.com/own"}, w.hear("foo/0", 1))
}

// notifyAs makes a notice as another user, with Pebble's own command.
func notifyAs(t *testing.T, p *daemon, uid uint32, key string) {
	t.Helper()
	program, err := buildPebble()
	require.NoError(t, err)
	raw, err := os.ReadFile(program)
	require.NoError(t, err)
	dir := filepath.Dir(p.socket)
	require.NoError(t, os.Chmod(dir, 0o755))
	copied := filepath.Join(dir, "pebble") // where the other user can read it
	require.NoError(t, os.WriteFile(copied, raw, 0o755))
	cmd := exec.CommandContext(t.Context(), copied, "notify", key)
	cmd.Dir = "/"
	cmd.Env = []string{"PEBBLE_SOCKET=" + p.socket, "PEBBLE=" + dir, "HOME=/"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

func trap23(t *testing.T) {
	w := newWorld(t)
	realClock(w)
	p := startPebble(t, "")
	w.deploy(charm{name: "foo", meta: peerMeta, script: noticeScript}, 1)
	w.startAgent("foo/0", agent.Options{PebbleSocket: func(string) string { return p.socket }, PebblePoll: time.Hour})
	id := p.notify(t, "example.com/now", 0)
	require.Equal(t, []string{id + " custom example.com/now web"}, w.hear("foo/0", 1))
	w.collect("foo/0")
	require.NotContains(t, w.seen["foo/0"], "web-pebble-ready")
}
