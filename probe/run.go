// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/drawbridge-k8s/drawbridge/k8sservice"
)

// WatchDeps is what RunWatch works with.
type WatchDeps struct {
	Dir      string                                             // of the lock and the socket
	Build    string                                             // of this program
	Session  func(Login) Session                                // how to open sessions
	Cluster  func(namespace string) (*k8sservice.Client, error) // the API as this pod reaches it
	Notifier Notifier
	// Connections wakes the charm when a connected ConfigMap has changed; nil is Notifier.
	Connections Notifier
	// Hanging tells on which addresses a session of Session waits for the server for minutes; nil tells none.
	Hanging func() []string
	Logger  *slog.Logger // nil discards
}

// RunWatch is the body of "drawbridge watch": it reads the first order from
// stdin until its end, takes the lock of deps.Dir and works until ctx ends or
// a hook ends it. It returns nil when another watch holds the lock.
func RunWatch(ctx context.Context, stdin io.Reader, deps WatchDeps) error {
	if deps.Logger == nil {
		deps.Logger = slog.New(slog.DiscardHandler)
	}
	var order Order
	if err := json.NewDecoder(io.LimitReader(stdin, mostOrder)).Decode(&order); err != nil {
		return errors.New("cannot read the watch's order") // the cause could quote it
	}
	if order.Build != deps.Build {
		return fmt.Errorf("cannot take an order of build %q: this is %q", order.Build, deps.Build)
	}
	lock, err := waitLock(ctx, deps.Dir, lockWithin)
	if err != nil || lock == nil {
		return err
	}
	defer lock.release() // last: it says that we are gone
	if err := lock.sign(); err != nil {
		return err
	}
	listener, err := listen(deps.Dir)
	if err != nil {
		return err
	}
	defer os.Remove(filepath.Join(deps.Dir, socketName))

	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	defer listener.Close()
	f := newFollower(func() (*k8sservice.Client, error) { return deps.Cluster(order.Namespace) }, order.App, order.Service, deps.Logger)
	running.Go(func() { f.run(ctx) })
	w := newWatcher(deps, f)
	m := newMapFollower(ctx, func() (*k8sservice.Client, error) { return deps.Cluster(order.Namespace) }, deps.Logger)
	w.maps.looker, w.maps.changes = m, m.changed
	running.Go(func() { <-ctx.Done(); m.close() })
	running.Go(func() { serve(ctx, listener, w.requests) })
	w.valid = func() bool { return lock.valid(deps.Dir) }
	return w.run(ctx, order)
}

// looker shows the Service; the follower does.
type looker interface {
	look() (look, bool)
	changes() <-chan struct{}
	reread()
}

// Bounds of the loop.
const (
	sessionBudget = Budget
	noticeBudget  = 3 * time.Second
	validEvery    = 15 * time.Second
	holdFor       = 500 * time.Millisecond
	finishWithin  = time.Second
)

// watcher is the watch's loop. Only the goroutine of run touches its fields.
type watcher struct {
	deps     WatchDeps
	looker   looker
	requests chan request
	valid    func() bool // whether we still keep others out

	view    view
	rhythm  rhythm
	pacer   pacer
	round   time.Time // when addresses were last tried; zero: do it now
	hold    time.Time // until then the order's word on the Service counts
	checked time.Time // when valid was last asked

	generation int // of the order; results of an older one do not count
	trying     map[string]bool
	results    chan result
	sessions   sync.WaitGroup
	gone       chan struct{} // closed when nobody takes results any more

	telling bool
	told    chan told

	maps mapWatch
}

// result is what came of trying the backend (all the verdicts until one
// answered) or an address.
type result struct {
	generation int
	backend    bool
	verdict    Verdict
}

type told struct {
	items []item
	err   error
}

func newWatcher(deps WatchDeps, l looker) *watcher {
	connections := deps.Connections
	if connections == nil {
		connections = deps.Notifier
	}
	return &watcher{
		maps: mapWatch{notifier: connections, told: make(chan told, 1)},
		deps: deps, looker: l, requests: make(chan request),
		results: make(chan result), gone: make(chan struct{}), told: make(chan told, 1),
		valid: func() bool { return true },
	}
}

// run works until ctx ends, a hook ends it, or it keeps nobody out any more.
func (w *watcher) run(ctx context.Context, order Order) error {
	now := time.Now()
	w.checked = now
	w.adopt(order, now)
	if order.Pending {
		w.rhythm.changed(now)
	}
	defer w.finish()
	for {
		timer := time.NewTimer(w.step(ctx, time.Now()))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case r := <-w.requests:
			answer := w.hear(r.message, time.Now())
			r.answer <- answer
			if answer.Going {
				timer.Stop()
				return nil
			}
		case r := <-w.results:
			w.note(ctx, r)
		case <-w.looker.changes():
			w.look(time.Now())
		case <-w.maps.changes:
			w.maps.look(time.Now())
		case t := <-w.told:
			w.telling = false
			w.heard(&w.pacer, t)
		case t := <-w.maps.told:
			w.maps.telling = false
			w.heard(&w.maps.pacer, t)
		case <-timer.C:
		}
		timer.Stop()
		if now := time.Now(); now.Sub(w.checked) >= validEvery {
			w.checked = now
			if !w.valid() {
				return errors.New("cannot go on watching: the lock is somebody else's")
			}
		}
	}
}

// heard takes in what came of a notice.
func (w *watcher) heard(p *pacer, t told) {
	if t.err != nil {
		w.deps.Logger.Debug("cannot wake the charm", "error", t.err)
		p.missed(time.Now())
		return
	}
	p.notified(time.Now(), t.items)
}

// step does what is due and returns how long nothing will be.
func (w *watcher) step(ctx context.Context, now time.Time) time.Duration {
	if !now.Before(w.hold) {
		w.view.held = false
	}
	items := w.items(now)
	next := w.checked.Add(validEvery)
	sooner := func(t time.Time) {
		if t.Before(next) {
			next = t
		}
	}
	if due := w.pacer.next(now, items); !due.IsZero() && !w.telling {
		if due.After(now) {
			sooner(due)
		} else {
			w.telling = true
			tell(ctx, w.deps.Notifier, w.told, items)
		}
	}
	if due := w.stepMaps(ctx, now); !due.IsZero() {
		sooner(due)
	}
	if w.view.canTry() {
		round := w.round.Add(w.interval(now, items))
		if !round.After(now) {
			w.round = now
			w.tryBackend()
			round = now.Add(w.interval(now, items))
		}
		sooner(round)
	}
	if wake := w.view.order.WakeAt; wake.After(now) {
		sooner(wake)
	}
	if w.view.held {
		sooner(w.hold)
	}
	return max(next.Sub(now), 0)
}

// stepMaps tells what is to be told of ConfigMaps and returns when to look again; zero for never.
func (w *watcher) stepMaps(ctx context.Context, now time.Time) time.Time {
	m := &w.maps
	items, next := m.items(now)
	due := m.pacer.next(now, items)
	switch {
	case due.IsZero() || m.telling:
		return next
	case due.After(now):
		if next.IsZero() || due.Before(next) {
			return due
		}
		return next
	}
	m.telling = true
	tell(ctx, m.notifier, m.told, items)
	return next
}

func (w *watcher) interval(now time.Time, items []item) time.Duration {
	if w.view.doubtful() {
		return intervalFast
	}
	return w.rhythm.interval(now, w.view.pending(items), w.view.refused())
}

// items is everything that a notice would be about.
func (w *watcher) items(now time.Time) []item {
	items := w.view.difference()
	if at := w.view.order.WakeAt; !at.IsZero() && !now.Before(at) {
		items = append(items, item{key: "wake", fast: true})
	}
	return items
}

// hear takes a hook's message and returns the answer; Going ends the watch.
func (w *watcher) hear(m message, now time.Time) reply {
	last := w.view.order
	switch {
	case m.Hanging:
		if w.deps.Hanging == nil {
			return reply{}
		}
		return reply{Hanging: w.deps.Hanging()}
	case m.Stop || m.Order == nil:
		return reply{Going: m.Stop}
	case m.Order.Build != w.deps.Build,
		m.Order.App != last.App, m.Order.Namespace != last.Namespace, m.Order.Service != last.Service:
		return reply{Going: true}
	}
	if m.Order.Digest() != last.Digest() {
		w.adopt(*m.Order, now)
	}
	return reply{OK: true}
}

// adopt begins anew from an order.
func (w *watcher) adopt(o Order, now time.Time) {
	last := w.view.order
	if w.generation > 0 && !sameService(o.Seen, last.Seen) {
		w.rhythm.changed(now)
	}
	if o.isNews(last) {
		w.pacer.news()
	}
	w.view.take(o)
	w.maps.adopt(o.ConfigMaps, now)
	w.generation++
	w.trying = map[string]bool{}
	w.round = now // the hook has just tried them
	if !sameService(w.view.service, o.Seen) {
		// Which of the two is older only the API can say.
		w.view.held, w.hold = true, now.Add(holdFor)
		w.looker.reread()
	}
}

// look takes in what the looker shows.
func (w *watcher) look(now time.Time) {
	seen, read := w.looker.look()
	if !read {
		return
	}
	w.view.held = false
	if w.view.see(seen) {
		w.rhythm.changed(now)
		w.round = time.Time{}
	}
}

// tell sends a notice about items.
func tell(ctx context.Context, notifier Notifier, to chan<- told, items []item) {
	go func() {
		ctx, cancel := context.WithTimeout(ctx, noticeBudget)
		defer cancel()
		to <- told{items, notifier.Notify(ctx)}
	}()
}

// finish lets sessions end properly that are half way through: the server
// counts those that do not against our host.
func (w *watcher) finish() {
	done := make(chan struct{})
	go func() {
		w.sessions.Wait()
		close(done)
	}()
	timer := time.NewTimer(finishWithin)
	defer timer.Stop()
	defer close(w.gone)
	for {
		select {
		case <-done:
			return
		case <-timer.C:
			return
		case <-w.results:
		}
	}
}
