// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// outsideHost is the namespace of the host outside the cluster, once there is one.
type outsideHost struct {
	handle *netlink.Handle // keeps the namespace
	routes map[netip.Addr]bool
}

// attachOutside connects the outside host, which has routes to nodes and load balancers only.
func (l *links) attachOutside(pid int) error {
	err := l.attach(outsideName, 0, end{
		pid: pid, address: l.plan.Outside.Addr(), bits: l.plan.Outside.Bits(),
		routes: []*netlink.Route{l.outsideRoute(l.plan.NodeRange), l.outsideRoute(l.plan.LBRange), defaultRoute(unix.RTN_UNREACHABLE)},
	})
	if err != nil {
		return err
	}
	link, err := netlink.LinkByName(outsideName)
	if err != nil {
		return fmt.Errorf("cannot find link to the outside host: %w", err)
	}
	if err := addAddress(nil, link, l.plan.OutsideGateway, l.plan.Outside.Bits()); err != nil {
		return err
	}
	return l.keepOutside(pid)
}

// keepOutside keeps a way into the outside host's namespace, for the routes that change.
func (l *links) keepOutside(pid int) error {
	ns, err := netns.GetFromPid(pid)
	if err != nil {
		return fmt.Errorf("cannot enter network of process %d: %w", pid, err)
	}
	defer ns.Close()
	h, err := netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("cannot enter network of process %d: %w", pid, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.outside.close()
	l.outside = outsideHost{handle: h, routes: map[netip.Addr]bool{}}
	return nil
}

// close gives the namespace up.
func (o outsideHost) close() {
	if o.handle != nil {
		o.handle.Close()
	}
}

// outsideRoute is the outside host's route to addresses of the cluster.
func (l *links) outsideRoute(p netip.Prefix) *netlink.Route {
	return &netlink.Route{
		Dst: &net.IPNet{IP: p.Masked().Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), 32)},
		Gw:  l.plan.OutsideGateway.AsSlice(),
	}
}

// routeOutside gives the outside host routes to those addresses of nodes that lie in no range that it has a route to, such
// as external ones, and takes away the routes to what no node has any more.
func (l *links) routeOutside(nodes []netip.Addr) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.outside
	if o.handle == nil {
		return nil
	}
	var errs []error
	for _, a := range nodes {
		if o.routes[a] || l.plan.NodeRange.Contains(a) || l.plan.LBRange.Contains(a) {
			continue
		}
		if err := o.handle.RouteReplace(l.outsideRoute(netip.PrefixFrom(a, 32))); err != nil {
			errs = append(errs, fmt.Errorf("cannot make route to %s: %w", a, err))
			continue
		}
		o.routes[a] = true
	}
	for a := range o.routes {
		if slices.Contains(nodes, a) {
			continue
		}
		if err := o.handle.RouteDel(l.outsideRoute(netip.PrefixFrom(a, 32))); err != nil && !errors.Is(err, unix.ESRCH) {
			errs = append(errs, fmt.Errorf("cannot remove route to %s: %w", a, err))
			continue
		}
		delete(o.routes, a)
	}
	return errors.Join(errs...)
}
