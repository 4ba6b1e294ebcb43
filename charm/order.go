// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package charm

import (
	"context"
	"time"

	"github.com/drawbridge-k8s/drawbridge/k8sservice"
	"github.com/drawbridge-k8s/drawbridge/probe"
	"github.com/drawbridge-k8s/drawbridge/relation"
)

// orderWatch gives the watch what this pass saw, so that it wakes us as soon as it sees anything else.
func (p *pass) orderWatch(ctx context.Context) {
	if p.o.NoWatch {
		return
	}
	if err := p.o.newWatch(p.event).Ensure(ctx, p.order()); err != nil {
		p.log.Warn("cannot start the watch; only Juju's own hooks will retry", "error", err)
	}
}

// order is the order for the watch.
func (p *pass) order() probe.Order {
	s, v, b := &p.service, &p.seen, &p.backend
	order := probe.Order{
		Build: p.o.Build, App: p.event.App, Namespace: s.namespace, Service: p.serviceName(),
		Domain:           k8sservice.ClusterDomain(p.c.readRoot("etc/resolv.conf"), s.namespace),
		ExternalHostname: p.config.ExternalHostname,
		Seen: probe.Seen{
			Exists: s.live != nil, Deleting: k8sservice.ServiceTerminating(s.live),
			Fields: k8sservice.Fingerprint(s.live), Addresses: v.set,
		},
		Pending: v.exposure.Deferred, WakeAt: p.deadline(), NotVerifiable: v.unverifiable,
	}
	order.ConfigMaps = p.connections.Watch
	if s.live != nil {
		order.Seen.UID = string(s.live.UID)
	}
	if v.direct != nil {
		answers := v.direct.OK
		order.Seen.Backend = &answers
	}
	if v.direct == nil || p.row == relation.RowGone {
		return order // nothing to log in with
	}
	order.Backend = b.data.Endpoints
	order.Login = probe.Login{Username: b.data.Username, Password: b.data.Password}
	order.Seen.Answers = map[string]bool{}
	for address, verdict := range v.verdicts {
		order.Seen.Answers[address] = verdict.OK
	}
	return order
}

// deadline is the earliest of the pass's deadlines; zero for none.
func (p *pass) deadline() time.Time {
	var first time.Time
	for _, at := range p.deadlines {
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}
