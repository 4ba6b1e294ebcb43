// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package probe

import (
	"context"
	"io"
	"log/slog"
	"os"

	"github.com/drawbridge-k8s/drawbridge/k8sservice"
)

// Starter starts the watch with stdin as its standard input and does not wait
// for it. The folder is the one that RunWatch gets.
type Starter func(ctx context.Context, dir string, stdin *os.File) error

// ExecStarter starts "<program> watch <dir>" in a session of its own, with the
// rest of its standard streams on /dev/null and the environment env, less
// what belongs to one hook (JUJU_CONTEXT_ID and the like).
func ExecStarter(program string, env []string) Starter { panic("unfinished") }

// EnsureWatch makes a watch run in dir with this order: it hands the order to
// the one that runs, replaces one of another build or one that does not
// listen, or starts one. started says whether a process was started.
func EnsureWatch(ctx context.Context, dir string, o Order, start Starter) (started bool, err error) {
	panic("unfinished")
}

// StopWatch ends the watch of dir and waits until it has gone; without one it
// does nothing.
func StopWatch(ctx context.Context, dir string) error { panic("unfinished") }

// Notifier wakes the charm.
type Notifier interface {
	Notify(ctx context.Context) error
}

// PebbleNotifier records a custom notice with the Pebble on a socket: the
// socket of the gateway container.
func PebbleNotifier(socket, key string) Notifier { panic("unfinished") }

// NoticeKey is the key of the notices of the watch.
const NoticeKey = "drawbridge-k8s.charm/exposure"

// WatchDeps is what RunWatch works with.
type WatchDeps struct {
	Dir      string
	Build    string                                             // of this program
	Session  func(Login) Session                                // how to open sessions
	Cluster  func(namespace string) (*k8sservice.Client, error) // the API as this pod reaches it
	Notifier Notifier
	Logger   *slog.Logger // nil discards
}

// RunWatch is the body of "drawbridge watch": it reads the first order from
// stdin until its end, takes the lock of deps.Dir and works until ctx ends or
// a hook ends it. It returns nil when another watch holds the lock.
func RunWatch(ctx context.Context, stdin io.Reader, deps WatchDeps) error { panic("unfinished") }
