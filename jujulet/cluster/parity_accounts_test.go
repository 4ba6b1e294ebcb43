// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cluster_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cluster"
)

// rbacPath is where roles and bindings are made.
const rbacPath = "/apis/rbac.authorization.k8s.io/v1"

// patience is how long something may take that the embedded server does at once.
func (w *world) patience(real time.Duration) time.Duration {
	if w.embedded == nil {
		return real
	}
	return time.Second
}

// realAccount makes or changes a service account of a real server, with a role or cluster role for each rule,
// and waits until the server has taken them in.
func (w *world) realAccount(t *testing.T, name string, rules []cluster.Rule) *world {
	t.Helper()
	accounts := "/api/v1/namespaces/" + w.namespace + "/serviceaccounts"
	r := w.send(t, http.MethodPost, accounts, mediaJSON, fmt.Sprintf(`{"metadata":{"name":%q}}`, name))
	require.Contains(t, []int{http.StatusCreated, http.StatusConflict}, r.code, r.text)
	w.dropRoles(t, name)
	for i, rule := range rules {
		w.makeRole(t, name, fmt.Sprintf("%s-%s-%d", w.namespace, name, i), rule)
	}
	t.Cleanup(func() { w.dropRoles(t, name) })
	r = w.send(t, http.MethodPost, accounts+"/"+name+"/token", mediaJSON, `{"spec":{"expirationSeconds":3600}}`)
	require.Equal(t, http.StatusCreated, r.code, r.text)
	user := w.as(str(r.body, "status", "token"))
	user.awaitRights(t, rules)
	return user
}

// makeRole gives one rule to an account.
func (w *world) makeRole(t *testing.T, account, role string, rule cluster.Rule) {
	t.Helper()
	kind, path := "ClusterRole", rbacPath
	if rule.Namespace != "" {
		kind, path = "Role", rbacPath+"/namespaces/"+rule.Namespace
	}
	policy, err := json.Marshal(rule.PolicyRule)
	require.NoError(t, err)
	head := fmt.Sprintf(`"metadata":{"name":%q,"labels":{"account":%q}}`, role, w.namespace+"."+account)
	plural := map[string]string{"Role": "/roles", "ClusterRole": "/clusterroles"}[kind]
	bindings := map[string]string{"Role": "/rolebindings", "ClusterRole": "/clusterrolebindings"}[kind]
	r := w.send(t, http.MethodPost, path+plural, mediaJSON, fmt.Sprintf(`{%s,"rules":[%s]}`, head, policy))
	require.Equal(t, http.StatusCreated, r.code, r.text)
	r = w.send(t, http.MethodPost, path+bindings, mediaJSON, fmt.Sprintf(
		`{%s,"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":%q,"name":%q},"subjects":[{"kind":"ServiceAccount","name":%q,"namespace":%q}]}`,
		head, kind, role, account, w.namespace))
	require.Equal(t, http.StatusCreated, r.code, r.text)
}

// dropRoles takes every right of an account back.
func (w *world) dropRoles(t *testing.T, account string) {
	t.Helper()
	for _, path := range []string{"/namespaces/" + w.namespace + "/rolebindings", "/namespaces/" + w.namespace + "/roles", "/clusterrolebindings", "/clusterroles"} {
		r := w.send(t, http.MethodDelete, rbacPath+path+"?labelSelector=account%3D"+w.namespace+"."+account, "", "")
		require.Equal(t, http.StatusOK, r.code, r.text)
	}
}

// removeAccount ends an account.
func (w *world) removeAccount(t *testing.T, name string) {
	t.Helper()
	if w.embedded != nil {
		require.NoError(t, w.embedded.RemoveAccount(w.namespace, name))
		return
	}
	r := w.send(t, http.MethodDelete, "/api/v1/namespaces/"+w.namespace+"/serviceaccounts/"+name, "", "")
	require.Equal(t, http.StatusOK, r.code, r.text)
}

// awaitRights waits until a real server knows the rules, and has forgotten the ones before.
func (w *world) awaitRights(t *testing.T, rules []cluster.Rule) {
	t.Helper()
	probes := []struct{ verb, resource string }{{"get", "services"}, {"create", "services"}, {"patch", "services"}, {"list", "services"}}
	require.Eventually(t, func() bool {
		for _, probe := range probes {
			r := review(probe.resource, probe.verb, w.namespace)(t, w)
			if r.code != http.StatusCreated {
				return false
			}
			allowed, _ := object(dig(r.body, "status"))["allowed"].(bool)
			if allowed != gives(rules, probe.verb, probe.resource) {
				return false
			}
		}
		return true
	}, 20*time.Second, 50*time.Millisecond, "the rights are not in force")
}

// gives reports whether rules allow a verb on any object of a resource.
func gives(rules []cluster.Rule, verb, resource string) bool {
	return slices.ContainsFunc(rules, func(r cluster.Rule) bool {
		return len(r.ResourceNames) == 0 && (slices.Contains(r.Verbs, verb) || slices.Contains(r.Verbs, "*")) &&
			(slices.Contains(r.Resources, resource) || slices.Contains(r.Resources, "*"))
	})
}
