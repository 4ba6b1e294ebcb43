// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package agent_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// What charms do that they should not: the agent survives it, and says what it was.
func TestRobust(t *testing.T) {
	t.Run("a hook without end is killed with its children", hookWithoutEnd)
	t.Run("megabytes of output", megabytes)
	t.Run("an action's megabytes and bytes", actionOutput)
	t.Run("exit by signal", exitBySignal)
	t.Run("a daemon that keeps the output open", daemonKeepsOutput)
	t.Run("a charm that deletes itself", charmDeletesItself)
}

func alive(t *testing.T, file string) bool {
	t.Helper()
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	require.NoError(t, err)
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && !strings.Contains(string(stat), ") Z ") && syscall.Kill(pid, 0) == nil
}

func hookWithoutEnd(t *testing.T) {
	w := newWorld(t)
	const script = `[ -e "$DIR/hang" ] || exit 0
sleep 1000 & echo $! > "$DIR/child"
touch "$DIR/hanging"
wait`
	w.deploy(charm{name: "foo", script: script}, 1)
	w.settle("foo/0")
	w.touch("hang")
	w.agent("foo/0").Tick()
	go func() { w.await("hanging"); w.agents["foo/0"].KillHook() }()
	require.Equal(t, "terminated update-status", w.step("foo/0"))
	w.waitFor(func() bool { return !alive(t, filepath.Join(w.dir, "child")) })
	w.untouch("hang")
	w.bounce("foo/0")
	w.settle("foo/0")
	require.NotEqual(t, "blocked", w.unit("foo/0").Workload.Status)
}

func megabytes(t *testing.T) {
	w := newWorld(t)
	const script = `[ "$hook" = update-status ] || exit 0
head -c 10000000 /dev/zero | tr '\0' x >&2
seq 200000
is-leader`
	w.deploy(charm{name: "foo", script: script}, 1)
	w.settle("foo/0")
	w.agent("foo/0").Tick()
	require.Equal(t, []string{"update-status"}, w.settle("foo/0"))
	lines := w.model.Logs(0, 0)
	longest, answered := 0, false
	for _, l := range lines {
		longest = max(longest, len(l.Message))
		answered = answered || l.Message == "True"
	}
	require.LessOrEqual(t, longest, 4096, "lines are cut")
	require.LessOrEqual(t, len(lines), 10000, "and the log is bounded")
	require.True(t, answered, "what a tool prints after it is there")
}

func actionOutput(t *testing.T) {
	w := newWorld(t)
	const script = `case "$hook" in
big) head -c 10000000 /dev/zero | tr '\0' x;;
bin) printf 'a\377b';;
esac
true`
	w.deploy(charm{name: "foo", actions: "big: {}\nbin: {}\n", script: script}, 1)
	w.settle("foo/0")
	run := func(name string) model.Action {
		_, tasks, err := w.model.EnqueueAction([]string{"foo/0"}, name, nil)
		require.NoError(t, err)
		w.settle("foo/0")
		act, err := w.model.Action(tasks[0].ID)
		require.NoError(t, err)
		require.Equal(t, model.ActionCompleted, act.Status)
		return act
	}
	out := run("big").Results["stdout"].(string)
	require.Less(t, len(out), 5<<20)
	require.True(t, strings.HasSuffix(out, "\n(the rest was dropped)\n"))
	bin := run("bin").Results
	require.Equal(t, "Yf9i", bin["stdout"])
	require.Equal(t, "base64", bin["stdout-encoding"])
}

func exitBySignal(t *testing.T) {
	w := newWorld(t)
	const script = `case "$hook" in
update-status|crash) kill -SEGV $$;;
esac
true`
	w.deploy(charm{name: "foo", actions: "crash: {}\n", script: script}, 1)
	w.settle("foo/0")
	_, tasks, err := w.model.EnqueueAction([]string{"foo/0"}, "crash", nil)
	require.NoError(t, err)
	w.settle("foo/0")
	act, err := w.model.Action(tasks[0].ID)
	require.NoError(t, err)
	require.Equal(t, model.ActionFailed, act.Status)
	require.Contains(t, act.Message, "signal: segmentation fault")
	require.Equal(t, -1.0, act.Results["return-code"])
	w.agent("foo/0").Tick()
	require.Equal(t, "failed update-status", w.step("foo/0"), "an error, not a hook to be run again at once")
}

func daemonKeepsOutput(t *testing.T) {
	w := newWorld(t)
	const script = `[ "$hook" = update-status ] || exit 0
echo before
setsid sleep 60 & echo $! > "$DIR/daemon"`
	w.deploy(charm{name: "foo", script: script}, 1)
	w.settle("foo/0")
	w.agent("foo/0").Tick()
	begun := time.Now()
	require.Equal(t, []string{"update-status"}, w.settle("foo/0"))
	require.Less(t, time.Since(begun), 30*time.Second, "the daemon is not waited for")
	daemon := filepath.Join(w.dir, "daemon")
	require.True(t, alive(t, daemon), "and not killed")
	raw, err := os.ReadFile(daemon)
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	require.NoError(t, err)
	syscall.Kill(pid, syscall.SIGKILL)
}

func charmDeletesItself(t *testing.T) {
	w := newWorld(t)
	const script = `[ "$hook" = update-status ] && rm -rf "$CHARM_DIR"
true`
	w.deploy(charm{name: "foo", config: "options:\n  a: {type: string}\n", script: script}, 1)
	w.settle("foo/0")
	w.agent("foo/0").Tick()
	w.settle("foo/0")
	require.NoError(t, w.model.SetConfig("foo", map[string]string{"a": "x"}))
	require.Equal(t, []string{"failed config-changed"}, w.settle("foo/0"))
	require.Equal(t, `hook failed: "config-changed"`, w.unit("foo/0").Workload.Message)
	lines := w.model.Logs(0, 0)
	found := false
	for _, l := range lines {
		found = found || strings.Contains(l.Message, "charm missing from disk")
	}
	require.True(t, found)
	// As in Juju, only another pod has the charm again.
	w.newPod("foo/0")
	w.settle("foo/0")
	w.clock.Add(6 * time.Second)
	w.settle("foo/0")
	require.NotEqual(t, "error", w.unit("foo/0").Workload.Status)
}
