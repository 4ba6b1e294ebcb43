// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cluster"
)

// TestAdmin: the Go door has the rules of the HTTP door.
func TestAdmin(t *testing.T) {
	t.Parallel()
	a := newServer(t, cluster.Options{}).Admin()
	in := nodePortService("db")
	out, err := a.Create(in)
	require.NoError(t, err)
	require.Empty(t, in.Spec.ClusterIP, "the argument is not changed")
	svc := out.(*corev1.Service)
	require.NotZero(t, svc.Spec.Ports[0].NodePort)
	require.Equal(t, "Service", svc.Kind)

	same, err := cluster.Ensure(a, nodePortService("db"))
	require.NoError(t, err)
	require.Equal(t, svc.ResourceVersion, same.ResourceVersion, "nothing changed, nothing written")

	_, err = cluster.ChangeStatus(a, "dev", "db", func(s *corev1.Service) error {
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "1.2.3.4"}}
		return nil
	})
	require.True(t, apierrors.IsInvalid(err), "%v", err)

	stop := errors.New("stop")
	_, err = cluster.Change(a, "dev", "db", func(*corev1.Service) error { return stop })
	require.ErrorIs(t, err, stop)

	apply := nodePortService("db")
	apply.Spec.Type = corev1.ServiceTypeLoadBalancer
	out, err = a.Apply(apply, "someone", true)
	require.NoError(t, err)
	require.Equal(t, svc.Spec.Ports[0].NodePort, out.(*corev1.Service).Spec.Ports[0].NodePort)

	_, err = a.Patch(cluster.Service, "dev", "db", "status", types.MergePatchType, []byte(`{"status":{"loadBalancer":{"ingress":[{"ip":"1.2.3.4"}]}}}`))
	require.NoError(t, err)
	got, err := cluster.Get[*corev1.Service](a, "dev", "db")
	require.NoError(t, err)
	require.Equal(t, corev1.LoadBalancerIPModeVIP, *got.Status.LoadBalancer.Ingress[0].IPMode)

	_, err = a.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "missing", Name: "x"}})
	require.True(t, apierrors.IsNotFound(err))
	_, err = a.Get("Deployment", "dev", "x")
	require.ErrorContains(t, err, "not in the table of kinds")
	_, err = a.Create(&corev1.PodTemplate{ObjectMeta: meta("x")})
	require.ErrorContains(t, err, "not in the table of kinds")
}

// TestAdmin_Change starts again when another write came between, and loses no write.
func TestAdmin_Change(t *testing.T) {
	t.Parallel()
	a := newServer(t, cluster.Options{}).Admin()
	_, err := a.Create(&corev1.ConfigMap{ObjectMeta: meta("count")})
	require.NoError(t, err)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 10 {
				_, err := cluster.Change(a, "dev", "count", func(c *corev1.ConfigMap) error {
					if c.Data == nil {
						c.Data = map[string]string{}
					}
					c.Data[fmt.Sprintf("%d-%d", i, j)] = ""
					return nil
				})
				if err != nil {
					t.Errorf("change: %v", err)
				}
			}
		})
	}
	wg.Wait()
	got, err := cluster.Get[*corev1.ConfigMap](a, "dev", "count")
	require.NoError(t, err)
	require.Len(t, got.Data, 80)
}

// TestAdmin_Watch: the present state, then every change, in order.
func TestAdmin_Watch(t *testing.T) {
	t.Parallel()
	s := newServer(t, cluster.Options{})
	a := s.Admin()
	_, err := a.Create(&corev1.ConfigMap{ObjectMeta: meta("a")})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	events := a.Watch(ctx, cluster.ListOptions{Namespace: "dev"}, cluster.ConfigMap, cluster.Secret)
	_, err = a.Create(&corev1.Secret{ObjectMeta: meta("s")})
	require.NoError(t, err)
	_, err = a.Create(pod("p", "x", "", false))
	require.NoError(t, err)
	require.NoError(t, a.Delete(cluster.ConfigMap, "dev", "a"))
	for _, want := range []string{"ADDED ConfigMap a", "ADDED Secret s", "DELETED ConfigMap a"} {
		e := <-events
		require.Equal(t, want, fmt.Sprintf("%s %s %s", e.Type, e.Kind, e.Object.GetName()))
	}
	cancel()
	_, open := <-events
	require.False(t, open)
}
