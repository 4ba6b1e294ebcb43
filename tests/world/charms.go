// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package world

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/charm"
	"github.com/drawbridge-k8s/drawbridge/database"
	"github.com/drawbridge-k8s/drawbridge/hooks"
	"github.com/drawbridge-k8s/drawbridge/hooks/hooktool"
	"github.com/drawbridge-k8s/drawbridge/probe"
	"github.com/drawbridge-k8s/drawbridge/relation"
	"github.com/drawbridge-k8s/drawbridge/workload"
)

// manifest makes Juju accept a charm with containers.
const manifest = "bases:\n- {name: ubuntu, channel: '22.04', architectures: [amd64]}\n"

// folders are where the charms' YAML files stand in the repository.
var folders = map[string]string{Gateway: ".", Backend: "examples/mariadb-k8s", Client: "examples/client-k8s"}

// charmFolder makes a charm's folder: its own YAML files, and a dispatch that is
// never run, since hooks are dispatched in process.
func (w *World) charmFolder(charm string) string {
	w.T.Helper()
	_, here, _, ok := runtime.Caller(0)
	require.True(w.T, ok)
	source := folders[charm]
	require.NotEmpty(w.T, source, "no charm %s in this package", charm)
	dir := filepath.Join(w.dir, "charm-"+charm)
	require.NoError(w.T, os.MkdirAll(dir, 0o755))
	for _, name := range []string{"metadata.yaml", "config.yaml", "actions.yaml"} {
		text, err := os.ReadFile(filepath.Join(repository(here), source, name))
		if os.IsNotExist(err) {
			continue
		}
		require.NoError(w.T, err)
		require.NoError(w.T, os.WriteFile(filepath.Join(dir, name), text, 0o644))
	}
	require.NoError(w.T, os.WriteFile(filepath.Join(dir, "manifest.yaml"), []byte(manifest), 0o644))
	require.NoError(w.T, os.WriteFile(filepath.Join(dir, "dispatch"), []byte("#!/bin/sh\nexit 3\n"), 0o755))
	return dir
}

// repository finds the checkout: from the working folder of the test upwards,
// since built with -trimpath the binary does not know where its sources are.
func repository(string) string {
	dir, err := os.Getwd()
	for err == nil {
		if _, missing := os.Stat(filepath.Join(dir, "go.mod")); missing == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	return "."
}

// handler is the charm of an application, known by the charm's name.
func (w *World) handler(app, unit string) (hooks.Handler, error) {
	if handler := w.Handlers[app]; handler != nil {
		return handler, nil
	}
	w.mu.Lock()
	name := w.charms[app]
	w.mu.Unlock()
	if name == "" { // deployed by an earlier process
		c, err := w.Model.CharmOf(app)
		if err != nil {
			return nil, err
		}
		name = c.Meta.Name
		w.mu.Lock()
		w.charms[app] = name
		w.mu.Unlock()
	}
	switch name {
	case Gateway:
		return charm.New(w.charmOptions(unit)).Handle, nil
	case Backend:
		return backend{w}.handle, nil
	case Client:
		return client, nil
	default:
		return nil, fmt.Errorf("no charm %q in this package", name)
	}
}

// charmOptions are the surroundings of drawbridge-k8s on a unit.
func (w *World) charmOptions(unit string) charm.Options {
	return charm.Options{
		Root:      w.roots[unit],
		Transport: transport{w},
		Clock:     w.Clock.Now,
		NoWatch:   true,
		Session: func(c database.Credentials) probe.Session {
			return func(ctx context.Context, address string) error {
				if c.Password != backendPassword {
					return fmt.Errorf("the server refuses these credentials (error 1045)")
				}
				return w.session(ctx, address)
			}
		},
		NewGateway: w.newGateway(unit),
		OpenBox:    w.openBox(unit),
		OpenAdmin: func(ctx context.Context, c database.Credentials, address string) (charm.Admin, error) {
			if err := w.session(ctx, address); err != nil {
				return nil, err
			}
			return w.SQL, nil
		},
	}
}

// Workload is a unit's gateway: what it was told, and whether it can be reached.
type Workload struct {
	Told workload.Gateway
	// Down makes the container unreachable.
	Down    bool
	Changes int
}

// WorkloadOf returns the gateway of a unit.
func (w *World) WorkloadOf(unit string) *Workload {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.workloads[unit] == nil {
		w.workloads[unit] = &Workload{}
	}
	return w.workloads[unit]
}

// Ensure is the charm's call.
func (g *Workload) Ensure(_ context.Context, wanted workload.Gateway) (workload.Report, error) {
	if g.Down {
		return workload.Report{}, workload.ErrNotReady
	}
	changed := strings.Join(append(g.Told.ReadWrite, g.Told.ReadOnly...), " ") !=
		strings.Join(append(wanted.ReadWrite, wanted.ReadOnly...), " ")
	if changed {
		g.Told = wanted
		g.Changes++
	}
	return workload.Report{Up: true, Changed: changed, Version: "2.6.12"}, nil
}

// Stop is the charm's call.
func (g *Workload) Stop(context.Context) error {
	g.Told = workload.Gateway{}
	return nil
}

// backendPassword is what the backend gives to every requirer.
const backendPassword = "backend-pw"

// backend is a database charm: it answers each request at once, with a secret.
type backend struct{ w *World }

func (b backend) handle(ctx context.Context, h *hooks.Hook) error {
	if h.Event.Kind == hooks.Stop || h.Event.Kind == hooks.Remove {
		return nil
	}
	if leader, err := h.Tools.IsLeader(ctx); err != nil || !leader {
		return err
	}
	ids, err := h.Tools.RelationIDs(ctx, "database")
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := b.answer(ctx, h, id); err != nil {
			return err
		}
	}
	return h.Tools.StatusSet(ctx, hooktool.Active, "")
}

func (b backend) answer(ctx context.Context, h *hooks.Hook, id string) error {
	app, err := h.Tools.RelationApp(ctx, id)
	if err != nil {
		return err
	}
	asked, err := h.Tools.RelationGetApp(ctx, id, app)
	if err != nil || asked["database"] == "" {
		return err
	}
	own, err := h.Tools.RelationGetApp(ctx, id, h.Event.App)
	if err != nil || own["secret-user"] != "" {
		return err
	}
	_, number, _ := strings.Cut(id, ":")
	secret, err := h.Tools.SecretAdd(ctx, hooktool.Secret{
		Label: "database." + number + ".user.secret",
		Content: map[string]string{
			"username": "relation-" + number, "password": backendPassword,
		},
	})
	if err != nil {
		return err
	}
	if err := h.Tools.SecretGrant(ctx, secret, id); err != nil {
		return err
	}
	answer := relation.Answer{
		RequestBag: asked, Database: asked["database"], Endpoints: []string{BackendAddress},
		ReadOnlyEndpoints: []string{BackendAddress}, SecretUser: secret, Version: "10.11",
	}
	return h.Tools.RelationSetApp(ctx, id, relation.Diff(own, answer.Bag()))
}

// client is a requirer as the data_interfaces library makes one: it asks once,
// and mirrors what it was given in its own unit databag.
func client(ctx context.Context, h *hooks.Hook) error {
	if h.Event.Kind == hooks.Stop || h.Event.Kind == hooks.Remove {
		return nil
	}
	ids, err := h.Tools.RelationIDs(ctx, "database")
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := ask(ctx, h, id); err != nil {
			return err
		}
		app, err := h.Tools.RelationApp(ctx, id)
		if err != nil {
			return err
		}
		given, err := h.Tools.RelationGetApp(ctx, id, app)
		if err != nil {
			return err
		}
		own, err := h.Tools.RelationGet(ctx, id, h.Event.Unit)
		if err != nil {
			return err
		}
		if err := h.Tools.RelationSet(ctx, id, relation.Diff(own, map[string]string{"data": relation.Mirror(given)})); err != nil {
			return err
		}
	}
	return h.Tools.StatusSet(ctx, hooktool.Active, "")
}

// ask makes the request, once.
func ask(ctx context.Context, h *hooks.Hook, id string) error {
	leader, err := h.Tools.IsLeader(ctx)
	if err != nil || !leader {
		return err
	}
	config, err := h.Tools.ConfigGet(ctx)
	if err != nil {
		return err
	}
	own, err := h.Tools.RelationGetApp(ctx, id, h.Event.App)
	if err != nil || own["database"] != "" {
		return err
	}
	name, _ := config["database"].(string)
	if name == "" {
		return nil
	}
	request := relation.Request{Database: name}
	if secrets, _ := config["secrets"].(bool); secrets {
		request.RequestedSecrets = relation.DefaultRequestedSecrets()
	}
	return h.Tools.RelationSetApp(ctx, id, relation.Diff(own, request.Bag()))
}
