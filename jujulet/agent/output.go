// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package agent

import (
	"bytes"
	"context"
	"sync"
)

// lineWriter sends each line of a process's output to the debug log, and keeps the
// whole for actions.
type lineWriter struct {
	mu      sync.Mutex
	partial []byte
	keep    *bytes.Buffer
	emit    func(line string)
}

// lines returns a writer for one stream of a run.
func (a *Agent) lines(ctx context.Context, r *run, level string, keep *bytes.Buffer) *lineWriter {
	module := "unit." + a.options.Unit + "." + r.name
	return &lineWriter{keep: keep, emit: func(line string) { a.log(ctx, module, level, line) }}
}

// Write never fails.
func (w *lineWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.keep != nil {
		w.keep.Write(p)
	}
	w.partial = append(w.partial, p...)
	for {
		i := bytes.IndexByte(w.partial, '\n')
		if i < 0 {
			return len(p), nil
		}
		w.emit(string(bytes.TrimRight(w.partial[:i], "\r")))
		w.partial = w.partial[i+1:]
	}
}

// Close emits a last line without a newline.
func (w *lineWriter) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.partial) > 0 {
		w.emit(string(w.partial))
		w.partial = nil
	}
}
