// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cluster

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"slices"
	"strings"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// account is one service account: a token and what it may do.
type account struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Token     string `json:"token"`
	Rules     []Rule `json:"rules,omitempty"`
}

func (a *account) key() string { return a.Namespace + "/" + a.Name }

// accounts finds accounts by token. The index is over hashes, so that a look-up tells nothing about a
// token by its time.
type accounts struct {
	mu     sync.RWMutex
	byKey  map[string]*account
	byHash map[[sha256.Size]byte]*account
}

func newAccounts() *accounts {
	return &accounts{byKey: map[string]*account{}, byHash: map[[sha256.Size]byte]*account{}}
}

func (as *accounts) set(a *account) {
	as.mu.Lock()
	defer as.mu.Unlock()
	if old := as.byKey[a.key()]; old != nil {
		delete(as.byHash, sha256.Sum256([]byte(old.Token)))
	}
	as.byKey[a.key()] = a
	as.byHash[sha256.Sum256([]byte(a.Token))] = a
}

// has reports whether exactly this account is there.
func (as *accounts) has(a *account) bool {
	as.mu.RLock()
	defer as.mu.RUnlock()
	old := as.byKey[a.key()]
	return old != nil && equality.Semantic.DeepEqual(*old, *a)
}

func (as *accounts) remove(key string) {
	as.mu.Lock()
	defer as.mu.Unlock()
	if old := as.byKey[key]; old != nil {
		delete(as.byHash, sha256.Sum256([]byte(old.Token)))
	}
	delete(as.byKey, key)
}

func (as *accounts) find(token string) *account {
	as.mu.RLock()
	defer as.mu.RUnlock()
	a := as.byHash[sha256.Sum256([]byte(token))]
	if a == nil || subtle.ConstantTimeCompare([]byte(a.Token), []byte(token)) != 1 {
		return nil
	}
	return a
}

// user is who makes a request. The zero value is the anonymous user, who may do next to nothing.
type user struct{ account *account }

func (u user) name() string {
	if u.account == nil {
		return "system:anonymous"
	}
	return "system:serviceaccount:" + u.account.Namespace + ":" + u.account.Name
}

// action is what rights are asked for.
type action struct {
	verb, group, resource, subresource, namespace, name string
}

// target is the resource as rules and error texts spell it.
func (a action) target() string {
	if a.subresource != "" {
		return a.resource + "/" + a.subresource
	}
	return a.resource
}

// allows reports whether u may do a, and by which rule.
func (u user) allows(a action) (reason string, ok bool) {
	if u.account == nil {
		return "", false
	}
	for _, r := range u.account.Rules {
		if r.Namespace != "" && r.Namespace != a.namespace || !ruleAllows(r.PolicyRule, a) {
			continue
		}
		n := u.account.Name
		if r.Namespace == "" {
			return fmt.Sprintf("RBAC: allowed by ClusterRoleBinding %q of ClusterRole %q to ServiceAccount %q", n, n, n+"/"+u.account.Namespace), true
		}
		return fmt.Sprintf("RBAC: allowed by RoleBinding %q of Role %q to ServiceAccount %q", n+"/"+r.Namespace, n, n+"/"+u.account.Namespace), true
	}
	return "", false
}

func ruleAllows(r rbacv1.PolicyRule, a action) bool {
	in := func(list []string, v string) bool { return slices.Contains(list, "*") || slices.Contains(list, v) }
	resource := in(r.Resources, a.target()) ||
		a.subresource != "" && slices.Contains(r.Resources, "*/"+a.subresource)
	named := len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, a.name)
	return in(r.Verbs, a.verb) && in(r.APIGroups, a.group) && resource && named
}

// refusal words what a misses, as the servers do.
func (u user) refusal(a action) error {
	where := "at the cluster scope"
	if a.namespace != "" {
		where = fmt.Sprintf("in the namespace %q", a.namespace)
	}
	//lint:ignore ST1005 the text is Kubernetes' own
	return fmt.Errorf("User %q cannot %s resource %q in API group %q %s", u.name(), a.verb, a.target(), a.group, where)
}

// openPaths may be read by anybody, discoveryPaths by whoever has a valid token.
var (
	openPaths      = []string{"/healthz", "/livez", "/readyz", "/version", "/version/"}
	discoveryPaths = []string{"/api", "/apis", "/openapi"}
)

// allowsPath decides about requests that are not for a resource.
func (u user) allowsPath(path string) bool {
	if slices.Contains(openPaths, path) {
		return true
	}
	if u.account == nil {
		return false
	}
	for _, p := range discoveryPaths {
		if path == p || strings.HasPrefix(path, p+"/") {
			return true
		}
	}
	_, all := u.allows(action{verb: "get", group: "*", resource: "*"})
	return all
}

// UntrustedRules are what Juju 3.6 gives an application without trust: its namespace get and list;
// get, list, patch of pods and services and create of pods/exec in it; namespaces get and list
// everywhere.
func UntrustedRules(namespace string) []Rule {
	core := func(ns string, verbs []string, resources ...string) Rule {
		return Rule{Namespace: ns, PolicyRule: rbacv1.PolicyRule{APIGroups: []string{""}, Resources: resources, Verbs: verbs}}
	}
	read, patch := []string{"get", "list"}, []string{"get", "list", "patch"}
	own := core(namespace, read, "namespaces")
	own.ResourceNames = []string{namespace}
	return []Rule{
		own,
		core(namespace, patch, "pods", "services"),
		core(namespace, []string{"create"}, "pods/exec"),
		core("", read, "namespaces"),
	}
}

// TrustedRules are what `juju trust --scope=cluster` gives: everything everywhere.
func TrustedRules() []Rule {
	all := []string{"*"}
	return []Rule{{PolicyRule: rbacv1.PolicyRule{APIGroups: all, Resources: all, Verbs: all}}}
}
