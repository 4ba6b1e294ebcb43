// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

// Package agent runs the hooks of one unit as Juju's unit agent does: it takes a
// snapshot of the model, lets a pure resolver choose one operation, keeps the
// operation's step in the model, runs the charm's dispatch in a hook context, and
// commits or drops what the hook has buffered.
//
// It works in the process of the model (Controller is a *model.Model) and in a
// pod over a unix socket (Serve and Dial).
package agent

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/drawbridge-k8s/drawbridge/jujulet/hooktools"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// ErrDead is returned by Run when the unit has run its last hook.
var ErrDead = errors.New("unit is dead")

// errRestart makes the agent start over, as a uniter that has failed does.
var errRestart = errors.New("agent starts over")

// Agent is the agent of one unit.
type Agent struct {
	options Options
	paths   paths
	cache   *hooktools.Cache
	rand    *rand.Rand
	wake    chan struct{} // something has changed; capacity 1

	// Used by Step only, which is not called concurrently.
	begun          bool
	fresh          bool // begun, and has not looked yet
	stepMu         sync.Mutex
	state          *model.UnitState
	rebooted       bool
	leaderSettings int64
	stale          bool
	retrying       bool
	retryDelay     time.Duration
	retryAt        time.Time
	wakeAt         time.Time // when Step has work even if nothing wakes it
	idleSaid       bool
	erred          string // the failed hook that was reported as error

	mu       sync.Mutex
	events   []*event
	tick     bool
	shutdown bool
	kill     context.CancelFunc // of the running hook
	interval time.Duration      // of update-status; 0 is off
	paced    chan struct{}      // closed and replaced when the interval changes
}

// New prepares an agent; nothing runs yet.
func New(o Options) (*Agent, error) {
	app, _, ok := strings.Cut(o.Unit, "/")
	if !ok || app == "" {
		return nil, fmt.Errorf("cannot make agent: invalid unit name %q", o.Unit)
	}
	if o.Controller == nil {
		return nil, fmt.Errorf("cannot make agent: no controller")
	}
	o = o.withDefaults()
	return &Agent{
		options: o, paths: newPaths(o.Root, o.Unit), cache: hooktools.NewCache(),
		rand: rand.New(rand.NewPCG(o.Seed, hash(o.Unit))), wake: make(chan struct{}, 1),
		interval: o.UpdateStatus, paced: make(chan struct{}),
	}, nil
}

// Step makes exactly one decision and runs it. ran names it: a hook's full name,
// "action <name>", "failed <hook>", "skip <hook>", "install charm", "upgrade
// charm", "dead"; "" says that there is nothing to do now. A hook that failed is
// not an error of Step.
func (a *Agent) Step(ctx context.Context) (ran string, err error) {
	a.stepMu.Lock()
	defer a.stepMu.Unlock()
	for {
		if !a.begun {
			if err := a.begin(ctx); err != nil {
				return "", err
			}
		}
		v, err := a.look(ctx)
		if err != nil {
			return "", err
		}
		d := decide(v)
		ran, err = a.perform(ctx, v, d)
		if err != nil || ran != "" || d.op == opNone || d.op == opRetryTimer {
			return ran, err
		}
	}
}

// begin makes the agent as new: what it knew only in memory is gone.
func (a *Agent) begin(ctx context.Context) error {
	if err := a.paths.prepare(a.options.Tools); err != nil {
		return err
	}
	state, err := a.options.Controller.LoadState(ctx, a.options.Unit)
	if err != nil {
		return fmt.Errorf("cannot load state of %s: %w", a.options.Unit, err)
	}
	a.state, a.rebooted, a.leaderSettings = state, state.Started, -1
	a.retrying, a.retryDelay, a.retryAt = false, 0, time.Time{}
	a.idleSaid, a.erred, a.begun, a.fresh = false, "", true, true
	a.cache = hooktools.NewCache()
	return nil
}

// reset forgets everything that is not persisted, as a restart of the agent does.
// Workload events that still wait are refused.
func (a *Agent) reset() {
	a.stepMu.Lock()
	a.begun = false
	a.stepMu.Unlock()
	a.mu.Lock()
	events := a.events
	a.events = nil
	a.mu.Unlock()
	for _, e := range events {
		e.done <- errRestart
	}
}

// look reads the model and joins what only the agent knows.
func (a *Agent) look(ctx context.Context) (*view, error) {
	c, unit := a.options.Controller, a.options.Unit
	snap, err := c.Snapshot(ctx, unit)
	if err != nil {
		return nil, fmt.Errorf("cannot look at model: %w", err)
	}
	if snap.Holder == "" && snap.Life == model.Alive {
		if _, err := c.ClaimLeadership(ctx, unit); err != nil {
			return nil, fmt.Errorf("cannot claim leadership: %w", err)
		}
		if snap, err = c.Snapshot(ctx, unit); err != nil {
			return nil, fmt.Errorf("cannot look at model: %w", err)
		}
	}
	deployed, err := a.paths.deployed()
	if err != nil {
		return nil, err
	}
	if a.fresh {
		a.fresh, a.stale = false, snap.Outdated
	}
	now := a.options.Clock()
	a.wakeAt = snap.WakeAt
	if snap.Holder != "" && !snap.Leader {
		a.wakeAt = earlier(a.wakeAt, snap.LeaseExpires)
	}
	a.setInterval(snap.UpdateStatus)
	if a.retrying && !snap.NoRetry {
		a.wakeAt = earlier(a.wakeAt, a.retryAt)
	}
	if err := a.moveScopes(ctx, snap); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return &view{
		state: a.state, snap: snap, rebooted: a.rebooted, stale: a.stale, deployed: deployed,
		leaderSettings: a.leaderSettings, events: a.events, tick: a.tick, shutdown: a.shutdown,
		retrying: a.retrying, retryDue: a.retrying && !snap.NoRetry && !now.Before(a.retryAt),
		order: func(ids []int) { a.rand.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] }) },
	}, nil
}

// moveScopes enters every living relation as soon as the unit is installed and
// idle, before the first relation-created. It leaves, without a hook, relations
// that end before the charm has heard of them, and those it never hears of.
func (a *Agent) moveScopes(ctx context.Context, snap *model.Snapshot) error {
	var s model.Save
	idle := a.state.Installed && a.state.Kind == model.OpContinue && snap.Life == model.Alive
	for _, id := range sorted(snap.Relations) {
		r := snap.Relations[id]
		switch {
		case r.InScope && r.Life != model.Alive && a.unheard(snap, r):
			s.Leave = append(s.Leave, id)
		case idle && !r.InScope && r.Life == model.Alive:
			s.Enter = append(s.Enter, id)
		}
	}
	if len(s.Enter)+len(s.Leave) == 0 {
		return nil
	}
	if err := a.options.Controller.Save(ctx, a.options.Unit, s); err != nil {
		return fmt.Errorf("cannot enter or leave relations: %w", err)
	}
	return nil
}

// unheard says that the charm has had no hook of the relation, and has none pending.
func (a *Agent) unheard(snap *model.Snapshot, r model.RelationSnapshot) bool {
	if _, known := snap.Endpoints[r.Endpoint]; !known {
		return true
	}
	if h := a.state.Hook; h != nil && h.Endpoint != "" && h.RelationID == r.ID {
		return false
	}
	st := a.state.Relations[r.ID]
	return st == nil || !st.Created
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}

// Post adds a workload event: its hook runs as soon as nothing else is queued. The
// channel receives what became of the hook: nil if it succeeded.
func (a *Agent) Post(h model.HookInfo) <-chan error {
	e := &event{hook: h, done: make(chan error, 1)}
	a.mu.Lock()
	a.events = append(a.events, e)
	a.mu.Unlock()
	a.poke()
	return e.done
}

// Tick makes update-status due.
func (a *Agent) Tick() {
	a.mu.Lock()
	a.tick = true
	a.mu.Unlock()
	a.poke()
}

// Shutdown asks for the stop hook, as SIGTERM of a pod does; Run returns after it.
func (a *Agent) Shutdown() {
	a.mu.Lock()
	a.shutdown = true
	a.mu.Unlock()
	a.poke()
}

// KillHook kills the process of the running hook with SIGKILL; false if none runs.
func (a *Agent) KillHook() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.kill == nil {
		return false
	}
	a.kill()
	return true
}

// poke wakes Run.
func (a *Agent) poke() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}
