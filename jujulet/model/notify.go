// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

// topic is the wake-up state of one application.
type topic struct {
	generation uint64
	waiters    map[chan struct{}]struct{}
}

// logRing keeps the newest log lines.
type logRing struct{}
