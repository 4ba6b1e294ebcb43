// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package controller

import (
	"context"
	"sync"
)

// changes counts what happens and wakes who waits for more of it. The zero
// value is ready.
type changes struct {
	mu       sync.Mutex
	revision uint64
	wake     chan struct{}
}

// bump counts one change.
func (c *changes) bump() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.revision++
	if c.wake != nil {
		close(c.wake)
		c.wake = nil
	}
}

// now returns the count and a channel that is closed when it rises.
func (c *changes) now() (uint64, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.wake == nil {
		c.wake = make(chan struct{})
	}
	// Zero means "none seen" to those who ask, so it is never a count.
	return c.revision + 1, c.wake
}

// wait returns the count as soon as it differs from seen, or when ctx ends.
func (c *changes) wait(ctx context.Context, seen uint64) uint64 {
	for {
		revision, wake := c.now()
		if revision != seen {
			return revision
		}
		select {
		case <-ctx.Done():
			return revision
		case <-wake:
		}
	}
}
