// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package charm

import (
	"context"
	"path/filepath"

	"github.com/drawbridge-k8s/drawbridge/connections"
	"github.com/drawbridge-k8s/drawbridge/connections/carry"
	"github.com/drawbridge-k8s/drawbridge/hooks"
	"github.com/drawbridge-k8s/drawbridge/hooks/hooktool"
	"github.com/drawbridge-k8s/drawbridge/k8sservice"
	"github.com/drawbridge-k8s/drawbridge/relation"
)

// What the charm says about itself to applications that connect to it.
const (
	defaultCategory = "mysql-gateway"
	distroID        = "drawbridge-k8s/gateway"
	serviceMySQL    = "mysql"
	serviceReadOnly = "mysql-read-only"
)

// startConnecting begins to read what is connected; connect ends it. A dying unit sees all its relations as broken, and
// does nothing about connections.
func (p *pass) startConnecting() {
	look := p.event.Kind == hooks.Action && isConnectionAction(p.event.Action)
	if p.peerID == "" || p.dying || p.dry && !look {
		return
	}
	p.connecting = carry.Start(p.ext, carry.Host{
		Event: p.event, Tools: p.tools, Log: p.log, Now: p.now,
		Config: p.raw, Category: defaultCategory, Leader: p.leader, Goal: p.goal,
		PeerID: p.peerID, PeerBag: p.peerBag, UnitBag: p.unitBag, Dry: p.dry,
		Resync: p.event.Kind == hooks.Action && p.event.Action == connections.ActionResync,
		Kube: func() (carry.Kube, string, error) {
			kube, namespace, err := p.kube()
			return kube, namespace, err
		},
		Open:   p.o.OpenBox,
		Tool:   filepath.Join(p.event.CharmDir, "connq"),
		Domain: k8sservice.ClusterDomain(p.c.readRoot("etc/resolv.conf"), p.event.Model),
	})
}

// connect is the work on connections. It comes after everything of the exposure, and changes nothing of it: its troubles
// are causes behind those of the exposure. What this pass has told others is not held up by the workload's hook.
func (p *pass) connect(ctx context.Context) error {
	if p.connecting == nil || p.spent(ctx) {
		return nil
	}
	soft, cancel := context.WithTimeout(p.ext, p.soft.Sub(p.o.Clock()))
	defer cancel()
	report, err := p.connecting.Run(soft, carry.Own{
		DistroID: distroID, Version: p.backend.data.Version, Services: p.ownServices(), Hurry: p.told,
	})
	if err != nil {
		return err
	}
	p.connections = report
	if report.Down && report.Active && !p.waitsForContainer() {
		p.waiting("waiting for the %s container", Container)
	}
	for _, c := range report.Causes {
		p.causes = append(p.causes, cause{c.Status, c.Text})
	}
	p.notes = append(p.notes, report.Notes...)
	if !report.WakeAt.IsZero() {
		p.wakeAt(report.WakeAt)
	}
	return nil
}

// waitsForContainer reports whether the gateway has said already that the container is not there.
func (p *pass) waitsForContainer() bool {
	for _, c := range p.causes {
		if c.status == hooktool.Maintenance && c.text == "waiting for the "+Container+" container" {
			return true
		}
	}
	return false
}

// ownServices are the addresses that have answered: what clients are told, and nothing sooner.
func (p *pass) ownServices() map[string]connections.Service {
	readWrite, readOnly := relation.SplitAddresses(p.peer.Verified)
	if len(readWrite) == 0 {
		return nil
	}
	return map[string]connections.Service{
		serviceMySQL:    {Exported: serviceMySQL, Endpoints: readWrite},
		serviceReadOnly: {Exported: serviceReadOnly, Endpoints: readOnly},
	}
}

// isConnectionAction reports whether an action is about connections.
func isConnectionAction(name string) bool {
	return name == connections.ActionGet || name == connections.ActionQuery || name == connections.ActionResync
}
