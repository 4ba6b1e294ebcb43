// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package pods

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// complete waits for the end of a switch in which something was killed: when it may come is not promised, that it comes
// is, and not before the address answers.
func (w *waiting) complete(t *testing.T) {
	t.Helper()
	address := w.address(t)
	first := w.prober.answered(t, address)
	for _, client := range []string{clientA, clientB} {
		after := w.published(t, client, address).Sub(first)
		t.Logf("%s was told %d ms after the first answer", client, after.Milliseconds())
		require.GreaterOrEqual(t, after, time.Duration(0), "%s was told before the address answered", client)
	}
	w.requireUntouched(t)
	w.finish(t)
}

func leaderOf(t *testing.T, c *cluster, app string) string {
	t.Helper()
	status, err := c.Status(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, status.Applications[app].Leader)
	return status.Applications[app].Leader
}

func testKillAgent(t *testing.T, c *cluster) {
	w := beginSwitch(t, c)
	require.NoError(t, c.Kill(t.Context(), control.KillAgent, leaderOf(t, c, bridge)))
	w.complete(t)
}

// testKillHook kills a hook that runs while the switch is pending. It is run again.
func testKillHook(t *testing.T, c *cluster) {
	w := beginSwitch(t, c)
	leader := leaderOf(t, c, bridge)
	require.NoError(t, c.Fire(t.Context(), control.FireRequest{Unit: leader, Hook: "update-status"}))
	var err error
	require.Eventually(t, func() bool {
		err = c.Kill(t.Context(), control.KillHook, leader)
		return err == nil || control.KindOf(err) != control.KindConflict // in which case none was running
	}, 20*time.Second, time.Millisecond, "no hook could be caught")
	require.NoError(t, err)
	w.complete(t)
}

// testKillPod kills the leader's pod: the unit leads on, from another pod.
func testKillPod(t *testing.T, c *cluster) {
	w := beginSwitch(t, c)
	before, err := c.Status(t.Context())
	require.NoError(t, err)
	leader := before.Applications[bridge].Leader
	require.NoError(t, c.Kill(t.Context(), control.KillPod, leader))
	w.complete(t)
	after, err := c.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, leader, after.Applications[bridge].Leader, "the lease outlives the pod")
	require.NotEqual(t, before.Applications[bridge].Units[leader].Pod.UID, after.Applications[bridge].Units[leader].Pod.UID)
	for _, e := range c.recorded() {
		if e.Time.After(w.asked) && e.Unit != leader {
			require.NotContains(t, e.Hook, "leader-elected")
		}
	}
}

// leaseTest lets a leader's pod die and keeps the next one from renewing its lease, while other tests run.
type leaseTest struct {
	c      *cluster
	app    string
	cancel context.CancelFunc
	done   chan struct{}
	err    error

	leader  string
	frozen  time.Time // when the agent in the new pod was stopped
	moved   time.Time
	movedTo string
}

// leaseApp has two units that do nothing.
const leaseApp = "lease"

// Juju's lease lasts 60 s and is renewed every 30 s: from the moment when a leader falls silent it leads for 30 s at
// least. Others claim it every 30 s.
const leastLease, longestLease = 30 * time.Second, 95 * time.Second

func beginLease(t *testing.T, c *cluster) *leaseTest {
	t.Helper()
	l := &leaseTest{c: c, app: leaseApp, done: make(chan struct{})}
	request := deployClient(leaseApp, "none")
	request.Units = 2
	c.deploy(t, request)
	ctx, cancel := context.WithTimeout(context.Background(), longestLease+patience)
	l.cancel = cancel
	go func() {
		defer close(l.done)
		l.err = l.run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-l.done })
	return l
}

// run kills the leader's pod, and freezes the agent of the pod that takes its place.
func (l *leaseTest) run(ctx context.Context) error {
	err := l.c.Wait(ctx, func(ctx context.Context) (bool, error) {
		s, err := l.c.Status(ctx)
		app := s.Applications[l.app]
		l.leader = app.Leader
		started := len(app.Units) == 2 && l.leader != ""
		for _, u := range app.Units {
			started = started && u.Idle && u.Started
		}
		return started, err
	})
	if err != nil {
		return fmt.Errorf("cannot begin: %w", err)
	}
	info, err := l.c.Info(ctx)
	if err != nil {
		return err
	}
	old := agentOf(info.PID, l.leader)
	if err := l.c.Kill(ctx, control.KillPod, l.leader); err != nil {
		return err
	}
	for pid := 0; ; {
		if pid = agentOf(info.PID, l.leader); pid != 0 && pid != old {
			if err := unix.Kill(pid, unix.SIGSTOP); err == nil {
				break
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no other agent: %w", ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
	l.frozen = time.Now()
	return l.c.Wait(ctx, func(ctx context.Context) (bool, error) {
		s, err := l.c.Status(ctx)
		if leader := s.Applications[l.app].Leader; err == nil && leader != "" && leader != l.leader {
			l.moved, l.movedTo = time.Now(), leader
			return true, nil
		}
		return false, err
	})
}

// agentOf finds the agent of a unit among the descendants of a cluster process, as the host numbers them.
func agentOf(cluster int, unit string) int {
	all := processes()
	for pid := range all {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		args := bytes.Split(line, []byte{0})
		if len(args) < 2 || string(args[1]) != "__agent" || !bytes.Contains(line, []byte("--unit="+unit+"\x00")) {
			continue
		}
		for up := pid; up > 1; up = all[up].parent {
			if up == cluster {
				return pid
			}
		}
	}
	return 0
}

func (l *leaseTest) finish(t *testing.T) {
	<-l.done
	require.NoError(t, l.err)
	kept := l.moved.Sub(l.frozen)
	t.Logf("%s led on for %.1f s after its last word; then %s", l.leader, kept.Seconds(), l.movedTo)
	require.GreaterOrEqual(t, kept, leastLease-time.Second, "leadership moved before the lease had ended")
	require.LessOrEqual(t, kept, longestLease)
	l.c.await(t, "the other unit is told", func(model.Status) bool {
		for _, e := range l.c.recorded() {
			if e.Unit == l.movedTo && e.Hook == "leader-elected" && e.Time.After(l.frozen) {
				return true
			}
		}
		return false
	})
}
