// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package k8sservice_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/drawbridge-k8s/drawbridge/k8sservice"
)

func TestDrift(t *testing.T) {
	t.Parallel()
	everything := func(d *k8sservice.Desired) {
		d.Annotations = map[string]string{"a": "1", "empty": ""}
		d.SourceRanges = []string{"10.0.0.0/8", " 192.0.2.0/24"}
		d.Class = "example.com/lb"
		d.TrafficPolicy = "Local"
		d.NodePort = 31234
	}
	cluster, nodePort, balancer := k8sservice.False, k8sservice.NodePort, k8sservice.LoadBalancer
	for _, test := range []struct {
		name   string
		mode   k8sservice.Mode
		edit   string // of somebody else, a merge patch
		change func(*k8sservice.Desired)
		want   []k8sservice.Difference
	}{
		{name: "nothing"},
		{name: "a foreign annotation, label, finalizer, affinity",
			edit: `{"metadata":{"annotations":{"x":"1"},"labels":{"y":"1"},"finalizers":["f"]},"spec":{"sessionAffinity":"ClientIP"}}`},
		{name: "an extra selector key", edit: `{"spec":{"selector":{"zone":"a"}}}`},
		{name: "the type", edit: `{"spec":{"type":"NodePort","loadBalancerSourceRanges":null}}`,
			want: []k8sservice.Difference{
				{Field: "spec.loadBalancerClass", Want: "example.com/lb"},
				{Field: "spec.loadBalancerSourceRanges", Want: "10.0.0.0/8,192.0.2.0/24"},
				{Field: "spec.type", Want: "LoadBalancer", Got: "NodePort"}}},
		{name: "the selector", edit: `{"spec":{"selector":{"app.kubernetes.io/name":"other"}}}`,
			want: []k8sservice.Difference{{Field: "spec.selector[app.kubernetes.io/name]", Want: "db", Got: "other"}}},
		{name: "a label", edit: `{"metadata":{"labels":{"app.kubernetes.io/managed-by":null}}}`,
			want: []k8sservice.Difference{{Field: "metadata.labels[app.kubernetes.io/managed-by]", Want: "drawbridge-k8s"}}},
		{name: "an annotation's value", edit: `{"metadata":{"annotations":{"a":"2"}}}`,
			want: []k8sservice.Difference{{Field: "metadata.annotations[a]", Want: "1", Got: "2"}}},
		{name: "an empty annotation is missing", edit: `{"metadata":{"annotations":{"empty":null}}}`,
			want: []k8sservice.Difference{{Field: "metadata.annotations[empty]", Want: `""`}}},
		{name: "an annotation is wanted no more", change: func(d *k8sservice.Desired) { delete(d.Annotations, "empty") },
			want: []k8sservice.Difference{
				{Field: "metadata.annotations[" + k8sservice.AnnotationKeys + "]", Want: `["a"]`, Got: `["a","empty"]`},
				{Field: "metadata.annotations[empty]", Got: `""`}}},
		{name: "the traffic policy", edit: `{"spec":{"externalTrafficPolicy":"Cluster"}}`,
			want: []k8sservice.Difference{{Field: "spec.externalTrafficPolicy", Want: "Local", Got: "Cluster"}}},
		{name: "our traffic policy is wanted no more", change: func(d *k8sservice.Desired) { d.TrafficPolicy = "" },
			want: []k8sservice.Difference{{Field: "spec.externalTrafficPolicy", Got: "Local"}}},
		{name: "our ranges and class are wanted no more", change: func(d *k8sservice.Desired) { d.SourceRanges, d.Class = nil, "" },
			want: []k8sservice.Difference{
				{Field: "spec.loadBalancerClass", Got: "example.com/lb"},
				{Field: "spec.loadBalancerSourceRanges", Got: "10.0.0.0/8,192.0.2.0/24"}}},
		{name: "ranges in another order", change: func(d *k8sservice.Desired) {
			d.SourceRanges = []string{"192.0.2.0/24", "10.0.0.0/8", "10.0.0.0/8"}
		}},
		{name: "a node port", change: func(d *k8sservice.Desired) { d.NodePort = 31235 },
			want: []k8sservice.Difference{{Field: "spec.ports[mysql-rw].nodePort", Want: "31235", Got: "31234"}}},
		{name: "the node port is left to Kubernetes: the number stays", change: func(d *k8sservice.Desired) { d.NodePort = 0 }},
		{name: "the target port", edit: `{"spec":{"ports":[{"port":6447,"protocol":"TCP","name":"mysql-ro","targetPort":1}]}}`,
			want: []k8sservice.Difference{{Field: "spec.ports[mysql-ro].targetPort", Want: "6447", Got: "1"}}},
		{name: "a port's name", edit: `{"spec":{"ports":[{"port":6447,"protocol":"TCP","name":"other"}]}}`,
			want: []k8sservice.Difference{{Field: "spec.ports[mysql-ro].name", Want: "mysql-ro", Got: "other"}}},
		{name: "the owner", edit: `{"metadata":{"ownerReferences":[{"uid":"owner-uid","kind":"Pod"}]}}`,
			want: []k8sservice.Difference{{Field: "metadata.ownerReferences", Want: "StatefulSet/db"}}},
		{name: "options of a balancer do not matter for nodeport", mode: nodePort, change: func(d *k8sservice.Desired) {
			d.SourceRanges, d.Class, d.Annotations = nil, "x", map[string]string{"new": "1"}
		}},
		{name: "no option matters for false", mode: cluster, change: func(d *k8sservice.Desired) {
			d.SourceRanges, d.Class, d.Annotations, d.TrafficPolicy, d.NodePort = nil, "x", nil, "Cluster", 0
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if test.mode == "" {
				test.mode = balancer
			}
			a := newAPI()
			reconcile(t, a.client(t), desired(test.mode, everything))
			before := k8sservice.Fingerprint(a.service())
			require.Equal(t, before, k8sservice.Fingerprint(a.service()))
			if test.edit != "" {
				a.edit(t, "kubectl-edit", test.edit)
			}
			d := desired(test.mode, everything)
			if test.change != nil {
				test.change(&d)
			}
			got := k8sservice.Drift(a.service(), d)
			require.Equal(t, test.want, got)
			if test.change == nil {
				require.Equal(t, test.want == nil, before == k8sservice.Fingerprint(a.service()), "the fingerprint changes with it")
			}
			s, _ := reconcile(t, a.client(t), d)
			require.NotNil(t, s, "and it heals")
			for _, difference := range got {
				require.NotEmpty(t, difference.String())
			}
		})
	}
}

func TestDrift_FieldsThatSomebodyElseSet(t *testing.T) {
	t.Parallel()
	a := newAPI()
	plain := desired(k8sservice.LoadBalancer)
	reconcile(t, a.client(t), plain)
	a.edit(t, "cloud", `{"spec":{"externalTrafficPolicy":"Local","loadBalancerSourceRanges":["192.0.2.0/24"]}}`)
	require.Empty(t, k8sservice.Drift(a.service(), plain), "an option that is empty leaves the field alone")
}

func TestDrift_Absent(t *testing.T) {
	t.Parallel()
	require.Equal(t, []k8sservice.Difference{{Field: "metadata.name", Want: "db-service"}},
		k8sservice.Drift(nil, desired(k8sservice.False)))
	require.Empty(t, k8sservice.Fingerprint(nil))
	require.NotEmpty(t, k8sservice.Fingerprint(&corev1.Service{}))
}

func TestHash(t *testing.T) {
	t.Parallel()
	d := desired(k8sservice.LoadBalancer, func(d *k8sservice.Desired) { d.SourceRanges = []string{"b", "a"} })
	same := desired(k8sservice.LoadBalancer, func(d *k8sservice.Desired) { d.SourceRanges = []string{"a", "b", "a"} })
	require.Equal(t, d.Hash(), same.Hash())
	require.Len(t, d.Hash(), 12)
	other := d
	other.Class = "c"
	require.NotEqual(t, d.Hash(), other.Hash())
	other.Mode, d.Mode = k8sservice.False, k8sservice.False
	require.Equal(t, d.Hash(), other.Hash(), "a class means nothing here")
}
