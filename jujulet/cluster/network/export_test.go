// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package network

import (
	"context"
	"net/netip"
	"time"
)

// NewLoadBalancer returns a load balancer without a network.
func NewLoadBalancer(o Options) (*LoadBalancer, error) {
	o.Plan = DefaultPlan()
	return newLoadBalancer(o, func() {})
}

// Sync does what Run does at a change, and returns when it would come again.
func (l *LoadBalancer) Sync(ctx context.Context) (time.Duration, error) {
	services, err := l.api.Services(ctx)
	if err != nil {
		return 0, err
	}
	return l.sync(ctx, services)
}

// Frontends returns the addresses of a Service that take connections.
func (l *LoadBalancer) Frontends(namespace, name string) []netip.Addr {
	return l.frontends()[key{namespace, name}]
}

// Names returns the host names that resolve.
func (l *LoadBalancer) Names() map[string][]netip.Addr { return l.names() }
