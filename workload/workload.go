// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

// Package workload runs the gateway: HAProxy in the workload container, driven
// through the container's Pebble.
package workload

import (
	"context"
	"log/slog"
	"time"
)

// Gateway is what HAProxy is to do.
type Gateway struct {
	// ReadWrite and ReadOnly are the backend's endpoints ("host:port"). With
	// none at all the gateway runs and listens on neither port.
	ReadWrite []string
	ReadOnly  []string
	// IPv6 makes the two ports listen on IPv6 as well. Ensure sets it where the
	// pod has IPv6.
	IPv6 bool
	// Ports are the ports; zero values mean the defaults. Only tests that share
	// one network need others.
	Ports Ports
}

// Ports are the TCP ports of the gateway.
type Ports struct {
	ReadWrite int // 6446
	ReadOnly  int // 6447
	Health    int // 8404, loopback only
	Admin     int // 8405, loopback only, may only read
}

// Config is the text of the HAProxy configuration file. Equal gateways give
// equal texts, whatever the order of their endpoints.
func (g Gateway) Config() string { return "" }

// Options say where the container is.
type Options struct {
	// Socket is the path of the container's Pebble socket.
	Socket string
	// Folder holds the gateway's files in the workload container;
	// /etc/haproxy when empty.
	Folder string
	Logger *slog.Logger
	// Timeout bounds one Ensure; 10 s when zero.
	Timeout time.Duration
}

// Workload is the gateway's container.
type Workload struct{}

// New returns the workload behind a Pebble socket. It does no I/O.
func New(o Options) *Workload { return &Workload{} }

// Report is what Ensure found or did.
type Report struct {
	// Up says that HAProxy runs and has taken the wanted configuration.
	Up bool
	// Changed says that something was written, started or reloaded.
	Changed bool
	// Version is HAProxy's version, "" while it does not run.
	Version string
	// Problem says what a human must know, "" when all is well: HAProxy's own
	// message for a configuration that it refuses, a start that failed.
	Problem string
}

// Ensure brings the gateway to g and reports. It is idempotent: when nothing
// has changed it only reads. A configuration that HAProxy refuses is never put
// in place; the one before keeps running and Problem has HAProxy's message.
// NotReady tells an error of a container that is not there yet.
func (w *Workload) Ensure(ctx context.Context, g Gateway) (Report, error) { return Report{}, nil }

// Stop stops HAProxy. A container that is gone, or never ran it, is no error.
func (w *Workload) Stop(ctx context.Context) error { return nil }

// NotReady reports whether err means that the container is not ready yet: its
// Pebble does not answer.
func NotReady(err error) bool { return false }
