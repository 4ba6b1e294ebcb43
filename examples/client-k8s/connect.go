// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package main

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/drawbridge-k8s/drawbridge/connections/carry"
	"github.com/drawbridge-k8s/drawbridge/hooks"
	"github.com/drawbridge-k8s/drawbridge/hooks/hooktool"
	"github.com/drawbridge-k8s/drawbridge/k8sservice"
	"github.com/drawbridge-k8s/drawbridge/workload"
)

const (
	peers     = "client-peers"
	container = "app"
)

// connect carries the document of connected applications for the workload. It returns what a person should know, and what
// came of it; nothing before the peers are there, or when the unit is going.
func (c client) connect(ctx context.Context) (causes []carry.Cause, report carry.Report, err error) {
	ids, err := c.Tools.RelationIDs(ctx, peers)
	if err != nil || len(ids) == 0 {
		return nil, report, err
	}
	h := carry.Host{
		Event: c.Event, Tools: c.Tools, Log: c.Log, Now: time.Now(), Category: "client", PeerID: ids[0],
		Dry:  c.Event.Kind == hooks.Action,
		Kube: c.kube, Tool: filepath.Join(c.Event.CharmDir, "connq"), Domain: c.domain(),
		Open: func(ctx context.Context) (carry.Box, error) {
			box, err := workload.Dial(ctx, "/charm/containers/"+container+"/pebble.socket")
			if err != nil {
				return nil, err
			}
			return box, nil
		},
	}
	if h.Goal, err = c.Tools.GoalState(ctx); err != nil || h.Goal.Units[c.Event.Unit] == "dying" {
		return nil, report, err
	}
	if h.Config, err = c.Tools.ConfigGet(ctx); err != nil {
		return nil, report, err
	}
	if h.Leader, err = c.Tools.IsLeader(ctx); err != nil {
		return nil, report, err
	}
	if h.PeerBag, err = c.Tools.RelationGetApp(ctx, h.PeerID, c.Event.App); err != nil {
		return nil, report, err
	}
	if h.UnitBag, err = c.Tools.RelationGet(ctx, h.PeerID, c.Event.Unit); err != nil {
		return nil, report, err
	}
	bound, cancel := context.WithTimeout(ctx, 25*time.Second)
	defer cancel()
	report, err = carry.Start(bound, h).Run(bound, carry.Own{DistroID: "client-k8s"})
	causes = report.Causes
	if report.Down && report.Active {
		causes = append(causes, carry.Cause{Status: hooktool.Waiting, Text: "waiting for the " + container + " container"})
	}
	return causes, report, err
}

// kube is the API as the pod reaches it; Events are told there.
func (c client) kube() (carry.Kube, string, error) {
	options, err := k8sservice.InClusterOptions(c.Getenv, "")
	if err != nil {
		return nil, "", err
	}
	options.Logger = c.Log
	kube, err := k8sservice.NewClient(options)
	return kube, options.Namespace, err
}

func (c client) domain() string {
	text, err := os.ReadFile("/etc/resolv.conf")
	if err != nil {
		text = nil
	}
	return k8sservice.ClusterDomain(string(text), c.Event.Model)
}

// queryConnection is the action of that name.
func (c client) queryConnection(ctx context.Context) error {
	_, report, err := c.connect(ctx)
	if err != nil {
		return err
	}
	results, err := carry.Query(ctx, c.Tools, report)
	if err != nil {
		return c.Tools.ActionFail(ctx, err.Error())
	}
	return c.Tools.ActionSet(ctx, results)
}
