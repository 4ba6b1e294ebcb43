// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package pods

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/controller"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
	"github.com/drawbridge-k8s/drawbridge/jujulet/pod"
)

// TestOrdinary_Tour is the tour of a user without any right, and without a home.
func TestOrdinary_Tour(t *testing.T) {
	who := asOrdinary(t)
	r := testTour(t, who)
	require.Equal(t, "/tmp", filepath.Dir(r.foot.runtime), "there is no session")
	requireNothingOf(t, who)
}

// TestOrdinary kills the cluster process of a user without any right, and has it come back.
func TestOrdinary(t *testing.T) {
	who := asOrdinary(t)
	session := filepath.Join(who.folder, "session")
	require.NoError(t, os.Mkdir(session, 0o700))
	require.NoError(t, os.Chown(session, who.id, who.id))
	who.env = append(who.env, "XDG_RUNTIME_DIR="+session)
	root := measure(t, newCluster(t, "measured", asRoot()))
	c := newCluster(t, "state", who)
	ordinary := measure(t, c)
	t.Logf("up: root %s, ordinary user %s", root.up, ordinary.up)
	t.Logf("one pod: root %s, ordinary user %s", root.pod, ordinary.pod)

	require.DirExists(t, session)
	require.Equal(t, session, filepath.Dir(c.foot.runtime))
	c.foot.requireProcessesOf(t, who)
	for _, test := range []struct {
		name, want string
		command    []string
	}{
		{"shell", "0\n", []string{"shell", "client-k8s/0", "--", "id", "-u"}},
		{"shell outside", "outside\n", []string{"shell", "--outside", "--", "hostname"}},
		{"kill agent", "", []string{"kill", "agent", "client-k8s/0"}},
	} {
		out, err := c.jujulet(test.command...)
		require.NoError(t, err, "%s: %s", test.name, out)
		require.Equal(t, test.want, out, test.name)
	}

	// From another shell of the user, which has no session.
	elsewhere := &cluster{who: who, state: c.state}
	elsewhere.who.env = who.env[:1]
	out, err := elsewhere.jujulet("status")
	require.NoError(t, err, out)
	require.Contains(t, out, "client-k8s/0")
	// Of another user.
	stranger := &cluster{who: who, state: c.state}
	stranger.who.id++
	out, err = stranger.jujulet("status")
	require.Error(t, err)
	require.NotContains(t, out, "client-k8s")

	for _, restart := range []bool{true, false} {
		info, err := c.Info(t.Context())
		require.NoError(t, err)
		c.foot.collect(info.PID)
		require.NoError(t, pod.KillCluster(t.Context(), info.PID))
		require.Eventually(t, func() bool { return len(c.foot.alive()) == 0 && len(c.foot.mounts()) == 0 }, 2*time.Second, 20*time.Millisecond,
			"%s", deferred{func() string { return c.foot.text() }})
		entries, err := os.ReadDir(filepath.Join(c.foot.runtime, "p"))
		require.NoError(t, err)
		require.Empty(t, entries, "pods' files are on no file system of the machine")
		if restart {
			c.up(t)
			c.awaitAlone(t)
		}
	}
	out, err = c.jujulet("down")
	require.NoError(t, err, out)
	require.Empty(t, c.foot.left())
	entries, err := os.ReadDir(session)
	require.NoError(t, err)
	require.Empty(t, entries)
	requireNothingOf(t, who)
}

// measured is how long it takes to begin.
type measured struct{ up, pod time.Duration }

var tookPattern = regexp.MustCompile(`msg="pod started" unit=client-k8s/0 .*took=(\S+)`)

// measure measures a second up, as the first one makes a model and keys, and the pod of a client.
func measure(t *testing.T, c *cluster) (m measured) {
	t.Helper()
	out, err := c.jujulet("down")
	require.NoError(t, err, out)
	began := time.Now()
	c.up(t)
	m.up = time.Since(began).Round(time.Millisecond)
	c.deploy(t, deployClient("client-k8s", "app"))
	c.awaitAlone(t)
	info, err := c.Info(t.Context())
	require.NoError(t, err)
	c.foot.collect(info.PID)
	log, err := os.ReadFile(filepath.Join(c.state, "jujulet.log"))
	require.NoError(t, err)
	match := tookPattern.FindSubmatch(log)
	require.NotNil(t, match, "%s", log)
	m.pod, err = time.ParseDuration(string(match[1]))
	require.NoError(t, err)
	return m
}

// awaitAlone waits until a client that has no relation has done what it can.
func (c *cluster) awaitAlone(t *testing.T) {
	t.Helper()
	c.await(t, "the client's pod", func(s model.Status) bool {
		u := s.Applications["client-k8s"].Units["client-k8s/0"]
		return u.Idle && u.Pod.Ready && u.Workload.Status == "blocked"
	})
}

// TestOrdinary_Refused has the kernel itself refuse what a cluster needs.
func TestOrdinary_Refused(t *testing.T) {
	who := asOrdinary(t)
	state := filepath.Join(who.folder, "state")
	up := func(wrapper ...string) string {
		cmd := exec.CommandContext(t.Context(), wrapper[0], append(wrapper[1:], built.jujulet, "up", "--state", state)...)
		cmd.Env = who.env
		out, err := cmd.CombinedOutput()
		require.Error(t, err)
		require.NoFileExists(t, filepath.Join(state, "runtime"))
		requireNothingOf(t, who)
		return string(out)
	}
	id := strconv.Itoa(who.id)
	drop := "setpriv --reuid=" + id + " --regid=" + id + " --clear-groups "
	require.Equal(t, "ERROR cannot make namespaces: user.max_user_namespaces is 0; allow some with: "+
		"sudo sysctl -w user.max_user_namespaces=10000, or run jujulet as root\n",
		up("sh", "-c", "exec "+drop+`unshare --user --map-root-user sh -c 'echo 0 > /proc/sys/user/max_user_namespaces &&
			exec setpriv --bounding-set=-all --inh-caps=-all "$0" "$@"' "$0" "$@"`))
	// As in a container.
	require.Equal(t, "ERROR cannot start: cannot mount /proc: operation not permitted: parts of /proc are covered, as in containers; "+
		"start the container with --security-opt seccomp=unconfined --security-opt systempaths=unconfined (podman: unmask=ALL), or with --privileged\n",
		up("unshare", "--mount", "sh", "-c", "mount --bind /dev/null /proc/uptime && exec "+drop+`"$0" "$@"`))
}

// TestOrdinary_Squatted has a stranger take the place of the runtime folder, in a folder that is everybody's.
func TestOrdinary_Squatted(t *testing.T) {
	who := asOrdinary(t)
	state := filepath.Join(who.folder, "state")
	squatted := filepath.Join("/tmp", filepath.Base(controller.RuntimeFolder(state)))
	require.NoError(t, os.Mkdir(squatted, 0o777))
	defer os.RemoveAll(squatted)
	require.NoError(t, os.Chmod(squatted, 0o777))
	listener, err := net.Listen("unix", control.SocketPath(squatted))
	require.NoError(t, err)
	defer listener.Close()
	require.NoError(t, os.Chmod(control.SocketPath(squatted), 0o777))
	asked := make(chan error, 1)
	go func() {
		_, err := listener.Accept()
		asked <- err
	}()
	for _, test := range []struct{ verb, want string }{
		{"status", "cannot reach jujulet at " + control.SocketPath(squatted) + ": it belongs to another user (0)"},
		{"up", "cannot use the runtime folder " + squatted + ": it belongs to another user (0); set XDG_RUNTIME_DIR to a folder of yours"},
	} {
		out, err := who.run(t, built.jujulet, test.verb, "--state", state)
		require.Error(t, err)
		require.Contains(t, out, test.want)
	}
	require.NoError(t, listener.Close())
	require.ErrorIs(t, <-asked, net.ErrClosed, "nobody has connected")
}
