// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package controller

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// logLevels are the levels of debug-log, least first.
var logLevels = []string{"TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"}

// streamLogs sends log lines.
func (c *modelWorker) streamLogs(w http.ResponseWriter, r *http.Request) {
	var request control.LogRequest
	if err := readRequest(r, &request); err != nil {
		refuse(w, err)
		return
	}
	keep, err := logFilter(request)
	if err != nil {
		refuse(w, err)
		return
	}
	lines, last := c.model.Logs(0, 0), uint64(0)
	if len(lines) > 0 {
		last = lines[len(lines)-1].Seq
	}
	lines = slices.DeleteFunc(lines, func(l model.LogLine) bool { return !keep(l) })
	if limit := backlog(request); limit >= 0 && len(lines) > limit {
		lines = lines[len(lines)-limit:]
	}
	if request.First > 0 && len(lines) > request.First {
		lines = lines[:request.First]
	}
	out := newStream(w)
	for {
		for _, line := range lines {
			if out.send(line) != nil {
				return
			}
		}
		if !request.Follow || r.Context().Err() != nil {
			return
		}
		lines = c.model.WaitLogs(r.Context(), last)
		if len(lines) == 0 {
			return // the client or the model has gone
		}
		last = lines[len(lines)-1].Seq
		lines = slices.DeleteFunc(lines, func(l model.LogLine) bool { return !keep(l) })
	}
}

// backlog is how many old lines are sent; -1 is all. Juju 3.6: ten when
// following.
func backlog(r control.LogRequest) int {
	switch {
	case r.Lines > 0:
		return r.Lines
	case r.Follow && !r.Replay:
		return 10
	default:
		return -1
	}
}

// logFilter returns what keeps a line.
func logFilter(r control.LogRequest) (func(model.LogLine) bool, error) {
	least := 0
	if r.Level != "" {
		if least = slices.Index(logLevels, strings.ToUpper(r.Level)); least < 0 {
			return nil, invalid("level value %q is not one of %q", r.Level, strings.Join(logLevels, `", "`))
		}
	}
	return func(l model.LogLine) bool {
		level := slices.Index(logLevels, l.Level)
		return (level < 0 || level >= least) &&
			(len(r.Include) == 0 || slices.ContainsFunc(r.Include, func(e string) bool { return isEntity(l.Entity, e) })) &&
			!slices.ContainsFunc(r.Exclude, func(e string) bool { return isEntity(l.Entity, e) }) &&
			!slices.ContainsFunc(r.NotModules, func(m string) bool { return isModule(l.Module, m) }) &&
			(len(r.Modules) == 0 || slices.ContainsFunc(r.Modules, func(m string) bool { return isModule(l.Module, m) }))
	}, nil
}

// isEntity reports whether what the user named ("foo/0", "foo", "unit-foo-0",
// with * as a wildcard at the end) is this entity.
func isEntity(entity, named string) bool {
	if prefix, ok := strings.CutSuffix(named, "*"); ok {
		return strings.HasPrefix(entity, prefix)
	}
	tag := "unit-" + strings.ReplaceAll(named, "/", "-")
	if entity == named || entity == tag {
		return true
	}
	rest, ok := strings.CutPrefix(entity, tag+"-")
	return ok && rest != "" && strings.Trim(rest, "0123456789") == ""
}

// isModule reports whether a module is the named one or below it.
func isModule(module, named string) bool {
	return module == named || strings.HasPrefix(module, named+".") || strings.HasPrefix(module, named+"/")
}

// streamJournal sends committed hooks.
func (c *modelWorker) streamJournal(w http.ResponseWriter, r *http.Request) {
	var request control.JournalRequest
	if err := readRequest(r, &request); err != nil {
		refuse(w, err)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	wake := c.model.Watch(ctx)
	out := newStream(w)
	for since := request.Since; ; {
		entries, err := c.model.Journal(since, 0)
		if err != nil {
			c.log.Error("cannot read journal", "error", err)
			return
		}
		for _, entry := range entries {
			since = entry.Seq
			if request.Unit != "" && entry.Unit != request.Unit {
				continue
			}
			if out.send(entry) != nil {
				return
			}
		}
		if !request.Follow {
			return
		}
		if _, ok := <-wake; !ok {
			return
		}
	}
}
