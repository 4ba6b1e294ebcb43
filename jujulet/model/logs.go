// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"context"
	"slices"
	"strings"
	"sync"
)

// logRing keeps the newest log lines in memory: they are diagnostics, not state.
type logRing struct {
	mu      sync.Mutex
	lines   []LogLine // a ring once full
	next    uint64    // sequence number of the next line
	limit   int
	changed chan struct{}
}

func newLogRing(limit int) *logRing {
	return &logRing{limit: limit, next: 1, changed: make(chan struct{})}
}

func (r *logRing) add(l LogLine) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l.Seq = r.next
	r.next++
	if len(r.lines) < r.limit {
		r.lines = append(r.lines, l)
	} else {
		r.lines[int((l.Seq-1)%uint64(r.limit))] = l
	}
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *logRing) since(seq uint64, limit int) []LogLine {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := seq + 1
	if oldest := r.next - uint64(len(r.lines)); first < oldest {
		first = oldest
	}
	if limit > 0 && r.next > first && r.next-first > uint64(limit) {
		first = r.next - uint64(limit)
	}
	var out []LogLine
	for s := first; s < r.next; s++ {
		out = append(out, r.lines[int((s-1)%uint64(r.limit))])
	}
	return out
}

func (r *logRing) wait() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed
}

// logLevels orders the levels of log lines.
var logLevels = []string{"TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"}

// AddLog adds a line to the debug log, unless it is below the model's level. Seq
// is given by the model, and Time if it is zero.
func (m *Model) AddLog(l LogLine) {
	if slices.Index(logLevels, l.Level) < slices.Index(logLevels, m.leastLevel(l.Module)) {
		return
	}
	if l.Time.IsZero() {
		l.Time = m.now()
	}
	m.logs.add(l)
}

// AddLogs is AddLog for an agent's lines; the entity is the agent's unit.
func (m *Model) AddLogs(_ context.Context, unit string, lines []LogLine) error {
	for _, l := range lines {
		l.Entity = Tag(unit)
		m.AddLog(l)
	}
	return nil
}

// Tag is a unit's name as paths and logs write it: "unit-foo-0".
func Tag(unit string) string { return "unit-" + strings.ReplaceAll(unit, "/", "-") }

// Logs returns the log lines after since, oldest first; with a limit above 0 the
// newest of them.
func (m *Model) Logs(since uint64, limit int) []LogLine { return m.logs.since(since, limit) }

// WaitLogs returns like Logs as soon as there is a line, or nothing when ctx ends.
func (m *Model) WaitLogs(ctx context.Context, since uint64) []LogLine {
	for {
		changed := m.logs.wait()
		if lines := m.logs.since(since, 0); len(lines) > 0 {
			return lines
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		case <-m.closed:
			return nil
		}
	}
}
