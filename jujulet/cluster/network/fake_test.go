// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package network_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// fakeAPI is an API that holds objects and nothing more.
type fakeAPI struct {
	mu       sync.Mutex
	services map[string]corev1.Service
	slices   map[string]discoveryv1.EndpointSlice
	nodes    []corev1.Node
	events   []corev1.Event
	watchers []chan struct{}
	writes   int
	fail     error // what UpdateServiceStatus returns
}

func newFakeAPI() *fakeAPI {
	f := &fakeAPI{services: map[string]corev1.Service{}, slices: map[string]discoveryv1.EndpointSlice{}}
	for name, ip := range map[string]string{"node-0": "10.10.0.10", "node-1": "10.10.0.11"} {
		n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		n.Status.Addresses = []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: ip}, {Type: corev1.NodeHostName, Address: name},
		}
		f.nodes = append(f.nodes, n)
	}
	return f
}

func (f *fakeAPI) Services(context.Context) ([]corev1.Service, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []corev1.Service
	for _, s := range f.services {
		all = append(all, *s.DeepCopy())
	}
	return all, nil
}

func (f *fakeAPI) EndpointSlices(context.Context) ([]discoveryv1.EndpointSlice, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Values(f.slices)), nil
}

func (f *fakeAPI) Nodes(context.Context) ([]corev1.Node, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.nodes), nil
}

// external gives a node an external address, or takes it away.
func (f *fakeAPI) external(name, address string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, n := range f.nodes {
		if n.Name != name {
			continue
		}
		n = *n.DeepCopy()
		n.Status.Addresses = n.Status.Addresses[:2]
		if address != "" {
			n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeExternalIP, Address: address})
		}
		f.nodes[i] = n
	}
	f.changed()
}

func (f *fakeAPI) Changes(context.Context) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	ch := make(chan struct{}, 1)
	f.watchers = append(f.watchers, ch)
	return ch
}

func (f *fakeAPI) changed() {
	for _, ch := range f.watchers {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

func (f *fakeAPI) UpdateServiceStatus(_ context.Context, s *corev1.Service) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil {
		return f.fail
	}
	live, ok := f.services[s.Name]
	if !ok || live.UID != s.UID {
		return errors.New("not found")
	}
	live.Status = *s.Status.DeepCopy()
	f.services[s.Name] = live
	f.writes++
	f.changed()
	return nil
}

func (f *fakeAPI) AnnotateService(_ context.Context, _, name string, annotations map[string]string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	live := f.services[name]
	live = *live.DeepCopy()
	if live.Annotations == nil {
		live.Annotations = map[string]string{}
	}
	maps.Copy(live.Annotations, annotations)
	f.services[name] = live
	f.changed()
	return nil
}

func (f *fakeAPI) CreateEvent(_ context.Context, e *corev1.Event) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events = append(f.events, *e)
	return nil
}

// put creates or replaces a Service.
func (f *fakeAPI) put(s corev1.Service) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.UID == "" {
		s.UID = types.UID("uid-" + s.Name)
	}
	s.Namespace = "dev"
	f.services[s.Name] = s
	f.changed()
}

// edit changes a Service.
func (f *fakeAPI) edit(name string, change func(*corev1.Service)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.services[name]
	s = *s.DeepCopy()
	change(&s)
	f.services[name] = s
	f.changed()
}

// remove deletes a Service.
func (f *fakeAPI) remove(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.services, name)
	f.changed()
}

// service returns a copy.
func (f *fakeAPI) service(name string) corev1.Service {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.services[name]
	return *s.DeepCopy()
}

// endpoint is one endpoint of a Service.
type endpoint struct {
	address, host, node string
	ready               bool
}

// endpoints sets the endpoints of a Service whose port is named "sql".
func (f *fakeAPI) endpoints(service string, port int32, all ...endpoint) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name, protocol := "sql", corev1.ProtocolTCP
	es := discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: service + "-1", Namespace: "dev", Labels: map[string]string{discoveryv1.LabelServiceName: service},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &name, Port: &port, Protocol: &protocol}},
	}
	for _, e := range all {
		es.Endpoints = append(es.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{e.address}, Hostname: &e.host, NodeName: &e.node,
			Conditions: discoveryv1.EndpointConditions{Ready: &e.ready},
		})
	}
	f.slices[service] = es
	f.changed()
}
