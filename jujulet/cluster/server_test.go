// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cluster_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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

func encode(t *testing.T, o cluster.Object) string {
	t.Helper()
	data, err := json.Marshal(o)
	require.NoError(t, err)
	return string(data)
}

func openDB(t *testing.T, path string) *bbolt.DB {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second})
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// TestPersistence: what survives a restart, and what does not.
func TestPersistence(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "model.db")
	db := openDB(t, path)
	s := newServer(t, cluster.Options{DB: db})
	a := s.Admin()
	created, err := a.Create(nodePortService("db"))
	require.NoError(t, err)
	_, err = a.Create(pod("db-0", "db", "", false))
	require.NoError(t, err)
	_, err = a.Create(&corev1.Secret{ObjectMeta: meta("gone")})
	require.NoError(t, err)
	require.NoError(t, a.Delete(cluster.Secret, "dev", "gone"))
	require.NoError(t, s.Settle())
	before := s.Version()
	s.Close()
	require.NoError(t, db.Close())

	again, err := cluster.New(cluster.Options{DB: openDB(t, path)})
	require.NoError(t, err)
	a = again.Admin()
	require.GreaterOrEqual(t, again.Version(), before, "a version is never given twice")
	svc, err := cluster.Get[*corev1.Service](a, "dev", "db")
	require.NoError(t, err)
	require.JSONEq(t, encode(t, created), encode(t, svc), "uid, address and node port are as before")
	_, err = a.Get(cluster.Pod, "dev", "db-0")
	require.True(t, apierrors.IsNotFound(err), "pods do not survive")
	_, err = a.Get(cluster.Secret, "dev", "gone")
	require.True(t, apierrors.IsNotFound(err))
	slices, err := cluster.List[*discoveryv1.EndpointSlice](a, "", "")
	require.NoError(t, err)
	require.Empty(t, slices, "endpoint slices do not survive")
	require.Equal(t, adminToken, again.Token("dev", "admin"))

	clash := nodePortService("other")
	clash.Spec.Ports[0].NodePort = svc.Spec.Ports[0].NodePort
	_, err = a.Create(clash)
	require.True(t, apierrors.IsInvalid(err), "allocated numbers stay taken: %v", err)
	_, err = cluster.Change(a, "dev", "db", func(s *corev1.Service) error { s.Labels = map[string]string{"a": "b"}; return nil })
	require.NoError(t, err)
}

// TestPersistence_Versions: changes of what is not persisted raise the version for good too.
func TestPersistence_Versions(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "model.db")
	db := openDB(t, path)
	s := newServer(t, cluster.Options{DB: db})
	for i := range 1100 {
		_, err := s.Admin().Create(&discoveryv1.EndpointSlice{ObjectMeta: meta(fmt.Sprintf("e%d", i)), AddressType: discoveryv1.AddressTypeIPv4})
		require.NoError(t, err)
	}
	before := s.Version()
	require.NoError(t, db.Close())
	again, err := cluster.New(cluster.Options{DB: openDB(t, path)})
	require.NoError(t, err)
	require.GreaterOrEqual(t, again.Version(), before)
}

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
	_, err = a.Create(&corev1.Endpoints{ObjectMeta: meta("x")}) //nolint:staticcheck // refused, which is the point
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
