// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"context"
	"errors"
	"strings"
)

// topic is the wake-up state of one application; the one named "" is that of
// the whole model.
type topic struct {
	generation uint64
	changed    chan struct{} // closed and replaced at each change
}

// everything is the topic of the whole model.
const everything = ""

// topic returns the topic, with m.mu held.
func (m *Model) topic(name string) *topic {
	tp := m.changes[name]
	if tp == nil {
		tp = &topic{generation: m.base, changed: make(chan struct{})}
		m.changes[name] = tp
	}
	return tp
}

// notify wakes those who wait for the applications, and for the model.
func (m *Model) notify(apps map[string]bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	bump := func(name string) {
		tp := m.topic(name)
		tp.generation++
		close(tp.changed)
		tp.changed = make(chan struct{})
	}
	for a := range apps {
		bump(a)
	}
	bump(everything)
}

// generation returns an application's generation and the channel that is closed
// when it changes.
func (m *Model) generation(app string) (uint64, <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	tp := m.topic(app)
	return tp.generation, tp.changed
}

// ErrClosed is returned by waits on a model that was closed.
var ErrClosed = errors.New("model is closed")

// WaitChange blocks until the generation of the unit's application is not seen
// any more, and returns the new one. Generations are not comparable across a
// restart of the model.
func (m *Model) WaitChange(ctx context.Context, unit string, seen uint64) (uint64, error) {
	app, _, _ := strings.Cut(unit, "/")
	for {
		g, changed := m.generation(app)
		if g != seen {
			return g, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return g, ctx.Err()
		case <-m.closed:
			return g, ErrClosed
		}
	}
}

// Watch wakes up on every change of the model, until ctx ends or the model is
// closed; then the channel is closed. One wake-up may stand for many changes. The
// first wake-up is there at once.
func (m *Model) Watch(ctx context.Context) <-chan struct{} {
	return watch(ctx, m.closed, func() <-chan struct{} {
		_, changed := m.generation(everything)
		return changed
	})
}

// watch turns a closing channel into wake-ups that are never lost.
func watch(ctx context.Context, closed <-chan struct{}, next func() <-chan struct{}) <-chan struct{} {
	out := make(chan struct{}, 1)
	changed := next()
	out <- struct{}{}
	go func() {
		defer close(out)
		for {
			select {
			case <-changed:
			case <-ctx.Done():
				return
			case <-closed:
				return
			}
			changed = next()
			select {
			case out <- struct{}{}:
			default:
			}
		}
	}()
	return out
}
