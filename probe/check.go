// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package probe

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/drawbridge-k8s/drawbridge/database"
)

// Budget is what the probes of one hook may take together.
const Budget = 3 * time.Second

// mostAtOnce bounds the sessions that are open at a time. It is wide, since
// what is slow here is what does not answer.
const mostAtOnce = 64

// Session opens a session through an address and closes it properly. It obeys
// the context's deadline.
type Session func(ctx context.Context, address string) error

// Verdict says whether an address answers.
type Verdict struct {
	Address   string
	OK        bool
	Reason    string // why not, in one line: "timed out after 3s"
	TimedOut  bool   // nothing came in time, or nothing was tried since nothing has come for long (ErrHangs)
	MySQLCode uint16 // the server's error, 0 without one
	Took      time.Duration
}

// ErrHangs stands for a session that was not opened, since one that was opened before still waits for the server. The
// verdict reads as if it had been tried.
var ErrHangs = errors.New("the server has been silent for minutes")

// Check opens a session through every address, concurrently under one
// deadline, and returns the verdicts in the order of the addresses. It is
// back when budget has passed, even if a session ignores its deadline. Of more
// addresses than can be tried at once each gets its share of the budget, so
// that those that do not answer cannot use up the time of the others.
func Check(ctx context.Context, session Session, addresses []string, budget time.Duration) []Verdict {
	verdicts := make([]Verdict, len(addresses))
	if len(addresses) == 0 {
		return verdicts
	}
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	share := budget
	if rounds := (len(addresses) + mostAtOnce - 1) / mostAtOnce; rounds > 1 {
		share = budget / time.Duration(rounds)
	}
	type result struct {
		index   int
		verdict Verdict
	}
	results := make(chan result, len(addresses)) // a late session must not wait for us
	slots := make(chan struct{}, mostAtOnce)
	for i, address := range addresses {
		verdicts[i] = Verdict{Address: address, Reason: "timed out after " + share.String(), TimedOut: true, Took: budget}
		go func() {
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return
			}
			defer func() { <-slots }()
			results <- result{i, try(ctx, session, address, share)}
		}()
	}
	for range addresses {
		select {
		case r := <-results:
			verdicts[r.index] = r.verdict
		case <-ctx.Done():
			// What came in together with the deadline still counts.
			for {
				select {
				case r := <-results:
					verdicts[r.index] = r.verdict
				default:
					return verdicts
				}
			}
		}
	}
	return verdicts
}

// try opens one session.
func try(ctx context.Context, session Session, address string, limit time.Duration) Verdict {
	bound, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	begin := time.Now()
	err := session(bound, address)
	v := Verdict{Address: address, OK: err == nil, Took: time.Since(begin)}
	switch {
	case err == nil:
	case errors.Is(ctx.Err(), context.Canceled):
		v.Reason = "interrupted"
	case errors.Is(err, context.DeadlineExceeded) && bound.Err() != nil, errors.Is(err, ErrHangs):
		v.TimedOut = true
		v.Reason = fmt.Sprintf("timed out after %s", limit)
	default:
		v.Reason = strings.Join(strings.Fields(err.Error()), " ")
		v.MySQLCode = database.Code(err)
	}
	return v
}
