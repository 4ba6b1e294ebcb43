// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cluster

import (
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// onlyLoadBalancer is the answer to a field that belongs to type LoadBalancer.
const onlyLoadBalancer = "may only be used when `type` is 'LoadBalancer'"

// kubeletPort must not be exposed through a load balancer.
const kubeletPort = 10250

// validateService checks a Service after keep and wipe and before allocation.
func validateService(next, live *corev1.Service) field.ErrorList {
	spec := field.NewPath("spec")
	var errs field.ErrorList
	errs = append(errs, validateServiceType(next, spec)...)
	errs = append(errs, validateServicePorts(next, spec.Child("ports"))...)
	errs = append(errs, metavalidation.ValidateLabels(next.Spec.Selector, spec.Child("selector"))...)
	errs = append(errs, validateAffinity(&next.Spec, spec)...)
	errs = append(errs, validateClusterIPs(next, spec)...)
	for i, ip := range next.Spec.ExternalIPs {
		errs = append(errs, validation.IsValidIPForLegacyField(spec.Child("externalIPs").Index(i), ip, true, nil)...)
	}
	errs = append(errs, validateLoadBalancerFields(next, spec)...)
	errs = append(errs, validatePolicies(next, spec)...)
	if live != nil {
		errs = append(errs, validateServiceChange(next, live, spec)...)
	}
	return errs
}

func validateServiceType(s *corev1.Service, spec *field.Path) field.ErrorList {
	var errs field.ErrorList
	headless := field.Invalid(spec.Child("clusterIPs").Index(0), corev1.ClusterIPNone,
		"may not be set to 'None' for "+string(s.Spec.Type)+" services")
	switch s.Spec.Type {
	case corev1.ServiceTypeClusterIP:
	case corev1.ServiceTypeNodePort:
		if isHeadless(s) {
			errs = append(errs, headless)
		}
	case corev1.ServiceTypeLoadBalancer:
		for i, p := range s.Spec.Ports {
			if p.Port == kubeletPort {
				errs = append(errs, field.Invalid(spec.Child("ports").Index(i), p.Port, "may not expose port 10250 externally since it is used by kubelet"))
			}
		}
		if isHeadless(s) {
			errs = append(errs, headless)
		}
	case corev1.ServiceTypeExternalName:
		if len(s.Spec.ClusterIPs) > 0 {
			errs = append(errs, field.Forbidden(spec.Child("clusterIPs"), "may not be set for ExternalName services"))
		}
		if s.Spec.ExternalName == "" {
			return append(errs, field.Required(spec.Child("externalName"), ""))
		}
		for _, msg := range validation.IsDNS1123Subdomain(strings.TrimSuffix(s.Spec.ExternalName, ".")) {
			errs = append(errs, field.Invalid(spec.Child("externalName"), s.Spec.ExternalName, msg))
		}
	default:
		errs = append(errs, field.NotSupported(spec.Child("type"), s.Spec.Type, []corev1.ServiceType{
			corev1.ServiceTypeClusterIP, corev1.ServiceTypeExternalName, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort}))
	}
	return errs
}

func validateServicePorts(s *corev1.Service, path *field.Path) field.ErrorList {
	ports := s.Spec.Ports
	if len(ports) == 0 && !isHeadless(s) && s.Spec.Type != corev1.ServiceTypeExternalName {
		return field.ErrorList{field.Required(path, "")}
	}
	var errs field.ErrorList
	names := sets.New[string]()
	type number struct {
		Protocol corev1.Protocol
		Port     int32
	}
	numbers := sets.New[number]()
	for i := range ports {
		p, at := &ports[i], path.Index(i)
		errs = append(errs, validatePortName(p.Name, len(ports) > 1, names, at.Child("name"))...)
		for _, msg := range validation.IsValidPortNum(int(p.Port)) {
			errs = append(errs, field.Invalid(at.Child("port"), p.Port, msg))
		}
		if !slices.Contains(protocols, p.Protocol) {
			errs = append(errs, field.NotSupported(at.Child("protocol"), p.Protocol, protocols))
		}
		errs = append(errs, validateTargetPort(p.TargetPort, at.Child("targetPort"))...)
		if p.AppProtocol != nil {
			for _, msg := range validation.IsQualifiedName(*p.AppProtocol) {
				errs = append(errs, field.Invalid(at.Child("appProtocol"), *p.AppProtocol, msg))
			}
		}
		if s.Spec.Type == corev1.ServiceTypeClusterIP && p.NodePort != 0 {
			errs = append(errs, field.Forbidden(at.Child("nodePort"), "may not be used when `type` is 'ClusterIP'"))
		}
		key := number{p.Protocol, p.Port}
		if numbers.Has(key) {
			errs = append(errs, field.Duplicate(at, corev1.ServicePort{Protocol: p.Protocol, Port: p.Port}))
		}
		numbers.Insert(key)
	}
	return errs
}

// protocols are those that a port may have, in the order of error texts.
var protocols = []corev1.Protocol{corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP}

func validatePortName(name string, required bool, seen sets.Set[string], path *field.Path) field.ErrorList {
	if name == "" {
		if required {
			return field.ErrorList{field.Required(path, "")}
		}
		return nil
	}
	var errs field.ErrorList
	for _, msg := range validation.IsDNS1123Label(name) {
		errs = append(errs, field.Invalid(path, name, msg))
	}
	if seen.Has(name) {
		errs = append(errs, field.Duplicate(path, name))
	}
	seen.Insert(name)
	return errs
}

func validateTargetPort(p intstr.IntOrString, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if p.Type == intstr.Int {
		for _, msg := range validation.IsValidPortNum(p.IntValue()) {
			errs = append(errs, field.Invalid(path, p.IntValue(), msg))
		}
		return errs
	}
	for _, msg := range validation.IsValidPortName(p.StrVal) {
		errs = append(errs, field.Invalid(path, p.StrVal, msg))
	}
	return errs
}

func validateAffinity(sp *corev1.ServiceSpec, spec *field.Path) field.ErrorList {
	known := []corev1.ServiceAffinity{corev1.ServiceAffinityClientIP, corev1.ServiceAffinityNone}
	if !slices.Contains(known, sp.SessionAffinity) {
		return field.ErrorList{field.NotSupported(spec.Child("sessionAffinity"), sp.SessionAffinity, known)}
	}
	return nil
}

// validateClusterIPs checks the addresses and the address family of a single-stack IPv4 cluster.
func validateClusterIPs(s *corev1.Service, spec *field.Path) field.ErrorList {
	sp, path := &s.Spec, spec.Child("clusterIPs")
	if !hasClusterIP(s) {
		return nil
	}
	var errs field.ErrorList
	if len(sp.ClusterIPs) > 0 && sp.ClusterIPs[0] != sp.ClusterIP {
		errs = append(errs, field.Invalid(path, sp.ClusterIPs, "first value must match `clusterIP`"))
	}
	if len(sp.ClusterIPs) == 0 && sp.ClusterIP != "" {
		errs = append(errs, field.Required(path, ""))
	}
	for i, ip := range sp.ClusterIPs {
		if ip == corev1.ClusterIPNone {
			if len(sp.ClusterIPs) > 1 {
				errs = append(errs, field.Invalid(path.Index(i), ip, "'None' must be the first and only value"))
			}
			continue
		}
		errs = append(errs, validation.IsValidIPForLegacyField(path.Index(i), ip, true, nil)...)
	}
	if len(sp.ClusterIPs) > 1 {
		errs = append(errs, field.Invalid(path, sp.ClusterIPs, "may only hold up to 1 values on a single-stack cluster"))
	}
	if sp.IPFamilyPolicy != nil {
		known := []corev1.IPFamilyPolicy{corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack, corev1.IPFamilyPolicySingleStack}
		if !slices.Contains(known, *sp.IPFamilyPolicy) {
			errs = append(errs, field.NotSupported(spec.Child("ipFamilyPolicy"), *sp.IPFamilyPolicy, known))
		}
	}
	if isHeadless(s) && len(sp.Selector) == 0 {
		return errs
	}
	for i, f := range sp.IPFamilies {
		if f != corev1.IPv4Protocol {
			errs = append(errs, field.Invalid(spec.Child("ipFamilies").Index(i), f, "not configured on this cluster"))
		}
	}
	return errs
}

func validateLoadBalancerFields(s *corev1.Service, spec *field.Path) field.ErrorList {
	var errs field.ErrorList
	sp := &s.Spec
	// The servers spell this path with a capital letter.
	ranges := spec.Child("LoadBalancerSourceRanges")
	if len(sp.LoadBalancerSourceRanges) > 0 && !isLoadBalancer(s) {
		errs = append(errs, field.Forbidden(ranges, onlyLoadBalancer))
	}
	for i, r := range sp.LoadBalancerSourceRanges {
		errs = append(errs, validation.IsValidCIDRForLegacyField(ranges.Index(i), strings.TrimSpace(r), true, nil)...)
	}
	allocate := spec.Child("allocateLoadBalancerNodePorts")
	switch {
	case isLoadBalancer(s) && sp.AllocateLoadBalancerNodePorts == nil:
		errs = append(errs, field.Required(allocate, ""))
	case !isLoadBalancer(s) && sp.AllocateLoadBalancerNodePorts != nil:
		errs = append(errs, field.Forbidden(allocate, onlyLoadBalancer))
	}
	if class := sp.LoadBalancerClass; class != nil {
		if !isLoadBalancer(s) {
			errs = append(errs, field.Forbidden(spec.Child("loadBalancerClass"), onlyLoadBalancer))
		} else {
			for _, msg := range validation.IsQualifiedName(*class) {
				errs = append(errs, field.Invalid(spec.Child("loadBalancerClass"), *class, msg))
			}
		}
	}
	return errs
}

func validatePolicies(s *corev1.Service, spec *field.Path) field.ErrorList {
	var errs field.ErrorList
	sp := &s.Spec
	external := []corev1.ServiceExternalTrafficPolicy{corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal}
	switch path := spec.Child("externalTrafficPolicy"); {
	case fromOutside(s) && !slices.Contains(external, sp.ExternalTrafficPolicy):
		errs = append(errs, field.NotSupported(path, sp.ExternalTrafficPolicy, external))
	case !fromOutside(s) && sp.ExternalTrafficPolicy != "":
		errs = append(errs, field.Invalid(path, sp.ExternalTrafficPolicy, "may only be set for externally-accessible services"))
	}
	health := spec.Child("healthCheckNodePort")
	switch {
	case sp.HealthCheckNodePort < 0 || sp.HealthCheckNodePort > 65535:
		errs = append(errs, field.Invalid(health, sp.HealthCheckNodePort, "must be between 0 and 65535, inclusive"))
	case sp.HealthCheckNodePort > 0 && !wantsHealthPort(s):
		errs = append(errs, field.Invalid(health, sp.HealthCheckNodePort, "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"))
	}
	internal := []corev1.ServiceInternalTrafficPolicy{corev1.ServiceInternalTrafficPolicyCluster, corev1.ServiceInternalTrafficPolicyLocal}
	if p := sp.InternalTrafficPolicy; p != nil && !slices.Contains(internal, *p) {
		errs = append(errs, field.NotSupported(spec.Child("internalTrafficPolicy"), *p, internal))
	}
	return errs
}

// validateServiceChange checks what may not change once set.
func validateServiceChange(next, live *corev1.Service, spec *field.Path) field.ErrorList {
	var errs field.ErrorList
	if hasClusterIP(next) && hasClusterIP(live) && len(live.Spec.ClusterIPs) > 0 {
		switch path := spec.Child("clusterIPs").Index(0); {
		case len(next.Spec.ClusterIPs) == 0:
			errs = append(errs, field.Invalid(path, next.Spec.ClusterIPs, "primary clusterIP can not be unset"))
		case next.Spec.ClusterIPs[0] != live.Spec.ClusterIPs[0]:
			errs = append(errs, field.Invalid(path, next.Spec.ClusterIPs, "may not change once set"))
		}
	}
	if wantsHealthPort(next) && wantsHealthPort(live) && next.Spec.HealthCheckNodePort != live.Spec.HealthCheckNodePort {
		errs = append(errs, field.Invalid(spec.Child("healthCheckNodePort"), next.Spec.HealthCheckNodePort, "field is immutable"))
	}
	if isLoadBalancer(next) && isLoadBalancer(live) && !samePointed(next.Spec.LoadBalancerClass, live.Spec.LoadBalancerClass) {
		errs = append(errs, field.Invalid(spec.Child("loadBalancerClass"), next.Spec.LoadBalancerClass, "may not change once set"))
	}
	return errs
}

// validateServiceStatus checks the addresses that a load balancer reports.
func validateServiceStatus(next, _ *corev1.Service) field.ErrorList {
	path := field.NewPath("status", "loadBalancer", "ingress")
	ingress := next.Status.LoadBalancer.Ingress
	var errs field.ErrorList
	if len(ingress) > 0 && !isLoadBalancer(next) {
		errs = append(errs, field.Forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'"))
	}
	for i, in := range ingress {
		errs = append(errs, validateIngress(in, path.Index(i))...)
	}
	return errs
}

func validateIngress(in corev1.LoadBalancerIngress, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if in.IP != "" {
		errs = append(errs, validation.IsValidIPForLegacyField(path.Child("ip"), in.IP, true, nil)...)
	}
	modes := []corev1.LoadBalancerIPMode{corev1.LoadBalancerIPModeProxy, corev1.LoadBalancerIPModeVIP}
	switch {
	case in.IP != "" && in.IPMode == nil:
		errs = append(errs, field.Required(path.Child("ipMode"), "must be specified when `ip` is set"))
	case in.IP == "" && in.IPMode != nil:
		errs = append(errs, field.Forbidden(path.Child("ipMode"), "may not be specified when `ip` is not set"))
	case in.IPMode != nil && !slices.Contains(modes, *in.IPMode):
		errs = append(errs, field.NotSupported(path.Child("ipMode"), *in.IPMode, modes))
	}
	if in.Hostname == "" {
		return errs
	}
	for _, msg := range validation.IsDNS1123Subdomain(in.Hostname) {
		errs = append(errs, field.Invalid(path.Child("hostname"), in.Hostname, msg))
	}
	if _, err := netip.ParseAddr(in.Hostname); err == nil {
		errs = append(errs, field.Invalid(path.Child("hostname"), in.Hostname, "must be a DNS name, not an IP address"))
	}
	return errs
}
