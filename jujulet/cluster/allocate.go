// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cluster

import (
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// staticPorts and staticAddresses are the low ends of the ranges, which Kubernetes leaves to those who
// ask for a number by name: nothing there is given out before the rest is used up.
const (
	staticPorts     = 86
	staticAddresses = 16
)

// ranges are the numbers that Services get. The next free number after the last one given is given,
// so that a number that was let go does not come back at once.
type ranges struct {
	prefix                netip.Prefix
	reserved              map[netip.Addr]bool
	firstPort, lastPort   int32
	portCursor, ipCursor  int64
	portsTotal, addresses int64
}

func newRanges(o Options) (*ranges, error) {
	prefix, err := netip.ParsePrefix(o.ServiceCIDR)
	if err != nil || !prefix.Addr().Is4() || prefix.Bits() > 28 || prefix.Bits() < 8 {
		return nil, fmt.Errorf("cannot use service range %q: an IPv4 prefix of 8 to 28 bits is needed", o.ServiceCIDR)
	}
	r := &ranges{prefix: prefix.Masked(), reserved: map[netip.Addr]bool{}, firstPort: o.NodePortFirst, lastPort: o.NodePortLast}
	if r.firstPort < 1 || r.lastPort > 65535 || r.lastPort < r.firstPort {
		return nil, fmt.Errorf("cannot use node ports %d-%d", r.firstPort, r.lastPort)
	}
	r.portsTotal = int64(r.lastPort-r.firstPort) + 1
	r.addresses = int64(1)<<(32-r.prefix.Bits()) - 2
	r.portCursor = min(staticPorts, r.portsTotal/2)
	r.ipCursor = min(staticAddresses, r.addresses/2)
	for _, text := range o.Reserved {
		a, err := netip.ParseAddr(text)
		if err != nil {
			return nil, fmt.Errorf("cannot reserve %q: %w", text, err)
		}
		r.reserved[a] = true
	}
	return r, nil
}

// address is the n-th address of the service range, from 1.
func (r *ranges) address(n int64) netip.Addr {
	b := r.prefix.Addr().As4()
	v := uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
	v += uint32(n)
	return netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)})
}

// taken is what all Services but the one that is being changed hold.
type taken struct {
	ports     map[int32]bool
	addresses map[string]bool
}

func (s *Server) takenExcept(changed *corev1.Service) taken {
	t := taken{ports: map[int32]bool{}, addresses: map[string]bool{}}
	for _, o := range s.store.objects[Service] {
		svc := o.(*corev1.Service)
		if changed != nil && svc.UID == changed.UID {
			continue
		}
		for _, p := range svc.Spec.Ports {
			t.ports[p.NodePort] = true
		}
		t.ports[svc.Spec.HealthCheckNodePort] = true
		for _, ip := range svc.Spec.ClusterIPs {
			t.addresses[ip] = true
		}
	}
	delete(t.ports, 0)
	delete(t.addresses, corev1.ClusterIPNone)
	return t
}

// allocate gives a Service its addresses and node ports. All that was asked for by number is checked
// before anything is given out. Objects of other kinds need nothing.
func (s *Server) allocate(next, live Object) error {
	svc, ok := next.(*corev1.Service)
	if !ok {
		return nil
	}
	old, _ := live.(*corev1.Service)
	held := s.takenExcept(old)
	errs := s.familyErrors(svc)
	errs = append(errs, s.ranges.checkAddress(svc, old, held)...)
	errs = append(errs, s.ranges.checkPorts(svc, old, held)...)
	if len(errs) > 0 {
		return apierrors.NewInvalid(s.rules.byKind[Service].gvk.GroupKind(), svc.Name, errs)
	}
	if err := s.ranges.giveAddress(svc, held); err != nil {
		return apierrors.NewInternalError(err)
	}
	if err := s.ranges.givePorts(svc, held); err != nil {
		return apierrors.NewInternalError(err)
	}
	return nil
}

// familyErrors refuses dual stack, which this cluster does not have, except where Kubernetes accepts it
// without asking: headless Services without a selector.
func (s *Server) familyErrors(svc *corev1.Service) field.ErrorList {
	p := svc.Spec.IPFamilyPolicy
	if !hasClusterIP(svc) || p == nil || *p != corev1.IPFamilyPolicyRequireDualStack || isHeadless(svc) && len(svc.Spec.Selector) == 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec", "ipFamilyPolicy"), *p, "this cluster is not configured for dual-stack services")}
}

func (r *ranges) checkAddress(svc, old *corev1.Service, held taken) field.ErrorList {
	ip := svc.Spec.ClusterIP
	if !hasClusterIP(svc) || ip == "" || isHeadless(svc) || old != nil && old.Spec.ClusterIP == ip {
		return nil
	}
	path := field.NewPath("spec", "clusterIPs")
	addr, err := netip.ParseAddr(ip)
	switch {
	case err != nil || !r.prefix.Contains(addr):
		return field.ErrorList{field.Invalid(path, svc.Spec.ClusterIPs, fmt.Sprintf(
			"failed to allocate IP %s: the provided IP (%s) is not in the valid range. The range of valid IPs is %s", ip, ip, r.prefix))}
	case held.addresses[ip]:
		return field.ErrorList{field.Invalid(path, svc.Spec.ClusterIPs, fmt.Sprintf("failed to allocate IP %s: provided IP is already allocated", ip))}
	}
	return nil
}

// checkPorts looks at the node ports that were asked for by number, in the order of the list.
func (r *ranges) checkPorts(svc, old *corev1.Service, held taken) field.ErrorList {
	if !mayHaveNodePorts(svc) {
		return nil
	}
	mine := map[int32]bool{}
	if old != nil {
		for _, p := range old.Spec.Ports {
			mine[p.NodePort] = true
		}
	}
	type use struct {
		protocol corev1.Protocol
		port     int32
	}
	seen := map[int32]use{}
	var errs field.ErrorList
	for i, p := range svc.Spec.Ports {
		if p.NodePort == 0 {
			continue
		}
		path := field.NewPath("spec", "ports").Index(i).Child("nodePort")
		first, twice := seen[p.NodePort]
		switch {
		case (p.NodePort < r.firstPort || p.NodePort > r.lastPort) && !mine[p.NodePort]:
			errs = append(errs, field.Invalid(path, p.NodePort, fmt.Sprintf(
				"provided port is not in the valid range. The range of valid ports is %d-%d", r.firstPort, r.lastPort)))
		case held.ports[p.NodePort], twice && (first.protocol == p.Protocol || first.port != p.Port):
			errs = append(errs, field.Invalid(path, p.NodePort, "provided port is already allocated"))
		}
		if !twice {
			seen[p.NodePort] = use{p.Protocol, p.Port}
		}
	}
	if h := svc.Spec.HealthCheckNodePort; h != 0 && (held.ports[h] || seen[h] != use{}) {
		errs = append(errs, field.Invalid(field.NewPath("spec", "healthCheckNodePort"), h, "provided port is already allocated"))
	}
	return errs
}

func (r *ranges) giveAddress(svc *corev1.Service, held taken) error {
	sp := &svc.Spec
	if !hasClusterIP(svc) {
		return nil
	}
	giveFamilies(svc)
	if sp.ClusterIP != "" {
		return nil
	}
	for range r.addresses {
		r.ipCursor = r.ipCursor%r.addresses + 1
		a := r.address(r.ipCursor)
		if held.addresses[a.String()] || r.reserved[a] {
			continue
		}
		sp.ClusterIP, sp.ClusterIPs = a.String(), []string{a.String()}
		return nil
	}
	return fmt.Errorf("failed to allocate a serviceIP: range is full")
}

// giveFamilies fills the address family, with what a single-stack IPv4 cluster answers.
func giveFamilies(svc *corev1.Service) {
	policy, families := corev1.IPFamilyPolicySingleStack, []corev1.IPFamily{corev1.IPv4Protocol}
	if isHeadless(svc) && len(svc.Spec.Selector) == 0 && len(svc.Spec.IPFamilies) == 0 {
		policy, families = corev1.IPFamilyPolicyRequireDualStack, []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
	}
	if svc.Spec.IPFamilyPolicy == nil {
		svc.Spec.IPFamilyPolicy = &policy
	}
	if len(svc.Spec.IPFamilies) == 0 {
		svc.Spec.IPFamilies = families
	}
}

func (r *ranges) givePorts(svc *corev1.Service, held taken) error {
	for _, p := range svc.Spec.Ports {
		held.ports[p.NodePort] = true
	}
	held.ports[svc.Spec.HealthCheckNodePort] = true
	if wantsNodePorts(svc) {
		for i := range svc.Spec.Ports {
			p := &svc.Spec.Ports[i]
			if p.NodePort != 0 {
				continue
			}
			n, err := r.freePort(held)
			if err != nil {
				return err
			}
			p.NodePort = n
		}
	}
	if wantsHealthPort(svc) && svc.Spec.HealthCheckNodePort == 0 {
		n, err := r.freePort(held)
		if err != nil {
			return err
		}
		svc.Spec.HealthCheckNodePort = n
	}
	return nil
}

// freePort gives out the next free node port and marks it as held.
func (r *ranges) freePort(held taken) (int32, error) {
	for range r.portsTotal {
		n := r.firstPort + int32(r.portCursor%r.portsTotal)
		r.portCursor++
		if !held.ports[n] {
			held.ports[n] = true
			return n, nil
		}
	}
	return 0, fmt.Errorf("failed to allocate a nodePort: range is full")
}
