// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package controller_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/controller"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// trivial is a charm whose dispatch is a shell script, with one container.
const trivial = "testdata/trivial"

// pebble returns the path of a Pebble daemon, built once per run of the tests.
func pebble(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("JUJULET_PEBBLE"); path != "" {
		return path
	}
	path := filepath.Join(t.TempDir(), "pebble")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", path, "github.com/canonical/pebble/cmd/pebble")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // an image need not have a C library
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	return path
}

// cluster is a cluster process of a test.
type cluster struct {
	*control.Client
	t      *testing.T
	state  string
	pebble string
}

// newCluster starts one; it ends with the test.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	state, err := controller.StateFolder(filepath.Join(t.TempDir(), "state"), os.Getenv)
	require.NoError(t, err)
	c := &cluster{t: t, state: state, pebble: pebble(t)}
	c.Client = control.New(control.SocketPath(controller.RuntimeFolder(state)))
	t.Cleanup(func() {
		c.Close()
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(state, "jujulet.log"))
			t.Logf("log of the cluster process:\n%s", log)
		}
		require.NoError(t, controller.Down(context.Background(), controller.DownOptions{State: state}))
		require.NoFileExists(t, controller.RuntimeFolder(state))
	})
	c.up()
	return c
}

func (c *cluster) up() {
	c.t.Helper()
	require.NoError(c.t, controller.Up(c.t.Context(), controller.UpOptions{State: c.state, Pebble: c.pebble, Debug: true}))
}

// await waits until check holds of the status.
func (c *cluster) await(t *testing.T, what string, check func(model.Status) bool) model.Status {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	var last model.Status
	err := c.Wait(ctx, func(ctx context.Context) (bool, error) {
		var err error
		last, err = c.Status(ctx)
		return err == nil && check(last), err
	})
	require.NoError(t, err, "%s: %+v", what, last.Applications)
	return last
}

// run runs a command in a unit's container.
func (c *cluster) run(t *testing.T, unit, container string, command ...string) (string, int) {
	t.Helper()
	var out bytes.Buffer
	code, err := c.Shell(t.Context(), control.ShellRequest{Unit: unit, Container: container, Command: command},
		control.Streams{Stdout: &out, Stderr: &out})
	require.NoError(t, err)
	return out.String(), code
}

// settled reports whether a unit is active, idle and ready.
func settled(s model.Status, unit, message string) bool {
	app, _, _ := strings.Cut(unit, "/")
	u, ok := s.Applications[app].Units[unit]
	return ok && u.Workload.Status == "active" && u.Workload.Message == message && u.Agent.Status == "idle" && u.Pod.Ready
}

func TestEndToEnd(t *testing.T) {
	c := newCluster(t)
	ctx := t.Context()
	_, err := c.Deploy(ctx, control.DeployRequest{Charm: trivial, Units: 2, Resources: map[string]string{"web-image": "ubuntu:24.04"}})
	require.Equal(t, control.KindUnsupported, control.KindOf(err))
	require.ErrorContains(t, err, "ubuntu:24.04")
	result, err := c.Deploy(ctx, control.DeployRequest{Charm: trivial, Units: 2, Resources: map[string]string{"web-image": "host"}})
	require.NoError(t, err)
	require.Equal(t, "trivial", result.Application)
	ready := c.await(t, "deployed", func(s model.Status) bool {
		return settled(s, "trivial/0", "hello") && settled(s, "trivial/1", "hello")
	})
	require.NotEmpty(t, ready.Applications["trivial"].Address)
	require.Equal(t, []string{"8080/tcp"}, ready.Applications["trivial"].Ports)
	for _, step := range []struct {
		name string
		run  func(*testing.T, *cluster)
	}{
		{"objects", testObjects},
		{"isolation", testIsolation},
		{"names", testNames},
		{"action", testAction},
		{"exec", testExec},
		{"secret", testSecret},
		{"config", testConfig},
		{"kill hook", testKillHook},
		{"kill pod", testKillPod},
		{"kill agent", testKillAgent},
		{"resume", testResume},
		{"remove", testRemove},
	} {
		t.Run(step.name, func(t *testing.T) { step.run(t, c) })
	}
}

// pod returns a unit's pod.
func (c *cluster) pod(t *testing.T, unit string) model.PodStatus {
	t.Helper()
	s, err := c.Status(t.Context())
	require.NoError(t, err)
	app, _, _ := strings.Cut(unit, "/")
	return s.Applications[app].Units[unit].Pod
}

func testObjects(t *testing.T, c *cluster) {
	ctx := t.Context()
	pods, err := c.Objects(ctx, "pods", "")
	require.NoError(t, err)
	require.Contains(t, string(pods), c.pod(t, "trivial/0").Address)
	view, err := c.Cluster(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"trivial/0"}, view.Nodes[0].Units)
	require.Equal(t, []string{"trivial/1"}, view.Nodes[1].Units)
	service, err := c.Objects(ctx, "service", "trivial")
	require.NoError(t, err)
	require.Contains(t, string(service), "juju-8080-tcp")
	_, err = c.Objects(ctx, "service", "none")
	require.Equal(t, control.KindNotFound, control.KindOf(err))
}

func testIsolation(t *testing.T, c *cluster) {
	_, code := c.run(t, "trivial/0", "charm", "sh", "-c", "echo x > /etc/of-the-charm && test -e /etc/of-the-charm")
	require.Zero(t, code)
	_, code = c.run(t, "trivial/0", "web", "test", "-e", "/etc/of-the-charm")
	require.NotZero(t, code)
	require.NoFileExists(t, "/etc/of-the-charm")
	_, code = c.run(t, "trivial/0", "charm", "test", "-e", filepath.Join(c.state, "model.db"))
	require.NotZero(t, code, "the state folder must be hidden")
}

func testNames(t *testing.T, c *cluster) {
	out, code := c.run(t, "trivial/0", "charm", "getent", "hosts", "trivial-1.trivial-endpoints.dev.svc.cluster.local")
	require.Zero(t, code, out)
	require.Contains(t, out, c.pod(t, "trivial/1").Address)
}

func testAction(t *testing.T, c *cluster) {
	ctx := t.Context()
	operation, err := c.Run(ctx, control.RunRequest{Units: []string{"trivial/leader"}, Action: "greet"})
	require.NoError(t, err)
	task, err := c.WaitTask(ctx, operation.Tasks[0].ID, 0)
	require.NoError(t, err)
	require.Equal(t, model.ActionCompleted, task.Status)
	require.Equal(t, "hello", task.Results["said"])
}

func testExec(t *testing.T, c *cluster) {
	ctx := t.Context()
	operation, err := c.Exec(ctx, control.ExecRequest{Applications: []string{"trivial"}, Command: "relation-ids friends; exit 3"})
	require.NoError(t, err)
	require.Len(t, operation.Tasks, 2)
	for _, task := range operation.Tasks {
		done, err := c.WaitTask(ctx, task.ID, 0)
		require.NoError(t, err)
		require.Equal(t, "friends:0\n", done.Results["stdout"])
		require.EqualValues(t, 3, done.Results["return-code"])
	}
}

// testSecret reads a charm's secret as the owner of the machine.
func testSecret(t *testing.T, c *cluster) {
	ctx := t.Context()
	all, err := c.Secrets(ctx)
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Empty(t, all[0].Content)
	for _, ref := range []string{"mine", all[0].URI, strings.TrimPrefix(all[0].URI, "secret:")} {
		secret, err := c.ShowSecret(ctx, ref, true)
		require.NoError(t, err, ref)
		require.Equal(t, map[string]string{"token": "s3cret"}, secret.Content)
		require.Equal(t, "trivial", secret.Owner)
	}
	_, err = c.ShowSecret(ctx, "none", true)
	require.Equal(t, control.KindNotFound, control.KindOf(err))
}

func testConfig(t *testing.T, c *cluster) {
	require.NoError(t, c.SetConfig(t.Context(), control.ConfigChange{Application: "trivial", Set: map[string]string{"greeting": "ahoy"}}))
	c.await(t, "configured", func(s model.Status) bool { return settled(s, "trivial/0", "ahoy") && settled(s, "trivial/1", "ahoy") })
	config, err := c.Config(t.Context(), "trivial")
	require.NoError(t, err)
	require.Equal(t, control.ConfigOption{
		Type: "string", Description: "What is said.", Source: "user", Default: "hello", Value: "ahoy",
	}, config.Settings["greeting"])
}

// testKillHook kills a hook that hangs: it runs again, with the configuration of
// that moment.
func testKillHook(t *testing.T, c *cluster) {
	ctx := t.Context()
	err := c.Kill(ctx, control.KillHook, "trivial/0")
	require.Equal(t, control.KindConflict, control.KindOf(err), "no hook runs")
	require.NoError(t, c.SetConfig(ctx, control.ConfigChange{Application: "trivial", Set: map[string]string{"greeting": "slow"}}))
	for _, unit := range []string{"trivial/0", "trivial/1"} {
		c.await(t, "hanging", func(s model.Status) bool { return s.Applications["trivial"].Units[unit].Agent.Status == "executing" })
	}
	require.NoError(t, c.SetConfig(ctx, control.ConfigChange{Application: "trivial", Set: map[string]string{"greeting": "ahoy"}}))
	for _, unit := range []string{"trivial/0", "trivial/1"} {
		require.Eventually(t, func() bool { return c.Kill(ctx, control.KillHook, unit) == nil }, 10*time.Second, 20*time.Millisecond)
	}
	c.await(t, "recovered", func(s model.Status) bool { return settled(s, "trivial/0", "ahoy") && settled(s, "trivial/1", "ahoy") })
}

func testRemove(t *testing.T, c *cluster) {
	ctx := t.Context()
	require.NoError(t, c.Scale(ctx, "trivial", 1))
	c.await(t, "scaled", func(s model.Status) bool { return len(s.Applications["trivial"].Units) == 1 })
	require.NoError(t, c.RemoveApplication(ctx, control.RemoveRequest{Application: "trivial"}))
	c.await(t, "removed", func(s model.Status) bool { return len(s.Applications) == 0 })
	require.Eventually(t, func() bool {
		_, err := c.Objects(ctx, "statefulset", "trivial")
		return control.KindOf(err) == control.KindNotFound
	}, 10*time.Second, 50*time.Millisecond)
	log := 0
	require.NoError(t, c.DebugLog(ctx, control.LogRequest{Include: []string{"trivial/0"}}, func(model.LogLine) error {
		log++
		return nil
	}))
	require.NotZero(t, log)
	var journal []model.JournalEntry
	require.NoError(t, c.Journal(ctx, control.JournalRequest{Unit: "trivial/0"}, func(e model.JournalEntry) error {
		journal = append(journal, e)
		return nil
	}))
	require.Equal(t, "install", journal[0].Hook)
	require.Equal(t, "remove", journal[len(journal)-1].Hook)
}

// testKillPod kills the leader's pod: another pod with another address takes
// its place, and the unit runs the hooks of a replaced pod.
func testKillPod(t *testing.T, c *cluster) {
	ctx := t.Context()
	before, err := c.Status(ctx)
	require.NoError(t, err)
	leader := before.Applications["trivial"].Leader
	old := before.Applications["trivial"].Units[leader].Pod
	require.NoError(t, c.Kill(ctx, control.KillPod, leader))
	after := c.await(t, "pod made again", func(s model.Status) bool {
		now := s.Applications["trivial"].Units[leader].Pod
		return now.UID != "" && now.UID != old.UID && settled(s, leader, "ahoy")
	})
	require.NotEqual(t, old.Address, after.Applications["trivial"].Units[leader].Pod.Address)
	require.Equal(t, leader, after.Applications["trivial"].Leader, "the lease outlives the pod")
	var hooks string
	require.Eventually(t, func() bool { // a unit without a pod stays idle: the new one's agent may not have begun
		hooks, _ = c.run(t, leader, "charm", "cat", "/root/hooks")
		return strings.Count(hooks, "\n") >= 3
	}, 20*time.Second, 50*time.Millisecond)
	require.True(t, strings.HasPrefix(hooks, "hooks/upgrade-charm\nhooks/config-changed\nhooks/start\n"), hooks)
	require.NotContains(t, hooks, "hooks/install")
}

// testKillAgent kills an agent: it starts again in the same pod.
func testKillAgent(t *testing.T, c *cluster) {
	ctx := t.Context()
	before, err := c.Status(ctx)
	require.NoError(t, err)
	count := func() int {
		hooks, _ := c.run(t, "trivial/1", "charm", "cat", "/root/hooks")
		return strings.Count(hooks, "hooks/start\n")
	}
	starts := count()
	require.NoError(t, c.Kill(ctx, control.KillAgent, "trivial/1"))
	require.Eventually(t, func() bool { return count() == starts+1 }, 20*time.Second, 100*time.Millisecond)
	after, err := c.Status(ctx)
	require.NoError(t, err)
	require.Equal(t, before.Applications["trivial"].Units["trivial/1"].Pod.UID, after.Applications["trivial"].Units["trivial/1"].Pod.UID)
}

// testResume kills the cluster process and starts another: all is as it was,
// with new pods.
func testResume(t *testing.T, c *cluster) {
	ctx := t.Context()
	info, err := c.Info(ctx)
	require.NoError(t, err)
	before, err := c.Status(ctx)
	require.NoError(t, err)
	service, err := c.Objects(ctx, "service", "trivial")
	require.NoError(t, err)
	err = controller.Up(ctx, controller.UpOptions{State: c.state, Pebble: c.pebble})
	require.ErrorIs(t, err, controller.ErrRunning)
	process, err := os.FindProcess(info.PID)
	require.NoError(t, err)
	require.NoError(t, process.Kill())
	c.up() // at once: the one that was killed may still be dying
	after := c.await(t, "resumed", func(s model.Status) bool { return settled(s, "trivial/0", "ahoy") && settled(s, "trivial/1", "ahoy") })
	require.Equal(t, before.Model.UUID, after.Model.UUID)
	require.Equal(t, before.Applications["trivial"].Address, after.Applications["trivial"].Address)
	again, err := c.Objects(ctx, "service", "trivial")
	require.NoError(t, err)
	require.JSONEq(t, string(service), string(again), "the Service keeps its uid, address and ports")
}
