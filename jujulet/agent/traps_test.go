// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package agent_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/jujulet/agent"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// TestTraps are what a naive runner gets wrong, as far as an agent has a part in it;
// tests/rules knows where the others are.
func TestTraps(t *testing.T) {
	t.Run("trap-1 the leader is told of its own write to the peer databag", trap01)
	t.Run("trap-2 application-level changed comes before joined", trap02)
	t.Run("trap-3 joined is followed by changed", trap03)
	t.Run("trap-4 what survives a failed hook", trap04)
	t.Run("trap-5 a flush fails after exit 0", trap05)
	t.Run("trap-6 unchanged values and coalescing", trap06)
	t.Run("trap-8 relation-ids in broken, relation-list in departed", trap08)
	t.Run("trap-9 no relation in install", trap09)
	t.Run("trap-10 start again, and an empty disk", trap10)
	t.Run("trap-11 addresses are the Service's", trap11)
	t.Run("trap-19 the environment is a closed list", trap19)
	t.Run("trap-20 actions that fail", trap20)
	t.Run("trap-21 a failed workload hook is skipped and fired again", trap21)
	t.Run("trap-22 whose notices, and what of them", trap22)
	t.Run("trap-23 notices do not wait for the poller of pebble-ready", trap23)
	t.Run("trap-24 in error actions run, hooks do not", trap24)
	t.Run("trap-26 which changes of config fire", trap26)
	t.Run("trap-27 secret hooks", trap27)
	t.Run("trap-28 what a charm defers on disk dies with the pod", trap28)
	t.Run("trap-29 tools work in every dispatch", trap29)
	t.Run("trap-30 update-status is swallowed", trap30)
	t.Run("trap-31 order across relations is random", trap31)
	t.Run("trap-34 messages of failed hooks", trap34)
	t.Run("trap-36 a single unit's peer relation", trap36)
	t.Run("trap-38 leader-settings-changed at each start of a follower", trap38)
}

func trap06(t *testing.T) {
	w := newWorld(t)
	const bar = `
case "$hook" in
update-status) id=$(relation-ids db)
  case "$(cat "$DIR/mode")" in
  same) relation-set -r $id k=1;;
  there-and-back) relation-set -r $id k=2; relation-set -r $id k=1;;
  change) relation-set -r $id k=$(date +%N);;
  esac;;
db-relation-created) relation-set k=1;;
esac`
	w.pair("true", bar, 1)
	_, err := w.model.Integrate("foo", "bar")
	require.NoError(t, err)
	w.settleAll("foo/0", "bar/0")
	w.trace("foo/0")
	write := func(mode string, times int) {
		require.NoError(t, os.WriteFile(filepath.Join(w.dir, "mode"), []byte(mode), 0o600))
		for range times {
			w.agent("bar/0").Tick()
			w.settle("bar/0")
		}
	}
	write("same", 2)
	write("there-and-back", 1)
	require.Empty(t, w.settle("foo/0"))
	write("change", 3)
	require.Equal(t, []string{"db-relation-changed"}, w.settle("foo/0"), "three flushes, one hook")
}

func trap11(t *testing.T) {
	w := newWorld(t)
	w.pair("true", "true", 1)
	id, err := w.model.Integrate("foo", "bar")
	require.NoError(t, err)
	w.settleAll("foo/0", "bar/0")
	require.NoError(t, w.model.SetPodStatus("foo/0", model.PodStatus{Address: "10.1.0.77"}))
	require.Empty(t, w.settle("foo/0"), "a pod's address fires nothing")
	require.NoError(t, w.model.SetServiceAddress("foo", "10.152.183.7"))
	require.Equal(t, []string{"config-changed"}, w.settle("foo/0"))
	require.Equal(t, map[string]string{
		"ingress-address": "10.152.183.7", "private-address": "10.152.183.7", "egress-subnets": "10.152.183.7/32",
	}, w.bag(id, "foo/0"))
	require.Equal(t, []string{"db-relation-changed"}, w.settle("bar/0"))
}

func trap19(t *testing.T) {
	w := newWorld(t)
	env := filepath.Join(w.dir, "env-")
	w.deploy(charm{name: "foo", actions: "act: {}\n", script: `env > "` + env + `$hook"; [ -t 0 ] || read x || say "eof $# $(pwd)"`}, 1)
	w.settle("foo/0")
	_, _, err := w.model.EnqueueAction([]string{"foo/0"}, "act", nil)
	require.NoError(t, err)
	_, _, err = w.model.EnqueueAction([]string{"foo/0"}, model.ExecAction, map[string]any{"command": "env > " + env + "exec"})
	require.NoError(t, err)
	w.settle("foo/0")
	names := func(hook string) map[string]string {
		raw, err := os.ReadFile(env + hook)
		require.NoError(t, err)
		out := map[string]string{}
		for line := range strings.SplitSeq(strings.TrimSpace(string(raw)), "\n") {
			k, v, _ := strings.Cut(line, "=")
			out[k] = v
		}
		return out
	}
	always := strings.Fields(`CHARM_DIR JUJU_CHARM_DIR JUJU_CONTEXT_ID JUJU_HOOK_NAME JUJU_AGENT_SOCKET_ADDRESS
		JUJU_AGENT_SOCKET_NETWORK JUJU_UNIT_NAME JUJU_MODEL_UUID JUJU_MODEL_NAME JUJU_API_ADDRESSES JUJU_SLA JUJU_MACHINE_ID
		JUJU_PRINCIPAL_UNIT JUJU_AVAILABILITY_ZONE JUJU_VERSION CLOUD_API_VERSION JUJU_CHARM_HTTP_PROXY JUJU_CHARM_HTTPS_PROXY
		JUJU_CHARM_FTP_PROXY JUJU_CHARM_NO_PROXY APT_LISTCHANGES_FRONTEND DEBIAN_FRONTEND LANG TERM PATH`)
	shellsOwn := []string{"PWD", "SHLVL", "_", "OLDPWD"}
	check := func(hook string, more ...string) map[string]string {
		t.Helper()
		got := names(hook)
		allowed := map[string]bool{}
		for _, n := range append(append(always, more...), shellsOwn...) {
			allowed[n] = true
		}
		for n := range got {
			require.True(t, allowed[n], "%s: %s", hook, n)
		}
		for _, n := range append(always, more...) {
			require.Contains(t, got, n, hook)
		}
		return got
	}
	install := check("install", "JUJU_DISPATCH_PATH")
	require.Equal(t, "install", install["JUJU_HOOK_NAME"])
	require.Equal(t, "hooks/install", install["JUJU_DISPATCH_PATH"])
	require.Regexp(t, `^foo/0-install-[0-9a-f]{32}$`, install["JUJU_CONTEXT_ID"])
	require.True(t, strings.HasSuffix(install["CHARM_DIR"], "/var/lib/juju/agents/unit-foo-0/charm"))
	act := check("act", "JUJU_DISPATCH_PATH", "JUJU_ACTION_NAME", "JUJU_ACTION_UUID", "JUJU_ACTION_TAG")
	require.Equal(t, []string{"", "actions/act", "act", "2", "action-2"}, []string{
		act["JUJU_HOOK_NAME"], act["JUJU_DISPATCH_PATH"], act["JUJU_ACTION_NAME"], act["JUJU_ACTION_UUID"], act["JUJU_ACTION_TAG"],
	})
	check("exec", "JUJU_ACTION_NAME", "JUJU_ACTION_UUID", "JUJU_ACTION_TAG")
	require.Equal(t, "eof 0 "+install["CHARM_DIR"], w.said("foo/0")[0], "no arguments, empty stdin, the charm's folder")
}

func trap20(t *testing.T) {
	w := newWorld(t)
	const script = `
case "$hook" in
bad) state-set bad=1; action-set got=1; action-fail "my words"; exit 3;;
failed) state-set failed=1; action-fail "my words";;
lost) relation-set -r "$(relation-ids cluster)" --app k=v; touch "$DIR/wrote"; while [ ! -e "$DIR/go" ]; do sleep 0.02; done;;
esac`
	w.deploy(charm{name: "foo", meta: "peers:\n  cluster: {interface: c}\n", actions: "bad: {}\nfailed: {}\nlost: {}\n", script: script}, 2)
	w.settleAll("foo/0", "foo/1")
	run := func(name string) model.Action {
		_, tasks, err := w.model.EnqueueAction([]string{"foo/0"}, name, nil)
		require.NoError(t, err)
		w.settle("foo/0")
		act, err := w.model.Action(tasks[0].ID)
		require.NoError(t, err)
		return act
	}
	bad := run("bad")
	require.Equal(t, "exit status 3", bad.Message)
	require.Equal(t, map[string]any{"got": "1", "return-code": 3.0}, bad.Results)
	failed := run("failed")
	require.Equal(t, model.ActionFailed, failed.Status)
	require.Equal(t, "my words", failed.Message)
	require.Equal(t, map[string]any{"return-code": 0.0}, failed.Results)
	state, err := w.model.CharmState(t.Context(), "foo/0")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"failed": "1"}, state)
	go func() {
		w.await("wrote")
		w.model.SetLeader("foo/1")
		w.touch("go")
	}()
	lost := run("lost")
	require.Equal(t, model.ActionFailed, lost.Status)
	require.Equal(t, "1", lost.Results["return-code"])
	require.Contains(t, lost.Results["stderr"], "cannot apply changes")
	require.NotEqual(t, "error", w.unit("foo/0").Workload.Status, "an action puts no unit into error")
}

func trap26(t *testing.T) {
	w := newWorld(t)
	w.deploy(charm{name: "foo", config: "options:\n  a: {type: string, default: one}\n", script: "true"}, 1)
	w.settle("foo/0")
	change := func(v string) []string {
		require.NoError(t, w.model.SetConfig("foo", map[string]string{"a": v}))
		return w.settle("foo/0")
	}
	require.Equal(t, []string{"config-changed"}, change("one"), "the default, explicitly")
	require.Empty(t, change("one"))
	require.NoError(t, w.model.SetTrust("foo", true))
	require.Equal(t, []string{"config-changed"}, w.settle("foo/0"))
	w.bounce("foo/0")
	require.Equal(t, []string{"start"}, w.settle("foo/0")[:1])
	require.Empty(t, w.settle("foo/0"))
}

func trap27(t *testing.T) {
	w := newWorld(t)
	const foo = `
case "$hook" in
db-relation-created) s=$(secret-add --label pw password=one); secret-grant $s -r $JUJU_RELATION_ID; relation-set --app id=$s;;
update-status) s=$(secret-ids); secret-set $s password=$(date +%N);;
secret-remove) say "$JUJU_SECRET_ID $JUJU_SECRET_REVISION $JUJU_SECRET_LABEL"; secret-remove $JUJU_SECRET_ID --revision $JUJU_SECRET_REVISION;;
esac`
	const bar = `
case "$hook" in
db-relation-changed) s=$(relation-get --app id foo); [ -z "$s" ] || secret-get $s --label theirs >/dev/null;;
secret-changed) say "$JUJU_SECRET_LABEL ${JUJU_SECRET_REVISION-unset}"; secret-get $JUJU_SECRET_ID --refresh > /dev/null;;
esac`
	w.pair(foo, bar, 1)
	_, err := w.model.Integrate("foo", "bar")
	require.NoError(t, err)
	w.settleAll("foo/0", "bar/0")
	w.trace("bar/0")
	w.trace("foo/0")
	w.agent("foo/0").Tick()
	w.settle("foo/0")
	require.Equal(t, []string{"secret-changed"}, w.settle("bar/0"))
	require.Equal(t, []string{"theirs unset"}, w.said("bar/0"))
	require.Equal(t, []string{"secret-remove"}, w.settle("foo/0"), "revision 1 is tracked by nobody")
	require.Contains(t, w.said("foo/0")[0], " 1 pw")
	require.Empty(t, w.settle("foo/0"))

	// A second unit reads revision 2 for the first time, and is told once.
	require.NoError(t, w.model.Scale("bar", 2))
	w.settleAll("bar/1", "bar/0", "foo/0")
	trace := w.trace("bar/1")
	require.Equal(t, 1, count(trace, "secret-changed"), trace)
}

func trap30(t *testing.T) {
	w := newWorld(t)
	w.deploy(charm{name: "foo", config: "options:\n  a: {type: string}\n", script: "true"}, 1)
	w.settle("foo/0")
	w.agent("foo/0").Tick()
	require.NoError(t, w.model.SetConfig("foo", map[string]string{"a": "x"}))
	require.Equal(t, []string{"config-changed"}, w.settle("foo/0"))
	history, err := w.model.StatusHistory("foo/0", "agent", 0)
	require.NoError(t, err)
	w.agent("foo/0").Tick()
	require.Equal(t, []string{"update-status"}, w.settle("foo/0"))
	after, err := w.model.StatusHistory("foo/0", "agent", 0)
	require.NoError(t, err)
	require.Equal(t, history, after, "the agent does not switch to executing")
}

func trap34(t *testing.T) {
	w := newWorld(t)
	const script = `[ -e "$DIR/fail" ] && exit 1
true`
	w.deploy(charm{name: "foo", meta: provides + "peers:\n  cluster: {interface: c}\n", script: script}, 1)
	w.settle("foo/0")
	w.deploy(charm{name: "bar", meta: requires, script: "true"}, 1)
	_, err := w.model.Integrate("foo", "bar")
	require.NoError(t, err)
	w.touch("fail")
	w.settle("foo/0")
	u := w.unit("foo/0")
	require.Equal(t, `hook failed: "db-relation-created" for foo:db`, u.Workload.Message)
	require.Equal(t, "db-relation-created", u.Error)
}

func TestAgent_InterruptedHookIsRetried(t *testing.T) {
	w := newWorld(t)
	const script = `
case "$hook" in
install) [ -e "$DIR/fail-install" ] && exit 1;;
config-changed) if [ -e "$DIR/hang" ]; then relation-set -r $(relation-ids cluster) half=done; touch "$DIR/hanging"; exec sleep 60; fi;;
esac
true`
	w.deploy(charm{name: "foo", meta: "peers:\n  cluster: {interface: c}\n", config: "options:\n  a: {type: string}\n", script: script}, 1)
	w.touch("fail-install")
	require.Equal(t, []string{"install charm", "failed install"}, w.settle("foo/0"))
	w.newPod("foo/0")
	w.untouch("fail-install")
	require.Equal(t, []string{"install charm", "install"}, w.settle("foo/0")[:2], "install never succeeded: all of it again")

	// The hook's process is killed: it is queued again and drops what it wrote.
	w.touch("hang")
	require.NoError(t, w.model.SetConfig("foo", map[string]string{"a": "x"}))
	go func() { w.await("hanging"); w.agents["foo/0"].KillHook() }()
	require.Equal(t, "terminated config-changed", w.step("foo/0"))
	require.NotContains(t, w.bag(0, "foo/0"), "half")
	w.untouch("hanging")
	// The agent is killed with it: the hook is pending, and shown as an error.
	ctx, cancel := context.WithCancel(t.Context())
	dead := &dyingController{Controller: w.model}
	a, err := agent.New(agent.Options{Controller: dead, Unit: "foo/0", Root: w.roots["foo/0"], Clock: w.clock.Now, NoPebble: true})
	require.NoError(t, err)
	go func() { w.await("hanging"); dead.dead.Store(true); cancel() }()
	_, err = a.Step(ctx)
	require.Error(t, err)
	w.untouch("hang")
	w.bounce("foo/0")
	require.Empty(t, w.settle("foo/0"))
	require.Equal(t, `hook failed: "config-changed"`, w.unit("foo/0").Workload.Message)
	w.clock.Add(6 * time.Second)
	w.trace("foo/0")
	w.settle("foo/0")
	require.Equal(t, []string{"config-changed", "start"}, w.trace("foo/0"))
	require.NotContains(t, w.bag(0, "foo/0"), "half")

	// Replaced in error: the hook is retried in the new pod, without upgrade-charm.
	w.touch("hang")
	require.NoError(t, w.model.SetConfig("foo", map[string]string{"a": "y"}))
	dead = &dyingController{Controller: w.model}
	a, err = agent.New(agent.Options{Controller: dead, Unit: "foo/0", Root: w.roots["foo/0"], Clock: w.clock.Now, NoPebble: true})
	require.NoError(t, err)
	ctx, cancel = context.WithCancel(t.Context())
	w.untouch("hanging")
	go func() { w.await("hanging"); dead.dead.Store(true); cancel() }()
	for err == nil {
		_, err = a.Step(ctx)
	}
	w.untouch("hang")
	w.trace("foo/0")
	w.newPod("foo/0")
	w.settle("foo/0")
	w.clock.Add(6 * time.Second)
	w.settle("foo/0")
	require.Equal(t, []string{"config-changed", "start"}, w.trace("foo/0"))
}

func TestAgent_ResolvedNoRetry(t *testing.T) {
	w := newWorld(t)
	w.deploy(charm{name: "foo", script: `[ "$hook" = install ] && exit 1
true`}, 1)
	w.settle("foo/0")
	require.NoError(t, w.model.Resolve("foo/0", model.ResolveSkip))
	require.Equal(t, "skip install", w.step("foo/0"))
	w.settle("foo/0")
	require.Equal(t, []string{"install", "leader-elected", "config-changed", "start"}, w.trace("foo/0"))
	require.Equal(t, "unknown", w.unit("foo/0").Workload.Status)
}

func TestAgent_LeadershipMoves(t *testing.T) {
	w := newWorld(t)
	w.deploy(charm{name: "foo", script: "true"}, 2)
	w.settleAll("foo/0", "foo/1")
	w.trace("foo/0")
	w.trace("foo/1")
	require.NoError(t, w.model.SetLeader("foo/1"))
	w.settleAll("foo/0", "foo/1")
	require.Equal(t, []string{"leader-elected"}, w.trace("foo/1"))
	require.Equal(t, []string{"leader-settings-changed"}, w.trace("foo/0"), "losing it fires nothing, being a follower does")
	w.clock.Add(61 * time.Second)
	w.settle("foo/0")
	require.Equal(t, []string{"leader-elected"}, w.trace("foo/0"))
}

func TestAgent_Fire(t *testing.T) {
	w := newWorld(t)
	w.pair("true", "true", 1)
	_, err := w.model.Integrate("foo", "bar")
	require.NoError(t, err)
	w.settleAll("foo/0", "bar/0")
	w.trace("foo/0")
	require.NoError(t, w.model.Fire("foo/0", "db-relation-changed", map[string]string{"remote": "bar/0"}))
	require.NoError(t, w.model.Fire("foo/0", "db-relation-broken", nil))
	require.NoError(t, w.model.Fire("foo/0", "update-status", nil))
	w.settle("foo/0")
	require.Equal(t, []string{"db-relation-changed [bar/0,bar]", "db-relation-broken [,bar]", "update-status"}, w.trace("foo/0"))
	s, err := w.model.Status()
	require.NoError(t, err)
	require.Contains(t, s.Relations[len(s.Relations)-1].InScope, "foo/0", "nothing has really happened")
}

func TestAgent_RemoveApplication(t *testing.T) {
	w := newWorld(t)
	w.pair("true", "true", 1)
	_, err := w.model.Integrate("foo", "bar")
	require.NoError(t, err)
	w.settleAll("foo/0", "bar/0")
	w.trace("foo/0")
	w.trace("bar/0")
	require.NoError(t, w.model.RemoveApplication("bar"))
	w.settleAll("bar/0", "foo/0")
	require.Equal(t, []string{
		"db-relation-departed [foo/0,foo] departing=bar/0", "db-relation-broken [,foo]", "stop", "remove",
	}, w.trace("bar/0"))
	require.Equal(t, []string{
		"db-relation-departed [bar/0,bar] departing=bar/0", "db-relation-broken [,bar]",
	}, w.trace("foo/0"))
	require.NoError(t, w.model.UnitGone("bar/0"))
	s, err := w.model.Status()
	require.NoError(t, err)
	require.NotContains(t, s.Applications, "bar")
	require.Empty(t, s.Relations)
}

func TestAgent_ControllerRestart(t *testing.T) {
	w := newWorld(t)
	w.pair("true", `[ "$hook" = db-relation-created ] && relation-set a=b
true`, 1)
	id, err := w.model.Integrate("foo", "bar")
	require.NoError(t, err)
	w.step("bar/0")
	require.NoError(t, w.model.Close())
	w.open()
	w.newPod("foo/0")
	w.newPod("bar/0")
	w.settleAll("foo/0", "bar/0")
	require.Equal(t, map[string]string{"a": "b"}, w.bag(id, "bar/0"))
	require.Equal(t, []string{
		"upgrade-charm", "config-changed", "start", "db-relation-created [,bar]", "db-relation-joined [bar/0,bar]",
		"db-relation-changed [bar/0,bar]",
	}, w.trace("foo/0"))
}
