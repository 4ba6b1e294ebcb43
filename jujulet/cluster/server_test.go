// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cluster_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cluster"
)

func meta(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "dev", Name: name} }

func nodePortService(name string) *corev1.Service {
	return &corev1.Service{ObjectMeta: meta(name), Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeNodePort, Selector: map[string]string{"app": name},
		Ports: []corev1.ServicePort{{Name: "sql", Port: 3306, TargetPort: intstr.FromString("mysql")}},
	}}
}

func pod(name, app, ip string, ready bool) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: meta(name), Spec: corev1.PodSpec{
		NodeName: "node-0", Hostname: name, Subdomain: app + "-endpoints",
		Containers: []corev1.Container{{Name: "c", Image: "i", Ports: []corev1.ContainerPort{{Name: "mysql", ContainerPort: 13306}}}},
	}}
	p.Labels = map[string]string{"app": app}
	p.Status = podStatus(ip, ready)
	return p
}

func podStatus(ip string, ready bool) corev1.PodStatus {
	state := corev1.ConditionFalse
	if ready {
		state = corev1.ConditionTrue
	}
	return corev1.PodStatus{Phase: corev1.PodRunning, PodIP: ip, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: state}}}
}

// TestFaults: each kind of fault, by both doors of HTTP, and that they are counted.
func TestFaults(t *testing.T) {
	t.Parallel()
	s := newServer(t, cluster.Options{})
	web := httptest.NewServer(s.Handler())
	t.Cleanup(web.Close)
	get := func(transport http.RoundTripper) (int, http.Header, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, web.URL+"/api/v1/nodes", nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+adminToken)
		resp, err := transport.RoundTrip(r)
		if err != nil {
			return 0, nil, err
		}
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode, resp.Header, err
	}
	for name, transport := range map[string]http.RoundTripper{"socket": &http.Transport{}, "direct": s.RoundTripper()} {
		s.SetFault(func(*http.Request) error { return apierrors.NewTooManyRequests("busy", 3) })
		code, header, err := get(transport)
		require.NoError(t, err, name)
		require.Equal(t, http.StatusTooManyRequests, code, name)
		require.Equal(t, "3", header.Get("Retry-After"), name)
		s.SetFault(func(*http.Request) error { return cluster.ErrDisconnect })
		_, _, err = get(transport)
		require.Error(t, err, name)
		s.SetFault(func(*http.Request) error { return errors.New("broken") })
		code, _, err = get(transport)
		require.NoError(t, err, name)
		require.Equal(t, http.StatusInternalServerError, code, name)
		s.SetFault(nil)
		before := s.Requests()
		code, _, err = get(transport)
		require.NoError(t, err, name)
		require.Equal(t, http.StatusOK, code, name)
		require.Equal(t, before+1, s.Requests(), name)
	}
}

// TestRoundTripper_Deadline: a fault that hangs ends with the request's context.
func TestRoundTripper_Deadline(t *testing.T) {
	t.Parallel()
	s := newServer(t, cluster.Options{})
	s.SetFault(func(r *http.Request) error { <-r.Context().Done(); return r.Context().Err() })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://x/api/v1/nodes", nil)
	require.NoError(t, err)
	_, err = s.RoundTripper().RoundTrip(r)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// TestNew: what every cluster begins with.
func TestNew(t *testing.T) {
	t.Parallel()
	a := newServer(t, cluster.Options{}).Admin()
	svc, err := cluster.Get[*corev1.Service](a, "default", "kubernetes")
	require.NoError(t, err)
	require.Equal(t, "10.152.183.1", svc.Spec.ClusterIP)
	for _, name := range []string{"default", "kube-system"} {
		ns, err := cluster.Get[*corev1.Namespace](a, "", name)
		require.NoError(t, err)
		require.Equal(t, corev1.NamespaceActive, ns.Status.Phase)
	}
}

// TestOptions: what is refused.
func TestOptions(t *testing.T) {
	t.Parallel()
	for _, o := range []cluster.Options{
		{ServiceCIDR: "bad"}, {ServiceCIDR: "10.0.0.0/30"}, {NodePortFirst: 5, NodePortLast: 1}, {Reserved: []string{"x"}},
	} {
		_, err := cluster.New(o)
		require.Error(t, err, "%+v", o)
	}
	s := newServer(t, cluster.Options{NodePortFirst: 30000, NodePortLast: 30001})
	_, err := s.Admin().Create(nodePortService("a"))
	require.NoError(t, err)
	_, err = s.Admin().Create(nodePortService("b"))
	require.NoError(t, err)
	_, err = s.Admin().Create(nodePortService("c"))
	require.ErrorContains(t, err, "range is full")
	require.ErrorContains(t, s.SetAccount("dev", "other", adminToken, nil), "that of another account")
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		if _, err := cluster.New(cluster.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkApplyNothing(b *testing.B) {
	s, err := cluster.New(cluster.Options{})
	require.NoError(b, err)
	svc := nodePortService("db")
	svc.Namespace = "default"
	for b.Loop() {
		if _, err := s.Admin().Apply(svc, "m", true); err != nil {
			b.Fatal(err)
		}
	}
}
