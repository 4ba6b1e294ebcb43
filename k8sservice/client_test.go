// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package k8sservice_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/drawbridge-k8s/drawbridge/k8sservice"
)

// answers makes the API give the answers one after the other and then work.
func (a *api) answers(list ...func(http.ResponseWriter)) {
	a.answer = func(_ *http.Request, w http.ResponseWriter) bool {
		if len(list) == 0 {
			return false
		}
		list[0](w)
		list = list[1:]
		return true
	}
}

func status(code int, reason, message string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) { refuse(w, code, reason, message) }
}

func TestClient_Retries(t *testing.T) {
	t.Parallel()
	conflict := status(409, "Conflict", "the object has been modified")
	exists := status(409, "AlreadyExists", `services "db-service" already exists`)
	busy := status(503, "ServiceUnavailable", "apiserver is shutting down")
	denied := status(403, "Forbidden", `nodes "n" is forbidden: User "system:serviceaccount:dev:db" cannot get resource "nodes" in API group "" at the cluster scope`)
	for _, test := range []struct {
		name     string
		answers  []func(http.ResponseWriter)
		requests int
		want     k8sservice.Failure
	}{
		{name: "a conflict twice", answers: []func(http.ResponseWriter){conflict, exists}, requests: 3},
		{name: "busy for ever", answers: []func(http.ResponseWriter){busy, busy, busy, busy, busy}, requests: 4,
			want: k8sservice.Failure{Kind: k8sservice.Busy, Message: "apiserver is shutting down"}},
		{name: "too many requests", answers: []func(http.ResponseWriter){status(429, "TooManyRequests", "slow")}, requests: 2},
		{name: "told to come back much later", requests: 1,
			answers: []func(http.ResponseWriter){func(w http.ResponseWriter) {
				w.WriteHeader(503)
				io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":503,"message":"apiserver is shutting down","details":{"retryAfterSeconds":30}}`)
			}},
			want: k8sservice.Failure{Kind: k8sservice.Busy, Message: "apiserver is shutting down"}},
		{name: "the token was replaced", answers: []func(http.ResponseWriter){status(401, "Unauthorized", "Unauthorized")}, requests: 2},
		{name: "the token is bad", answers: []func(http.ResponseWriter){status(401, "Unauthorized", "Unauthorized"), status(401, "Unauthorized", "Unauthorized")}, requests: 2,
			want: k8sservice.Failure{Kind: k8sservice.Unauthorized, Message: "Unauthorized"}},
		{name: "rights are missing", answers: []func(http.ResponseWriter){denied}, requests: 1,
			want: k8sservice.Failure{Kind: k8sservice.Forbidden, Verb: "get", Resource: "nodes", Cluster: true,
				Message: `nodes "n" is forbidden: User "system:serviceaccount:dev:db" cannot get resource "nodes" in API group "" at the cluster scope`}},
		{name: "a quota", answers: []func(http.ResponseWriter){status(403, "Forbidden", `services "x" is forbidden: exceeded quota: lb, requested: services.loadbalancers=1`)}, requests: 1,
			want: k8sservice.Failure{Kind: k8sservice.Invalid, Message: `services "x" is forbidden: exceeded quota: lb, requested: services.loadbalancers=1`}},
		{name: "a webhook", answers: []func(http.ResponseWriter){status(400, "BadRequest", `admission webhook "w" denied the request: no`)}, requests: 1,
			want: k8sservice.Failure{Kind: k8sservice.Invalid, Message: `admission webhook "w" denied the request: no`}},
		{name: "our bug", answers: []func(http.ResponseWriter){status(500, "", "failed to create typed patch object (dev/db-service; /v1, Kind=Service): .x: expected string")}, requests: 1,
			want: k8sservice.Failure{Kind: k8sservice.OurBug, Message: "failed to create typed patch object (dev/db-service; /v1, Kind=Service): .x: expected string"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			a := newAPI()
			c := a.client(t)
			a.answers(test.answers...)
			_, _, err := c.Apply(t.Context(), nil, desired(k8sservice.False), owner)
			require.Equal(t, test.want, k8sservice.Classify(err))
			require.Equal(t, test.requests, c.Requests())
		})
	}
}

func TestClient_InvalidNamesTheField(t *testing.T) {
	t.Parallel()
	a := newAPI()
	c := a.client(t)
	a.answers(func(w http.ResponseWriter) {
		w.WriteHeader(422)
		io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":422,"reason":"Invalid","message":"Service \"db-service\" is invalid:\n spec.ports[0].nodePort: Invalid value: 31234: provided port is already allocated",
			"details":{"causes":[{"reason":"FieldValueInvalid","message":"x","field":"spec.ports[0].nodePort"}]}}`)
	})
	_, _, err := c.Apply(t.Context(), nil, desired(k8sservice.False), owner)
	f := k8sservice.Classify(err)
	require.Equal(t, k8sservice.Invalid, f.Kind)
	require.Equal(t, "spec.ports[0].nodePort", f.Field)
	require.NotContains(t, f.Message, "\n")
}

func TestClient_ReadsTheTokenAgain(t *testing.T) {
	t.Parallel()
	a := newAPI()
	var file string
	c := a.client(t, func(o *k8sservice.Options) { file = o.TokenFile })
	var seen []string
	a.answer = func(r *http.Request, w http.ResponseWriter) bool {
		seen = append(seen, r.Header.Get("Authorization"))
		if len(seen) == 1 {
			require.NoError(t, os.WriteFile(file, []byte("better"), 0o600))
			refuse(w, 401, "Unauthorized", "Unauthorized")
			return true
		}
		return false
	}
	s, err := c.Service(t.Context(), "db-service")
	require.NoError(t, err)
	require.Nil(t, s, "a Service that is not there is no error")
	require.Equal(t, []string{"Bearer good", "Bearer better"}, seen)
}

func TestClient_Bounded(t *testing.T) {
	t.Parallel()
	hole, err := net.Listen("tcp", "127.0.0.1:0") // accepts and never answers
	require.NoError(t, err)
	t.Cleanup(func() { hole.Close() })
	c, err := k8sservice.NewClient(k8sservice.Options{Host: "http://" + hole.Addr().String(), Namespace: "dev",
		Transport: http.DefaultTransport, Timeout: 100 * time.Millisecond})
	require.NoError(t, err)
	begin := time.Now()
	_, err = c.Service(t.Context(), "x")
	require.Less(t, time.Since(begin), 5*time.Second)
	require.Equal(t, k8sservice.Failure{Kind: k8sservice.Busy, Message: "cannot reach the Kubernetes API: timed out after 100ms"}, k8sservice.Classify(err))

	hole.Close()
	_, err = c.Service(t.Context(), "x")
	require.Equal(t, k8sservice.Busy, k8sservice.Classify(err).Kind)
	require.Contains(t, k8sservice.Classify(err).Message, "cannot reach the Kubernetes API: ")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.Service(ctx, "x")
	require.Equal(t, "cannot reach the Kubernetes API: interrupted", k8sservice.Classify(err).Message)
}

func TestClient_Lists(t *testing.T) {
	t.Parallel()
	a := newAPI()
	a.lists["pods"] = `{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"db-1"}},{"metadata":{"name":"db-0"}}]}`
	a.lists["pods/db-0"] = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"db-0"},"spec":{"nodeName":"node-0"}}`
	a.lists["nodes/node-0"] = `{"kind":"Node","apiVersion":"v1","metadata":{"name":"node-0"}}`
	a.lists["events"] = `{"kind":"EventList","apiVersion":"v1","items":[
		{"type":"Warning","reason":"New","message":"no address\nin pool","eventTime":"2026-01-02T00:00:00.000000Z"},
		{"type":"Warning","reason":"Old","message":"x","lastTimestamp":"2026-01-01T00:00:00Z"},
		{"type":"Normal","reason":"Last","message":"y","lastTimestamp":"2026-01-03T00:00:00Z"}]}`
	c := a.client(t)
	pods, err := c.Pods(t.Context(), "db")
	require.NoError(t, err)
	require.Equal(t, []string{"db-0", "db-1"}, []string{pods[0].Name, pods[1].Name})
	pod, err := c.Pod(t.Context(), "db-0")
	require.NoError(t, err)
	require.Equal(t, "node-0", pod.Spec.NodeName)
	n, err := c.Node(t.Context(), "node-0")
	require.NoError(t, err)
	require.Equal(t, "node-0", n.Name)
	none, err := c.Node(t.Context(), "node-9")
	require.NoError(t, err)
	require.Nil(t, none)
	events, err := c.Events(t.Context(), "db-service", "uid")
	require.NoError(t, err)
	require.Equal(t, "Old", events[0].Reason)
	require.Equal(t, "New: no address in pool", k8sservice.PendingReason(events))
	require.Empty(t, k8sservice.PendingReason(events[2:]))
}

func TestClient_Watch(t *testing.T) {
	t.Parallel()
	a := newAPI()
	var query string
	a.answer = func(r *http.Request, w http.ResponseWriter) bool {
		query = r.URL.RawQuery
		io.WriteString(w, `{"type":"ADDED","object":{"kind":"Service","apiVersion":"v1","metadata":{"name":"db-service","resourceVersion":"7"}}}
			{"type":"BOOKMARK","object":{"kind":"Service","apiVersion":"v1","metadata":{"resourceVersion":"8"}}}
			{"type":"DELETED","object":{"kind":"Service","apiVersion":"v1","metadata":{"name":"db-service"}}}
			{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,"message":"too old resource version"}}`)
		return true
	}
	var names []string
	err := a.client(t).WatchService(t.Context(), "db-service", func(s *corev1.Service) {
		if s == nil {
			names = append(names, "gone")
			return
		}
		names = append(names, s.Name)
	})
	require.ErrorContains(t, err, "too old resource version")
	require.Equal(t, []string{"db-service", "gone"}, names)
	require.Contains(t, query, "resourceVersion=0")
	require.Contains(t, query, "fieldSelector=metadata.name%3Ddb-service")
	require.True(t, k8sservice.Older("9", "10"))
	require.False(t, k8sservice.Older("10", "9"))
	require.False(t, k8sservice.Older("x", "9"))
}

func TestInClusterOptions(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	folder := filepath.Join(root, "var/run/secrets/kubernetes.io/serviceaccount")
	require.NoError(t, os.MkdirAll(folder, 0o755))
	env := map[string]string{"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
	getenv := func(name string) string { return env[name] }
	_, err := k8sservice.InClusterOptions(getenv, root)
	require.ErrorContains(t, err, "cannot read the pod's namespace")
	require.NoError(t, os.WriteFile(filepath.Join(folder, "namespace"), []byte("dev\n"), 0o644))
	o, err := k8sservice.InClusterOptions(getenv, root)
	require.NoError(t, err)
	require.Equal(t, "https://[fd00::1]:443", o.Host)
	require.Equal(t, "dev", o.Namespace)
	_, err = k8sservice.NewClient(o)
	require.ErrorContains(t, err, "cannot read the CA of the Kubernetes API")
	delete(env, "KUBERNETES_SERVICE_HOST")
	_, err = k8sservice.InClusterOptions(getenv, root)
	require.Error(t, err)
}

func TestClassify_Nil(t *testing.T) {
	t.Parallel()
	require.Zero(t, k8sservice.Classify(nil))
	require.Equal(t, k8sservice.Busy, k8sservice.Classify(errors.New("x")).Kind)
}

// The generated clients and their scheme double the charm's start-up.
func TestImports(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	require.Contains(t, string(out), "k8s.io/client-go/rest\n")
	for _, banned := range []string{"k8s.io/client-go/kubernetes", "k8s.io/client-go/applyconfigurations", "k8s.io/client-go/testing"} {
		for line := range strings.Lines(string(out)) {
			require.False(t, strings.HasPrefix(line, banned), line)
		}
	}
}
