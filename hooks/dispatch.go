// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

// Package hooks is the edge between Juju and a charm written in Go: it reads the hook's environment into an Event, opens
// the one connection to the hook tools, runs the charm's Handler with a logger that ends in juju-log, and turns what
// comes back into an exit code.
//
// Life of a hook: Juju runs the charm's `dispatch` with the hook in the environment. Run reads it, connects to the
// agent's socket, gives the Handler a Hook, waits for it, and exits. Whatever the Handler wrote through relation-set,
// secret-add or state-set is applied by Juju in one transaction if, and only if, the exit code is 0.
//
// Exit codes: 0 whenever the Handler returned nil. An error means that the hook tools themselves failed or an invariant
// is broken; then 1, and Juju retries the hook, except in workload hooks (pebble-*), which always end with 0: Juju would
// restart the unit agent and replay every notice. Expected situations are statuses, not errors.
package hooks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/drawbridge-k8s/drawbridge/hooks/hooktool"
)

// Budget is the time a hook may take as a whole; its context ends then.
const Budget = 30 * time.Second

// Handler is a charm: it is called once for each hook and action. A non-nil error makes the hook fail (see the package
// comment); everything that a person has to do something about is a status instead.
type Handler func(ctx context.Context, h *Hook) error

// Hook is what a Handler gets to work with.
type Hook struct {
	Event Event
	// Tools are the hook tools, over one connection that ends with the hook.
	Tools *hooktool.Client
	// Log ends in juju-log; a settled hook should not use it (each line is a call).
	Log *slog.Logger
	// Getenv reads the hook's environment.
	Getenv func(string) string
}

// Env is all that Dispatch needs of its surroundings. The zero value of every field but Getenv and Handler is usable.
type Env struct {
	Getenv  func(string) string
	Handler Handler
	// Connect opens the hook tools; nil means hooktool.Connect.
	Connect func(ctx context.Context, getenv func(string) string) (*hooktool.Client, error)
	// Stderr gets what cannot be said through juju-log; nil means that it is dropped.
	Stderr io.Writer
	// Budget replaces the 30 seconds; zero means Budget.
	Budget time.Duration
	// Level is the least level that is logged; the zero value is slog.LevelInfo.
	Level slog.Level
}

// Run runs the hook that the environment describes and returns the exit code. It is what a charm's main calls.
func Run(ctx context.Context, getenv func(string) string, handler Handler) (exit int) {
	return Dispatch(ctx, Env{Getenv: getenv, Handler: handler, Stderr: os.Stderr})
}

// Dispatch is Run with everything handed in. It keeps nothing between calls and may be called concurrently.
func Dispatch(ctx context.Context, env Env) (exit int) {
	if env.Stderr == nil {
		env.Stderr = io.Discard
	}
	if env.Budget == 0 {
		env.Budget = Budget
	}
	if env.Connect == nil {
		env.Connect = hooktool.Connect
	}
	ctx, cancel := context.WithTimeout(ctx, env.Budget)
	defer cancel()
	event, err := ParseEvent(env.Getenv)
	if err != nil {
		fmt.Fprintln(env.Stderr, err)
		return 1
	}
	tools, err := env.Connect(ctx, env.Getenv)
	if err != nil {
		fmt.Fprintf(env.Stderr, "cannot reach the hook tools: %v\n", err)
		return exitCode(event)
	}
	defer tools.Close()
	logger := slog.New(NewLogHandler(ctx, tools, env.Level, env.Stderr))
	hook := &Hook{Event: event, Tools: tools, Log: logger, Getenv: env.Getenv}
	if err := handle(ctx, env.Handler, hook); err != nil {
		logger.Error("hook failed", "hook", event.Name, "error", err)
		return exitCode(event)
	}
	return 0
}

// handle calls the handler and turns a panic, which only a broken invariant causes, into an error.
func handle(ctx context.Context, handler Handler, hook *Hook) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = errors.Join(err, fmt.Errorf("cannot finish the hook: panic: %v", cause))
		}
	}()
	return handler(ctx, hook)
}

// exitCode is the code of a failed hook.
func exitCode(event Event) int {
	if event.Workload != "" {
		return 0
	}
	return 1
}
