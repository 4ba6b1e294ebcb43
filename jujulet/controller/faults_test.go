// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package controller

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cluster"
	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
)

func TestRequestOf(t *testing.T) {
	t.Parallel()
	for target, want := range map[string][3]string{
		"GET /api/v1/namespaces/dev/services/web":                     {"get", "services", "web"},
		"GET /api/v1/namespaces/dev/services":                         {"list", "services", ""},
		"GET /api/v1/pods?watch=true":                                 {"watch", "pods", ""},
		"PATCH /apis/apps/v1/namespaces/dev/statefulsets/web":         {"patch", "statefulsets", "web"},
		"POST /api/v1/namespaces/dev/services":                        {"create", "services", ""},
		"PUT /api/v1/namespaces/dev/services/web/status":              {"update", "services", "web"},
		"DELETE /api/v1/namespaces/dev/services/web":                  {"delete", "services", "web"},
		"DELETE /api/v1/namespaces/dev/services":                      {"deletecollection", "services", ""},
		"GET /api/v1/namespaces/dev":                                  {"get", "namespaces", "dev"},
		"GET /api/v1/nodes/node-0":                                    {"get", "nodes", "node-0"},
		"GET /version":                                                {"list", "", ""},
		"GET /apis/discovery.k8s.io/v1/namespaces/dev/endpointslices": {"list", "endpointslices", ""},
	} {
		method, path, _ := cut(target)
		verb, resource, name := requestOf(httptest.NewRequest(method, path, nil))
		require.Equal(t, want, [3]string{verb, resource, name}, target)
	}
}

func cut(target string) (method, path string, ok bool) {
	for i := range target {
		if target[i] == ' ' {
			return target[:i], target[i+1:], true
		}
	}
	return "", "", false
}

func TestFaults(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	s := &faults{clock: func() time.Time { return now }}
	get := func(path string) error {
		return s.meet(httptest.NewRequest(http.MethodGet, path, nil), "secret")
	}
	const web = "/api/v1/namespaces/dev/services/web"
	add := func(f control.Fault) {
		_, err := s.change(control.FaultChange{Add: &f})
		require.NoError(t, err)
	}
	add(control.Fault{Resource: "services", Name: "web", Answer: "429", RetryAfter: 3, Times: 2})
	require.NoError(t, get("/api/v1/namespaces/dev/services/other"))
	require.NoError(t, get("/api/v1/namespaces/dev/pods/web"))
	for range 2 {
		err := get(web)
		require.True(t, apierrors.IsTooManyRequests(err), err)
		seconds, ok := apierrors.SuggestsClientDelay(err)
		require.True(t, ok)
		require.Equal(t, 3, seconds)
	}
	require.NoError(t, get(web), "twice means twice")

	add(control.Fault{Verb: "get", Answer: "403", For: time.Minute})
	require.True(t, apierrors.IsForbidden(get(web)))
	operator := httptest.NewRequest(http.MethodGet, web, nil)
	operator.Header.Set("Authorization", "Bearer secret")
	require.NoError(t, s.meet(operator, "secret"), "the operator's own requests pass")
	now = now.Add(time.Minute)
	require.NoError(t, get(web), "its time is over")

	add(control.Fault{Answer: control.FaultCut})
	require.ErrorIs(t, get(web), cluster.ErrDisconnect)
	list, err := s.change(control.FaultChange{Clear: true})
	require.NoError(t, err)
	require.Empty(t, list)
	require.NoError(t, get(web))

	add(control.Fault{Answer: control.FaultTimeout})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, s.meet(httptest.NewRequest(http.MethodGet, web, nil).WithContext(ctx), "secret"), cluster.ErrDisconnect)

	for _, f := range []control.Fault{{}, {Answer: "200"}, {Answer: "what"}, {Answer: "500", Times: -1}} {
		_, err := s.change(control.FaultChange{Add: &f})
		require.Error(t, err, f)
	}
	for code, is := range map[string]func(error) bool{
		"404": apierrors.IsNotFound, "409": apierrors.IsConflict, "422": apierrors.IsInvalid, "500": apierrors.IsInternalError,
	} {
		_, err := s.change(control.FaultChange{Clear: true, Add: &control.Fault{Answer: code}})
		require.NoError(t, err)
		require.True(t, is(get(web)), "%s: %v", code, get(web))
	}
}
