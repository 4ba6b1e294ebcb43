// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package k8sservice_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drawbridge-k8s/drawbridge/k8sservice"
)

func service(kind corev1.ServiceType, ingress ...corev1.LoadBalancerIngress) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "db-service", Namespace: "dev"},
		Spec: corev1.ServiceSpec{
			Type: kind, ClusterIP: "10.152.183.7",
			Ports: []corev1.ServicePort{
				{Name: "metrics", Port: 9000, NodePort: 30003},
				{Name: "mysql-ro", Port: 6447, NodePort: 30002},
				{Name: "mysql-rw", Port: 6446, NodePort: 30001},
			},
		},
		Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: ingress}},
	}
}

func node(addresses ...string) *corev1.Node {
	n := &corev1.Node{}
	for i := 0; i < len(addresses); i += 2 {
		n.Status.Addresses = append(n.Status.Addresses,
			corev1.NodeAddress{Type: corev1.NodeAddressType(addresses[i]), Address: addresses[i+1]})
	}
	return n
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	const (
		cluster = corev1.ServiceTypeClusterIP
		np      = corev1.ServiceTypeNodePort
		lb      = corev1.ServiceTypeLoadBalancer
	)
	failed := "no port"
	type ingress = corev1.LoadBalancerIngress
	for _, test := range []struct {
		name    string
		service *corev1.Service
		change  func(*corev1.Service)
		options k8sservice.AddressOptions
		rw, ro  []string
	}{
		{name: "absent"},
		{name: "cluster", service: service(cluster), options: k8sservice.AddressOptions{Domain: "example.org"},
			rw: []string{"db-service.dev.svc.example.org.:6446"}, ro: []string{"db-service.dev.svc.example.org.:6447"}},
		{name: "cluster, domain not known", service: service(cluster),
			rw: []string{"db-service.dev.svc.cluster.local.:6446"}, ro: []string{"db-service.dev.svc.cluster.local.:6447"}},
		{name: "cluster with a leftover ingress", service: service(cluster, ingress{IP: "1.1.1.1"}),
			rw: []string{"db-service.dev.svc.cluster.local.:6446"}, ro: []string{"db-service.dev.svc.cluster.local.:6447"}},
		{name: "cluster ignores the hostname", service: service(cluster), options: k8sservice.AddressOptions{ExternalHostname: "db.example.com"},
			rw: []string{"db-service.dev.svc.cluster.local.:6446"}, ro: []string{"db-service.dev.svc.cluster.local.:6447"}},
		{name: "cluster without an ip", service: service(cluster), change: func(s *corev1.Service) { s.Spec.ClusterIP = "" }},
		{name: "terminating", service: service(cluster), change: func(s *corev1.Service) { s.DeletionTimestamp = &metav1.Time{} }},
		{name: "between two classes", service: service(np), options: k8sservice.AddressOptions{Nodes: []*corev1.Node{node("InternalIP", "10.0.0.1")}},
			change: func(s *corev1.Service) { s.Annotations = map[string]string{k8sservice.AnnotationStep: "x"} }},
		{name: "external name", service: service(corev1.ServiceTypeExternalName)},
		{name: "nodes: order of preference, sorted, once each, IPv6, one empty, one nil", service: service(np),
			options: k8sservice.AddressOptions{Nodes: []*corev1.Node{
				node("Hostname", "node-c", "InternalIP", "10.0.0.3", "ExternalIP", "198.51.100.3"),
				node("Hostname", "node-b", "InternalIP", "10.0.0.2"),
				node("Hostname", "node-a"), node("InternalIP", "fd00::1"), node(), nil,
				node("ExternalIP", "", "InternalIP", "10.0.0.2")}},
			rw: []string{"10.0.0.2:30001", "198.51.100.3:30001", "[fd00::1]:30001", "node-a:30001"},
			ro: []string{"10.0.0.2:30002", "198.51.100.3:30002", "[fd00::1]:30002", "node-a:30002"}},
		{name: "nodes: no ready unit", service: service(np)},
		{name: "nodes: hostname", service: service(np),
			options: k8sservice.AddressOptions{Nodes: []*corev1.Node{node("InternalIP", "10.0.0.3")}, ExternalHostname: "db.example.com"},
			rw:      []string{"db.example.com:30001"}, ro: []string{"db.example.com:30002"}},
		{name: "nodes: hostname, no ready unit", service: service(np), options: k8sservice.AddressOptions{ExternalHostname: "db.example.com"}},
		{name: "nodes: a port not allocated yet", service: service(np),
			options: k8sservice.AddressOptions{Nodes: []*corev1.Node{node("InternalIP", "10.0.0.3")}},
			change:  func(s *corev1.Service) { s.Spec.Ports[1].NodePort = 0 }},
		{name: "nodes: leftover ingress", service: service(np, ingress{IP: "1.1.1.1"}),
			options: k8sservice.AddressOptions{Nodes: []*corev1.Node{node("InternalIP", "10.0.0.3")}},
			rw:      []string{"10.0.0.3:30001"}, ro: []string{"10.0.0.3:30002"}},
		{name: "balancer: nothing yet", service: service(lb)},
		{name: "balancer: empty entries", service: service(lb, ingress{}, ingress{IP: ""})},
		{name: "balancer: hostname without an address", service: service(lb), options: k8sservice.AddressOptions{ExternalHostname: "db.example.com"}},
		{name: "balancer: ip", service: service(lb, ingress{IP: "10.64.140.43"}), rw: []string{"10.64.140.43:6446"}, ro: []string{"10.64.140.43:6447"}},
		{name: "balancer: name", service: service(lb, ingress{Hostname: "lb.example.com"}), rw: []string{"lb.example.com:6446"}, ro: []string{"lb.example.com:6447"}},
		{name: "balancer: both families", service: service(lb, ingress{IP: "fc00::1"}, ingress{}, ingress{IP: "10.0.0.1"}),
			rw: []string{"10.0.0.1:6446", "[fc00::1]:6446"}, ro: []string{"10.0.0.1:6447", "[fc00::1]:6447"}},
		{name: "balancer: hostname option", service: service(lb, ingress{IP: "10.0.0.1"}), options: k8sservice.AddressOptions{ExternalHostname: "db.example.com"},
			rw: []string{"db.example.com:6446"}, ro: []string{"db.example.com:6447"}},
		{name: "balancer: a port failed", service: service(lb, ingress{IP: "10.0.0.1", Ports: []corev1.PortStatus{{Port: 6447, Error: &failed}}})},
		{name: "balancer: our ports are gone", service: service(lb, ingress{IP: "10.0.0.1"}), change: func(s *corev1.Service) { s.Spec.Ports = s.Spec.Ports[:1] }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if test.change != nil {
				test.change(test.service)
			}
			want := k8sservice.AddressSet{ReadWrite: test.rw, ReadOnly: test.ro}
			for range 20 {
				rand.Shuffle(len(test.options.Nodes), func(i, j int) {
					test.options.Nodes[i], test.options.Nodes[j] = test.options.Nodes[j], test.options.Nodes[i]
				})
				require.Equal(t, want, k8sservice.Addresses(test.service, test.options))
			}
		})
	}
}

func TestClusterIPs(t *testing.T) {
	t.Parallel()
	s := service(corev1.ServiceTypeLoadBalancer)
	require.Equal(t, []string{"10.152.183.7:6446", "10.152.183.7:6447"}, k8sservice.ClusterIPs(s).All())
	s.Spec.ClusterIP = "fd00::7"
	require.Equal(t, []string{"[fd00::7]:6446", "[fd00::7]:6447"}, k8sservice.ClusterIPs(s).All())
	for _, none := range []string{"", "None"} {
		s.Spec.ClusterIP = none
		require.True(t, k8sservice.ClusterIPs(s).Empty())
	}
	require.True(t, k8sservice.ClusterIPs(nil).Empty())
}

func TestReadyNodes(t *testing.T) {
	t.Parallel()
	pod := func(node string, ready corev1.ConditionStatus) corev1.Pod {
		return corev1.Pod{Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: ready}}}}
	}
	dying := pod("d", corev1.ConditionTrue)
	dying.DeletionTimestamp = &metav1.Time{}
	require.Equal(t, []string{"a", "b"}, k8sservice.ReadyNodes([]corev1.Pod{
		pod("b", "True"), pod("a", "True"), pod("b", "True"), pod("c", "False"), pod("e", "Unknown"), dying, pod("", "True"), {},
	}))
	require.Empty(t, k8sservice.ReadyNodes(nil))
}

func TestOwnerOf(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{}
	_, ok := k8sservice.OwnerOf(pod)
	require.False(t, ok)
	pod.OwnerReferences = []metav1.OwnerReference{{Kind: "Other", Name: "x", UID: "1"}, {Kind: "StatefulSet", Name: "db", UID: "2"}}
	found, ok := k8sservice.OwnerOf(pod)
	require.True(t, ok)
	require.Equal(t, k8sservice.Owner{Name: "db", UID: "2"}, found)
	_, ok = k8sservice.OwnerOf(nil)
	require.False(t, ok)
}

func TestClusterDomain(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                     "cluster.local",
		"search example.com\n": "cluster.local",
		"nameserver 1.1.1.1\nsearch dev.svc.k.example svc.k.example k.example\noptions ndots:5\n": "k.example",
		"search dev.svc.k.example.\n": "k.example",
		"search svc.k.example\n":      "k.example",
		"search other.svc.x\n":        "cluster.local",
		"search dev.svc.\n":           "cluster.local",
	} {
		require.Equal(t, want, k8sservice.ClusterDomain(text, "dev"), text)
	}
}
