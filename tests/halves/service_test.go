// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package halves

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cluster"
	"github.com/drawbridge-k8s/drawbridge/k8sservice"
)

// api is the embedded API with the client of the Service on it.
type api struct {
	t      *testing.T
	server *cluster.Server
	client *k8sservice.Client
}

const (
	namespace = "dev"
	account   = "db"
	bearer    = "token-of-db"
)

func newAPI(t *testing.T, rules []cluster.Rule) *api {
	t.Helper()
	server, err := cluster.New(cluster.Options{})
	require.NoError(t, err)
	t.Cleanup(server.Close)
	_, err = server.Admin().Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	require.NoError(t, err)
	require.NoError(t, server.SetAccount(namespace, account, bearer, rules))
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte(bearer), 0o600))
	client, err := k8sservice.NewClient(k8sservice.Options{
		Host: "https://api", TokenFile: token, Namespace: namespace, Transport: server.RoundTripper(), Timeout: 2 * time.Second,
	})
	require.NoError(t, err)
	return &api{t: t, server: server, client: client}
}

func trusted(t *testing.T) *api { t.Helper(); return newAPI(t, cluster.TrustedRules()) }

var owner = k8sservice.Owner{Name: "db", UID: "7b9c0e7e-0000-4000-8000-000000000001"}

// wish is the Service of an application `db` in a mode.
func wish(mode k8sservice.Mode) k8sservice.Desired {
	return k8sservice.Desired{App: "db", Name: "db-service", Namespace: namespace, Mode: mode}
}

// edit changes the live Service as a person or a controller does, by a merge or
// a JSON patch.
func (a *api) edit(manager, patch string) {
	a.t.Helper()
	request, err := http.NewRequestWithContext(a.t.Context(), http.MethodPatch,
		"https://api/api/v1/namespaces/"+namespace+"/services/db-service?fieldManager="+manager, strings.NewReader(patch))
	require.NoError(a.t, err)
	request.Header.Set("Content-Type", "application/merge-patch+json")
	if strings.HasPrefix(patch, "[") {
		request.Header.Set("Content-Type", "application/json-patch+json")
	}
	request.Header.Set("Authorization", "Bearer "+bearer)
	response, err := a.server.RoundTripper().RoundTrip(request)
	require.NoError(a.t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(a.t, err)
	require.Equal(a.t, http.StatusOK, response.StatusCode, string(body))
}

// reconcile does what a hook does: read, compare, apply. It must end without a
// difference, and a second run must not write.
func (a *api) reconcile(d k8sservice.Desired) (*corev1.Service, []string) {
	a.t.Helper()
	live, err := a.client.Service(a.t.Context(), d.Name)
	require.NoError(a.t, err)
	if len(k8sservice.Drift(live, d)) == 0 {
		return live, nil
	}
	live, removed, err := a.client.Apply(a.t.Context(), live, d, owner)
	require.NoError(a.t, err)
	require.Empty(a.t, k8sservice.Drift(live, d), "the object that comes back")
	again, err := a.client.Service(a.t.Context(), d.Name)
	require.NoError(a.t, err)
	require.Empty(a.t, k8sservice.Drift(again, d), "the object read again")
	return again, removed
}

// full is everything that options can ask for in a mode.
func full(mode k8sservice.Mode) k8sservice.Desired {
	d := wish(mode)
	d.Annotations = map[string]string{"example.com/pool": "a"}
	d.SourceRanges = []string{"10.0.0.0/8", "192.0.2.0/24"}
	d.Class, d.TrafficPolicy = "example.com/one", "Local"
	return d
}

// All nine pairs of modes, in place: the address stays, what the new mode forbids
// goes, what belongs to others stays.
func TestService_Modes(t *testing.T) {
	t.Parallel()
	modes := []k8sservice.Mode{k8sservice.False, k8sservice.NodePort, k8sservice.LoadBalancer}
	for _, from := range modes {
		for _, to := range modes {
			for _, foreign := range []bool{false, true} {
				name := string(from) + " to " + string(to)
				if foreign {
					name += ", foreign fields"
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					switchMode(t, from, to, foreign)
				})
			}
		}
	}
}

func switchMode(t *testing.T, from, to k8sservice.Mode, foreign bool) {
	t.Helper()
	a := trusted(t)
	first, second := full(from), full(to)
	if foreign {
		first.SourceRanges, second.SourceRanges = nil, nil
	}
	before, _ := a.reconcile(first)
	a.edit("kubectl-annotate", `{"metadata":{"annotations":{"theirs":"x"},"labels":{"team":"y"},"finalizers":["example.com/keep"]}}`)
	a.edit("kubectl-edit", `[{"op":"add","path":"/spec/ports/-","value":{"name":"metrics","port":9000}}]`)
	if foreign && from == k8sservice.LoadBalancer {
		a.edit("cloud", `{"spec":{"loadBalancerSourceRanges":["198.51.100.0/24"]}}`)
	}
	after, removed := a.reconcile(second)

	require.Equal(t, before.UID, after.UID, "never deleted and made again")
	require.Equal(t, before.Spec.ClusterIP, after.Spec.ClusterIP)
	require.Equal(t, to.ServiceType(), after.Spec.Type)
	require.Equal(t, "x", after.Annotations["theirs"])
	require.Equal(t, "y", after.Labels["team"])
	require.Equal(t, []string{"example.com/keep"}, after.Finalizers)
	require.Len(t, after.Spec.Ports, 3)
	_, pool := after.Annotations["example.com/pool"]
	require.Equal(t, to == k8sservice.LoadBalancer, pool, "annotations of the option apply in loadbalancer mode only")
	if to != k8sservice.LoadBalancer {
		require.Empty(t, after.Spec.LoadBalancerSourceRanges)
		require.Nil(t, after.Spec.LoadBalancerClass)
	}
	if foreign && from == k8sservice.LoadBalancer && to != from {
		require.Contains(t, strings.Join(removed, " "), "loadBalancerSourceRanges", "what was removed of others is told")
	}
	for i := range 2 {
		if to == k8sservice.False {
			require.Zero(t, after.Spec.Ports[i].NodePort)
		} else {
			require.NotZero(t, after.Spec.Ports[i].NodePort)
		}
		if from != k8sservice.False && to != k8sservice.False {
			require.Equal(t, before.Spec.Ports[i].NodePort, after.Spec.Ports[i].NodePort, "node ports survive")
		}
	}
}

// The class of a load balancer cannot be changed in place: it goes by way of
// NodePort, without losing the node ports.
func TestService_Classes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, from, to string }{
		{"one to another", "example.com/a", "example.com/b"}, {"none to one", "", "example.com/b"}, {"one to none", "example.com/a", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			a := trusted(t)
			d := wish(k8sservice.LoadBalancer)
			d.Class = test.from
			before, _ := a.reconcile(d)
			d.Class = test.to
			after, _ := a.reconcile(d)
			require.Equal(t, before.UID, after.UID)
			class := ""
			if after.Spec.LoadBalancerClass != nil {
				class = *after.Spec.LoadBalancerClass
			}
			require.Equal(t, test.to, class)
			require.Equal(t, before.Spec.Ports[0].NodePort, after.Spec.Ports[0].NodePort)
		})
	}
}

func TestService_NodePorts(t *testing.T) {
	t.Parallel()
	a := trusted(t)
	d := wish(k8sservice.LoadBalancer)
	d.NodePort, d.ReadOnlyNodePort = 31234, 31235
	live, _ := a.reconcile(d)
	require.Equal(t, []int32{31234, 31235}, []int32{live.Spec.Ports[0].NodePort, live.Spec.Ports[1].NodePort})
	d.NodePort, d.ReadOnlyNodePort = 31235, 31234
	live, _ = a.reconcile(d)
	require.Equal(t, []int32{31235, 31234}, []int32{live.Spec.Ports[0].NodePort, live.Spec.Ports[1].NodePort}, "they change places")
	d.NodePort, d.ReadOnlyNodePort = 0, 0
	live, _ = a.reconcile(d)
	require.NotZero(t, live.Spec.Ports[0].NodePort)
	a.edit("kubectl", `[{"op":"remove","path":"/spec/ports/0"}]`)
	live, _ = a.reconcile(d)
	require.Len(t, live.Spec.Ports, 2, "a port of ours that somebody removed comes back")

	d.NodePort = 8080
	_, _, err := a.client.Apply(t.Context(), live, d, owner)
	failure := k8sservice.Classify(err)
	require.Equal(t, k8sservice.Invalid, failure.Kind, "%v", err)
	require.Contains(t, failure.Message, "8080")
}

func TestService_Annotations(t *testing.T) {
	t.Parallel()
	a := trusted(t)
	d := wish(k8sservice.LoadBalancer)
	d.Annotations = map[string]string{"a": "1", "b": "2"}
	a.reconcile(d)
	a.edit("metallb", `{"metadata":{"annotations":{"pool":"x"}}}`)
	a.edit("kubectl-edit", `{"metadata":{"annotations":{"b":"hand"}}}`)
	live, _ := a.reconcile(d)
	require.Equal(t, "2", live.Annotations["b"], "a hand edit of ours is put right")
	a.edit("kubectl-edit", `{"metadata":{"annotations":{"b":"hand"}}}`)
	d.Annotations = nil
	live, _ = a.reconcile(d)
	require.NotContains(t, live.Annotations, "a")
	require.NotContains(t, live.Annotations, "b", "it is the one we brought, whoever changed it since")
	require.Equal(t, "x", live.Annotations["pool"])
	a.edit("kubectl-edit", `{"metadata":{"annotations":{"b":"theirs"}}}`)
	live, _ = a.reconcile(d)
	require.Equal(t, "theirs", live.Annotations["b"], "now it is theirs")
}

// The refusals of the API, as the client names them.
func TestService_Refusals(t *testing.T) {
	t.Parallel()
	t.Run("rights", func(t *testing.T) {
		t.Parallel()
		a := newAPI(t, cluster.UntrustedRules(namespace))
		_, _, err := a.client.Apply(t.Context(), nil, wish(k8sservice.False), owner)
		failure := k8sservice.Classify(err)
		require.Equal(t, k8sservice.Forbidden, failure.Kind, "%v", err)
		require.Equal(t, "services", failure.Resource)
		require.NotEmpty(t, failure.Verb)
	})
	t.Run("token", func(t *testing.T) {
		t.Parallel()
		a := trusted(t)
		require.NoError(t, a.server.SetAccount(namespace, account, "another", cluster.TrustedRules()))
		_, err := a.client.Service(t.Context(), "db-service")
		require.Equal(t, k8sservice.Unauthorized, k8sservice.Classify(err).Kind, "%v", err)
	})
	t.Run("conflict, then busy", func(t *testing.T) {
		t.Parallel()
		a := trusted(t)
		for _, code := range []int{409, 429, 500, 503} {
			a.server.SetFault(func(*http.Request) error { return status(code) })
			_, err := a.client.Service(t.Context(), "db-service")
			require.Equal(t, k8sservice.Busy, k8sservice.Classify(err).Kind, "%d: %v", code, err)
		}
	})
	t.Run("our own mistake", func(t *testing.T) {
		t.Parallel()
		a := trusted(t)
		a.server.SetFault(func(*http.Request) error {
			err := status(500)
			err.ErrStatus.Message = "failed to create typed patch object (dev/db-service; /v1, Kind=Service): .spec.x: field not declared in schema"
			return err
		})
		_, err := a.client.Service(t.Context(), "db-service")
		require.Equal(t, k8sservice.OurBug, k8sservice.Classify(err).Kind, "%v", err)
	})
	t.Run("policy", func(t *testing.T) {
		t.Parallel()
		a := trusted(t)
		d := wish(k8sservice.LoadBalancer)
		d.TrafficPolicy = "Bad"
		_, _, err := a.client.Apply(t.Context(), nil, d, owner)
		require.Equal(t, k8sservice.Invalid, k8sservice.Classify(err).Kind, "%v", err)
	})
	t.Run("a foreign port without a name", func(t *testing.T) {
		t.Parallel()
		a := trusted(t)
		live, err := a.server.Admin().Create(&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "db-service", Namespace: namespace},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 3306}}},
		})
		require.NoError(t, err)
		_, _, err = a.client.Apply(t.Context(), live.(*corev1.Service), wish(k8sservice.False), owner)
		var unnamed *k8sservice.UnnamedPortError
		require.ErrorAs(t, err, &unnamed)
		require.EqualValues(t, 3306, unnamed.Port)
	})
}

// The watch shows every change of the Service, its end included, from where it
// was asked to start.
func TestService_Watch(t *testing.T) {
	t.Parallel()
	a := trusted(t)
	d := wish(k8sservice.False)
	a.reconcile(d)
	seen := make(chan *corev1.Service, 20)
	ended := make(chan error, 1)
	go func() {
		ended <- a.client.WatchService(t.Context(), "db-service", func(s *corev1.Service) { seen <- s })
	}()
	next := func() *corev1.Service {
		t.Helper()
		select {
		case s := <-seen:
			return s
		case err := <-ended:
			t.Fatalf("the watch ended: %v", err)
		case <-time.After(10 * time.Second):
			t.Fatal("nothing is shown")
		}
		return nil
	}
	require.Equal(t, corev1.ServiceTypeClusterIP, next().Spec.Type)
	d.Mode = k8sservice.LoadBalancer
	a.reconcile(d)
	for next().Spec.Type != corev1.ServiceTypeLoadBalancer {
	}
	_, err := cluster.ChangeStatus(a.server.Admin(), namespace, "db-service", func(s *corev1.Service) error {
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "10.64.140.43"}}
		return nil
	})
	require.NoError(t, err)
	for {
		set := k8sservice.Addresses(next(), k8sservice.AddressOptions{})
		if !set.Empty() {
			require.Equal(t, []string{"10.64.140.43:6446"}, set.ReadWrite)
			break
		}
	}
	require.NoError(t, a.server.Admin().Delete(cluster.Service, namespace, "db-service"))
	require.Nil(t, next(), "gone")
}

// status is an answer of the API with a code.
func status(code int) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: int32(code), Message: "made by the test"}}
}
