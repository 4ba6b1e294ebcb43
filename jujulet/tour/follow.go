// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package tour

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// follower watches one change from the moment it was asked for until the client has been told all of the new address
// set, and tells what it sees.
type follower struct {
	*guide
	change   change
	asked    time.Time
	nodes    []string
	known    map[string]bool // addresses that the probers know, and those from before that are no news
	told     map[string]bool // what has been narrated
	problems []string
}

// begin gives the probers what is foreseen of the change, and nothing else.
func (f *follower) begin() error {
	if err := f.forget(); err != nil {
		return err
	}
	addresses := f.foreseen(f.change.mode, f.nodes)
	f.seen.mu.Lock()
	for _, address := range append(addresses, f.expected(f.change.mode, f.nodes)...) {
		f.known[address] = true
	}
	f.seen.mu.Unlock()
	return f.name(addresses)
}

// sighting is what the follower found when it looked.
type sighting struct {
	addresses []string // Kubernetes reports them now
	unnamed   []string // of them, those that the probers do not know
	waits     bool     // the charm has its flag up
	done      bool
}

// follow returns when the change is complete.
func (f *follower) follow(ctx context.Context) error {
	waited := false
	for {
		var now sighting
		err := f.seen.await(ctx, func() bool {
			now = f.look()
			return now.done || len(now.unnamed) > 0 || (now.waits && !waited)
		})
		if err != nil {
			return err
		}
		if len(now.unnamed) > 0 {
			if err := f.name(now.unnamed); err != nil {
				return err
			}
			for _, address := range now.unnamed {
				f.known[address] = true
			}
			f.story.say("Kubernetes reports %s", strings.Join(now.addresses, " and "))
			continue
		}
		if now.done {
			return nil
		}
		waited = true
		if err := f.whileWaiting(ctx); err != nil {
			return err
		}
	}
}

// look compares what is known with what is wanted; the observer's mutex is held.
func (f *follower) look() sighting {
	entries := since(f.seen.entries, f.asked)
	pending := pendingBefore(f.seen.entries, f.asked)
	var published []string
	for _, e := range entries {
		pending = flagAfter(e, pending)
		if addresses := endpointsIn(e, f.relation); addresses != nil {
			published = slices.Sorted(slices.Values(addresses))
			f.once(e.Time, "published "+strings.Join(published, ","), "the client is told %s", strings.Join(published, " and "))
		}
	}
	s := sighting{addresses: f.expected(f.change.mode, f.nodes), waits: pending}
	answered := true
	for _, address := range s.addresses {
		at, ok := f.seen.inside[address]
		answered = answered && ok
		if ok && !at.Before(f.asked) {
			f.once(at, "inside "+address, "%s answers in the client's network", address)
		}
		if at, ok := f.seen.outside[address]; ok && !at.Before(f.asked) {
			f.once(at, "outside "+address, "%s answers outside the cluster", address)
		}
		if !f.known[address] {
			s.unnamed = append(s.unnamed, address)
		}
	}
	s.done = len(s.addresses) > 0 && len(s.unnamed) == 0 && answered && !pending && slices.Equal(published, s.addresses)
	return s
}

// once tells something the first time it is seen.
func (f *follower) once(at time.Time, key, format string, args ...any) {
	if !f.told[key] {
		f.told[key] = true
		f.story.sayAt(at, format, args...)
	}
}

// whileWaiting runs once the charm has its flag up: the status must not claim what is not so.
func (f *follower) whileWaiting(ctx context.Context) error {
	f.story.say("the charm waits; the client's databag must not move")
	status, err := f.stage.Status(ctx)
	if err != nil {
		return err
	}
	if problem := claimsTooMuch(status); problem != "" {
		f.problems = append(f.problems, problem)
	}
	f.story.command("status")
	f.story.block(f.options.Render(status))
	if f.change.meanwhile == nil {
		return nil
	}
	return f.change.meanwhile(ctx)
}

// claimsTooMuch names a leader that is active while its switch is pending.
func claimsTooMuch(s model.Status) string {
	for name, u := range s.Applications[bridgeApp].Units {
		if u.Leader && u.RawWorkload.Status != "waiting" && u.RawWorkload.Status != "maintenance" {
			return fmt.Sprintf("%s is %q (%s) while the switch is pending", name, u.RawWorkload.Status, u.RawWorkload.Message)
		}
	}
	return ""
}

// outcome judges what was seen.
func (f *follower) outcome() outcome {
	f.seen.mu.Lock()
	e := evidence{
		relation: f.relation, entries: since(f.seen.entries, f.asked), pending: pendingBefore(f.seen.entries, f.asked),
		asked: f.asked, answers: f.seen.answers(f.asked),
	}
	f.seen.mu.Unlock()
	v := judge(e)
	out := outcome{moved: v.changedWhilePending, problems: v.problems}
	if v.published != nil {
		ms := v.after.Milliseconds()
		if v.after < 0 {
			ms = min(ms, -1) // rounding must not hide that it was too early
		}
		out.delayMS = &ms
	}
	return out
}
