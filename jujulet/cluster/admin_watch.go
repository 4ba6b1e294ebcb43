// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cluster

import "context"

// Watch sends the present state as Added events, then every change, until ctx ends or the server is
// closed; then the channel is closed. No kinds means all. A slow reader loses nothing (the queue
// grows). A selector or kind that makes no sense is logged and ends the watch at once.
func (a *Admin) Watch(ctx context.Context, o ListOptions, kinds ...Kind) <-chan Event {
	out := make(chan Event)
	if len(kinds) == 0 {
		for _, k := range a.s.rules.kinds {
			kinds = append(kinds, k.Kind)
		}
	}
	selections := map[Kind]selection{}
	for _, k := range kinds {
		sel, err := a.selection(k, o)
		if err != nil {
			a.s.options.Logger.Error("cannot watch", "error", err)
			close(out)
			return out
		}
		selections[k] = sel
	}
	w, initial := a.s.follow(selections, kinds)
	go func() {
		defer close(out)
		defer a.s.close(w)
		a.s.pump(ctx, w, selections, initial, out)
	}()
	return out
}

// follow registers a watcher over several kinds and reads the present state under the same lock.
func (s *Server) follow(selections map[Kind]selection, kinds []Kind) (*watcher, []record) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	var initial []record
	for _, k := range kinds {
		for _, o := range s.selected(selections[k]) {
			initial = append(initial, record{kind: k, object: o, typ: Added})
		}
	}
	return s.store.watch(kinds...), initial
}

func (s *Server) pump(ctx context.Context, w *watcher, selections map[Kind]selection, queue []record, out chan<- Event) {
	for {
		for _, r := range queue {
			typ, obj := transition(selections[r.kind], r)
			if typ == "" {
				continue
			}
			select {
			case out <- Event{Type: typ, Kind: r.kind, Object: obj, Version: r.version}:
			case <-ctx.Done():
				return
			case <-s.closed:
				return
			}
		}
		select {
		case <-w.wake:
			queue = w.take()
		case <-ctx.Done():
			return
		case <-s.closed:
			return
		}
	}
}
