// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// bridgeName is the pods' bridge in the cluster process's namespace, outsideName the link to the outside host.
const (
	bridgeName  = "br0"
	outsideName = "outside"
)

// links makes interfaces, addresses and routes.
type links struct {
	plan   Plan
	bridge netlink.Link
	lo     netlink.Link

	mu    sync.Mutex
	local map[netip.Addr]bool // Service, node and load balancer addresses
	pods  map[netip.Addr]bool // addresses given by AllocatePodIP
	last  netip.Addr

	outside outsideHost
}

// newLinks makes the bridge and the routes of the cluster process's namespace.
func newLinks(plan Plan) (*links, error) {
	l := &links{plan: plan, local: map[netip.Addr]bool{}, pods: map[netip.Addr]bool{}}
	var err error
	if l.lo, err = netlink.LinkByName("lo"); err != nil {
		return nil, fmt.Errorf("cannot find loopback: %w", err)
	}
	gateway := plan.Pods.Masked().Addr().Next()
	l.last = gateway
	br := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: bridgeName, HardwareAddr: hardwareAddr(gateway)}}
	if err := netlink.LinkAdd(br); err != nil {
		return nil, fmt.Errorf("cannot make bridge: %w", err)
	}
	if l.bridge, err = netlink.LinkByName(bridgeName); err != nil {
		return nil, fmt.Errorf("cannot find bridge: %w", err)
	}
	if err := addAddress(nil, l.bridge, gateway, plan.Pods.Bits()); err != nil {
		return nil, err
	}
	if err := netlink.LinkSetUp(l.bridge); err != nil {
		return nil, fmt.Errorf("cannot bring up bridge: %w", err)
	}
	// What is not there is refused at once. Without this route it would be dropped, and who connects would wait.
	if err := netlink.RouteAdd(defaultRoute(unix.RTN_UNREACHABLE)); err != nil {
		return nil, fmt.Errorf("cannot make default route: %w", err)
	}
	if err := errors.Join(l.forwardNothing(), netlink.RouteReplace(l.refusal())); err != nil {
		return nil, err
	}
	for _, a := range []netip.Addr{plan.APIServer, plan.DNS} {
		if err := l.addLocal(a); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// refusal is a route that makes the load balancer's addresses this namespace's own, assigned or not, so that
// connections to one that does not answer are refused at once. What is merely unreachable is not told that reliably: the
// kernel sends one source a few such messages in a row and then one a second, and who connects would wait for that.
func (l *links) refusal() *netlink.Route {
	return &netlink.Route{
		LinkIndex: l.lo.Attrs().Index, Type: unix.RTN_LOCAL, Table: unix.RT_TABLE_LOCAL, Scope: netlink.SCOPE_HOST,
		Dst: &net.IPNet{IP: l.plan.LBRange.Masked().Addr().AsSlice(), Mask: net.CIDRMask(l.plan.LBRange.Bits(), 32)},
	}
}

// nowhere is the number of a routing table in which everything is unreachable.
const nowhere = 100

// forwardNothing makes addresses of this namespace all that pods and the outside host reach through it. Packets between
// them would arrive, but their answers would not.
func (l *links) forwardNothing() error {
	route := defaultRoute(unix.RTN_UNREACHABLE)
	route.Table = nowhere
	if err := netlink.RouteReplace(route); err != nil {
		return fmt.Errorf("cannot make default route: %w", err)
	}
	for _, r := range forwardRules() {
		if err := netlink.RuleAdd(r); err != nil {
			return fmt.Errorf("cannot make routing rule: %w", err)
		}
	}
	return nil
}

// forwardRules send what comes from outside this namespace nowhere, if it is not for an address of it.
func forwardRules() []*netlink.Rule {
	var rules []*netlink.Rule
	for _, name := range []string{bridgeName, outsideName} {
		r := netlink.NewRule()
		r.IifName, r.Table, r.Priority, r.Family = name, nowhere, 100, unix.AF_INET
		rules = append(rules, r)
	}
	return rules
}

// defaultRoute is a route of the given type to everywhere.
func defaultRoute(kind int) *netlink.Route {
	return &netlink.Route{Type: kind, Dst: &net.IPNet{IP: net.IPv4zero, Mask: net.CIDRMask(0, 32)}}
}

// hardwareAddr derives a link's address from an IP, so that what others have cached about an IP stays true when the pod is
// made again.
func hardwareAddr(a netip.Addr) net.HardwareAddr {
	b := a.As4()
	return net.HardwareAddr{0x02, 0x42, b[0], b[1], b[2], b[3]}
}

// addAddress gives an address to a link, in the namespace of h or in this one.
func addAddress(h *netlink.Handle, link netlink.Link, a netip.Addr, bits int) error {
	address := &netlink.Addr{IPNet: &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(bits, a.BitLen())}}
	var err error
	if h != nil {
		err = h.AddrAdd(link, address)
	} else {
		err = netlink.AddrAdd(link, address)
	}
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("cannot add address %s: %w", a, err)
	}
	return nil
}

// addLocal makes an address one of this namespace's own, so that connections to it are accepted or refused here.
func (l *links) addLocal(a netip.Addr) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.local[a] {
		return nil
	}
	if err := addAddress(nil, l.lo, a, a.BitLen()); err != nil {
		return err
	}
	l.local[a] = true
	return nil
}

// removeLocal takes an address away; it is unreachable then.
func (l *links) removeLocal(a netip.Addr) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.local[a] {
		return nil
	}
	address := &netlink.Addr{IPNet: &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(a.BitLen(), a.BitLen())}}
	if err := netlink.AddrDel(l.lo, address); err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
		return fmt.Errorf("cannot remove address %s: %w", a, err)
	}
	delete(l.local, a)
	return nil
}

// localAddresses returns the addresses given by addLocal.
func (l *links) localAddresses() []netip.Addr {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]netip.Addr, 0, len(l.local))
	for a := range l.local {
		all = append(all, a)
	}
	return all
}

// end describes one end of a veth pair.
type end struct {
	pid     int
	address netip.Addr
	bits    int
	routes  []*netlink.Route
}

// attachPod connects a pod to the bridge.
func (l *links) attachPod(pid int, a netip.Addr) error {
	if !l.plan.Pods.Contains(a) {
		return fmt.Errorf("cannot attach pod: %s is not in the pod network %s", a, l.plan.Pods)
	}
	gateway := l.plan.Pods.Masked().Addr().Next()
	route := defaultRoute(unix.RTN_UNICAST)
	route.Gw = gateway.AsSlice()
	return l.attach(podLink(a), l.bridge.Attrs().Index, end{
		pid: pid, address: a, bits: l.plan.Pods.Bits(), routes: []*netlink.Route{route},
	})
}

// podLink is the name of the bridge's end of a pod's link.
func podLink(a netip.Addr) string {
	b := a.As4()
	return fmt.Sprintf("pod%02x%02x%02x%02x", b[0], b[1], b[2], b[3])
}

// attach makes a veth pair with one end here and eth0 in the namespace of a process.
func (l *links) attach(name string, master int, e end) error {
	l.detach(name)
	veth := &netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: name, MasterIndex: master}, PeerName: "eth0",
		PeerNamespace: netlink.NsPid(e.pid), PeerHardwareAddr: hardwareAddr(e.address),
	}
	if err := netlink.LinkAdd(veth); err != nil {
		return fmt.Errorf("cannot make link %s: %w", name, err)
	}
	if err := netlink.LinkSetUp(veth); err != nil {
		return fmt.Errorf("cannot bring up link %s: %w", name, err)
	}
	ns, err := netns.GetFromPid(e.pid)
	if err != nil {
		return fmt.Errorf("cannot enter network of process %d: %w", e.pid, err)
	}
	defer ns.Close()
	h, err := netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("cannot enter network of process %d: %w", e.pid, err)
	}
	defer h.Close()
	return e.configure(h)
}

// configure sets up the inner end of a pair.
func (e end) configure(h *netlink.Handle) error {
	for _, name := range []string{"lo", "eth0"} {
		link, err := h.LinkByName(name)
		if err != nil {
			return fmt.Errorf("cannot find %s: %w", name, err)
		}
		if name == "eth0" {
			if err := addAddress(h, link, e.address, e.bits); err != nil {
				return err
			}
		}
		if err := h.LinkSetUp(link); err != nil {
			return fmt.Errorf("cannot bring up %s: %w", name, err)
		}
	}
	for _, r := range e.routes {
		if err := h.RouteAdd(r); err != nil {
			return fmt.Errorf("cannot add route: %w", err)
		}
	}
	return nil
}

// detach removes a link; one that is not there is no error.
func (l *links) detach(name string) {
	if link, err := netlink.LinkByName(name); err == nil {
		_ = netlink.LinkDel(link) // it goes with its namespace otherwise
	}
}

// close removes what newLinks and addLocal made.
func (l *links) close() error {
	var errs []error
	l.mu.Lock()
	l.outside.close()
	l.outside = outsideHost{}
	l.mu.Unlock()
	for _, a := range l.localAddresses() {
		errs = append(errs, l.removeLocal(a))
	}
	for _, r := range forwardRules() {
		errs = append(errs, netlink.RuleDel(r))
	}
	return errors.Join(append(errs, netlink.RouteDel(l.refusal()), netlink.RouteDel(defaultRoute(unix.RTN_UNREACHABLE)), netlink.LinkDel(l.bridge))...)
}

// AllocatePodIP returns a pod address that is not in use, or prefer if that is free.
func (n *Network) AllocatePodIP(prefer netip.Addr) (netip.Addr, error) {
	l := n.links
	l.mu.Lock()
	defer l.mu.Unlock()
	gateway := l.plan.Pods.Masked().Addr().Next()
	if prefer.IsValid() && l.plan.Pods.Contains(prefer) && prefer != gateway && !l.pods[prefer] {
		l.pods[prefer] = true
		return prefer, nil
	}
	for range 1 << (32 - l.plan.Pods.Bits()) {
		l.last = l.last.Next()
		if !l.plan.Pods.Contains(l.last.Next()) { // the last one is for broadcasts
			l.last = gateway.Next()
		}
		if !l.pods[l.last] && l.last != gateway {
			l.pods[l.last] = true
			return l.last, nil
		}
	}
	return netip.Addr{}, errors.New("cannot allocate a pod address: the pod network is full")
}

// ReleasePodIP gives back an address of AllocatePodIP.
func (n *Network) ReleasePodIP(a netip.Addr) {
	n.links.mu.Lock()
	defer n.links.mu.Unlock()
	delete(n.links.pods, a)
}

// tuneNamespace sets what the network needs of this namespace; it is repeated here so that the package does not
// depend on who made the namespace.
func tuneNamespace() error {
	for file, value := range map[string]string{"ip_forward": "1", "icmp_ratelimit": "0"} {
		if err := os.WriteFile("/proc/sys/net/ipv4/"+file, []byte(value), 0o644); err != nil {
			return fmt.Errorf("cannot set %s: %w", file, err)
		}
	}
	return nil
}
