// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

// Command mariadb-k8s is an example of a charm: one MariaDB server without
// storage, provider of mysql_client.
//
// Every hook does the same: bring the server up (server.go), bring users and
// databags in line with the relations that there are (provider.go), and say how
// it is.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/drawbridge-k8s/drawbridge/connections"
	"github.com/drawbridge-k8s/drawbridge/connections/carry"
	"github.com/drawbridge-k8s/drawbridge/hooks"
	"github.com/drawbridge-k8s/drawbridge/hooks/hooktool"
	"github.com/drawbridge-k8s/drawbridge/workload"
)

func main() {
	c := charm{
		server:     server{socket: "/charm/containers/mariadb/pebble.socket", folder: "/var/lib/mariadb-k8s", port: 3306},
		resolvConf: "/etc/resolv.conf",
	}
	os.Exit(hooks.Run(context.Background(), os.Getenv, c.handle))
}

type charm struct {
	server     server
	resolvConf string
}

func (c charm) handle(ctx context.Context, h *hooks.Hook) error {
	if h.Event.Kind == hooks.Stop || h.Event.Kind == hooks.Remove {
		return nil
	}
	status, message, err := c.reconcile(ctx, h)
	if err != nil {
		return err
	}
	if was, said, err := h.Tools.StatusGet(ctx); err != nil || was == status && said == message {
		return err
	}
	return h.Tools.StatusSet(ctx, status, message)
}

// reconcile does what is to be done and returns the unit's status. An error is
// one of the hook tools.
func (c charm) reconcile(ctx context.Context, h *hooks.Hook) (hooktool.Status, string, error) {
	if !strings.HasSuffix(h.Event.Unit, "/0") {
		return hooktool.Blocked, "only one unit is supported", nil
	}
	admin, started, err := c.server.ensure(ctx)
	switch {
	case workload.NotReady(err):
		return hooktool.Maintenance, "waiting for the container", nil
	case err != nil:
		h.Log.Warn("the server does not run", "error", err)
		return hooktool.Waiting, fmt.Sprintf("the server does not run: %v", err), nil
	}
	defer admin.Close()
	version, err := admin.Version(ctx)
	if err != nil {
		return hooktool.Waiting, err.Error(), nil
	}
	if started {
		number, _, _ := strings.Cut(version, "-")
		if err := h.Tools.ApplicationVersionSet(ctx, number); err != nil {
			return "", "", err
		}
	}
	leader, err := h.Tools.IsLeader(ctx)
	if err != nil {
		return "", "", err
	}
	if !leader {
		return hooktool.Waiting, "waiting for leadership", nil
	}
	goal, err := h.Tools.GoalState(ctx)
	if err != nil {
		return "", "", err
	}
	if goal.Units[h.Event.Unit] == "dying" { // it is shown all relations as broken
		return hooktool.Maintenance, "stopping", nil
	}
	if err := c.show(ctx, h, goal, version); err != nil {
		return "", "", err
	}
	p := provider{Hook: h, admin: admin, version: version, address: c.address(h.Event)}
	problem, err := p.answerAll(ctx)
	if err != nil || problem != "" {
		return hooktool.Blocked, problem, err
	}
	return hooktool.Active, "", nil
}

// show tells applications that connect to this one where the server is.
func (c charm) show(ctx context.Context, h *hooks.Hook, goal hooktool.GoalState, version string) error {
	return carry.Publish(ctx, h, goal, connections.Metadata{
		Name: h.Event.App, Category: "mariadb", DistroID: "mariadb", Version: version,
		Services: map[string]connections.Service{"mysql": {Exported: "mysql", Endpoints: []string{c.address(h.Event)}}},
		Units:    []connections.Unit{{Name: h.Event.Unit}},
	})
}

// address is where the server is reached: the pod's stable name, complete.
func (c charm) address(e hooks.Event) string {
	domain := "cluster.local"
	if text, err := os.ReadFile(c.resolvConf); err == nil {
		for _, word := range strings.Fields(string(text)) {
			if rest, ok := strings.CutPrefix(word, "svc."); ok {
				domain = strings.TrimSuffix(rest, ".")
				break
			}
		}
	}
	pod := strings.ReplaceAll(e.Unit, "/", "-")
	return fmt.Sprintf("%s.%s-endpoints.%s.svc.%s.:%d", pod, e.App, e.Model, domain, c.server.port)
}
