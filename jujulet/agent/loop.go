// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package agent

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// Run runs the agent until ctx ends (then nil), until Shutdown has been obeyed
// (nil), or until the unit is dead (ErrDead). Errors of the model are retried.
func (a *Agent) Run(ctx context.Context) error {
	for {
		err := a.session(ctx)
		a.reset()
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errStopped):
			return nil
		case errors.Is(err, ErrDead), errors.Is(err, model.ErrClosed), model.KindOf(err) == model.NotFound:
			return err
		case !errors.Is(err, errRestart):
			a.options.Logger.Error("agent failed, starting over", "unit", a.options.Unit, "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(a.options.RestartDelay):
		}
	}
}

// errStopped ends Run after a shutdown.
var errStopped = errors.New("agent was shut down")

// session is one life of the agent: everything that a restart makes anew. A hook
// that runs when one of the helpers fails is not killed.
func (a *Agent) session(outer context.Context) error {
	ctx, cancel := context.WithCancelCause(outer)
	defer cancel(nil)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel(nil) // before waiting
	first, err := a.options.Controller.Snapshot(ctx, a.options.Unit)
	if err != nil {
		return err
	}
	wg.Go(func() { a.watchModel(ctx, cancel, first.Generation) })
	wg.Go(func() { a.renewLease(ctx) })
	wg.Go(func() { a.ticks(ctx) })
	if !a.options.NoPebble {
		for _, name := range first.Containers {
			p := a.newPebble(name)
			wg.Go(func() { p.pollReady(ctx) })
			wg.Go(func() {
				if err := p.watchNotices(ctx); err != nil {
					cancel(errRestart)
				}
			})
		}
	}
	for ctx.Err() == nil {
		if err := a.steps(ctx, outer); err != nil {
			return err
		}
		a.sleep(ctx)
	}
	return context.Cause(ctx)
}

// steps runs hooks until there is nothing to do now, or the session has ended.
func (a *Agent) steps(session, ctx context.Context) error {
	for session.Err() == nil {
		ran, err := a.Step(ctx)
		switch {
		case err != nil:
			return err
		case ran == "":
			return nil
		case ran == "dead":
			return ErrDead
		case ran == "stopped":
			return errStopped
		case strings.HasPrefix(ran, "terminated "):
			return errRestart
		}
	}
	return nil
}

// sleep waits for a wake-up or for the moment at which there is work anyway.
func (a *Agent) sleep(ctx context.Context) {
	a.stepMu.Lock()
	at := a.wakeAt
	a.stepMu.Unlock()
	var due <-chan time.Time
	if !at.IsZero() {
		timer := time.NewTimer(max(at.Sub(a.options.Clock()), time.Millisecond))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ctx.Done():
	case <-a.wake:
	case <-due:
	}
}

// watchModel wakes the agent whenever its part of the model has changed.
func (a *Agent) watchModel(ctx context.Context, cancel context.CancelCauseFunc, seen uint64) {
	for ctx.Err() == nil {
		g, err := a.options.Controller.WaitChange(ctx, a.options.Unit, seen)
		if err != nil {
			if ctx.Err() == nil {
				cancel(err)
			}
			return
		}
		seen = g
		a.poke()
	}
}

// renewLease claims leadership again and again: a leader keeps it, another gets it
// when it is free.
func (a *Agent) renewLease(ctx context.Context) {
	ticker := time.NewTicker(a.options.LeaseRenew)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if _, err := a.options.Controller.ClaimLeadership(ctx, a.options.Unit); err != nil && ctx.Err() == nil {
			a.options.Logger.Warn("cannot claim leadership", "unit", a.options.Unit, "error", err)
		}
	}
}

// ticks makes update-status due, each time after the interval give or take 20 %.
func (a *Agent) ticks(ctx context.Context) {
	source := rand.New(rand.NewPCG(a.options.Seed, hash(a.options.Unit)+1))
	for {
		interval, changed := a.pace()
		var due <-chan time.Time
		var timer *time.Timer
		if interval > 0 {
			jitter := 0.8 + 0.4*source.Float64()
			timer = time.NewTimer(time.Duration(float64(interval) * jitter))
			due = timer.C
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-due:
			a.Tick()
		}
		if timer != nil {
			timer.Stop()
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// pace is the interval of update-status, and what is closed when it changes.
func (a *Agent) pace() (time.Duration, <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.interval, a.paced
}

// setInterval follows the model's configuration; 0 is the agent's own option.
func (a *Agent) setInterval(d time.Duration) {
	if d == 0 {
		d = a.options.UpdateStatus
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if d != a.interval {
		a.interval = d
		close(a.paced)
		a.paced = make(chan struct{})
	}
}
