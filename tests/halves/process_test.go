// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package halves

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	corev1 "k8s.io/api/core/v1"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cluster"
	"github.com/drawbridge-k8s/drawbridge/probe"
)

// insideVariable is set in the process that runs the test proper, to the folder
// with the packed charm's dispatch.
const insideVariable = "HALVES_INSIDE"

// Budgets of one hook and of the watch (memory in KiB, work in share of a core).
const (
	hookMemory   = 32 << 10
	watchMemory  = 24 << 10
	watchWork    = 0.002
	watchWindow  = 16 * time.Second // one look at everything: every 15 s when settled
	settledHooks = 15
)

// TestProcess measures the charm's packed program, a process as Juju starts it:
// against real hook tools over the agent's socket, the embedded API over TLS, a
// real Pebble with HAProxy, and a real MariaDB.
//
// It runs in network, mount and pid namespaces of its own, so that the fixed
// ports and paths of a pod are free, and nothing is left behind.
func TestProcess(t *testing.T) { inNamespaces(t, "the watch, settled:", insideProcess) }

// inNamespaces runs a test in a process of its own, in network, mount and pid namespaces, with the packed charm's
// dispatch. measured has to be in what it prints.
func inNamespaces(t *testing.T, measured string, test func(t *testing.T, program string)) {
	t.Helper()
	if dir := os.Getenv(insideVariable); dir != "" {
		isolate(t)
		test(t, filepath.Join(dir, "dispatch"))
		return
	}
	if os.Geteuid() != 0 {
		t.Fatal("cannot make namespaces: this test needs root")
	}
	t.Parallel()
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, "dispatch"), "-ldflags=-s -w", "./cmd/drawbridge")
	build.Dir = "../.."
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))

	self, err := os.Executable()
	require.NoError(t, err)
	inside := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=100s")
	inside.Env = append(os.Environ(), insideVariable+"="+dir)
	inside.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL,
	}
	out, err = inside.CombinedOutput()
	t.Logf("%s", out)
	require.NoError(t, err)
	require.Contains(t, string(out), measured, "it was measured")
}

// insideProcess is the test proper, process 1 of its namespaces.
func insideProcess(t *testing.T, program string) {
	h := newHost(t, program)
	h.settle()
	t.Run("false", func(t *testing.T) {
		require.Equal(t, inModel+":6446", h.published()["endpoints"])
		h.requireSettled(t, leader, 16+3+1, 1)
	})
	h.config("expose-external", "loadbalancer")
	h.settle()
	_, err := cluster.ChangeStatus(h.server.Admin(), namespace, "drawbridge-k8s-service", func(s *corev1.Service) error {
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "127.0.0.77"}}
		return nil
	})
	require.NoError(t, err)
	h.fire(leader)
	h.settle()
	t.Run("loadbalancer", func(t *testing.T) {
		require.Equal(t, "127.0.0.77:6446", h.published()["endpoints"])
		h.requireSettled(t, leader, 16+3, 1)
	})
	t.Run("follower", func(t *testing.T) { h.requireSettled(t, follower, 12, 0) })
	t.Run("watch", func(t *testing.T) { h.requireFrugalWatch(t) })
}

// isolate makes the namespaces of this process usable: /proc, loopback, and a
// folder of HAProxy's own.
func isolate(t *testing.T) {
	t.Helper()
	require.NoError(t, syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""))
	require.NoError(t, syscall.Mount("proc", "/proc", "proc", 0, ""))
	require.DirExists(t, "/etc/haproxy", "HAProxy is missing: apt-get install --no-install-recommends haproxy")
	overlay(t, "/etc") // for the document of connections
	require.NoError(t, syscall.Mount("tmpfs", "/etc/haproxy", "tmpfs", 0, ""))
	lo, err := netlink.LinkByName("lo")
	require.NoError(t, err)
	require.NoError(t, netlink.LinkSetUp(lo))
}

// overlay lets a folder of the machine be written to without effect on it.
func overlay(t *testing.T, folder string) {
	t.Helper()
	scratch := t.TempDir()
	require.NoError(t, syscall.Mount("tmpfs", scratch, "tmpfs", 0, ""))
	t.Cleanup(func() { syscall.Unmount(scratch, syscall.MNT_DETACH) })
	for _, name := range []string{"upper", "work"} {
		require.NoError(t, os.Mkdir(filepath.Join(scratch, name), 0o755))
	}
	options := "lowerdir=" + folder + ",upperdir=" + filepath.Join(scratch, "upper") + ",workdir=" + filepath.Join(scratch, "work")
	require.NoError(t, syscall.Mount("overlay", folder, "overlay", 0, options))
}

// requireSettled runs hooks that find nothing changed, prints what they cost, and
// holds the budgets against them.
func (h *host) requireSettled(t *testing.T, unit string, mostCalls, mostRequests int) {
	t.Helper()
	h.fire(unit)
	h.settle() // whatever is left to do
	mark := h.server.Version()
	var best, worst time.Duration
	var memory, calls, requests, connections int
	for range settledHooks {
		h.fire(unit)
		h.settle()
		last := h.last[unit]
		require.Equal(t, "update-status", last.hook)
		require.Zero(t, last.exit)
		if best == 0 || last.wall < best {
			best = last.wall
		}
		worst = max(worst, last.wall)
		memory, calls = max(memory, last.memory), max(calls, last.calls)
		requests, connections = max(requests, last.requests), max(connections, last.connections)
	}
	t.Logf("a settled hook of %s: %.1f ms (worst %.1f ms), %.1f ms of a core, %.1f MiB, %d tool calls on %d connection(s), %d Kubernetes request(s)",
		unit, ms(best), ms(worst), ms(h.last[unit].cpu), float64(memory)/1024, calls, connections, requests)
	require.LessOrEqual(t, calls, mostCalls, "%q", h.last[unit].tools)
	require.Equal(t, 1, connections)
	require.LessOrEqual(t, requests, mostRequests)
	require.LessOrEqual(t, memory, hookMemory, "KiB")
	require.Positive(t, memory)
	require.NotContains(t, h.last[unit].tools, "juju-log", "a settled hook logs nothing")
	require.NotContains(t, h.last[unit].tools, "relation-set")
	require.Equal(t, mark, h.server.Version(), "nothing was written to Kubernetes")
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// requireFrugalWatch measures the watch that the leader's hooks keep running. It
// is begun anew, since after a change it looks more often for two minutes.
func (h *host) requireFrugalWatch(t *testing.T) {
	t.Helper()
	require.NoError(t, probe.StopWatch(t.Context(), h.watchDir(leader)))
	h.fire(leader)
	h.settle()
	pid := h.watchPID(t)
	before := spent(t, pid)
	timer := time.NewTimer(watchWindow)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
	require.Equal(t, pid, h.watchPID(t), "it lives")
	share := float64(spent(t, pid)-before) / float64(watchWindow)
	resident, peak := statusKiB(pid, "VmRSS"), statusKiB(pid, "VmHWM")
	t.Logf("the watch, settled: %.1f MiB (peak %.1f MiB), %.3f %% of a core over %s",
		float64(resident)/1024, float64(peak)/1024, 100*share, watchWindow)
	require.Positive(t, resident)
	require.LessOrEqual(t, resident, watchMemory, "KiB")
	require.LessOrEqual(t, share, watchWork)
}

func (h *host) watchPID(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(h.watchDir(leader), "watch.lock"))
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	return pid
}

// spent is the time that all threads of a process have been running.
func spent(t *testing.T, pid int) time.Duration {
	t.Helper()
	files, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/schedstat")
	require.NoError(t, err)
	require.NotEmpty(t, files, "process %d is gone", pid)
	var sum time.Duration
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		nanoseconds, err := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
		require.NoError(t, err)
		sum += time.Duration(nanoseconds)
	}
	return sum
}

// statusKiB reads a size of a process; 0 when it is gone.
func statusKiB(pid int, key string) int {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	return sizeIn(string(text), key)
}

func sizeIn(status, key string) int {
	for line := range strings.Lines(status) {
		if rest, ok := strings.CutPrefix(line, key+":"); ok {
			size, _ := strconv.Atoi(strings.Fields(rest)[0])
			return size
		}
	}
	return 0
}

// peakOf follows a process until ctx ends and returns the most memory it had, in
// KiB. What wait4 tells will not do: it counts the moment before exec, in which
// the child still is this process. So it is asked while it runs, once it has its
// own name.
func peakOf(ctx context.Context, pid int, name string) int {
	peak := 0
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
		if err == nil && strings.HasPrefix(string(text), "Name:\t"+name+"\n") {
			peak = max(peak, sizeIn(string(text), "VmHWM"))
		}
		select {
		case <-ctx.Done():
			return peak
		case <-tick.C:
		}
	}
}
