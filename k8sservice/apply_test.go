// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package k8sservice_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/drawbridge-k8s/drawbridge/k8sservice"
)

var owner = k8sservice.Owner{Name: "db", UID: "owner-uid"}

func desired(mode k8sservice.Mode, change ...func(*k8sservice.Desired)) k8sservice.Desired {
	d := k8sservice.Desired{App: "db", Name: "db-service", Namespace: "dev", Mode: mode}
	for _, f := range change {
		f(&d)
	}
	return d
}

// reconcile does what a hook does, and requires that it is done then.
func reconcile(t *testing.T, c *k8sservice.Client, d k8sservice.Desired) (*corev1.Service, []string) {
	t.Helper()
	live, err := c.Service(t.Context(), d.Name)
	require.NoError(t, err)
	if len(k8sservice.Drift(live, d)) == 0 {
		return live, nil
	}
	applied, removed, err := c.Apply(t.Context(), live, d, owner)
	require.NoError(t, err)
	require.Empty(t, k8sservice.Drift(applied, d), "the second pass must have nothing to do")
	return applied, removed
}

func TestApply_MakesTheService(t *testing.T) {
	t.Parallel()
	a := newAPI()
	c := a.client(t)
	s, _ := reconcile(t, c, desired(k8sservice.False))
	require.Equal(t, corev1.ServiceTypeClusterIP, s.Spec.Type)
	require.Len(t, s.Spec.Ports, 2)
	require.Equal(t, map[string]string{"app.kubernetes.io/name": "db"}, s.Spec.Selector)
	require.Len(t, s.OwnerReferences, 1)
	require.Equal(t, "owner-uid", string(s.OwnerReferences[0].UID))
	require.False(t, *s.OwnerReferences[0].BlockOwnerDeletion)
	require.Equal(t, []string{"GET services/db-service", "PATCH services/db-service apply-patch+yaml"}, a.requests())
	require.Equal(t, 2, c.Requests())

	reconcile(t, c, desired(k8sservice.False))
	require.Equal(t, 3, c.Requests(), "nothing is applied without a difference")
}

// Every ordered pair of modes, with everything a mode can have set, by us or
// by somebody else, before it is left.
func TestApply_SwitchesInPlace(t *testing.T) {
	t.Parallel()
	modes := []k8sservice.Mode{k8sservice.False, k8sservice.NodePort, k8sservice.LoadBalancer}
	full := func(d *k8sservice.Desired) {
		d.Annotations = map[string]string{"a/b": "1"}
		d.SourceRanges = []string{"10.0.0.0/8"}
		d.Class = "example.com/one"
		d.TrafficPolicy = "Local"
	}
	for _, from := range modes {
		for _, to := range modes {
			t.Run(fmt.Sprintf("%s to %s", from, to), func(t *testing.T) {
				t.Parallel()
				a := newAPI()
				c := a.client(t)
				before, _ := reconcile(t, c, desired(from, full))
				a.edit(t, "kubectl", `{"metadata":{"annotations":{"foreign":"x"},"labels":{"team":"one"}}}`)
				after, removed := reconcile(t, c, desired(to, full))
				require.Equal(t, to.ServiceType(), after.Spec.Type)
				require.Equal(t, before.UID, after.UID)
				require.Equal(t, before.Spec.ClusterIP, after.Spec.ClusterIP)
				require.Equal(t, "x", after.Annotations["foreign"])
				require.Equal(t, "one", after.Labels["team"])
				require.Empty(t, removed, "nothing of somebody else was in the way")
				_, hasOurs := after.Annotations["a/b"]
				require.Equal(t, to == k8sservice.LoadBalancer, hasOurs)
				require.Equal(t, to == k8sservice.LoadBalancer, len(after.Spec.LoadBalancerSourceRanges) > 0)
				for _, request := range a.requests() {
					require.False(t, strings.HasPrefix(request, "DELETE"), request)
				}
				if from != k8sservice.False && to != k8sservice.False {
					require.Equal(t, before.Spec.Ports[0].NodePort, after.Spec.Ports[0].NodePort)
				}
			})
		}
	}
}

func TestApply_RemovesForeignFieldsThatTheTypeForbids(t *testing.T) {
	t.Parallel()
	for _, to := range []k8sservice.Mode{k8sservice.False, k8sservice.NodePort} {
		t.Run(string(to), func(t *testing.T) {
			t.Parallel()
			a := newAPI()
			c := a.client(t)
			reconcile(t, c, desired(k8sservice.LoadBalancer))
			a.edit(t, "kubectl", `{"spec":{"loadBalancerSourceRanges":["192.0.2.0/24"]},
				"metadata":{"annotations":{"service.beta.kubernetes.io/load-balancer-source-ranges":"192.0.2.0/24","foreign":"x"}}}`)
			require.Empty(t, k8sservice.Drift(a.service(), desired(k8sservice.LoadBalancer)), "on a load balancer they may stay")

			s, removed := reconcile(t, c, desired(to))
			require.Equal(t, []string{"spec.loadBalancerSourceRanges",
				"metadata.annotations[service.beta.kubernetes.io/load-balancer-source-ranges]"}, removed)
			require.Empty(t, s.Spec.LoadBalancerSourceRanges)
			require.Equal(t, "x", s.Annotations["foreign"])
		})
	}
}

func TestApply_ClassChangesThroughNodePort(t *testing.T) {
	t.Parallel()
	class := func(name string) func(*k8sservice.Desired) {
		return func(d *k8sservice.Desired) { d.Class, d.SourceRanges = name, []string{"10.0.0.0/8"} }
	}
	for _, test := range []struct{ from, to string }{{"example.com/a", "example.com/b"}, {"", "example.com/b"}, {"example.com/a", ""}} {
		t.Run(test.from+" to "+test.to, func(t *testing.T) {
			t.Parallel()
			a := newAPI()
			c := a.client(t)
			before, _ := reconcile(t, c, desired(k8sservice.LoadBalancer, class(test.from)))
			var types []corev1.ServiceType
			a.answer = func(r *http.Request, _ http.ResponseWriter) bool {
				types = append(types, a.typed().Spec.Type)
				return false
			}
			after, _ := reconcile(t, c, desired(k8sservice.LoadBalancer, class(test.to)))
			require.Equal(t, corev1.ServiceTypeLoadBalancer, after.Spec.Type)
			require.Equal(t, before.Spec.Ports[0].NodePort, after.Spec.Ports[0].NodePort)
			require.NotContains(t, after.Annotations, k8sservice.AnnotationStep)
			require.Equal(t, []corev1.ServiceType{"LoadBalancer", "LoadBalancer", "NodePort"}, types, "seen before get, step, apply")
		})
	}
}

func TestApply_ClassChangeInterrupted(t *testing.T) {
	t.Parallel()
	a := newAPI()
	c := a.client(t)
	first, _ := reconcile(t, c, desired(k8sservice.LoadBalancer, func(d *k8sservice.Desired) { d.Class = "example.com/a" }))
	second := desired(k8sservice.LoadBalancer, func(d *k8sservice.Desired) { d.Class = "example.com/b" })
	patches := 0
	a.answer = func(r *http.Request, w http.ResponseWriter) bool {
		if r.Method != "PATCH" {
			return false
		}
		if patches++; patches > 1 {
			refuse(w, 403, "Forbidden", `services "db-service" is forbidden: User "u" cannot patch resource "services" in API group "" in the namespace "dev"`)
			return true
		}
		return false
	}
	step, _, err := c.Apply(t.Context(), first, second, owner)
	require.Error(t, err)
	require.Equal(t, k8sservice.Forbidden, k8sservice.Classify(err).Kind)
	require.NotNil(t, step)
	node := &corev1.Node{Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.10.0.10"}}}}
	require.True(t, k8sservice.Addresses(step, k8sservice.AddressOptions{Nodes: []*corev1.Node{node}}).Empty())
	require.NotEmpty(t, k8sservice.Drift(step, second))

	a.mu.Lock()
	a.answer = nil
	a.mu.Unlock()
	done, _ := reconcile(t, c, second)
	require.Equal(t, "example.com/b", *done.Spec.LoadBalancerClass)
}

func TestApply_OwnAnnotationsGoForeignStay(t *testing.T) {
	t.Parallel()
	with := func(annotations map[string]string) k8sservice.Desired {
		return desired(k8sservice.LoadBalancer, func(d *k8sservice.Desired) { d.Annotations = annotations })
	}
	a := newAPI()
	c := a.client(t)
	reconcile(t, c, with(map[string]string{"a": "1", "b": "2", "c": ""}))
	a.edit(t, "metallb", `{"metadata":{"annotations":{"metallb.io/ip-allocated-from-pool":"pool"}}}`)

	t.Run("a value changes", func(t *testing.T) {
		s, _ := reconcile(t, c, with(map[string]string{"a": "9", "b": "2", "c": ""}))
		require.Equal(t, "9", s.Annotations["a"])
	})
	t.Run("a key goes", func(t *testing.T) {
		s, _ := reconcile(t, c, with(map[string]string{"b": "2"}))
		require.NotContains(t, s.Annotations, "a")
		require.NotContains(t, s.Annotations, "c")
		require.Equal(t, `["b"]`, s.Annotations[k8sservice.AnnotationKeys])
	})
	t.Run("a key goes whose value somebody has edited", func(t *testing.T) {
		a.edit(t, "kubectl-edit", `{"metadata":{"annotations":{"b":"by hand"}}}`)
		s, removed := reconcile(t, c, with(nil))
		require.NotContains(t, s.Annotations, "b")
		require.NotContains(t, s.Annotations, k8sservice.AnnotationKeys)
		require.Empty(t, removed)
	})
	t.Run("a foreign key of the same name comes later", func(t *testing.T) {
		a.edit(t, "kubectl-edit", `{"metadata":{"annotations":{"b":"theirs"}}}`)
		s, _ := reconcile(t, c, with(map[string]string{"a": "1"}))
		require.Equal(t, "theirs", s.Annotations["b"])
		s, _ = reconcile(t, c, with(nil))
		require.Equal(t, "theirs", s.Annotations["b"])
	})
	t.Run("the list was removed", func(t *testing.T) {
		reconcile(t, c, with(map[string]string{"a": "1", "z": "1"}))
		a.edit(t, "kubectl-edit", `{"metadata":{"annotations":{"`+k8sservice.AnnotationKeys+`":null}}}`)
		s, _ := reconcile(t, c, with(map[string]string{"z": "1"}))
		require.NotContains(t, s.Annotations, "a")
	})
	require.Equal(t, "pool", a.service().Annotations["metallb.io/ip-allocated-from-pool"])
}

func TestApply_Ports(t *testing.T) {
	t.Parallel()
	fixed := func(rw, ro int32) k8sservice.Desired {
		return desired(k8sservice.NodePort, func(d *k8sservice.Desired) { d.NodePort, d.ReadOnlyNodePort = rw, ro })
	}
	number := func(s *corev1.Service, name string) int32 {
		i := slices.IndexFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == name })
		require.GreaterOrEqual(t, i, 0)
		return s.Spec.Ports[i].NodePort
	}
	a := newAPI()
	c := a.client(t)
	s, _ := reconcile(t, c, fixed(0, 0))
	require.NotZero(t, number(s, "mysql-rw"))
	s, _ = reconcile(t, c, fixed(31234, 0))
	require.EqualValues(t, 31234, number(s, "mysql-rw"))
	s, _ = reconcile(t, c, fixed(31235, 31234))
	require.EqualValues(t, 31235, number(s, "mysql-rw"))
	require.EqualValues(t, 31234, number(s, "mysql-ro"))

	a.edit(t, "kubectl", `{"spec":{"ports":[{"name":"metrics","port":9000,"protocol":"TCP"}]}}`)
	s, _ = reconcile(t, c, fixed(31235, 31234))
	require.Len(t, s.Spec.Ports, 3, "a foreign port survives")
}

func TestApply_NamesAForeignPortWithoutAName(t *testing.T) {
	t.Parallel()
	a := newAPI()
	c := a.client(t)
	live := &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 3306}}}}
	live.Name = "db-service"
	_, _, err := c.Apply(t.Context(), live, desired(k8sservice.False), owner)
	var unnamed *k8sservice.UnnamedPortError
	require.ErrorAs(t, err, &unnamed)
	require.EqualValues(t, 3306, unnamed.Port)
	require.Contains(t, k8sservice.Classify(err).Message, "3306/TCP")
	require.Equal(t, k8sservice.Invalid, k8sservice.Classify(err).Kind)
	require.Zero(t, c.Requests())

	ours := &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 6446}}}}
	_, _, err = c.Apply(t.Context(), ours, desired(k8sservice.False), owner)
	require.NoError(t, err, "our own port gets its name")
}
