// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// sliceManager is the value of the label that says who keeps a slice.
const sliceManager = "endpointslice-controller.k8s.io"

// syncEndpointSlices keeps one slice for each Service with a selector: an endpoint for every pod that
// matches and has an address, ready or not (conditions tell), as Kubernetes does.
func (s *Server) syncEndpointSlices() error {
	a := s.Admin()
	services, err := List[*corev1.Service](a, "", "")
	if err != nil {
		return err
	}
	wanted := map[string]bool{}
	for _, svc := range services {
		if len(svc.Spec.Selector) == 0 || !hasClusterIP(svc) || svc.DeletionTimestamp != nil {
			continue
		}
		slice, err := s.sliceFor(a, svc)
		if err != nil {
			return err
		}
		wanted[keyOf(slice)] = true
		if err := a.keepSlice(slice); err != nil {
			return err
		}
	}
	slices, err := List[*discoveryv1.EndpointSlice](a, "", discoveryv1.LabelManagedBy+"="+sliceManager)
	if err != nil {
		return err
	}
	for _, sl := range slices {
		if wanted[keyOf(sl)] {
			continue
		}
		if err := a.Delete(EndpointSlice, sl.Namespace, sl.Name); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// keepSlice creates or updates a slice, unless its Service has gone meanwhile.
func (a *Admin) keepSlice(want *discoveryv1.EndpointSlice) error {
	live, err := Get[*discoveryv1.EndpointSlice](a, want.Namespace, want.Name)
	switch {
	case apierrors.IsNotFound(err):
		_, err = a.Create(want)
	case err != nil:
		return err
	case equality.Semantic.DeepEqual(live.Endpoints, want.Endpoints) && equality.Semantic.DeepEqual(live.Ports, want.Ports) &&
		equality.Semantic.DeepEqual(live.Labels, want.Labels) && equality.Semantic.DeepEqual(live.OwnerReferences, want.OwnerReferences):
		return nil
	default:
		_, err = a.Update(want)
	}
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func (s *Server) sliceFor(a *Admin, svc *corev1.Service) (*discoveryv1.EndpointSlice, error) {
	pods, err := List[*corev1.Pod](a, svc.Namespace, labels.SelectorFromSet(svc.Spec.Selector).String())
	if err != nil {
		return nil, err
	}
	yes := true
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: sliceName(svc), Namespace: svc.Namespace,
			Labels: map[string]string{discoveryv1.LabelServiceName: svc.Name, discoveryv1.LabelManagedBy: sliceManager},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "Service", Name: svc.Name, UID: svc.UID, Controller: &yes, BlockOwnerDeletion: &yes,
			}},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       slicePorts(svc, pods),
	}
	for k, v := range svc.Labels {
		if _, own := slice.Labels[k]; !own {
			slice.Labels[k] = v
		}
	}
	if isHeadless(svc) {
		slice.Labels[corev1.IsHeadlessService] = ""
	}
	for _, p := range pods {
		if p.Status.PodIP != "" && p.Status.Phase != corev1.PodFailed && p.Status.Phase != corev1.PodSucceeded {
			slice.Endpoints = append(slice.Endpoints, endpointFor(svc, p))
		}
	}
	return slice, nil
}

// sliceName is the Service's name and five characters, always the same for one Service.
func sliceName(svc *corev1.Service) string {
	sum := sha256.Sum256([]byte(svc.UID))
	name := svc.Name
	if len(name) > longestGenerated-1 {
		name = name[:longestGenerated-1]
	}
	return name + "-" + hex.EncodeToString(sum[:])[:5]
}

func endpointFor(svc *corev1.Service, p *corev1.Pod) discoveryv1.Endpoint {
	serving := slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
	terminating := p.DeletionTimestamp != nil
	ready := svc.Spec.PublishNotReadyAddresses || serving && !terminating
	e := discoveryv1.Endpoint{
		Addresses:  []string{p.Status.PodIP},
		Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &terminating},
		TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: p.UID},
	}
	if p.Spec.NodeName != "" {
		node := p.Spec.NodeName
		e.NodeName = &node
	}
	if p.Spec.Hostname != "" && p.Spec.Subdomain == svc.Name {
		host := p.Spec.Hostname
		e.Hostname = &host
	}
	return e
}

// slicePorts resolves the target ports of a Service; a name is looked up in the pods' containers.
func slicePorts(svc *corev1.Service, pods []*corev1.Pod) []discoveryv1.EndpointPort {
	var out []discoveryv1.EndpointPort
	for _, p := range svc.Spec.Ports {
		number, ok := targetPort(p, pods)
		if !ok {
			continue
		}
		name, protocol := p.Name, p.Protocol
		out = append(out, discoveryv1.EndpointPort{Name: &name, Protocol: &protocol, Port: &number, AppProtocol: p.AppProtocol})
	}
	slices.SortFunc(out, func(a, b discoveryv1.EndpointPort) int { return strings.Compare(*a.Name, *b.Name) })
	return out
}

func targetPort(p corev1.ServicePort, pods []*corev1.Pod) (int32, bool) {
	if p.TargetPort.Type == intstr.Int {
		return p.TargetPort.IntVal, true
	}
	for _, pod := range pods {
		for _, c := range pod.Spec.Containers {
			for _, cp := range c.Ports {
				if cp.Name == p.TargetPort.StrVal && cp.Protocol == p.Protocol {
					return cp.ContainerPort, true
				}
			}
		}
	}
	return 0, false
}
