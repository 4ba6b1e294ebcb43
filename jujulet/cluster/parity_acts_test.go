// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cluster_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// The media types of requests.
const (
	mediaJSON      = "application/json"
	mediaApply     = "application/apply-patch+yaml"
	mediaMerge     = "application/merge-patch+json"
	mediaStrategic = "application/strategic-merge-patch+json"
	mediaJSONPatch = "application/json-patch+json"
)

// change edits the body of a Service.
type change func(m map[string]any)

// service is the body of the Service "db": two named ports, a selector, and type, with changes.
func service(typ string, changes ...change) string {
	m := map[string]any{
		"apiVersion": "v1", "kind": "Service",
		"metadata": map[string]any{"name": "db"},
		"spec": map[string]any{
			"type":     typ,
			"selector": map[string]any{"app.kubernetes.io/name": "db"},
			"ports": []any{
				map[string]any{"name": "mysql-rw", "port": 6446, "targetPort": 6446, "protocol": "TCP"},
				map[string]any{"name": "mysql-ro", "port": 6447, "targetPort": 6447, "protocol": "TCP"},
			},
		},
	}
	for _, c := range changes {
		c(m)
	}
	data, err := json.Marshal(m)
	if err != nil {
		panic("internal error: " + err.Error())
	}
	return string(data)
}

// set puts a value at a dotted path.
func set(path string, value any) change {
	return func(m map[string]any) {
		parts := strings.Split(path, ".")
		for _, p := range parts[:len(parts)-1] {
			next, ok := m[p].(map[string]any)
			if !ok {
				next = map[string]any{}
				m[p] = next
			}
			m = next
		}
		m[parts[len(parts)-1]] = value
	}
}

// spec sets a field of the spec; without removes one; port sets a field of one of the two ports.
func spec(field string, value any) change { return set("spec."+field, value) }

func without(field string) change {
	return func(m map[string]any) { delete(m["spec"].(map[string]any), field) }
}

func port(i int, field string, value any) change {
	return func(m map[string]any) {
		p := m["spec"].(map[string]any)["ports"].([]any)[i].(map[string]any)
		if value == nil {
			delete(p, field)
			return
		}
		p[field] = value
	}
}

func nodePorts(rw, ro any) change {
	return func(m map[string]any) {
		port(0, "nodePort", rw)(m)
		port(1, "nodePort", ro)(m)
	}
}

func ports(list ...any) change { return spec("ports", list) }

func annotations(pairs ...string) change {
	a := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		a[pairs[i]] = pairs[i+1]
	}
	return set("metadata.annotations", a)
}

func named(name string) change { return set("metadata.name", name) }

// path is that of the Services of the namespace, or of one, or of its subresource.
func (w *world) path(parts ...string) string {
	return "/api/v1/namespaces/" + w.namespace + "/services" + strings.Join(append([]string{""}, parts...), "/")
}

func nameIn(body string) string {
	var m struct{ Metadata struct{ Name string } }
	_ = json.Unmarshal([]byte(body), &m)
	return m.Metadata.Name
}

// The acts. apply forces and is by the world's manager; applyAs names both.

func apply(body string) act { return applyQuery(body, "force", "true") }

func applyDry(body string) act { return applyQuery(body, "force", "true", "dryRun", "All") }

func applyAs(manager string, force bool, body string) act {
	f := "false"
	if force {
		f = "true"
	}
	return applyQuery(body, "force", f, "fieldManager", manager)
}

func applyQuery(body string, pairs ...string) act {
	return func(t *testing.T, w *world) reply {
		q := url.Values{"fieldManager": {w.manager}}
		for i := 0; i+1 < len(pairs); i += 2 {
			q.Set(pairs[i], pairs[i+1])
		}
		return w.send(t, http.MethodPatch, w.path(nameIn(body))+"?"+q.Encode(), mediaApply, body)
	}
}

func create(body string, query ...string) act {
	return func(t *testing.T, w *world) reply {
		return w.send(t, http.MethodPost, w.path()+"?"+strings.Join(query, "&"), mediaJSON, body)
	}
}

func put(body string) act {
	return func(t *testing.T, w *world) reply {
		return w.send(t, http.MethodPut, w.path(nameIn(body)), mediaJSON, body)
	}
}

// patch patches "db" by the user kubectl-edit.
func patch(media, body string) act { return patchAs("kubectl-edit", media, body) }

func patchAs(manager, media, body string) act {
	return func(t *testing.T, w *world) reply {
		return w.send(t, http.MethodPatch, w.path("db")+"?fieldManager="+manager, media, body)
	}
}

// status merges body into the status subresource of "db".
func status(body string) act {
	return func(t *testing.T, w *world) reply {
		return w.send(t, http.MethodPatch, w.path("db", "status")+"?fieldManager=cloud", mediaMerge, body)
	}
}

// ingress reports the addresses of the load balancer of "db".
func ingress(list string) act { return status(`{"status":{"loadBalancer":{"ingress":` + list + `}}}`) }

func get(name string) act {
	return func(t *testing.T, w *world) reply { return w.send(t, http.MethodGet, w.path(name), "", "") }
}

func remove(name, options string) act {
	return func(t *testing.T, w *world) reply {
		return w.send(t, http.MethodDelete, w.path(name), mediaJSON, options)
	}
}

// raw sends anything; NS in path and body stands for the namespace.
func raw(method, path, media, body string) act {
	return func(t *testing.T, w *world) reply {
		fill := strings.NewReplacer("NS", w.namespace)
		return w.send(t, method, fill.Replace(path), media, fill.Replace(body))
	}
}
