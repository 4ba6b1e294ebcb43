// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cluster

import (
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func fill[T any](p **T, v T) {
	if *p == nil {
		*p = &v
	}
}

func fillString[T ~string](p *T, v T) {
	if *p == "" {
		*p = v
	}
}

// defaultPod sets the defaults that are read back by charms and by kubectl.
func defaultPod(p *corev1.Pod) {
	defaultPodSpec(&p.Spec)
	fill(&p.Spec.EnableServiceLinks, true)
	if p.Spec.HostNetwork {
		for i := range p.Spec.Containers {
			for j := range p.Spec.Containers[i].Ports {
				if port := &p.Spec.Containers[i].Ports[j]; port.HostPort == 0 {
					port.HostPort = port.ContainerPort
				}
			}
		}
	}
	if p.Status.PodIP != "" && (len(p.Status.PodIPs) == 0 || p.Status.PodIPs[0].IP != p.Status.PodIP) {
		p.Status.PodIPs = []corev1.PodIP{{IP: p.Status.PodIP}}
	}
}

func defaultPodSpec(sp *corev1.PodSpec) {
	fillString(&sp.RestartPolicy, corev1.RestartPolicyAlways)
	fillString(&sp.DNSPolicy, corev1.DNSClusterFirst)
	fillString(&sp.SchedulerName, corev1.DefaultSchedulerName)
	fill(&sp.SecurityContext, corev1.PodSecurityContext{})
	fill(&sp.TerminationGracePeriodSeconds, int64(corev1.DefaultTerminationGracePeriodSeconds))
	if sp.ServiceAccountName != "" && sp.DeprecatedServiceAccount == "" {
		sp.DeprecatedServiceAccount = sp.ServiceAccountName
	}
	for _, list := range [][]corev1.Container{sp.InitContainers, sp.Containers} {
		for i := range list {
			defaultContainer(&list[i])
		}
	}
}

func defaultContainer(c *corev1.Container) {
	fillString(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	fillString(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	fillString(&c.ImagePullPolicy, corev1.PullIfNotPresent)
	for i := range c.Ports {
		fillString(&c.Ports[i].Protocol, corev1.ProtocolTCP)
	}
	for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		if probe != nil {
			defaultProbe(probe)
		}
	}
}

func defaultProbe(p *corev1.Probe) {
	for _, d := range []struct {
		at    *int32
		value int32
	}{{&p.TimeoutSeconds, 1}, {&p.PeriodSeconds, 10}, {&p.SuccessThreshold, 1}, {&p.FailureThreshold, 3}} {
		if *d.at == 0 {
			*d.at = d.value
		}
	}
	if p.HTTPGet != nil {
		fillString(&p.HTTPGet.Scheme, corev1.URISchemeHTTP)
		fillString(&p.HTTPGet.Path, "/")
	}
}

// preparePod sets the status that a new Pod has.
func preparePod(next, live *corev1.Pod) {
	if live == nil {
		next.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: qosClass(&next.Spec)}
	}
}

// qosClass tells how well a Pod's resources are guaranteed, by the limits and requests of its containers.
func qosClass(sp *corev1.PodSpec) corev1.PodQOSClass {
	best, guaranteed := true, true
	for _, c := range slices.Concat(sp.InitContainers, sp.Containers) {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			limit, limited := c.Resources.Limits[name]
			request, requested := c.Resources.Requests[name]
			if limited || requested {
				best = false
			}
			if !limited || requested && request.Cmp(limit) != 0 {
				guaranteed = false
			}
		}
	}
	switch {
	case best:
		return corev1.PodQOSBestEffort
	case guaranteed:
		return corev1.PodQOSGuaranteed
	}
	return corev1.PodQOSBurstable
}

// validatePod checks what a Pod needs at least; on change, that only what may change did.
func validatePod(next, live *corev1.Pod) field.ErrorList {
	spec := field.NewPath("spec")
	errs := validateContainers(next.Spec.Containers, spec.Child("containers"))
	if live == nil {
		return errs
	}
	was := live.Spec.DeepCopy()
	was.Tolerations = next.Spec.Tolerations
	was.ActiveDeadlineSeconds = next.Spec.ActiveDeadlineSeconds
	was.TerminationGracePeriodSeconds = next.Spec.TerminationGracePeriodSeconds
	if was.NodeName == "" {
		was.NodeName = next.Spec.NodeName
	}
	if len(was.Containers) == len(next.Spec.Containers) && len(was.InitContainers) == len(next.Spec.InitContainers) {
		for i := range was.Containers {
			was.Containers[i].Image = next.Spec.Containers[i].Image
		}
		for i := range was.InitContainers {
			was.InitContainers[i].Image = next.Spec.InitContainers[i].Image
		}
	}
	if !equality.Semantic.DeepEqual(*was, next.Spec) {
		errs = append(errs, field.Forbidden(spec, "pod updates may not change fields other than `spec.containers[*].image`,"+
			"`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"+
			"`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"))
	}
	return errs
}

func validateContainers(list []corev1.Container, path *field.Path) field.ErrorList {
	if len(list) == 0 {
		return field.ErrorList{field.Required(path, "")}
	}
	var errs field.ErrorList
	names := sets.New[string]()
	for i, c := range list {
		at := path.Index(i)
		errs = append(errs, validatePortName(c.Name, true, names, at.Child("name"))...)
		if c.Image == "" {
			errs = append(errs, field.Required(at.Child("image"), ""))
		}
	}
	return errs
}

func podFields(p *corev1.Pod) map[string]string {
	return map[string]string{
		"spec.nodeName": p.Spec.NodeName, "spec.restartPolicy": string(p.Spec.RestartPolicy),
		"spec.schedulerName": p.Spec.SchedulerName, "spec.serviceAccountName": p.Spec.ServiceAccountName,
		"spec.hostNetwork": strconv.FormatBool(p.Spec.HostNetwork), "status.phase": string(p.Status.Phase),
		"status.podIP": p.Status.PodIP, "status.nominatedNodeName": p.Status.NominatedNodeName,
	}
}

func defaultStatefulSet(s *appsv1.StatefulSet) {
	fill(&s.Spec.Replicas, int32(1))
	fill(&s.Spec.RevisionHistoryLimit, int32(10))
	fillString(&s.Spec.PodManagementPolicy, appsv1.OrderedReadyPodManagement)
	fillString(&s.Spec.UpdateStrategy.Type, appsv1.RollingUpdateStatefulSetStrategyType)
	if s.Spec.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType {
		fill(&s.Spec.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateStatefulSetStrategy{})
		fill(&s.Spec.UpdateStrategy.RollingUpdate.Partition, int32(0))
	}
	fill(&s.Spec.PersistentVolumeClaimRetentionPolicy, appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{})
	fillString(&s.Spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	fillString(&s.Spec.PersistentVolumeClaimRetentionPolicy.WhenScaled, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	defaultPodSpec(&s.Spec.Template.Spec)
}

func validateStatefulSet(next, live *appsv1.StatefulSet) field.ErrorList {
	spec := field.NewPath("spec")
	var errs field.ErrorList
	if *next.Spec.Replicas < 0 {
		errs = append(errs, field.Invalid(spec.Child("replicas"), *next.Spec.Replicas, "must be greater than or equal to 0"))
	}
	if next.Spec.Selector == nil {
		errs = append(errs, field.Required(spec.Child("selector"), ""))
	} else {
		errs = append(errs, metavalidation.ValidateLabelSelector(next.Spec.Selector, metavalidation.LabelSelectorValidationOptions{}, spec.Child("selector"))...)
		for k, v := range next.Spec.Selector.MatchLabels {
			if next.Spec.Template.Labels[k] != v {
				errs = append(errs, field.Invalid(spec.Child("template", "metadata", "labels"), next.Spec.Template.Labels, "`selector` does not match template `labels`"))
				break
			}
		}
	}
	errs = append(errs, validateContainers(next.Spec.Template.Spec.Containers, spec.Child("template", "spec", "containers"))...)
	if live == nil {
		return errs
	}
	was := live.Spec.DeepCopy()
	was.Replicas, was.Template, was.UpdateStrategy, was.MinReadySeconds = next.Spec.Replicas, next.Spec.Template, next.Spec.UpdateStrategy, next.Spec.MinReadySeconds
	was.Ordinals, was.RevisionHistoryLimit = next.Spec.Ordinals, next.Spec.RevisionHistoryLimit
	was.PersistentVolumeClaimRetentionPolicy = next.Spec.PersistentVolumeClaimRetentionPolicy
	if !equality.Semantic.DeepEqual(*was, next.Spec) {
		errs = append(errs, field.Forbidden(spec, "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "+
			"'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"))
	}
	return errs
}

func defaultEndpointSlice(s *discoveryv1.EndpointSlice) {
	for i := range s.Ports {
		fill(&s.Ports[i].Name, "")
		fill(&s.Ports[i].Protocol, corev1.ProtocolTCP)
	}
}

func validateEndpointSlice(next, live *discoveryv1.EndpointSlice) field.ErrorList {
	var errs field.ErrorList
	known := []discoveryv1.AddressType{discoveryv1.AddressTypeFQDN, discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6}
	path := field.NewPath("addressType")
	switch {
	case next.AddressType == "":
		errs = append(errs, field.Required(path, ""))
	case !slices.Contains(known, next.AddressType):
		errs = append(errs, field.NotSupported(path, next.AddressType, known))
	case live != nil && live.AddressType != next.AddressType:
		errs = append(errs, field.Invalid(path, next.AddressType, "field is immutable"))
	}
	for i, e := range next.Endpoints {
		at := field.NewPath("endpoints").Index(i).Child("addresses")
		if len(e.Addresses) == 0 {
			errs = append(errs, field.Required(at, "must contain at least 1 address"))
		}
		for j, a := range e.Addresses {
			if next.AddressType == discoveryv1.AddressTypeIPv4 {
				errs = append(errs, validation.IsValidIPForLegacyField(at.Index(j), a, true, nil)...)
			}
		}
	}
	return errs
}
