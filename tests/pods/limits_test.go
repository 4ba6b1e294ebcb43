// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package pods

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
	"github.com/drawbridge-k8s/drawbridge/jujulet/pod"
)

// counter is a charm that keeps a number of the operator's in its state and in its peers' databag, slowly.
const counter = "counter"

func writeCounter(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"metadata.yaml": "name: counter\nsummary: s\ndescription: d\npeers:\n  mates: {interface: m}\n" +
			"containers:\n  web: {resource: img, mounts: [{storage: data, location: /srv/data}]}\nresources:\n  img: {type: oci-image}\n" +
			"storage:\n  data: {type: filesystem}\n",
		"manifest.yaml": "bases:\n- {name: ubuntu, channel: '22.04', architectures: [amd64]}\n",
		"config.yaml":   "options:\n  n: {type: int, default: 0}\n",
		"dispatch": `#!/bin/sh
set -e
case "$JUJU_DISPATCH_PATH" in
hooks/config-changed)
	n=$(config-get n)
	state-set n="$n"
	sleep 0.2
	relation-set -r "$(relation-ids mates)" n="$n"
	echo "$n" >> "$(storage-get -s "$(storage-list)" location)/seen"
	status-set active "$n"
	;;
esac
`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755))
	}
	return dir
}

// maxIdle bounds the memory of an idle unit with one workload container, in bytes: agent, Pebble and the inits of the pod.
const maxIdle = 96 << 20

// idleUnits is how many units are measured.
const idleUnits = 10

// TestLimits measures what an idle unit takes, and kills each of the processes that a unit consists of, and the cluster
// process, at moments chosen by the seed.
func TestLimits(t *testing.T) {
	c := newCluster(t, "limits", asRoot())
	c.deploy(t, control.DeployRequest{
		Charm: writeCounter(t), Units: idleUnits, Resources: map[string]string{"img": "host"},
	})
	c.await(t, "all idle", func(s model.Status) bool { return counted(s, 0, idleUnits) })
	measureIdle(t, c)
	require.NoError(t, c.Scale(t.Context(), counter, 2))
	c.await(t, "scaled down", func(s model.Status) bool { return len(s.Applications[counter].Units) == 2 })
	testKillTable(t, c)
}

// counted reports whether all units have dealt with a number and are idle.
func counted(s model.Status, n, units int) bool {
	app := s.Applications[counter]
	for _, u := range app.Units {
		if !u.Idle || !u.Started || !u.Pod.Ready || u.Workload.Status != "active" || u.Workload.Message != strconv.Itoa(n) {
			return false
		}
	}
	return len(app.Units) == units
}

// measureIdle prints and bounds the proportional memory of a unit's processes.
func measureIdle(t *testing.T, c *cluster) {
	info, err := c.Info(t.Context())
	require.NoError(t, err)
	sums := map[string]int{}
	total := 0
	for _, pid := range descendants(info.PID) {
		kind := kindOf(pid)
		size := proportional(pid)
		sums[kind] += size
		total += size
	}
	each := total / idleUnits
	fmt.Printf("an idle unit with one container: %.1f MiB (of %d units)", float64(each)/(1<<20), idleUnits)
	for _, kind := range []string{"__agent", "pebble", "__pod-init", "__container-init"} {
		fmt.Printf(", %s %.1f", strings.TrimPrefix(kind, "__"), float64(sums[kind]/idleUnits)/(1<<20))
	}
	fmt.Printf("; the cluster process: %.1f MiB\n", float64(proportional(info.PID))/(1<<20))
	require.NotZero(t, sums["__agent"])
	require.NotZero(t, sums["pebble"])
	require.Less(t, each, maxIdle)
}

// descendants are the processes below another.
func descendants(pid int) []int {
	children := map[int][]int{}
	for child, p := range processes() {
		children[p.parent] = append(children[p.parent], child)
	}
	var all []int
	for todo := children[pid]; len(todo) > 0; todo = todo[1:] {
		all = append(all, todo[0])
		todo = append(todo, children[todo[0]]...)
	}
	return all
}

// kindOf tells what a process of a cluster is.
func kindOf(pid int) string {
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	args := strings.Split(string(line), "\x00")
	if len(args) > 1 && strings.HasPrefix(args[1], "__") {
		return args[1]
	}
	return filepath.Base(args[0])
}

// proportional is the proportional set size of a process in bytes; 0 if it has ended.
func proportional(pid int) int {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "Pss:" {
			size, _ := strconv.Atoi(fields[1])
			return size << 10
		}
	}
	return 0
}

// testKillTable: whatever is killed, and when, the number arrives in the end, the hook that was interrupted has run again,
// and no process of a hook is left over. That nothing else is left is checked at the end of the cluster.
func testKillTable(t *testing.T, c *cluster) {
	victims := []string{"agent", "hook", "pebble", "cluster", "agent", "hook", "pebble", "cluster"}
	random := rand.New(rand.NewPCG(*seed, 1))
	random.Shuffle(len(victims), func(i, j int) { victims[i], victims[j] = victims[j], victims[i] })
	t.Logf("seed %d (-seed to choose)", *seed)
	const unit = counter + "/0"
	for i, victim := range victims {
		n, moment := i+1, time.Duration(random.Int64N(int64(600*time.Millisecond)))
		began := time.Now()
		require.NoError(t, c.SetConfig(t.Context(), control.ConfigChange{Application: counter, Set: map[string]string{"n": strconv.Itoa(n)}}))
		<-time.After(moment)
		killed := c.killOne(t, victim, unit)
		c.await(t, fmt.Sprintf("%d after the end of %s", n, victim), func(s model.Status) bool { return counted(s, n, 2) })
		out, code := c.run(t, unit, "web", "cat", "/srv/data/seen")
		require.Zero(t, code, out)
		require.True(t, strings.HasSuffix(out, "\n"+strconv.Itoa(n)+"\n"), out)
		require.Equal(t, strconv.Itoa(n), c.bag(t, unit)["n"])
		require.Empty(t, c.hookProcesses(t), "left over after the end of %s", victim)
		t.Logf("%s killed after %d ms (%s): settled after %.1f s", victim, moment.Milliseconds(), killed, time.Since(began).Seconds())
	}
}

// killOne kills one process of a unit, or the cluster process, and says what came of it.
func (c *cluster) killOne(t *testing.T, victim, unit string) string {
	t.Helper()
	info, err := c.Info(t.Context())
	require.NoError(t, err)
	switch victim {
	case "agent":
		require.NoError(t, c.Kill(t.Context(), control.KillAgent, unit))
	case "hook":
		if err := c.Kill(t.Context(), control.KillHook, unit); err != nil {
			require.Equal(t, control.KindConflict, control.KindOf(err))
			return "none ran"
		}
	case "pebble":
		for _, pid := range descendants(info.PID) {
			if kindOf(pid) == "pebble" {
				require.NoError(t, unix.Kill(pid, unix.SIGKILL))
				return "one of two"
			}
		}
		require.Fail(t, "no Pebble runs")
	case "cluster":
		c.foot.collect(info.PID)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		require.NoError(t, pod.KillCluster(ctx, info.PID))
		require.Eventually(t, func() bool { return len(c.foot.alive()) == 0 }, 5*time.Second, 20*time.Millisecond)
		c.up(t)
	}
	return "once"
}

// bag is the databag of a unit among its peers.
func (c *cluster) bag(t *testing.T, unit string) map[string]string {
	t.Helper()
	s, err := c.Status(t.Context())
	require.NoError(t, err)
	require.Len(t, s.Relations, 1)
	return s.Relations[0].Bags[unit]
}

// hookProcesses are the processes of the cluster that are in a hook context.
func (c *cluster) hookProcesses(t *testing.T) []string {
	t.Helper()
	info, err := c.Info(t.Context())
	require.NoError(t, err)
	var left []string
	for _, pid := range descendants(info.PID) {
		env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if bytes.Contains(env, []byte("JUJU_CONTEXT_ID=")) {
			left = append(left, fmt.Sprintf("%d %s", pid, kindOf(pid)))
		}
	}
	return left
}
