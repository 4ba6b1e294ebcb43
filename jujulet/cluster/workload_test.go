// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cluster_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cluster"
)

// TestEndpointSlices: pods behind a Service, ready or not, with the target port by name.
func TestEndpointSlices(t *testing.T) {
	t.Parallel()
	s := newServer(t, cluster.Options{})
	a := s.Admin()
	headless := nodePortService("db")
	headless.Name, headless.Spec.Type, headless.Spec.ClusterIP, headless.Spec.PublishNotReadyAddresses = "db-endpoints", corev1.ServiceTypeClusterIP, "None", true
	for _, o := range []cluster.Object{nodePortService("db"), headless, pod("db-0", "db", "", false), pod("db-1", "db", "", false), pod("x-0", "x", "", false)} {
		_, err := a.Create(o)
		require.NoError(t, err)
	}
	status := func(name, ip string, ready bool) {
		_, err := cluster.ChangeStatus(a, "dev", name, func(p *corev1.Pod) error { p.Status = podStatus(ip, ready); return nil })
		require.NoError(t, err)
	}
	slice := func(service string) *discoveryv1.EndpointSlice {
		require.NoError(t, s.Settle())
		all, err := cluster.List[*discoveryv1.EndpointSlice](a, "dev", discoveryv1.LabelServiceName+"="+service)
		require.NoError(t, err)
		require.Len(t, all, 1)
		return all[0]
	}
	require.Empty(t, slice("db").Endpoints, "no address, no endpoint")
	status("db-0", "10.1.0.5", true)
	status("db-1", "10.1.0.6", false)
	status("x-0", "10.1.0.7", true)
	plain := slice("db")
	require.Len(t, plain.Endpoints, 2)
	require.Equal(t, []string{"10.1.0.5"}, plain.Endpoints[0].Addresses)
	require.True(t, *plain.Endpoints[0].Conditions.Ready)
	require.False(t, *plain.Endpoints[1].Conditions.Ready)
	require.Equal(t, int32(13306), *plain.Ports[0].Port)
	require.Equal(t, "node-0", *plain.Endpoints[0].NodeName)
	require.Nil(t, plain.Endpoints[0].Hostname)
	all := slice("db-endpoints")
	require.True(t, *all.Endpoints[1].Conditions.Ready, "publishNotReadyAddresses")
	require.False(t, *all.Endpoints[1].Conditions.Serving)
	require.Equal(t, "db-1", *all.Endpoints[1].Hostname)

	version := slice("db").ResourceVersion
	require.Equal(t, version, slice("db").ResourceVersion, "nothing changed, nothing written")
	require.NoError(t, a.Delete(cluster.Pod, "dev", "db-1"))
	require.Len(t, slice("db").Endpoints, 1)
	require.NoError(t, a.Delete(cluster.Service, "dev", "db"))
	require.NoError(t, s.Settle())
	left, err := cluster.List[*discoveryv1.EndpointSlice](a, "dev", discoveryv1.LabelServiceName+"=db")
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestPods: what a charm reads of a Pod.
func TestPods(t *testing.T) {
	t.Parallel()
	a := newServer(t, cluster.Options{}).Admin()
	out, err := a.Create(pod("db-0", "db", "1.2.3.4", true))
	require.NoError(t, err)
	p := out.(*corev1.Pod)
	require.Equal(t, corev1.PodPending, p.Status.Phase, "a status comes through its own door")
	require.Equal(t, corev1.PodQOSBestEffort, p.Status.QOSClass)
	require.Equal(t, corev1.RestartPolicyAlways, p.Spec.RestartPolicy)
	require.Equal(t, corev1.ProtocolTCP, p.Spec.Containers[0].Ports[0].Protocol)
	require.EqualValues(t, 1, p.Generation)
	p, err = cluster.ChangeStatus(a, "dev", "db-0", func(p *corev1.Pod) error { p.Status = podStatus("10.1.0.9", true); return nil })
	require.NoError(t, err)
	require.Equal(t, []corev1.PodIP{{IP: "10.1.0.9"}}, p.Status.PodIPs)
	_, err = cluster.Change(a, "dev", "db-0", func(p *corev1.Pod) error { p.Spec.Hostname = "other"; return nil })
	require.True(t, apierrors.IsInvalid(err), "%v", err)
}

// TestStatefulSets: the generation counts changes of the spec only.
func TestStatefulSets(t *testing.T) {
	t.Parallel()
	s := newServer(t, cluster.Options{})
	a := s.Admin()
	set := &appsv1.StatefulSet{ObjectMeta: meta("db"), Spec: appsv1.StatefulSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}},
	}}
	out, err := a.Create(set)
	require.NoError(t, err)
	require.EqualValues(t, 1, out.GetGeneration())
	require.EqualValues(t, 1, *out.(*appsv1.StatefulSet).Spec.Replicas)
	next, err := cluster.ChangeStatus(a, "dev", "db", func(s *appsv1.StatefulSet) error { s.Status.ReadyReplicas = 1; return nil })
	require.NoError(t, err)
	require.EqualValues(t, 1, next.Generation)
	next, err = cluster.Change(a, "dev", "db", func(s *appsv1.StatefulSet) error { *s.Spec.Replicas = 3; return nil })
	require.NoError(t, err)
	require.EqualValues(t, 2, next.Generation)
	require.EqualValues(t, 1, next.Status.ReadyReplicas)
	owned := pod("db-0", "db", "", false)
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db", UID: next.UID}}
	_, err = a.Create(owned)
	require.NoError(t, err)
	require.NoError(t, a.Delete(cluster.StatefulSet, "dev", "db"))
	require.NoError(t, s.Settle())
	_, err = a.Get(cluster.Pod, "dev", "db-0")
	require.True(t, apierrors.IsNotFound(err))
}

// TestEvents: an Event is forgotten after an hour.
func TestEvents(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := newServer(t, cluster.Options{Clock: func() time.Time { return now }})
	a := s.Admin()
	_, err := a.Create(&corev1.Event{ObjectMeta: meta("e"), InvolvedObject: corev1.ObjectReference{Kind: "Service", Name: "db", Namespace: "dev"}, Reason: "Pending"})
	require.NoError(t, err)
	require.NoError(t, s.Settle())
	_, err = a.Get(cluster.EventKind, "dev", "e")
	require.NoError(t, err)
	now = now.Add(2 * time.Hour)
	require.NoError(t, s.Settle())
	_, err = a.Get(cluster.EventKind, "dev", "e")
	require.True(t, apierrors.IsNotFound(err))
	_, err = a.Create(&corev1.Event{ObjectMeta: meta("e"), InvolvedObject: corev1.ObjectReference{Namespace: "other"}})
	require.True(t, apierrors.IsInvalid(err))
}
