// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cluster_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cluster"
)

// TestServices_Property: whatever is applied, patched and deleted, in whatever order: no number is given
// twice, every port that must have one has one and no other has, an address stays for life, and the same
// apply a second time changes nothing.
func TestServices_Property(t *testing.T) {
	t.Parallel()
	types := []string{"ClusterIP", "NodePort", "LoadBalancer"}
	rapid.Check(t, func(r *rapid.T) {
		s, err := cluster.New(cluster.Options{NodePortFirst: 31230, NodePortLast: 31249})
		require.NoError(r, err)
		require.NoError(r, s.SetAccount("default", "admin", adminToken, cluster.TrustedRules()))
		w := &world{transport: s.RoundTripper(), base: "http://embedded", token: adminToken, namespace: "default", manager: "m",
			aliases: map[string]string{}, counts: map[string]int{}}
		addresses := map[string]string{}
		for range rapid.IntRange(1, 12).Draw(r, "steps") {
			name := rapid.SampledFrom([]string{"db", "other"}).Draw(r, "name")
			if rapid.IntRange(0, 9).Draw(r, "what") == 0 {
				remove(name, "")(t, w)
				delete(addresses, name)
				continue
			}
			typ, changes := rapid.SampledFrom(types).Draw(r, "type"), []change{named(name)}
			if typ != "ClusterIP" { // Kubernetes takes these for ClusterIP once, while it wipes leftovers, and then no more
				changes = append(changes, randomPorts(r), randomPolicy(r))
			}
			body := service(typ, changes...)
			first := apply(body)(t, w)
			if first.code < 300 {
				again := apply(body)(t, w)
				require.Equal(r, http.StatusOK, again.code, again.text)
				require.Equal(r, str(first.body, "metadata", "resourceVersion"), str(again.body, "metadata", "resourceVersion"), "%s", body)
			} else {
				require.Equal(r, http.StatusUnprocessableEntity, first.code, first.text)
			}
			checkServices(r, s, addresses)
		}
	})
}

func randomPorts(r *rapid.T) change {
	number := func(label string) any {
		if rapid.Bool().Draw(r, label+" fixed") {
			return rapid.IntRange(31234, 31237).Draw(r, label)
		}
		return nil
	}
	return nodePorts(number("rw"), number("ro"))
}

func randomPolicy(r *rapid.T) change {
	if rapid.Bool().Draw(r, "local") {
		return spec("externalTrafficPolicy", "Local")
	}
	return func(map[string]any) {}
}

func checkServices(r *rapid.T, s *cluster.Server, addresses map[string]string) {
	all, err := cluster.List[*corev1.Service](s.Admin(), "default", "")
	require.NoError(r, err)
	used := map[any]string{}
	claim := func(value any, by string) {
		require.Empty(r, used[value], "%v is held by %s and %s", value, used[value], by)
		used[value] = by
	}
	for _, svc := range all {
		claim(svc.Spec.ClusterIP, svc.Name)
		if old := addresses[svc.Name]; old != "" {
			require.Equal(r, old, svc.Spec.ClusterIP, svc.Name)
		}
		addresses[svc.Name] = svc.Spec.ClusterIP
		for _, p := range svc.Spec.Ports {
			require.Equal(r, svc.Spec.Type != corev1.ServiceTypeClusterIP, p.NodePort != 0, "%s %s %+v", svc.Name, svc.Spec.Type, p)
			if p.NodePort != 0 {
				claim(p.NodePort, svc.Name+"/"+p.Name)
			}
		}
		health := svc.Spec.Type == corev1.ServiceTypeLoadBalancer && svc.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
		require.Equal(r, health, svc.Spec.HealthCheckNodePort != 0, "%s %s", svc.Name, svc.Spec.Type)
		if health {
			claim(svc.Spec.HealthCheckNodePort, svc.Name+"/health")
		}
	}
}
