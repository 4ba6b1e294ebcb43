// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package controller

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

func TestServicePorts(t *testing.T) {
	t.Run("trap-32 opened ports on the Service", trap32)
}

func trap32(t *testing.T) {
	t.Parallel()
	name := func(ports []corev1.ServicePort) []string {
		var names []string
		for _, port := range ports {
			names = append(names, port.Name)
		}
		return names
	}
	placeholder := servicePorts(nil, nil)
	foreign := corev1.ServicePort{Name: "metrics", Port: 9100}
	kept := corev1.ServicePort{Name: "juju-80-tcp", Port: 80, NodePort: 30080}
	for _, c := range []struct {
		name   string
		live   []corev1.ServicePort
		opened []string
		want   []string
	}{
		{"nothing opened", nil, nil, []string{"placeholder"}},
		{"one opened", placeholder, []string{"8080/tcp"}, []string{"juju-8080-tcp"}},
		{"closed again", []corev1.ServicePort{kept}, nil, []string{"placeholder"}},
		{"foreign port stays", []corev1.ServicePort{foreign, kept}, []string{"53/udp"}, []string{"metrics", "juju-53-udp"}},
		{"foreign port alone needs no placeholder", []corev1.ServicePort{foreign}, nil, []string{"metrics"}},
		{"icmp has no port", nil, []string{"icmp"}, []string{"placeholder"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, name(servicePorts(c.live, c.opened)))
		})
	}
	require.Equal(t, int32(30080), servicePorts([]corev1.ServicePort{kept}, []string{"80/tcp"})[0].NodePort,
		"an allocated node port must survive")
}
