// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

// Package charm is the reconcile core of drawbridge-k8s: every hook runs the same pass of observe, decide, apply and
// report, whatever its name. What only the event knows (the relation that is being broken, teardown, the action asked
// for) comes in with it.
//
// The pass observes each thing once, decides with the pure functions of package relation, and writes only what differs.
// So a hook that finds nothing changed writes nothing, and one that was killed at any point is finished by the next.
// The package knows no process, socket or environment: all of that is handed in with Options, and Options is what a
// test replaces.
package charm

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/drawbridge-k8s/drawbridge/connections/carry"
	"github.com/drawbridge-k8s/drawbridge/database"
	"github.com/drawbridge-k8s/drawbridge/hooks"
	"github.com/drawbridge-k8s/drawbridge/k8sservice"
	"github.com/drawbridge-k8s/drawbridge/probe"
	"github.com/drawbridge-k8s/drawbridge/workload"
)

// Names of metadata.yaml.
const (
	endpointPeers   = "drawbridge-peers"
	endpointClients = "database"
	endpointBackend = "backend-database"
	// Container is the name of the workload container.
	Container = "gateway"
)

// Bounds on one hook, besides hooks.Budget.
const (
	// SoftBudget is when nothing new is started any more; what is left is continued by the next hook.
	SoftBudget = 25 * time.Second
	// externalBudget is when the last call to Kubernetes, the backend or the workload ends.
	externalBudget = 28 * time.Second
	// StopBudget is what stop and remove may spend on what they wind down; with all that is around it they end within 8 s.
	StopBudget = 7 * time.Second
)

// Options are the surroundings of the charm. The zero value is production.
type Options struct {
	// Root is put before the absolute paths that are read: the service account's folder, /etc/resolv.conf, /charm.
	Root string
	// Transport replaces the network to the Kubernetes API.
	Transport http.RoundTripper
	// PebbleSocket returns the path of a container's Pebble socket; nil means /charm/containers/<name>/pebble.socket.
	PebbleSocket func(container string) string
	// Session opens a session with credentials; nil means a real one.
	Session func(database.Credentials) probe.Session
	// Clock is the time; nil means time.Now.
	Clock func() time.Time
	// WatchDir returns the folder of the watch; nil means one beside the charm's folder.
	WatchDir func(hooks.Event) string
	// StartWatch starts the watch; nil means this program itself with the argument `watch`.
	StartWatch probe.Starter
	// NoWatch keeps the watch from running, so that only Juju's own hooks drive the charm.
	NoWatch bool
	// Build identifies this build to the watch.
	Build string

	// NewGateway returns the unit's workload; nil means HAProxy behind PebbleSocket.
	NewGateway func(log *slog.Logger) Gateway
	// OpenBox opens the workload container for the document of connections; nil means Pebble behind PebbleSocket.
	OpenBox func(ctx context.Context) (carry.Box, error)
	// OpenAdmin opens the connection on which users are made; nil means SQL on the backend.
	OpenAdmin func(ctx context.Context, c database.Credentials, address string) (Admin, error)

	// The other rooms, for tests of this package; nil means the real ones.
	newCluster func(getenv func(string) string, log *slog.Logger) (cluster, string, error)
	newWatch   func(event hooks.Event) watch
	check      func(ctx context.Context, session probe.Session, addresses []string, budget time.Duration) []probe.Verdict
	pause      func(ctx context.Context, d time.Duration)
}

// Charm handles hooks. It keeps nothing between them and may handle several at once.
type Charm struct{ o Options }

// New returns the charm in the surroundings given.
func New(o Options) *Charm {
	if o.PebbleSocket == nil {
		root := o.Root
		o.PebbleSocket = func(container string) string {
			return filepath.Join("/", root, "charm/containers", container, "pebble.socket")
		}
	}
	if o.Session == nil {
		o.Session = func(c database.Credentials) probe.Session { return c.Session }
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.WatchDir == nil {
		o.WatchDir = func(event hooks.Event) string { return filepath.Join(filepath.Dir(event.CharmDir), "drawbridge") }
	}
	c := &Charm{o: o}
	c.defaultRooms()
	return c
}

// defaultRooms fills in the real rooms.
func (c *Charm) defaultRooms() {
	o := &c.o
	if o.newCluster == nil {
		o.newCluster = func(getenv func(string) string, log *slog.Logger) (cluster, string, error) {
			options, err := k8sservice.InClusterOptions(getenv, o.Root)
			if err != nil {
				return nil, "", err
			}
			options.Transport, options.Logger = o.Transport, log
			client, err := k8sservice.NewClient(options)
			return client, options.Namespace, err
		}
	}
	if o.NewGateway == nil {
		o.NewGateway = func(log *slog.Logger) Gateway {
			return workload.New(workload.Options{Socket: o.PebbleSocket(Container), Logger: log})
		}
	}
	if o.OpenBox == nil {
		o.OpenBox = func(ctx context.Context) (carry.Box, error) {
			box, err := workload.Dial(ctx, o.PebbleSocket(Container))
			if err != nil {
				return nil, err
			}
			return box, nil
		}
	}
	if o.OpenAdmin == nil {
		o.OpenAdmin = func(ctx context.Context, c database.Credentials, address string) (Admin, error) {
			return database.Open(ctx, c, address)
		}
	}
	if o.newWatch == nil {
		o.newWatch = func(event hooks.Event) watch { return &processWatch{dir: o.WatchDir(event), start: o.StartWatch} }
	}
	if o.check == nil {
		o.check = probe.Check
	}
	if o.pause == nil {
		o.pause = pause
	}
}

// Handle is the hooks.Handler of the charm.
func (c *Charm) Handle(ctx context.Context, h *hooks.Hook) error {
	switch h.Event.Kind {
	case hooks.Stop, hooks.Remove:
		return c.windDown(ctx, h)
	case hooks.Action:
		return c.action(ctx, h)
	}
	p := c.newPass(ctx, h)
	defer p.close()
	return p.run(ctx)
}

// windDown ends what runs on this unit. Nothing is written to relations, Kubernetes or the backend: that is the business
// of the units that stay, and of the owner reference.
func (c *Charm) windDown(ctx context.Context, h *hooks.Hook) error {
	ctx, cancel := context.WithTimeout(ctx, StopBudget)
	defer cancel()
	if err := c.o.newWatch(h.Event).Stop(ctx); err != nil {
		h.Log.Warn("cannot end the watch", "error", err)
	}
	if h.Event.Kind == hooks.Remove {
		return nil
	}
	if err := c.o.NewGateway(h.Log).Stop(ctx); err != nil && !workload.NotReady(err) {
		h.Log.Warn("cannot stop the gateway", "error", err)
	}
	return nil
}

// pause waits, or returns early when ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// readRoot reads a file below the root.
func (c *Charm) readRoot(name string) string {
	text, err := os.ReadFile(filepath.Join("/", c.o.Root, name))
	if err != nil {
		return ""
	}
	return string(text)
}
