// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package agent

import (
	"bytes"
	"context"
	"encoding/base64"
	"sync"
	"unicode/utf8"
)

const (
	// maxLine is where a line of a charm's output is cut in the debug log, in bytes.
	// Juju reads hooks' output in pieces of this size.
	maxLine = 4096
	// maxKept bounds what is kept of each stream of an action, in bytes; the rest is
	// dropped. Juju has no such bound but that of its database, 16 MiB.
	maxKept = 4 << 20
)

// output keeps the beginning of a stream of an action.
type output struct {
	bytes.Buffer
	dropped bool
}

// keep adds what still fits.
func (o *output) keep(p []byte) {
	room := maxKept - o.Len()
	o.dropped = o.dropped || len(p) > room
	o.Write(p[:min(len(p), room)])
}

// result adds the stream to an action's results, as Juju does: base64 if it is no
// text.
func (o *output) result(name string, results map[string]any) {
	text := o.Bytes()
	if o.dropped {
		text = append(text, "\n(the rest was dropped)\n"...)
	}
	switch {
	case len(text) == 0:
	case utf8.Valid(text):
		results[name] = string(text)
	default:
		results[name] = base64.StdEncoding.EncodeToString(text)
		results[name+"-encoding"] = "base64"
	}
}

// lineWriter sends each line of a process's output to the debug log, and keeps the
// beginning for actions. It holds no more than one line of maxLine bytes.
type lineWriter struct {
	mu      sync.Mutex
	partial []byte
	keep    *output
	emit    func(line string)
}

// lines returns a writer for one stream of a run.
func (a *Agent) lines(ctx context.Context, r *run, level string, keep *output) *lineWriter {
	module := "unit." + a.options.Unit + "." + r.name
	return &lineWriter{keep: keep, emit: func(line string) { a.log(ctx, module, level, line) }}
}

// Write never fails.
func (w *lineWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.keep != nil {
		w.keep.keep(p)
	}
	for rest := p; len(rest) > 0; {
		i := bytes.IndexByte(rest, '\n')
		end := i
		if i < 0 {
			end = len(rest)
		}
		end = min(end, maxLine-len(w.partial))
		w.partial = append(w.partial, rest[:end]...)
		rest = rest[end:]
		switch {
		case len(rest) > 0 && rest[0] == '\n':
			rest = rest[1:]
			w.flush()
		case len(w.partial) == maxLine:
			w.flush()
		}
	}
	return len(p), nil
}

// flush emits the line that was gathered.
func (w *lineWriter) flush() {
	w.emit(string(bytes.TrimRight(w.partial, "\r")))
	w.partial = w.partial[:0]
}

// Close emits a last line without a newline.
func (w *lineWriter) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.partial) > 0 {
		w.flush()
	}
}
