// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cluster_test

// The parity tests hold what a real API server was seen to do, as tables: each row is a story of requests
// with what is seen after each. They run against the embedded server; with PARITY_SERVER, PARITY_TOKEN and
// PARITY_CA (a file) in the environment they run against a real one, so that both are held to one table.
//
// What is seen is a line of key=value words (see look); a row names the words that matter. Numbers that a
// server makes up are compared by the order in which they are first seen: ip1, np1, np2, uid1.

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cluster"
)

// world is one namespace on one server, seen by one user.
type world struct {
	transport http.RoundTripper
	base      string
	token     string
	namespace string
	// embedded is nil against a real server.
	embedded *cluster.Server
	// manager is the field manager of apply.
	manager string
	aliases map[string]string
	counts  map[string]int
	version string
}

// newWorld makes an empty namespace, on a server of its own unless a real one is given.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{manager: "drawbridge-k8s", aliases: map[string]string{}, counts: map[string]int{}}
	if base := os.Getenv("PARITY_SERVER"); base != "" {
		realServer(t, w, base)
		return w
	}
	s := newServer(t, cluster.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done; s.Close() })
	w.embedded, w.transport, w.base, w.token, w.namespace = s, s.RoundTripper(), "http://embedded", adminToken, "dev"
	return w
}

func realServer(t *testing.T, w *world, base string) {
	t.Helper()
	ca, err := os.ReadFile(os.Getenv("PARITY_CA"))
	require.NoError(t, err)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(ca), "PARITY_CA holds no certificate")
	w.transport, w.base, w.token = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}, base, os.Getenv("PARITY_TOKEN")
	r := w.send(t, "POST", "/api/v1/namespaces", "application/json", `{"metadata":{"generateName":"parity-"}}`)
	require.Equal(t, http.StatusCreated, r.code, r.text)
	w.namespace = str(r.body, "metadata", "name")
	t.Cleanup(func() {
		// The numbers of node ports are the whole server's: they are given back before the namespace goes.
		w.send(t, "DELETE", "/api/v1/namespaces/"+w.namespace+"/services", "", "")
		w.send(t, "DELETE", "/api/v1/namespaces/"+w.namespace, "", "")
	})
}

// as is the same namespace seen with another token.
func (w *world) as(token string) *world {
	other := *w
	other.token = token
	return &other
}

// reply is what came back.
type reply struct {
	code int
	text string
	body map[string]any
}

func (w *world) request(ctx context.Context, method, path, contentType, body string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, w.base+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if w.token != "" {
		r.Header.Set("Authorization", "Bearer "+w.token)
	}
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	r.Header.Set("User-Agent", "parity/1")
	return w.transport.RoundTrip(r)
}

func (w *world) send(t *testing.T, method, path, contentType, body string) reply {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 20*time.Second)
	defer cancel()
	resp, err := w.request(ctx, method, path, contentType, body)
	require.NoError(t, err)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	out := reply{code: resp.StatusCode, text: string(data)}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	_ = d.Decode(&out.body)
	return out
}

// act is one request of a story.
type act func(t *testing.T, w *world) reply

// step is one request, the words that must be seen, and a part of the message of an error.
type step struct {
	do   act
	want string
	says string
}

// story is one row of a table.
type story struct {
	name  string
	steps []step
}

// tell runs the rows of a table, each in a world of its own.
func tell(t *testing.T, rows []story) {
	t.Helper()
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for i, s := range row.steps {
				where := fmt.Sprintf("step %d", i+1)
				if d, ok := differences[t.Name()+" "+where]; ok && w.embedded == nil {
					t.Logf("%s: accepted difference: %s", where, d.why)
					r := s.do(t, w)
					require.NotEmpty(t, misfits(s.want, w.look(r)), "%s: the difference is gone: take it out of differences", where)
					w.check(t, where, step{want: d.want}, r)
					continue
				}
				w.check(t, where, s, s.do(t, w))
			}
		})
	}
}

func (w *world) check(t *testing.T, where string, s step, r reply) {
	t.Helper()
	seen := w.look(r)
	require.Empty(t, misfits(s.want, seen), "%s\nseen: %s\nanswer: %s", where, line(seen), r.text)
	if s.says != "" {
		require.Contains(t, str(r.body, "message"), s.says, "%s\nseen: %s", where, line(seen))
	}
}

// misfits are the words of want that were not seen.
func misfits(want string, seen map[string]string) []string {
	var out []string
	for _, word := range strings.Fields(want) {
		key, value, pair := strings.Cut(word, "=")
		if !pair {
			key, value = "code", word
		}
		if seen[key] != value {
			out = append(out, fmt.Sprintf("%s: wanted %q, seen %q", key, value, seen[key]))
		}
	}
	return out
}

func line(words map[string]string) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(words)) {
		out = append(out, k+"="+words[k])
	}
	return strings.Join(out, " ")
}

// look turns an answer into words.
func (w *world) look(r reply) map[string]string {
	seen := map[string]string{"code": fmt.Sprint(r.code)}
	if str(r.body, "kind") == "Status" {
		seen["reason"] = str(r.body, "reason")
		seen["kind"] = str(r.body, "details", "kind")
		causes, _ := dig(r.body, "details", "causes").([]any)
		seen["causes"] = fmt.Sprint(len(causes))
		if len(causes) > 0 {
			seen["field"], seen["cause"] = str(causes[0], "field"), str(causes[0], "reason")
		}
		return seen
	}
	meta := dig(r.body, "metadata")
	version := str(meta, "resourceVersion")
	switch {
	case version == w.version && version != "":
		seen["rv"] = "same"
	case version != "":
		seen["rv"] = "changed"
	}
	w.version = version
	seen["uid"] = w.alias("uid", str(meta, "uid"))
	for k, v := range object(dig(meta, "annotations")) {
		seen["a."+k] = fmt.Sprint(v)
	}
	for k, v := range object(dig(meta, "labels")) {
		seen["l."+k] = fmt.Sprint(v)
	}
	seen["annotations"] = fmt.Sprint(len(object(dig(meta, "annotations"))))
	seen["generation"] = str(meta, "generation")
	seen["deleting"] = fmt.Sprint(str(meta, "deletionTimestamp") != "")
	seen["managers"] = managers(dig(meta, "managedFields"))
	w.lookService(seen, r.body)
	return seen
}

func (w *world) lookService(seen map[string]string, body map[string]any) {
	spec := dig(body, "spec")
	for word, field := range map[string]string{
		"type": "type", "families": "ipFamilyPolicy", "internal": "internalTrafficPolicy", "external": "externalTrafficPolicy",
		"affinity": "sessionAffinity", "allocate": "allocateLoadBalancerNodePorts", "class": "loadBalancerClass",
	} {
		seen[word] = str(spec, field)
	}
	seen["ip"] = w.alias("ip", str(spec, "clusterIP"))
	seen["family"] = strings.Join(texts(dig(spec, "ipFamilies")), ",")
	seen["ranges"] = strings.Join(texts(dig(spec, "loadBalancerSourceRanges")), ",")
	seen["health"] = w.alias("health", str(spec, "healthCheckNodePort"))
	seen["selector"] = strings.Join(slices.Sorted(maps.Keys(object(dig(spec, "selector")))), ",")
	ports, _ := dig(spec, "ports").([]any)
	var order []string
	for _, p := range ports {
		name := str(p, "name")
		order = append(order, name+":"+str(p, "port"))
		seen["np."+name] = w.alias("np", str(p, "nodePort"))
		seen["target."+name] = str(p, "targetPort")
	}
	seen["ports"] = strings.Join(order, ",")
	ingress, _ := dig(body, "status", "loadBalancer", "ingress").([]any)
	var addresses []string
	for _, in := range ingress {
		addresses = append(addresses, strings.Trim(str(in, "ip")+"/"+str(in, "hostname")+"/"+str(in, "ipMode"), "/"))
	}
	seen["lb"] = strings.Join(addresses, ",")
	seen["ingress"] = fmt.Sprint(len(ingress))
}

// alias names a value by kind and by the order in which it was first seen. Fixed numbers are as they are.
func (w *world) alias(kind, value string) string {
	if value == "" || value == "0" || value == "None" || fixedNumbers[value] {
		return strings.TrimPrefix(value, "0")
	}
	key := kind + " " + value
	if w.aliases[key] == "" {
		w.counts[kind]++
		w.aliases[key] = fmt.Sprintf("%s%d", kind, w.counts[kind])
	}
	return w.aliases[key]
}

// fixedNumbers are the node ports that the rows ask for.
var fixedNumbers = map[string]bool{"31234": true, "31235": true, "31236": true}

// managers lists who owns fields, as manager:operation[:subresource].
func managers(v any) string {
	list, _ := v.([]any)
	var out []string
	for _, m := range list {
		out = append(out, strings.TrimSuffix(str(m, "manager")+":"+str(m, "operation")+":"+str(m, "subresource"), ":"))
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}

func dig(v any, path ...string) any {
	for _, p := range path {
		v = object(v)[p]
	}
	return v
}

func object(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

func str(v any, path ...string) string {
	if v = dig(v, path...); v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

func texts(v any) []string {
	list, _ := v.([]any)
	var out []string
	for _, x := range list {
		out = append(out, fmt.Sprint(x))
	}
	return out
}
