// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cluster"
)

// event is one event of a watch.
type event struct {
	Type   string
	Object map[string]any
}

// watching is an open watch.
type watching struct {
	events chan event
	code   int
}

// watch opens a watch of the Services of the namespace; query is as in url.Values.
func (w *world) watch(t *testing.T, query ...string) *watching {
	t.Helper()
	q := url.Values{"watch": {"1"}}
	for i := 0; i+1 < len(query); i += 2 {
		q.Set(query[i], query[i+1])
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	resp, err := w.request(ctx, http.MethodGet, w.path()+"?"+q.Encode(), "", "")
	require.NoError(t, err)
	out := &watching{events: make(chan event), code: resp.StatusCode}
	go func() {
		defer close(out.events)
		defer resp.Body.Close()
		d := json.NewDecoder(resp.Body)
		for {
			var e event
			if d.Decode(&e) != nil {
				return
			}
			select {
			case out.events <- e:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

// next waits for the next event; ok is false at the end of the stream.
func (x *watching) next(t *testing.T) (e event, ok bool) {
	t.Helper()
	select {
	case e, ok = <-x.events:
		return e, ok
	case <-time.After(15 * time.Second):
		t.Fatal("no event for 15 s")
	}
	return event{}, false
}

// expect compares the next events, each as "TYPE name".
func (x *watching) expect(t *testing.T, want ...string) []event {
	t.Helper()
	var all []event
	for _, w := range want {
		e, ok := x.next(t)
		require.True(t, ok, "the stream ended before %s", w)
		require.Equal(t, w, e.Type+" "+str(e.Object, "metadata", "name"), "%v", e.Object)
		all = append(all, e)
	}
	return all
}

func (w *world) must(t *testing.T, code int, do act) reply {
	t.Helper()
	r := do(t, w)
	require.Equal(t, code, r.code, r.text)
	return r
}

func simple(name string, changes ...change) string {
	return service("ClusterIP", append([]change{named(name)}, changes...)...)
}

// TestParity_WatchOne: one object by field selector.
func TestParity_WatchOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.must(t, 201, apply(simple("db")))
	x := w.watch(t, "fieldSelector", "metadata.name=db", "resourceVersion", "0")
	x.expect(t, "ADDED db")
	w.must(t, 201, apply(simple("other")))
	w.must(t, 200, apply(simple("db"))) // changes nothing: no event
	w.must(t, 200, apply(simple("db", annotations("a/b", "c"))))
	w.must(t, 200, remove("db", ""))
	again := w.must(t, 201, apply(simple("db")))
	events := x.expect(t, "MODIFIED db", "DELETED db", "ADDED db")
	require.Equal(t, str(first.body, "metadata", "uid"), str(events[1].Object, "metadata", "uid"))
	require.Equal(t, str(again.body, "metadata", "uid"), str(events[2].Object, "metadata", "uid"))
	require.NotEqual(t, str(events[1].Object, "metadata", "uid"), str(events[2].Object, "metadata", "uid"))
}

// TestParity_WatchAbsent: an absent object gives silence until it appears, also without a version.
func TestParity_WatchAbsent(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"", "0"} {
		w := newWorld(t)
		x := w.watch(t, "fieldSelector", "metadata.name=db", "resourceVersion", version)
		w.must(t, 201, apply(simple("other")))
		w.must(t, 201, apply(simple("db")))
		x.expect(t, "ADDED db")
	}
}

// TestParity_WatchLabels: an object that stops matching is DELETED, one that begins to is ADDED.
func TestParity_WatchLabels(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	label := func(v string) string {
		return simple("db", set("metadata.labels", map[string]any{"tier": v}))
	}
	x := w.watch(t, "labelSelector", "tier=front", "resourceVersion", "0")
	w.must(t, 201, apply(label("back")))
	w.must(t, 200, apply(label("front")))
	w.must(t, 200, apply(simple("db", set("metadata.labels", map[string]any{"tier": "front", "more": "yes"}))))
	w.must(t, 200, apply(label("back")))
	w.must(t, 200, remove("db", ""))
	w.must(t, 201, apply(label("front")))
	w.must(t, 200, remove("db", ""))
	x.expect(t, "ADDED db", "MODIFIED db", "DELETED db", "ADDED db", "DELETED db")
}

// TestParity_WatchVersions: from a list's version, from one that is too old, from the future.
func TestParity_WatchVersions(t *testing.T) {
	t.Parallel()
	t.Run("of a list", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.must(t, 201, apply(simple("db")))
		list := w.must(t, 200, get(""))
		w.must(t, 201, apply(simple("later")))
		x := w.watch(t, "resourceVersion", str(list.body, "metadata", "resourceVersion"))
		w.must(t, 200, remove("db", ""))
		x.expect(t, "ADDED later", "DELETED db")
	})
	t.Run("too old", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		if w.embedded == nil {
			t.Skip("the window of a real server is too wide to fall out of in a test")
		}
		s := newServer(t, cluster.Options{History: 4})
		w.transport = s.RoundTripper()
		old := w.must(t, 201, apply(simple("db")))
		version := str(old.body, "metadata", "resourceVersion")
		for i := range 10 {
			w.must(t, 201, apply(simple(fmt.Sprintf("s%d", i))))
		}
		x := w.watch(t, "fieldSelector", "metadata.name=db", "resourceVersion", version)
		require.Equal(t, http.StatusOK, x.code)
		e, ok := x.next(t)
		require.True(t, ok)
		require.Equal(t, "ERROR", e.Type)
		require.Equal(t, "410", str(e.Object, "code"))
		require.Equal(t, "Expired", str(e.Object, "reason"))
		require.Regexp(t, `^too old resource version: `+version+` \(\d+\)$`, str(e.Object, "message"))
		_, ok = x.next(t)
		require.False(t, ok)
		w.check(t, "list", step{want: "410 reason=Expired"}, raw(http.MethodGet, w.path()+"?resourceVersionMatch=Exact&resourceVersion="+version, "", "")(t, w))
	})
	t.Run("future", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		if w.embedded == nil {
			t.Skip("a real server may wait for a version of the future")
		}
		x := w.watch(t, "resourceVersion", "999999999")
		e, ok := x.next(t)
		require.True(t, ok)
		require.Equal(t, "ERROR", e.Type)
		require.Equal(t, "504", str(e.Object, "code"))
		require.Contains(t, str(e.Object, "message"), "Too large resource version")
		w.check(t, "list", step{want: "504 reason=Timeout", says: "Too large resource version"}, raw(http.MethodGet, w.path()+"?resourceVersion=999999999", "", "")(t, w))
	})
	t.Run("bad", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		x := w.watch(t, "resourceVersion", "bad")
		require.Equal(t, http.StatusInternalServerError, x.code)
	})
}

// TestParity_WatchEnds: timeoutSeconds ends a watch without an event.
func TestParity_WatchEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := w.watch(t, "resourceVersion", "0", "timeoutSeconds", "1")
	_, ok := x.next(t)
	require.False(t, ok)
}

// TestParity_WatchList: informers ask for the state as events with a bookmark at the end.
func TestParity_WatchList(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(t, 201, apply(simple("db")))
	x := w.watch(t, "sendInitialEvents", "true", "resourceVersionMatch", "NotOlderThan", "allowWatchBookmarks", "true")
	events := x.expect(t, "ADDED db", "BOOKMARK ")
	require.Equal(t, "true", str(events[1].Object, "metadata", "annotations", "k8s.io/initial-events-end"))
	require.NotEmpty(t, str(events[1].Object, "metadata", "resourceVersion"))
	w.must(t, 201, apply(simple("later")))
	x.expect(t, "ADDED later")
}

// TestParity_FieldSelectors: the fields that may be asked for.
func TestParity_FieldSelectors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for kind, fields := range map[string][]string{
		"services": {"metadata.name", "metadata.namespace", "spec.type", "spec.clusterIP"},
		"pods":     {"spec.nodeName", "status.phase", "status.podIP"},
		"events": {"involvedObject.name", "involvedObject.kind", "involvedObject.uid", "involvedObject.namespace",
			"type", "reason", "source", "reportingComponent"},
	} {
		for _, field := range fields {
			r := raw(http.MethodGet, "/api/v1/namespaces/NS/"+kind+"?fieldSelector="+url.QueryEscape(field+"=x"), "", "")(t, w)
			require.Equal(t, http.StatusOK, r.code, "%s by %s: %s", kind, field, r.text)
		}
		r := raw(http.MethodGet, "/api/v1/namespaces/NS/"+kind+"?fieldSelector=bogus%3Dx", "", "")(t, w)
		require.Equal(t, http.StatusBadRequest, r.code, r.text)
		require.Contains(t, str(r.body, "message"), "field label not supported: bogus")
	}
	w.must(t, http.StatusOK, raw(http.MethodGet, "/api/v1/nodes?fieldSelector=spec.unschedulable%3Dtrue", "", ""))
	w.must(t, 201, apply(simple("db")))
	w.must(t, 201, apply(service("NodePort", named("np"))))
	r := w.must(t, 200, raw(http.MethodGet, "/api/v1/namespaces/NS/services?fieldSelector=spec.type%3DNodePort", "", ""))
	items, _ := dig(r.body, "items").([]any)
	require.Len(t, items, 1)
	require.Equal(t, "np", str(items[0], "metadata", "name"))
	require.Empty(t, str(items[0], "kind"), "items of a list carry no kind")
}
