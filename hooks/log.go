// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package hooks

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// Logger is the one hook tool that a LogHandler needs.
type Logger interface {
	Log(ctx context.Context, level slog.Level, message string) error
}

// LogHandler is a slog.Handler that writes through juju-log: the record's level is Juju's, its message comes first, the
// attributes follow as key=value. Time is left to Juju.
type LogHandler struct {
	ctx   context.Context
	tools Logger
	level slog.Level
	// fallback gets the line if juju-log fails.
	fallback io.Writer

	mu   *sync.Mutex
	text *bytes.Buffer
	attr slog.Handler
}

// NewLogHandler returns a handler for the hook whose context is ctx. Lines that juju-log does not take go to fallback.
func NewLogHandler(ctx context.Context, tools Logger, level slog.Level, fallback io.Writer) *LogHandler {
	text := &bytes.Buffer{}
	attr := slog.NewTextHandler(text, &slog.HandlerOptions{Level: level, ReplaceAttr: withoutHead})
	return &LogHandler{ctx: ctx, tools: tools, level: level, fallback: fallback, mu: &sync.Mutex{}, text: text, attr: attr}
}

// withoutHead drops what juju-log says itself.
func withoutHead(groups []string, attr slog.Attr) slog.Attr {
	if len(groups) == 0 && (attr.Key == slog.TimeKey || attr.Key == slog.LevelKey || attr.Key == slog.MessageKey) {
		return slog.Attr{}
	}
	return attr
}

// Enabled reports whether records of the level are written.
func (h *LogHandler) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level }

// Handle writes one record. It never fails the caller: a log line is not worth a hook.
func (h *LogHandler) Handle(ctx context.Context, record slog.Record) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.text.Reset()
	if err := h.attr.Handle(ctx, record); err != nil {
		return err
	}
	message := record.Message
	if attrs := strings.TrimSpace(h.text.String()); attrs != "" {
		message += " " + attrs
	}
	toolCtx, cancel := context.WithTimeout(context.WithoutCancel(h.ctx), time.Second)
	defer cancel()
	if err := h.tools.Log(toolCtx, record.Level, message); err != nil {
		fmt.Fprintf(h.fallback, "%s %s\n", record.Level, message)
	}
	return nil
}

// WithAttrs returns a handler that adds the attributes to every record.
func (h *LogHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	other := *h
	other.attr = h.attr.WithAttrs(attrs)
	return &other
}

// WithGroup returns a handler that puts later attributes under the name.
func (h *LogHandler) WithGroup(name string) slog.Handler {
	other := *h
	other.attr = h.attr.WithGroup(name)
	return &other
}
