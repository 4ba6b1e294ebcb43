// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package probe

import "context"

// tryBackend opens a direct session; addresses are tried once that has worked:
// without the backend they cannot answer, and it clears the count of errors
// that the server keeps of our host.
func (w *watcher) tryBackend() {
	const backend = "" // no address
	if w.trying[backend] {
		return
	}
	w.trying[backend] = true
	session, addresses := w.deps.Session(w.view.order.Login), w.view.order.Backend
	w.launch(func(ctx context.Context) result {
		var v Verdict
		for _, address := range addresses {
			if v = try(ctx, session, address, sessionBudget); v.OK || ctx.Err() != nil {
				break
			}
		}
		v.Address = backend
		return result{backend: true, verdict: v}
	})
}

// tryAddresses opens a session through every address that is not being tried.
// One that waits for a connection notices itself when its address begins to
// answer (database.Sessions does): a second beside it could be counted.
func (w *watcher) tryAddresses() {
	session := w.deps.Session(w.view.order.Login)
	for _, address := range w.view.targets() {
		if w.trying[address] || len(w.trying) >= mostAtOnce {
			continue
		}
		w.trying[address] = true
		w.launch(func(ctx context.Context) result {
			return result{verdict: try(ctx, session, address, sessionBudget)}
		})
	}
}

// launch runs open beside the loop, which gets the result. A session is not
// interrupted when the watch ends or gets another order, since a login half
// way through counts as an error of our host; it has its own bound.
func (w *watcher) launch(open func(context.Context) result) {
	generation := w.generation
	w.sessions.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), sessionBudget)
		defer cancel()
		r := open(ctx)
		r.generation = generation
		select {
		case w.results <- r:
		case <-w.gone:
		}
	})
}

// note takes a result in.
func (w *watcher) note(ctx context.Context, r result) {
	if r.generation != w.generation || ctx.Err() != nil {
		return
	}
	delete(w.trying, r.verdict.Address)
	if !r.backend {
		w.view.state(r.verdict.Address).note(r.verdict)
		return
	}
	if w.view.backend == nil {
		w.view.backend = &state{}
	}
	w.view.backend.note(r.verdict)
	if r.verdict.OK {
		w.tryAddresses()
	}
}

// state returns what is known of an address.
func (v *view) state(address string) *state {
	s := v.addresses[address]
	if s == nil {
		s = &state{}
		v.addresses[address] = s
	}
	return s
}

// canTry reports whether the order allows to open sessions.
func (v *view) canTry() bool { return v.order.Login != (Login{}) && len(v.order.Backend) > 0 }
