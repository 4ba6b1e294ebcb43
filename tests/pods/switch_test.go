// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package pods

import (
	"context"
	"fmt"
	"io"
	"net"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
	"github.com/drawbridge-k8s/drawbridge/jujulet/tour"
)

// promised is how long after its first answer an address may stay unknown to a client.
const promised = 2 * time.Second

// Delays of the load balancer in a switch that has to wait.
const assignAfter, answerAfter = 2 * time.Second, 2 * time.Second

// waiting is a switch to the load balancer that is under way.
type waiting struct {
	c         *cluster
	asked     time.Time
	relations map[string]int
	prober    *prober
}

// beginSwitch asks for the load balancer and returns when the charm has its flag up.
func beginSwitch(t *testing.T, c *cluster) *waiting {
	t.Helper()
	c.expose(t, "false") // as it is, unless the test before failed
	c.awaitSettled(t, "in-cluster", backend, bridge, clientA, clientB)
	c.balance(t, assignAfter, answerAfter)
	w := &waiting{c: c, relations: c.relations(t), prober: c.newProber(t, clientA), asked: time.Now()}
	c.expose(t, "loadbalancer")
	w.await(t, "the flag goes up", func(entries []model.JournalEntry) bool { return pending(entries) })
	status, err := c.Status(t.Context())
	require.NoError(t, err)
	leader := status.Applications[bridge].Leader
	require.NotEqual(t, "active", status.Applications[bridge].Units[leader].RawWorkload.Status, "a switch that waits is not active")
	return w
}

// await waits for commits.
func (w *waiting) await(t *testing.T, what string, look func([]model.JournalEntry) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), patience, fmt.Errorf("not in %s: %s", patience, what))
	defer cancel()
	require.NoError(t, w.c.journal(ctx, w.asked, look))
}

// address waits until Kubernetes reports the address of the load balancer, names it to the prober, and returns it.
func (w *waiting) address(t *testing.T) string {
	t.Helper()
	var address string
	require.Eventually(t, func() bool {
		live, err := w.c.live(t.Context())
		if err != nil || live == nil || len(live.Status.LoadBalancer.Ingress) == 0 {
			return false
		}
		address = net.JoinHostPort(live.Status.LoadBalancer.Ingress[0].IP, "6446")
		return true
	}, patience, 20*time.Millisecond, "no address of the load balancer")
	w.prober.order(t, tour.ProbeOrder{Addresses: []string{address}})
	return address
}

// published waits until a client has been told an address, and returns when.
func (w *waiting) published(t *testing.T, client, address string) time.Time {
	t.Helper()
	var at time.Time
	w.await(t, client+" is told "+address, func(entries []model.JournalEntry) bool {
		at = toldAt(entries, w.relations[client], address)
		return !at.IsZero()
	})
	return at
}

// requireUntouched fails if anything was written to a client's databag in or after the commit that raised the flag and
// before the one that lowered it.
func (w *waiting) requireUntouched(t *testing.T) {
	t.Helper()
	w.await(t, "the flag goes down", func(entries []model.JournalEntry) bool {
		up := false
		for _, e := range entries {
			if up = flagAfter(e, up); !up {
				continue
			}
			for _, write := range e.Writes {
				for client, id := range w.relations {
					if write.Relation == id && write.Bag == bridge {
						require.FailNow(t, "databag moved", "%s of %s was written by %s while the switch was pending", write.Key, client, e.Hook)
					}
				}
			}
		}
		return !up
	})
}

// finish waits until everything is active, and goes back to the inside of the cluster.
func (w *waiting) finish(t *testing.T) {
	t.Helper()
	apps := []string{backend, bridge, clientA, clientB}
	w.c.awaitSettled(t, "loadbalancer", apps...)
	w.c.mustQuery(t, clientB+"/0", "SELECT 1")
	w.c.expose(t, "false")
	w.c.awaitSettled(t, "in-cluster", apps...)
}

// flagAfter is the charm's flag after a commit.
func flagAfter(e model.JournalEntry, up bool) bool {
	for _, w := range e.Writes {
		if w.Endpoint == "drawbridge-peers" && w.Bag == bridge && w.Key == "service-pending" {
			up = !w.Deleted && w.Value == "true"
		}
	}
	return up
}

// pending is the flag after commits that began with it down.
func pending(entries []model.JournalEntry) bool {
	up := false
	for _, e := range entries {
		up = flagAfter(e, up)
	}
	return up
}

// toldAt is when a client was told an address; zero if it was not.
func toldAt(entries []model.JournalEntry, relation int, address string) time.Time {
	for _, e := range entries {
		for _, w := range e.Writes {
			if w.Relation == relation && w.Bag == bridge && w.Key == "endpoints" && slices.Contains(strings.Split(w.Value, ","), address) {
				return e.Time
			}
		}
	}
	return time.Time{}
}

// testSwitch measures the promise: both clients are told within 2 s of the first answer, not before it, and nothing of
// theirs moves until then.
func testSwitch(t *testing.T, c *cluster) {
	w := beginSwitch(t, c)
	address := w.address(t)
	first := w.prober.answered(t, address)
	require.GreaterOrEqual(t, first.Sub(w.asked), assignAfter+answerAfter, "the load balancer did not keep its delays")
	for _, client := range []string{clientA, clientB} {
		after := w.published(t, client, address).Sub(first)
		t.Logf("%s was told %d ms after the first answer", client, after.Milliseconds())
		require.GreaterOrEqual(t, after, time.Duration(0), "%s was told before the address answered", client)
		require.LessOrEqual(t, after, promised, "%s was told too late", client)
	}
	w.requireUntouched(t)
	w.finish(t)
}

// testSwitchWithoutWatch is the control: what keeps the promise is the watch. With its lock held by somebody else it
// never runs; then nobody is told in time, and the next hook of any kind heals it.
func testSwitchWithoutWatch(t *testing.T, c *cluster) {
	status, err := c.Status(t.Context())
	require.NoError(t, err)
	leader := status.Applications[bridge].Leader
	release := c.holdWatch(t, leader)
	w := beginSwitch(t, c)
	address := w.address(t)
	first := w.prober.answered(t, address)

	ctx, cancel := context.WithDeadlineCause(t.Context(), first.Add(promised+500*time.Millisecond), errTime)
	defer cancel()
	var at time.Time
	err = c.journal(ctx, w.asked, func(entries []model.JournalEntry) bool {
		at = toldAt(entries, w.relations[clientA], address)
		return !at.IsZero()
	})
	require.ErrorIs(t, err, errTime, "told %s after the first answer although no watch ran: the promise is kept by something else", at.Sub(first))

	require.NoError(t, c.Fire(t.Context(), control.FireRequest{Unit: leader, Hook: "update-status"}))
	t.Logf("told %d ms after the first answer, by update-status", w.published(t, clientA, address).Sub(first).Milliseconds())
	w.requireUntouched(t)
	release()
	w.finish(t)
	require.Eventually(t, func() bool {
		_, code := c.run(t, leader, "charm", "flock", "--nonblock", watchLock(leader), "true")
		return code != 0
	}, 10*time.Second, 100*time.Millisecond, "the watch runs again")
}

var errTime = fmt.Errorf("the time is up")

// watchLock is the lock that decides whether a watch runs.
func watchLock(unit string) string {
	return path.Join("/var/lib/juju/agents", "unit-"+strings.ReplaceAll(unit, "/", "-"), "drawbridge", "watch.lock")
}

// holdWatch ends the watch of a unit and keeps others from running, until release is called.
func (c *cluster) holdWatch(t *testing.T, unit string) (release func()) {
	t.Helper()
	// The lock is waited for before the watch is ended, so that no hook gets it in between.
	const script = `exec 3<&0; flock "$1" sh -c 'echo held; exec cat <&3' & kill -9 $(cat "$1"); wait`
	ctx, cancel := context.WithCancel(context.Background())
	in, hold := io.Pipe()
	said := make(chan struct{})
	done := make(chan struct{})
	out := &tell{word: "held", said: said}
	go func() {
		defer close(done)
		_, _ = c.Shell(ctx, control.ShellRequest{Unit: unit, Command: []string{"sh", "-c", script, "sh", watchLock(unit)}},
			control.Streams{Stdin: in, Stdout: out, Stderr: out})
	}()
	release = func() { hold.Close(); cancel(); <-done }
	t.Cleanup(release)
	select {
	case <-said:
	case <-time.After(20 * time.Second):
		require.FailNow(t, "cannot hold the watch's lock", "%s", out.text)
	}
	return release
}

// tell closes said when a word was written to it.
type tell struct {
	word string
	said chan struct{}
	text string
	once bool
}

// Write takes output.
func (w *tell) Write(p []byte) (int, error) {
	w.text += string(p)
	if !w.once && strings.Contains(w.text, w.word) {
		w.once = true
		close(w.said)
	}
	return len(p), nil
}
