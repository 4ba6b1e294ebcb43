// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package network

import (
	"context"
	"log/slog"
	"net"
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

// AcceptLate accepts one connection for a port that has been closed meanwhile, and returns what became of it: the error
// that the client reads.
func AcceptLate(backend netip.AddrPort) error {
	p := newProxy(nil, slog.New(slog.DiscardHandler))
	ln, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return err
	}
	open := &openPort{listener: ln}
	open.backends.Store(&[]netip.AddrPort{backend})
	p.busy.Go(func() { p.accept(open) })
	defer p.close()
	defer ln.Close()
	client, err := net.Dial("tcp4", ln.Addr().String())
	if err != nil {
		return err
	}
	defer client.Close()
	_ = client.SetDeadline(time.Now().Add(2 * time.Second))
	_, err = client.Read(make([]byte, 1))
	return err
}
