// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package network

import (
	"cmp"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// state is what the API holds, in the form that proxy and DNS need. It is built anew at each change.
type state struct {
	plan      Plan
	services  []corev1.Service
	endpoints map[key][]discoveryv1.EndpointSlice
	nodes     []corev1.Node
	balancers map[key][]netip.Addr // addresses of the load balancer that answer
}

// key names an object.
type key struct{ namespace, name string }

// less orders keys.
func (k key) compare(o key) int {
	return cmp.Or(cmp.Compare(k.namespace, o.namespace), cmp.Compare(k.name, o.name))
}

// listener is one open port of the proxy.
type listener struct {
	at       netip.AddrPort
	backends []netip.AddrPort
	// sources are the networks that may connect; none means all.
	sources []netip.Prefix
}

// newState sorts what was listed.
func newState(plan Plan, services []corev1.Service, es []discoveryv1.EndpointSlice, nodes []corev1.Node) *state {
	s := &state{plan: plan, services: services, endpoints: map[key][]discoveryv1.EndpointSlice{}, nodes: nodes}
	for _, e := range es {
		k := key{e.Namespace, e.Labels[discoveryv1.LabelServiceName]}
		s.endpoints[k] = append(s.endpoints[k], e)
	}
	slices.SortFunc(s.services, func(a, b corev1.Service) int { return keyOf(&a).compare(keyOf(&b)) })
	return s
}

// keyOf returns a Service's key.
func keyOf(s *corev1.Service) key { return key{s.Namespace, s.Name} }

// ready tells whether an endpoint takes connections.
func ready(e discoveryv1.Endpoint) bool { return e.Conditions.Ready == nil || *e.Conditions.Ready }

// clusterIP returns the Service's own address, if it has one.
func clusterIP(s *corev1.Service) (netip.Addr, bool) {
	if s.Spec.Type == corev1.ServiceTypeExternalName || s.Spec.ClusterIP == corev1.ClusterIPNone {
		return netip.Addr{}, false
	}
	a, err := netip.ParseAddr(s.Spec.ClusterIP)
	return a, err == nil && a.Is4()
}

// backends returns the ready endpoints of a Service's port, only those on node if that is not empty.
func (s *state) backends(svc *corev1.Service, port corev1.ServicePort, node string) []netip.AddrPort {
	var all []netip.AddrPort
	for _, es := range s.endpoints[keyOf(svc)] {
		number := slicePort(es, port)
		if number == 0 {
			continue
		}
		for _, e := range es.Endpoints {
			if !ready(e) || node != "" && (e.NodeName == nil || *e.NodeName != node) {
				continue
			}
			for _, text := range e.Addresses {
				if a, err := netip.ParseAddr(text); err == nil {
					all = append(all, netip.AddrPortFrom(a, number))
				}
			}
		}
	}
	slices.SortFunc(all, netip.AddrPort.Compare)
	return slices.Compact(all)
}

// slicePort returns the number of a Service's TCP port in an endpoint slice, or 0.
func slicePort(es discoveryv1.EndpointSlice, port corev1.ServicePort) uint16 {
	for _, p := range es.Ports {
		name := ""
		if p.Name != nil {
			name = *p.Name
		}
		if name == port.Name && p.Port != nil && (p.Protocol == nil || *p.Protocol == corev1.ProtocolTCP) {
			return uint16(*p.Port)
		}
	}
	return 0
}

// listeners returns the ports that the proxy must have open: those with a ready endpoint.
func (s *state) listeners() []listener {
	var all []listener
	add := func(a netip.Addr, number int32, backends []netip.AddrPort, sources []netip.Prefix) {
		if number > 0 && len(backends) > 0 {
			all = append(all, listener{netip.AddrPortFrom(a, uint16(number)), backends, sources})
		}
	}
	for i := range s.services {
		svc := &s.services[i]
		own, ok := clusterIP(svc)
		if !ok || own == s.plan.APIServer || own == s.plan.DNS {
			continue
		}
		local := svc.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
		for _, port := range svc.Spec.Ports {
			if port.Protocol != "" && port.Protocol != corev1.ProtocolTCP {
				continue
			}
			everywhere := s.backends(svc, port, "")
			add(own, port.Port, everywhere, nil)
			if hasNodePorts(svc) {
				for _, node := range s.nodes {
					backends := everywhere
					if local {
						backends = s.backends(svc, port, node.Name)
					}
					for _, a := range nodeAddresses(node) {
						add(a, port.NodePort, backends, nil)
					}
				}
			}
			for _, a := range s.balancers[keyOf(svc)] {
				add(a, port.Port, everywhere, sourceRanges(svc))
			}
		}
	}
	return all
}

// hasNodePorts tells whether a Service is reachable through the nodes.
func hasNodePorts(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeNodePort || s.Spec.Type == corev1.ServiceTypeLoadBalancer
}

// sourceRanges returns the networks that may use a load balancer's address; none means all.
func sourceRanges(s *corev1.Service) []netip.Prefix {
	var all []netip.Prefix
	for _, text := range s.Spec.LoadBalancerSourceRanges {
		p, err := netip.ParsePrefix(text)
		switch {
		case err != nil || !p.Addr().Is4():
			all = append(all, noPrefix)
		case p.Bits() == 0:
			return nil
		default:
			all = append(all, p.Masked())
		}
	}
	return all
}

// noPrefix is a network that no connection comes from.
var noPrefix = netip.MustParsePrefix("255.255.255.255/32")

// nodeAddresses returns the IPs of a node.
func nodeAddresses(n corev1.Node) []netip.Addr {
	var all []netip.Addr
	for _, na := range n.Status.Addresses {
		if na.Type != corev1.NodeInternalIP && na.Type != corev1.NodeExternalIP {
			continue
		}
		if a, err := netip.ParseAddr(na.Address); err == nil && a.Is4() {
			all = append(all, a)
		}
	}
	return all
}

// addresses returns all addresses that must exist.
func (s *state) addresses() []netip.Addr {
	all := []netip.Addr{s.plan.APIServer, s.plan.DNS}
	for i := range s.services {
		if a, ok := clusterIP(&s.services[i]); ok {
			all = append(all, a)
		}
		all = append(all, s.balancers[keyOf(&s.services[i])]...)
	}
	return append(all, s.nodeAddresses()...)
}

// nodeAddresses returns the IPs of all nodes.
func (s *state) nodeAddresses() []netip.Addr {
	var all []netip.Addr
	for _, n := range s.nodes {
		all = append(all, nodeAddresses(n)...)
	}
	return all
}
