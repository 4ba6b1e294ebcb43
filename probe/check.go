// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package probe

import (
	"context"
	"time"
)

// Budget is what the probes of one hook may take together.
const Budget = 3 * time.Second

// Session opens a session through an address and closes it properly. It obeys
// the context's deadline.
type Session func(ctx context.Context, address string) error

// Verdict says whether an address answers.
type Verdict struct {
	Address   string
	OK        bool
	Reason    string // why not, in one line: "timed out after 3s"
	MySQLCode uint16 // the server's error, 0 without one
	Took      time.Duration
}

// Check opens a session through every address, concurrently under one
// deadline, and returns the verdicts in the order of the addresses. It is
// back when budget has passed, even if a session ignores its deadline.
func Check(ctx context.Context, session Session, addresses []string, budget time.Duration) []Verdict {
	panic("unfinished")
}
