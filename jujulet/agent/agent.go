// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

// Package agent runs the hooks of one unit as Juju's unit agent does: it takes a
// snapshot of the model, lets a pure resolver choose one operation, keeps the
// operation's step in the model, runs the charm's dispatch in a hook context, and
// commits or drops what the hook has buffered.
//
// It works in the process of the model (Controller is a *model.Model) and in a
// pod over a unix socket (Serve and Dial).
package agent

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"
)

// Command is one process of the charm: dispatch, or the script of a command.
type Command struct {
	Path string   // absolute
	Args []string // without the program
	Dir  string
	Env  []string // all of it; nothing else is inherited
	// Stdout and Stderr receive the process's output.
	Stdout, Stderr io.Writer
}

// Runner runs a command and returns its exit code. The error tells that it could
// not be started, or was killed by a signal (ErrTerminated). The default
// executes the program.
type Runner func(ctx context.Context, c Command) (exit int, err error)

// ErrTerminated is returned by a Runner whose process was killed by SIGTERM or
// SIGKILL: the hook is queued again.
var ErrTerminated = errors.New("hook execution was terminated by signal")

// Options configures an agent.
type Options struct {
	// Controller is a *model.Model, or comes from Dial.
	Controller Controller
	// Unit is the unit's name, "foo/0".
	Unit string
	// Root is put before /var/lib/juju and /charm; "" in a pod.
	Root string
	// Runner runs dispatch; nil executes it.
	Runner Runner
	// PebbleSocket returns the path of a container's Pebble socket. Default:
	// Root + /charm/containers/<name>/pebble.socket.
	PebbleSocket func(container string) string
	// PebblePoll is the interval of the pebble-ready poller. Default 5 s.
	PebblePoll time.Duration
	// NoPebble keeps the pollers from running; tests post events themselves.
	NoPebble bool
	// UpdateStatus is the mean interval of update-status; 0 is off. Juju's
	// default is 5 minutes.
	UpdateStatus time.Duration
	// RetryMin and RetryMax bound the backoff of failed hooks. Default 5 s, 5 min.
	RetryMin, RetryMax time.Duration
	// LeaseRenew is how often a leader renews its lease. Default 30 s.
	LeaseRenew time.Duration
	// RestartDelay is the pause before the agent starts over after a failed
	// notice hook. Default 3 s.
	RestartDelay time.Duration
	// Seed makes the choice among relations and the jitters repeatable.
	Seed uint64
	// Getenv reads the agent's own environment: KUBERNETES_* and PATH. Default
	// os.Getenv.
	Getenv func(string) string
	// Tools is the program that hook-tool names are linked to. Default: this
	// program (os.Executable). "-" makes no links.
	Tools string
	// Clock is time.Now unless a test sets it.
	Clock func() time.Time
	// Logger receives the agent's own diagnostics.
	Logger *slog.Logger
}

// Agent is the agent of one unit.
type Agent struct{ options Options }

// New prepares an agent; nothing runs yet.
func New(o Options) (*Agent, error) { return nil, errors.New("not built yet") }

// Run runs the agent until ctx ends (nil), or until the unit is dead (ErrDead).
// When ctx ends by Shutdown's wish, the stop hook has run.
func (a *Agent) Run(ctx context.Context) error { return errors.New("not built yet") }

// Step makes exactly one decision and runs it. ran names it: a hook's full name,
// "action <name>", "skip <hook>", "upgrade" and so on; "" says that there is nothing to do
// now. A hook that failed is not an error of Step; its name is "failed <hook>".
func (a *Agent) Step(ctx context.Context) (ran string, err error) {
	return "", errors.New("not built yet")
}

// Shutdown asks for the stop hook, as SIGTERM of a pod does; Run returns after it.
func (a *Agent) Shutdown() {}

// ErrDead is returned by Run when the unit has run its last hook.
var ErrDead = errors.New("unit is dead")

// KillHook kills the process of the running hook with SIGKILL; false if none runs.
func (a *Agent) KillHook() bool { return false }
