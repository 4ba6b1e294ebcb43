// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package charm

import (
	"context"
	"strings"

	"github.com/drawbridge-k8s/drawbridge/hooks/hooktool"
	"github.com/drawbridge-k8s/drawbridge/relation"
	"github.com/drawbridge-k8s/drawbridge/workload"
)

// ensureGateway brings the workload of this unit up to date with the backend's endpoints. It is independent of
// everything else in the pass: a container that is not there yet is a status.
func (p *pass) ensureGateway(ctx context.Context) {
	wanted := workload.Gateway{ReadWrite: p.backend.data.Endpoints, ReadOnly: p.backend.data.ReadOnlyEndpoints}
	if p.dry || p.spent(ctx) || len(wanted.ReadWrite) == 0 && p.backend.state != relation.BackendGone {
		return // an answer that cannot be read is no reason to cut sessions that work
	}
	report, err := p.o.NewGateway(p.log).Ensure(p.ext, wanted)
	switch {
	case workload.NotReady(err):
		p.maintenance("waiting for the %s container", Container)
	case err != nil:
		p.maintenance("cannot start the gateway yet: %v", err)
	case report.Problem != "":
		p.blocked("the gateway: %s", report.Problem)
	case !report.Up:
		p.maintenance("starting the gateway")
	}
	if err == nil && report.Changed && report.Version != "" {
		if err := p.tools.ApplicationVersionSet(ctx, report.Version); err != nil {
			p.log.Warn("cannot set the workload version", "error", err)
		}
	}
}

// describeFollower says how a unit is that looks after itself only.
func (p *pass) describeFollower() {
	switch {
	case p.peerID == "":
		p.maintenance("waiting for the relation %s", endpointPeers)
	case p.backend.state == relation.BackendGone:
		p.missingBackend()
	case p.backend.state == relation.BackendUnknown:
		p.waiting("waiting for Juju to show the relation %s", endpointBackend)
	case len(p.backend.data.Endpoints) == 0:
		p.waiting("waiting for %s on %s: endpoints", p.backend.app, endpointBackend)
	}
	p.active = "serving"
	if len(p.peer.Verified) > 0 && !p.leader {
		p.active = "serving " + strings.Join(hostsOf(p.peer.Verified), ", ")
	}
}

// missingBackend records that there is no backend relation.
func (p *pass) missingBackend() {
	p.causes = append(p.causes, cause{hooktool.Blocked,
		"missing relation: run juju integrate " + p.event.App + ":" + endpointBackend + " <database>"})
}
