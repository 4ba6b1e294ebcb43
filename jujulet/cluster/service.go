// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// stickySeconds is how long a session sticks to a pod by default.
const stickySeconds = 10800

// defaultService sets what a Service has when nobody says otherwise.
func defaultService(s *corev1.Service) {
	sp := &s.Spec
	if sp.Type == "" {
		sp.Type = corev1.ServiceTypeClusterIP
	}
	if sp.SessionAffinity == "" {
		sp.SessionAffinity = corev1.ServiceAffinityNone
	}
	switch sp.SessionAffinity {
	case corev1.ServiceAffinityNone:
		sp.SessionAffinityConfig = nil
	case corev1.ServiceAffinityClientIP:
		if sp.SessionAffinityConfig == nil || sp.SessionAffinityConfig.ClientIP == nil || sp.SessionAffinityConfig.ClientIP.TimeoutSeconds == nil {
			seconds := int32(stickySeconds)
			sp.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: &seconds}}
		}
	}
	for i := range sp.Ports {
		p := &sp.Ports[i]
		if p.Protocol == "" {
			p.Protocol = corev1.ProtocolTCP
		}
		if p.TargetPort == (intstr.IntOrString{}) || p.TargetPort == intstr.FromString("") {
			p.TargetPort = intstr.FromInt32(p.Port)
		}
	}
	if fromOutside(s) && sp.ExternalTrafficPolicy == "" {
		sp.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster
	}
	if hasClusterIP(s) && sp.InternalTrafficPolicy == nil {
		policy := corev1.ServiceInternalTrafficPolicyCluster
		sp.InternalTrafficPolicy = &policy
	}
	if sp.Type == corev1.ServiceTypeLoadBalancer {
		if sp.AllocateLoadBalancerNodePorts == nil {
			yes := true
			sp.AllocateLoadBalancerNodePorts = &yes
		}
		for i := range s.Status.LoadBalancer.Ingress {
			if in := &s.Status.LoadBalancer.Ingress[i]; in.IP != "" && in.IPMode == nil {
				vip := corev1.LoadBalancerIPModeVIP
				in.IPMode = &vip
			}
		}
	}
}

// The questions that the rules about allocated fields ask of a Service.

func isLoadBalancer(s *corev1.Service) bool { return s.Spec.Type == corev1.ServiceTypeLoadBalancer }

func isHeadless(s *corev1.Service) bool {
	return s.Spec.ClusterIP == corev1.ClusterIPNone || len(s.Spec.ClusterIPs) == 1 && s.Spec.ClusterIPs[0] == corev1.ClusterIPNone
}

func hasClusterIP(s *corev1.Service) bool { return s.Spec.Type != corev1.ServiceTypeExternalName }

func fromOutside(s *corev1.Service) bool {
	return isLoadBalancer(s) || s.Spec.Type == corev1.ServiceTypeNodePort ||
		s.Spec.Type == corev1.ServiceTypeClusterIP && len(s.Spec.ExternalIPs) > 0
}

// mayHaveNodePorts: NodePort, and LoadBalancer whatever its allocate flag says.
func mayHaveNodePorts(s *corev1.Service) bool {
	return isLoadBalancer(s) || s.Spec.Type == corev1.ServiceTypeNodePort
}

// wantsNodePorts: each port without a number must get one.
func wantsNodePorts(s *corev1.Service) bool {
	if s.Spec.Type == corev1.ServiceTypeNodePort {
		return true
	}
	return isLoadBalancer(s) && (s.Spec.AllocateLoadBalancerNodePorts == nil || *s.Spec.AllocateLoadBalancerNodePorts)
}

func wantsHealthPort(s *corev1.Service) bool {
	return isLoadBalancer(s) && s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}

// prepareService keeps the allocated values that the new state does not mention, and wipes what its
// type may not have when it is an unchanged leftover of the old type.
func prepareService(next, live *corev1.Service) {
	alignClusterIPs(next, live)
	if live == nil {
		return
	}
	keepAllocated(next, live)
	wipeLeftovers(next, live)
	if !isLoadBalancer(next) {
		next.Status.LoadBalancer = corev1.LoadBalancerStatus{}
	}
}

// alignClusterIPs lets clusterIP and clusterIPs follow each other when a client knows only the first.
func alignClusterIPs(next, live *corev1.Service) {
	n := &next.Spec
	if live == nil {
		if n.ClusterIP != "" && len(n.ClusterIPs) == 0 {
			n.ClusterIPs = []string{n.ClusterIP}
		}
		return
	}
	if n.ClusterIP == live.Spec.ClusterIP || !slices.Equal(n.ClusterIPs, live.Spec.ClusterIPs) {
		return
	}
	switch {
	case n.ClusterIP == "":
		n.ClusterIPs = nil
	case len(n.ClusterIPs) == 0:
		n.ClusterIPs = []string{n.ClusterIP}
	default:
		n.ClusterIPs = slices.Clone(n.ClusterIPs)
		n.ClusterIPs[0] = n.ClusterIP
	}
}

func keepAllocated(next, live *corev1.Service) {
	n, l := &next.Spec, &live.Spec
	if hasClusterIP(next) && hasClusterIP(live) {
		if n.ClusterIP == "" {
			n.ClusterIP = l.ClusterIP
		}
		if len(n.ClusterIPs) == 0 && n.ClusterIP == l.ClusterIP {
			n.ClusterIPs = slices.Clone(l.ClusterIPs)
		}
		if n.IPFamilyPolicy == nil {
			n.IPFamilyPolicy = l.IPFamilyPolicy
		}
		if len(n.IPFamilies) == 0 {
			n.IPFamilies = slices.Clone(l.IPFamilies)
		}
	}
	if mayHaveNodePorts(next) && mayHaveNodePorts(live) && wantsNodePorts(next) {
		keepNodePorts(n, l)
	}
	if wantsHealthPort(next) && wantsHealthPort(live) && n.HealthCheckNodePort == 0 {
		n.HealthCheckNodePort = l.HealthCheckNodePort
	}
}

// keepNodePorts gives a port without a number the one that a port of the same name had, unless the new
// state uses that number elsewhere.
func keepNodePorts(n, l *corev1.ServiceSpec) {
	byName := map[string]int32{}
	for _, p := range l.Ports {
		byName[p.Name] = p.NodePort
	}
	used := map[int32]bool{0: true}
	for _, p := range n.Ports {
		used[p.NodePort] = true
	}
	for i := range n.Ports {
		p := &n.Ports[i]
		if old := byName[p.Name]; p.NodePort == 0 && !used[old] {
			p.NodePort = old
			used[old] = true
		}
	}
}

func wipeLeftovers(next, live *corev1.Service) {
	n, l := &next.Spec, &live.Spec
	if hasClusterIP(live) && !hasClusterIP(next) {
		if n.ClusterIP == l.ClusterIP && slices.Equal(n.ClusterIPs, l.ClusterIPs) {
			n.ClusterIP, n.ClusterIPs = "", nil
		}
		if slices.Equal(n.IPFamilies, l.IPFamilies) {
			n.IPFamilies = nil
		}
		if samePointed(n.IPFamilyPolicy, l.IPFamilyPolicy) {
			n.IPFamilyPolicy = nil
		}
		if samePointed(n.InternalTrafficPolicy, l.InternalTrafficPolicy) {
			n.InternalTrafficPolicy = nil
		}
	}
	if mayHaveNodePorts(live) && !mayHaveNodePorts(next) && !hasNewNodePorts(n, l) {
		for i := range n.Ports {
			n.Ports[i].NodePort = 0
		}
	}
	if wantsHealthPort(live) && !wantsHealthPort(next) && n.HealthCheckNodePort == l.HealthCheckNodePort {
		n.HealthCheckNodePort = 0
	}
	if isLoadBalancer(live) && !isLoadBalancer(next) {
		if samePointed(n.AllocateLoadBalancerNodePorts, l.AllocateLoadBalancerNodePorts) {
			n.AllocateLoadBalancerNodePorts = nil
		}
		if samePointed(n.LoadBalancerClass, l.LoadBalancerClass) {
			n.LoadBalancerClass = nil
		}
	}
	if fromOutside(live) && !fromOutside(next) && n.ExternalTrafficPolicy == l.ExternalTrafficPolicy {
		n.ExternalTrafficPolicy = ""
	}
}

// hasNewNodePorts: next asks for a number that live does not have.
func hasNewNodePorts(n, l *corev1.ServiceSpec) bool {
	old := map[int32]bool{0: true}
	for _, p := range l.Ports {
		old[p.NodePort] = true
	}
	return slices.ContainsFunc(n.Ports, func(p corev1.ServicePort) bool { return !old[p.NodePort] })
}

func samePointed[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
