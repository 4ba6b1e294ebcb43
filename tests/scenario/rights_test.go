// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package scenario

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"path"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/drawbridge-k8s/drawbridge/connections"
	"github.com/drawbridge-k8s/drawbridge/jujulet/cluster"
	"github.com/drawbridge-k8s/drawbridge/tests/world"
)

// TestLeastRights gives the charm exactly the rights that docs/operations.md
// lists: all modes work, the watch's streams open, and each right is used.
func TestLeastRights(t *testing.T) {
	t.Parallel()
	rules := documentedRights(t)
	w := world.New(t, world.Options{Untrusted: true})
	w.Deploy(world.Gateway, world.Gateway, 1, nil)
	w.Rights(world.Gateway, rules...)
	used := recordRights(w)
	w.Deploy(world.Backend, world.Backend, 1, nil)
	w.Deploy(world.Client, world.Client, 1, map[string]string{"database": world.Database})
	w.Integrate(world.Gateway+":backend-database", world.Backend+":database")
	w.Integrate(world.Gateway+":database", world.Client+":database")
	w.Settle()
	require.Contains(t, w.Status(w.Leader()), "active in-cluster")
	w.Config("expose-external", "nodeport")
	w.Settle()
	w.Answer(w.NodePorts()...)
	w.Notice(w.Leader())
	require.Contains(t, w.Status(w.Leader()), "active nodeport")
	w.Config("expose-external", "loadbalancer")
	w.Settle()
	require.Contains(t, w.Status(w.Leader()), "no address yet")
	w.Ingress(lbFirst)
	w.Answer(ports(lbFirst)...)
	w.Notice(w.Leader())
	require.Contains(t, w.Status(w.Leader()), "active loadbalancer")
	w.ConfigMap("model-prediction", "model", "version", "3")
	w.Config(connections.OptConfigMaps, "model-prediction")
	w.Settle()
	require.Contains(t, w.Status(w.Leader()), "active loadbalancer")
	require.NotEmpty(t, w.Told(world.Gateway))
	watchAll(t, w)

	var documented []string
	for _, rule := range rules {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				documented = append(documented, verb+" "+resource)
			}
		}
	}
	require.ElementsMatch(t, documented, used(), "the rights in docs/operations.md are those that are used")
}

// watchAll opens the streams that the watch opens.
func watchAll(t *testing.T, w *world.World) {
	t.Helper()
	kube := w.Kubernetes(world.Gateway)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for name, open := range map[string]func(seen func()) error{
		"service": func(seen func()) error {
			return kube.WatchService(ctx, world.Service, func(*corev1.Service) { seen() })
		},
		"pods": func(seen func()) error {
			return kube.WatchPods(ctx, world.Gateway, func(*corev1.Pod, bool) { seen() })
		},
		"configmap": func(seen func()) error {
			return kube.WatchConfigMap(ctx, "model-prediction", func(string) { seen() })
		},
		"node": func(seen func()) error { return kube.WatchNode(ctx, "node-0", func(*corev1.Node) { seen() }) },
	} {
		first, failed := make(chan struct{}, 1), make(chan error, 1)
		go func() {
			failed <- open(func() {
				select {
				case first <- struct{}{}:
				default:
				}
			})
		}()
		select {
		case <-first:
		case err := <-failed:
			t.Fatalf("watch of %s ended: %v", name, err)
		}
	}
}

// documentedRights reads the rules of docs/operations.md.
func documentedRights(t *testing.T) []cluster.Rule {
	t.Helper()
	text, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(text), "## Least rights")
	require.True(t, found)
	block := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(section)
	require.NotNil(t, block)
	var rules []cluster.Rule
	for _, document := range bytes.Split([]byte(block[1]), []byte("\n---\n")) {
		var role struct {
			Kind  string
			Rules []rbacv1.PolicyRule
		}
		require.NoError(t, yaml.Unmarshal(document, &role))
		for _, rule := range role.Rules {
			namespace := world.Model
			if role.Kind == "ClusterRole" {
				namespace = ""
			}
			rules = append(rules, cluster.Rule{Namespace: namespace, PolicyRule: rule})
		}
	}
	require.NotEmpty(t, rules)
	return rules
}

// recordRights notes which verbs on which resources requests need.
func recordRights(w *world.World) (used func() []string) {
	var mu sync.Mutex
	seen := map[string]bool{}
	w.Fault(func(r *http.Request) error {
		mu.Lock()
		defer mu.Unlock()
		resource, name := path.Base(r.URL.Path), ""
		switch path.Base(path.Dir(r.URL.Path)) {
		case "services", "pods", "nodes", "events", "configmaps":
			resource, name = path.Base(path.Dir(r.URL.Path)), resource
		}
		switch {
		case r.Method == http.MethodPatch:
			seen["patch "+resource] = true
			if creates(r) {
				seen["create "+resource] = true
			}
		case r.Method == http.MethodPost:
			seen["create "+resource] = true
		case r.Method != http.MethodGet:
			seen[r.Method+" "+resource] = true
		case r.URL.Query().Get("watch") != "":
			seen["watch "+resource] = true
		case name == "":
			seen["list "+resource] = true
		default:
			seen["get "+resource] = true
		}
		return nil
	})
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		var list []string
		for right := range seen {
			list = append(list, right)
		}
		return list
	}
}

// creates reports whether a patch is a server-side apply, which makes what is
// not there.
func creates(r *http.Request) bool {
	return strings.HasPrefix(r.Header.Get("Content-Type"), "application/apply-patch")
}
