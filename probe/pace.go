// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package probe

import (
	"time"
)

// How often the watch looks.
const (
	intervalFast    = 250 * time.Millisecond
	intervalPending = time.Second
	intervalSettled = 15 * time.Second
	fastFor         = 2 * time.Minute
)

// rhythm says how often addresses are tried:
//
//	the backend refuses the credentials            every 15 s
//	Service or address set changed < 2 min ago     4 times a second
//	pending                                        once a second
//	settled and answering                          every 15 s
//
// It is pure: the caller has the clock.
type rhythm struct{ fastUntil time.Time }

// changed notes a change of the Service or the address set.
func (r *rhythm) changed(now time.Time) { r.fastUntil = now.Add(fastFor) }

// interval returns the time between two looks.
func (r *rhythm) interval(now time.Time, pending, refused bool) time.Duration {
	switch {
	case refused:
		return intervalSettled
	case now.Before(r.fastUntil):
		return intervalFast
	case pending:
		return intervalPending
	}
	return intervalSettled
}

// How often the watch speaks.
const (
	settle      = 50 * time.Millisecond // lets what comes together be told together
	noticeGap   = 250 * time.Millisecond
	slowAtOnce  = 3
	slowRefill  = 5 * time.Second
	repeatFirst = 5 * time.Second
	repeatLast  = time.Minute
	failedFirst = time.Second
	failedLast  = 30 * time.Second
)

// item is one thing in which what the watch sees is not what its order says.
type item struct {
	key  string // names it, and what is seen instead
	fast bool   // a new address set, an address that turns to answers, WakeAt
}

// pacer decides when a notice is sent:
//
//	something new, fast                 at once (after settle), 250 ms apart
//	something new, not fast             three at once, then one in 5 s
//	nothing new since the last notice   5, 10, 20, 40, 60, 60 ... s after it
//	the last notice could not be sent   1, 2, 4 ... 30 s after the attempt
//
// Something is new once for each order that says something new (see isNews),
// so hooks that keep reporting the same are woken ever more seldom. It is
// pure: the caller has the clock.
type pacer struct {
	sent     map[string]bool // told since the order said something new
	last     time.Time       // of the last notice
	repeats  int             // notices since then that told nothing new
	fresh    time.Time       // since when something fast and new is there
	tokens   int             // for what is not fast
	filled   time.Time       // when tokens was brought up to date; zero at first
	failures int
	failed   time.Time // of the last attempt that failed
}

// news notes that an order says something new.
func (p *pacer) news() {
	p.sent = nil
	p.repeats = 0
	p.fresh = time.Time{}
}

// next returns when a notice about items is due: a moment that is not after
// now means at once, the zero time never. It is asked again whenever items
// change, and at the moment it has returned.
func (p *pacer) next(now time.Time, items []item) time.Time {
	fast, slow := p.unsent(items)
	if !fast {
		p.fresh = time.Time{}
	} else if p.fresh.IsZero() {
		p.fresh = now
	}
	var due time.Time
	switch {
	case len(items) == 0:
		return time.Time{}
	case fast:
		due = p.fresh.Add(settle)
	case slow:
		due = p.token(now)
	default:
		due = p.last.Add(backoff(repeatFirst, repeatLast, p.repeats))
	}
	due = latest(due, p.last.Add(noticeGap))
	if p.failures > 0 {
		due = latest(due, p.failed.Add(backoff(failedFirst, failedLast, p.failures-1)))
	}
	return due
}

func (p *pacer) unsent(items []item) (fast, slow bool) {
	for _, i := range items {
		if !p.sent[i.key] {
			fast = fast || i.fast
			slow = slow || !i.fast
		}
	}
	return fast, slow
}

// token returns when the next notice that is not fast may be sent.
func (p *pacer) token(now time.Time) time.Time {
	p.refill(now)
	if p.tokens > 0 {
		return now
	}
	return p.filled.Add(slowRefill)
}

func (p *pacer) refill(now time.Time) {
	if p.filled.IsZero() {
		p.tokens, p.filled = slowAtOnce, now
	}
	for now.Sub(p.filled) >= slowRefill {
		if p.tokens >= slowAtOnce {
			p.filled = now
			return
		}
		p.tokens++
		p.filled = p.filled.Add(slowRefill)
	}
}

// notified notes that a notice about items was sent.
func (p *pacer) notified(now time.Time, items []item) {
	fast, slow := p.unsent(items)
	switch {
	case fast:
		p.repeats = 0
	case slow:
		p.repeats = 0
		p.refill(now)
		if p.tokens == slowAtOnce {
			p.filled = now // the time to refill starts with the first that is spent
		}
		p.tokens = max(0, p.tokens-1)
	default:
		p.repeats++
	}
	if p.sent == nil {
		p.sent = map[string]bool{}
	}
	for _, i := range items {
		p.sent[i.key] = true
	}
	p.last, p.fresh, p.failures = now, time.Time{}, 0
}

// missed notes that a notice could not be sent.
func (p *pacer) missed(now time.Time) {
	p.failures++
	p.failed = now
}

// backoff returns first doubled n times, at most last.
func backoff(first, last time.Duration, n int) time.Duration {
	for ; n > 0 && first < last; n-- {
		first *= 2
	}
	return min(first, last)
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
