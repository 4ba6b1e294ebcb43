// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package k8sservice_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/drawbridge-k8s/drawbridge/k8sservice"
)

// api is a Kubernetes API of one Service: enough of apply, merge patch and the
// rules between types to prove what Client does with them.
type api struct {
	mu       sync.Mutex
	live     map[string]any
	owned    map[string]map[string]bool // manager and operation -> paths
	version  int
	log      []string                                                 // "GET services/db-service"
	answer   func(r *http.Request, w http.ResponseWriter) (done bool) // faults
	lists    map[string]string                                        // path -> body
	nextPort int
}

func newAPI() *api {
	return &api{owned: map[string]map[string]bool{}, lists: map[string]string{}, nextPort: 30100}
}

func (a *api) client(t *testing.T, change ...func(*k8sservice.Options)) *k8sservice.Client {
	t.Helper()
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("good\n"), 0o600))
	o := k8sservice.Options{Host: server.URL, TokenFile: token, Namespace: "dev", Transport: http.DefaultTransport}
	for _, f := range change {
		f(&o)
	}
	c, err := k8sservice.NewClient(o)
	require.NoError(t, err)
	return c
}

func (a *api) service() *corev1.Service {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.typed()
}

func (a *api) typed() *corev1.Service {
	text, _ := json.Marshal(a.object())
	var s corev1.Service
	if err := json.Unmarshal(text, &s); err != nil {
		panic(err)
	}
	return &s
}

func (a *api) requests() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.log)
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	name := strings.TrimPrefix(r.URL.Path, "/api/v1/")
	name = strings.TrimPrefix(name, "namespaces/dev/")
	entry := r.Method + " " + name
	if r.Method == "PATCH" {
		entry += " " + strings.TrimPrefix(r.Header.Get("Content-Type"), "application/")
	}
	a.log = append(a.log, entry)
	w.Header().Set("Content-Type", "application/json")
	if a.answer != nil && a.answer(r, w) {
		return
	}
	if text, ok := a.lists[name]; ok {
		io.WriteString(w, text)
		return
	}
	if !strings.HasPrefix(name, "services/") {
		refuse(w, 404, "NotFound", name+" not found")
		return
	}
	switch r.Method {
	case "GET":
		if a.live == nil {
			refuse(w, 404, "NotFound", `services "db-service" not found`)
			return
		}
	case "PATCH":
		body := map[string]any{}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			refuse(w, 400, "BadRequest", err.Error())
			return
		}
		if text := a.write(r, body); text != "" {
			refuse(w, 422, "Invalid", text)
			return
		}
	}
	json.NewEncoder(w).Encode(a.object())
}

// write applies or merges a body; a text is why it is refused.
func (a *api) write(r *http.Request, body map[string]any) string {
	manager := r.URL.Query().Get("fieldManager")
	if manager == "" {
		return "fieldManager: Required value"
	}
	next := clone(a.live)
	owned := map[string]map[string]bool{}
	for m, paths := range a.owned {
		owned[m] = maps.Clone(paths)
	}
	leaves := flatten("", body)
	if strings.Contains(r.Header.Get("Content-Type"), "apply-patch") {
		me := manager + "/Apply"
		for path := range owned[me] {
			if _, kept := leaves[path]; !kept && !heldBy(owned, path, me) {
				drop(next, path)
			}
		}
		owned[me] = map[string]bool{}
		for path, value := range leaves {
			if old, there := lookup(next, path); !there || fmt.Sprint(old) != fmt.Sprint(value) {
				for other := range owned {
					delete(owned[other], path)
				}
			}
			owned[me][path] = true
			put(next, path, value)
		}
	} else {
		me := manager + "/Update"
		if owned[me] == nil {
			owned[me] = map[string]bool{}
		}
		for path, value := range leaves {
			old, there := lookup(next, path)
			if there && fmt.Sprint(old) == fmt.Sprint(value) {
				continue
			}
			for other := range owned {
				delete(owned[other], path)
			}
			if value == nil {
				drop(next, path)
				continue
			}
			owned[me][path] = true
			put(next, path, value)
		}
	}
	if text := a.settle(next); text != "" {
		return text
	}
	a.live, a.owned = next, owned
	a.version++
	return ""
}

// settle applies the rules between the types: what is refused, wiped, kept and
// allocated.
func (a *api) settle(next map[string]any) string {
	kind, _ := lookup(next, "spec|type")
	_, ranges := lookup(next, "spec|loadBalancerSourceRanges")
	_, note := lookup(next, "metadata|annotations|"+corev1.AnnotationLoadBalancerSourceRangesKey)
	class, _ := lookup(next, "spec|loadBalancerClass")
	oldKind, _ := lookup(a.live, "spec|type")
	oldClass, _ := lookup(a.live, "spec|loadBalancerClass")
	switch {
	case kind != "LoadBalancer" && (ranges || note):
		return "spec.LoadBalancerSourceRanges: Forbidden: may only be used when `type` is 'LoadBalancer'"
	case kind == "LoadBalancer" && oldKind == kind && class != oldClass:
		return "spec.loadBalancerClass: Invalid value: may not change once set"
	}
	if kind != "LoadBalancer" {
		drop(next, "spec|loadBalancerClass")
		delete(next, "status")
	}
	spec, _ := next["spec"].(map[string]any)
	ports, _ := spec["ports"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(ports)) {
		p := ports[key].(map[string]any)
		if p["name"] == nil && len(ports) > 1 {
			return "spec.ports[0].name: Required value"
		}
		if kind == "ClusterIP" {
			delete(p, "nodePort")
		} else if p["nodePort"] == nil {
			a.nextPort++
			p["nodePort"] = a.nextPort
		}
	}
	if spec["clusterIP"] == nil {
		spec["clusterIP"] = "10.152.183.7"
	}
	metadata := next["metadata"].(map[string]any)
	if metadata["uid"] == nil {
		metadata["uid"] = "uid-1"
	}
	return ""
}

// object is the Service as it goes over the wire.
func (a *api) object() map[string]any {
	o := clone(a.live)
	o["apiVersion"], o["kind"] = "v1", "Service"
	metadata := o["metadata"].(map[string]any)
	metadata["resourceVersion"] = fmt.Sprint(a.version)
	var managed []any
	for _, manager := range slices.Sorted(maps.Keys(a.owned)) {
		name, operation, _ := strings.Cut(manager, "/")
		set := map[string]any{}
		for path := range a.owned[manager] {
			put(set, fieldPath(path), map[string]any{})
		}
		managed = append(managed, map[string]any{"manager": name, "operation": operation, "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": set})
	}
	metadata["managedFields"] = managed
	listOf := func(parent map[string]any, key string) {
		entries, _ := parent[key].(map[string]any)
		var list []any
		for _, k := range slices.Sorted(maps.Keys(entries)) {
			list = append(list, entries[k])
		}
		parent[key] = list
	}
	listOf(metadata, "ownerReferences")
	listOf(o["spec"].(map[string]any), "ports")
	return o
}

// fieldPath turns "spec|type" into "f:spec|f:type"; a key of a list is not one.
func fieldPath(path string) string {
	parts := strings.Split(path, "|")
	for i, part := range parts {
		if !strings.HasPrefix(part, "k:") {
			parts[i] = "f:" + part
		}
	}
	return strings.Join(parts, "|")
}

// flatten returns the leaves of an object by path; the two lists that merge by
// a key are taken as maps.
func flatten(prefix string, node map[string]any) map[string]any {
	leaves := map[string]any{}
	for name, value := range node {
		path := prefix + name
		if list, ok := value.([]any); ok && (path == "spec|ports" || path == "metadata|ownerReferences") {
			entries := map[string]any{}
			for _, e := range list {
				entry := e.(map[string]any)
				key := fmt.Sprintf(`k:{"uid":%q}`, entry["uid"])
				if path == "spec|ports" {
					key = fmt.Sprintf(`k:{"port":%v,"protocol":%q}`, entry["port"], entry["protocol"])
				}
				entries[key] = entry
			}
			value = entries
		}
		if path == "apiVersion" || path == "kind" || path == "metadata|name" {
			if path != "metadata|name" {
				continue
			}
		}
		if below, ok := value.(map[string]any); ok {
			maps.Copy(leaves, flatten(path+"|", below))
			continue
		}
		leaves[path] = value
	}
	return leaves
}

func heldBy(owned map[string]map[string]bool, path, except string) bool {
	for manager, paths := range owned {
		if manager != except && paths[path] {
			return true
		}
	}
	return false
}

func lookup(node map[string]any, path string) (any, bool) {
	name, rest, more := strings.Cut(path, "|")
	value, ok := node[name]
	if !ok || !more {
		return value, ok
	}
	below, _ := value.(map[string]any)
	return lookup(below, rest)
}

func put(node map[string]any, path string, value any) {
	name, rest, more := strings.Cut(path, "|")
	if !more {
		node[name] = value
		return
	}
	below, ok := node[name].(map[string]any)
	if !ok {
		below = map[string]any{}
		node[name] = below
	}
	put(below, rest, value)
}

func drop(node map[string]any, path string) {
	name, rest, more := strings.Cut(path, "|")
	if !more {
		delete(node, name)
		return
	}
	if below, ok := node[name].(map[string]any); ok {
		drop(below, rest)
		if len(below) == 0 {
			delete(node, name)
		}
	}
}

func clone(node map[string]any) map[string]any {
	text, _ := json.Marshal(node)
	copied := map[string]any{}
	_ = json.Unmarshal(text, &copied)
	if copied == nil {
		copied = map[string]any{}
	}
	return copied
}

// edit writes as somebody else would, by merge patch.
func (a *api) edit(t *testing.T, manager, patch string) {
	t.Helper()
	r := httptest.NewRequest("PATCH", "/api/v1/namespaces/dev/services/db-service?fieldManager="+manager, strings.NewReader(patch))
	r.Header.Set("Content-Type", "application/merge-patch+json")
	w := httptest.NewRecorder()
	a.ServeHTTP(w, r)
	require.Equal(t, 200, w.Code, w.Body.String())
	a.mu.Lock()
	a.log = nil
	a.mu.Unlock()
}

func refuse(w http.ResponseWriter, code int, reason, message string) {
	status := map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message}
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(status)
}
