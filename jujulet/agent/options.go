// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package agent

import (
	"hash/fnv"
	"io"
	"log/slog"
	"os"
	"time"
)

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
	// LeaseRenew is how often leadership is claimed. Default 30 s.
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
	// Logger receives the agent's own diagnostics. Default: discarded.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	duration := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	duration(&o.PebblePoll, 5*time.Second)
	duration(&o.RetryMin, 5*time.Second)
	duration(&o.RetryMax, 5*time.Minute)
	duration(&o.LeaseRenew, 30*time.Second)
	duration(&o.RestartDelay, 3*time.Second)
	if o.Runner == nil {
		o.Runner = Execute
	}
	if o.PebbleSocket == nil {
		root := o.Root
		o.PebbleSocket = func(c string) string { return root + "/charm/containers/" + c + "/pebble.socket" }
	}
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	if o.Tools == "" {
		o.Tools, _ = os.Executable()
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	return o
}

func hash(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	return h.Sum64()
}
