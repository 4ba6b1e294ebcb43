// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package controller

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// controllerEntity and controllerModule name the cluster process in debug-log.
const (
	controllerEntity = "controller-0"
	controllerModule = "jujulet"
)

// modelLog is a log handler that also writes to the model's debug-log.
type modelLog struct {
	next  slog.Handler
	add   func(model.LogLine)
	attrs []slog.Attr
}

// Enabled reports whether a record of this level goes anywhere.
func (h modelLog) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

// Handle writes a record to both logs.
func (h modelLog) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelInfo && !fromAgent(r) {
		var text strings.Builder
		text.WriteString(r.Message)
		for _, a := range h.attrs {
			fmt.Fprintf(&text, " %s=%v", a.Key, a.Value)
		}
		r.Attrs(func(a slog.Attr) bool {
			fmt.Fprintf(&text, " %s=%v", a.Key, a.Value)
			return true
		})
		h.add(model.LogLine{
			Time: r.Time.UTC(), Entity: controllerEntity, Level: levelName(r.Level), Module: controllerModule, Message: text.String(),
		})
	}
	return h.next.Handle(ctx, r)
}

// fromAgent reports whether a record is an agent's output: the agent writes to
// debug-log itself.
func fromAgent(r slog.Record) bool {
	found := false
	r.Attrs(func(a slog.Attr) bool {
		found = found || a.Key == "from" && a.Value.String() == "agent"
		return !found
	})
	return found
}

// levelName is a level as Juju spells it.
func levelName(level slog.Level) string {
	switch {
	case level >= slog.LevelError:
		return "ERROR"
	case level >= slog.LevelWarn:
		return "WARNING"
	default:
		return "INFO"
	}
}

// WithAttrs returns a handler that adds attributes.
func (h modelLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	h.next = h.next.WithAttrs(attrs)
	h.attrs = append(h.attrs[:len(h.attrs):len(h.attrs)], attrs...)
	return h
}

// WithGroup returns a handler that groups attributes; debug-log has no groups.
func (h modelLog) WithGroup(name string) slog.Handler {
	h.next = h.next.WithGroup(name)
	return h
}
