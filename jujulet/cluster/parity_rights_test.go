// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cluster_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cluster"
)

// account gives a token that has exactly rules.
func (w *world) account(t *testing.T, name string, rules ...cluster.Rule) *world {
	t.Helper()
	if w.embedded == nil {
		return w.realAccount(t, name, rules)
	}
	require.NoError(t, w.embedded.SetAccount(w.namespace, name, "token-of-"+name, rules))
	return w.as("token-of-" + name)
}

func rule(namespace, verbs string, resources ...string) cluster.Rule {
	return cluster.Rule{Namespace: namespace, PolicyRule: rbacv1.PolicyRule{APIGroups: []string{""}, Resources: resources, Verbs: strings.Fields(verbs)}}
}

func review(resource, verb, namespace string) act {
	return raw(http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", mediaJSON, fmt.Sprintf(
		`{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{"resourceAttributes":{"resource":%q,"verb":%q,"namespace":%q}}}`,
		resource, verb, namespace))
}

// TestParity_Rights: 401, 403, their texts, and what which right allows.
func TestParity_Rights(t *testing.T) {
	t.Parallel()
	const services = "/api/v1/namespaces/NS/services"
	simple := service("ClusterIP")
	t.Run("texts", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		reader := w.account(t, "reader", rule(w.namespace, "get list", "services"))
		who := fmt.Sprintf("system:serviceaccount:%s:reader", w.namespace)
		reader.check(t, "patch", step{want: "403 reason=Forbidden kind=services", says: fmt.Sprintf(
			`services "db" is forbidden: User %q cannot patch resource "services" in API group "" in the namespace %q`, who, w.namespace)},
			apply(simple)(t, reader))
		reader.check(t, "status", step{want: "403", says: `cannot patch resource "services/status"`}, ingress("[]")(t, reader))
		reader.check(t, "nodes", step{want: "403 kind=nodes", says: fmt.Sprintf(
			`nodes is forbidden: User %q cannot list resource "nodes" in API group "" at the cluster scope`, who)},
			raw(http.MethodGet, "/api/v1/nodes", "", "")(t, reader))
		reader.check(t, "missing namespace", step{want: "403"}, raw(http.MethodGet, "/api/v1/namespaces/missing/services/x", "", "")(t, reader))
		reader.check(t, "all namespaces", step{want: "403", says: "at the cluster scope"}, raw(http.MethodGet, "/api/v1/services", "", "")(t, reader))
		reader.check(t, "unknown kind", step{want: "403"}, raw(http.MethodGet, "/apis/apps/v1/namespaces/NS/deployments", "", "")(t, reader))
		reader.check(t, "subject access review", step{want: "403", says: `cannot create resource "subjectaccessreviews"`},
			raw(http.MethodPost, "/apis/authorization.k8s.io/v1/subjectaccessreviews", mediaJSON, "{}")(t, reader))
	})
	t.Run("tokens", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.as("").check(t, "none", step{want: "403", says: `User "system:anonymous" cannot list resource "services"`}, raw(http.MethodGet, services, "", "")(t, w.as("")))
		w.as("bad").check(t, "bad", step{want: "401 reason=Unauthorized", says: "Unauthorized"}, raw(http.MethodGet, services, "", "")(t, w.as("bad")))
		w.as("").check(t, "review", step{want: "403"}, review("services", "get", w.namespace)(t, w.as("")))
	})
	t.Run("apply needs patch, and create where there is nothing", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		patcher := w.account(t, "patcher", rule(w.namespace, "get patch", "services"))
		patcher.check(t, "absent", step{want: "403", says: "cannot create resource"}, apply(simple)(t, patcher))
		w.check(t, "made", step{want: "201"}, apply(simple)(t, w))
		patcher.check(t, "there", step{want: "200 type=NodePort"}, apply(service("NodePort"))(t, patcher))
		patcher.check(t, "dry", step{want: "200"}, applyDry(service("NodePort"))(t, patcher))
	})
	t.Run("a change of rules works at once", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		u := w.account(t, "changing")
		u.check(t, "before", step{want: "403"}, raw(http.MethodGet, services, "", "")(t, u))
		w.account(t, "changing", cluster.TrustedRules()...)
		u.check(t, "trusted", step{want: "200"}, raw(http.MethodGet, services, "", "")(t, u))
		w.account(t, "changing", cluster.UntrustedRules(w.namespace)...)
		u.check(t, "untrusted", step{want: "200"}, raw(http.MethodGet, services, "", "")(t, u))
		u.check(t, "untrusted apply", step{want: "403", says: "cannot create"}, apply(simple)(t, u))
		u.check(t, "own namespace", step{want: "200"}, raw(http.MethodGet, "/api/v1/namespaces/NS", "", "")(t, u))
		w.removeAccount(t, "changing")
		require.Eventually(t, func() bool { // a real server remembers for 10 s that a token was good
			return raw(http.MethodGet, services, "", "")(t, u).code == http.StatusUnauthorized
		}, w.patience(20*time.Second), 100*time.Millisecond, "removed")
	})
	t.Run("resource names", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		r := rule(w.namespace, "get list watch patch", "services")
		r.ResourceNames = []string{"db"}
		u := w.account(t, "one", r)
		w.check(t, "made", step{want: "201"}, apply(simple)(t, w))
		u.check(t, "get", step{want: "200"}, get("db")(t, u))
		u.check(t, "patch", step{want: "200"}, apply(simple)(t, u))
		u.check(t, "other", step{want: "403"}, get("other")(t, u))
		u.check(t, "list", step{want: "403"}, raw(http.MethodGet, services, "", "")(t, u))
		u.check(t, "selected", step{want: "200"}, raw(http.MethodGet, services+"?fieldSelector=metadata.name%3Ddb", "", "")(t, u))
		require.Equal(t, http.StatusOK, u.watch(t, "fieldSelector", "metadata.name=db", "resourceVersion", "0").code)
		require.Equal(t, http.StatusForbidden, u.watch(t, "resourceVersion", "0").code)
	})
}

// TestParity_AccessReview: any account may ask what it may do.
func TestParity_AccessReview(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	u := w.account(t, "asking", rule(w.namespace, "get", "services"))
	for _, row := range []struct {
		resource, verb, namespace string
		allowed                   bool
	}{
		{"services", "get", "NS", true},
		{"services", "patch", "NS", false},
		{"nodes", "list", "", false},
		{"services", "get", "missing", false},
	} {
		r := review(row.resource, row.verb, row.namespace)(t, u)
		require.Equal(t, http.StatusCreated, r.code, r.text)
		allowed, present := object(dig(r.body, "status"))["allowed"]
		require.True(t, present, r.text)
		require.Equal(t, row.allowed, allowed, r.text)
		_, reason := object(dig(r.body, "status"))["reason"]
		require.Equal(t, row.allowed, reason, r.text)
	}
}
