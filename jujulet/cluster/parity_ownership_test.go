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
)

// TestParity_Ownership: who owns a field, and what becomes of it.
func TestParity_Ownership(t *testing.T) {
	t.Parallel()
	both := service("ClusterIP", annotations("a/one", "1", "a/two", "2"))
	one := service("ClusterIP", annotations("a/one", "1"))
	edit := func(value string) act {
		return patch(mediaMerge, fmt.Sprintf(`{"metadata":{"annotations":{"a/one":%q}}}`, value))
	}
	nothing := `{"apiVersion":"v1","kind":"Service","metadata":{"name":"db"}}`
	tell(t, []story{
		{"a key that is dropped goes, foreign things stay", []step{
			{do: apply(both), want: "201"},
			{do: patch(mediaMerge, `{"metadata":{"annotations":{"f/x":"y"},"labels":{"l":"v"},"finalizers":["a.b/c"]},"spec":{"sessionAffinity":"ClientIP"}}`), want: "200"},
			{do: apply(one), want: "200 a.a/one=1 a.a/two= a.f/x=y l.l=v affinity=ClientIP annotations=2"},
		}},
		{"an edited value conflicts without force", []step{
			{do: apply(one), want: "201"},
			{do: edit("edited"), want: "200"},
			{do: applyAs("drawbridge-k8s", false, one), want: "409 reason=Conflict causes=1 cause=FieldManagerConflict field=.metadata.annotations.a/one",
				says: `Apply failed with 1 conflict: conflict with "kubectl-edit" using v1: .metadata.annotations.a/one`},
			{do: apply(one), want: "200 a.a/one=1 managers=drawbridge-k8s:Apply"},
		}},
		{"an edited value that we drop stays", []step{
			{do: apply(both), want: "201"},
			{do: edit("edited"), want: "200"},
			{do: apply(service("ClusterIP", annotations("a/two", "2"))), want: "200 a.a/one=edited a.a/two=2"},
		}},
		{"a value that two appliers share stays until both drop it", []step{
			{do: apply(one), want: "201"},
			{do: applyAs("helm", false, one), want: "200"},
			{do: apply(service("ClusterIP")), want: "200 a.a/one=1"},
			{do: applyAs("helm", false, service("ClusterIP")), want: "200 a.a/one="},
		}},
		{"fields of another applier", []step{
			{do: applyAs("helm", false, service("ClusterIP", port(0, "targetPort", 3306))), want: "201"},
			{do: applyAs("drawbridge-k8s", false, service("NodePort")), want: "409 causes=2 reason=Conflict",
				says: "Apply failed with 2 conflicts: conflicts with \"helm\":\n- .spec.type\n- .spec.ports[port=6446,protocol=\"TCP\"].targetPort"},
			{do: apply(service("NodePort")), want: "200 type=NodePort target.mysql-rw=6446"},
			{do: applyAs("helm", false, service("ClusterIP", port(0, "targetPort", 3306))), want: "409 causes=2 reason=Conflict", says: `conflicts with "drawbridge-k8s"`},
		}},
		{"only the name", []step{
			{do: applyAs("helm", false, service("ClusterIP")), want: "201"},
			{do: apply(both), want: "200 managers=drawbridge-k8s:Apply,helm:Apply"},
			{do: apply(nothing), want: "200 annotations=0 ports=mysql-rw:6446,mysql-ro:6447 managers=helm:Apply"},
		}},
	})
}

// TestParity_Annotations: what a key and a value may be; with dry-run the same.
func TestParity_Annotations(t *testing.T) {
	t.Parallel()
	const (
		name   = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric"
		prefix = "prefix part a lowercase RFC 1123 subdomain must consist of"
	)
	limit := func(extra int) change { return annotations("a/b", strings.Repeat("x", 262144-len("a/b")+extra)) }
	rows := []struct {
		name, want, says string
		change           change
	}{
		{"space", "422", name, annotations("bad key", "v")},
		{"dash first", "422", name, annotations("-x", "v")},
		{"underscore first", "422", name, annotations("_y", "v")},
		{"umlaut", "422", name, annotations("ü", "v")},
		{"empty", "422", "name part must be non-empty", annotations("", "v")},
		{"no prefix", "422", "prefix part must be non-empty", annotations("/x", "v")},
		{"two slashes", "422", "a valid label key must consist of", annotations("a/b/c", "v")},
		{"name of 64", "422", "name part must be no more than 63 bytes", annotations(strings.Repeat("n", 64), "v")},
		{"prefix of 254", "422", "prefix part must be no more than 253 bytes", annotations(strings.Repeat("p", 254)+"/x", "v")},
		{"space in prefix", "422", prefix, annotations("a b/c", "v")},
		{"upper case prefix", "201 a.UP.CASE/x=v", "", annotations("UP.CASE/x", "v")},
		{"number", "500 reason=", "failed to create typed patch object", set("metadata.annotations", map[string]any{"a/b": 1})},
		{"bool", "500 reason=", "failed to create typed patch object", set("metadata.annotations", map[string]any{"a/b": true})},
		{"null", "201 annotations=1", "", set("metadata.annotations", map[string]any{"a/b": nil})},
		{"empty value", "201 a.a/b=", "", annotations("a/b", "")},
		{"newline and NUL", "201", "", annotations("a/b", "x\ny\x00z")},
		{"the most", "201", "", limit(0)},
		{"one more", "422", "Too long: may not be more than 262144 bytes", limit(1)},
	}
	var stories []story
	for _, row := range rows {
		want := row.want
		if want == "422" {
			want = "422 reason=Invalid field=metadata.annotations"
		}
		body := service("ClusterIP", row.change)
		stories = append(stories, story{row.name, []step{
			{do: applyDry(body), want: want, says: row.says},
			{do: get("db"), want: "404"},
			{do: apply(body), want: want, says: row.says},
		}})
	}
	stories = append(stories, story{"several are listed together", []step{
		{do: apply(service("ClusterIP", annotations("bad key", "v", "/x", "v"))), want: "422 causes=2"},
	}}, story{"YAML 1.1", []step{
		{do: apply(service("ClusterIP")), want: "201"},
		{do: applyYAML("apiVersion: v1\nkind: Service\nmetadata: {name: db, annotations: {a/b: y}}\nspec: {ports: [{port: 1}]}\n"), want: "500", says: "failed to create typed patch object"},
		{do: applyYAML("apiVersion: v1\nkind: Service\nmetadata: {name: db, annotations: {a/b: \"y\"}}\nspec: {ports: [{port: 1}]}\n"), want: "200 a.a/b=y"},
	}})
	tell(t, stories)
}

func applyYAML(text string) act {
	return func(t *testing.T, w *world) reply {
		return w.send(t, http.MethodPatch, w.path("db")+"?force=true&fieldManager="+w.manager, mediaApply, text)
	}
}

const statefulSet = `{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"db"},"spec":{"serviceName":"db","replicas":0,
"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`

// TestParity_Owners: owner references, and the garbage collector.
func TestParity_Owners(t *testing.T) {
	t.Parallel()
	owned := func(w *world, uid, name string, block bool) string {
		return service("ClusterIP", set("metadata.ownerReferences", []any{map[string]any{
			"apiVersion": "apps/v1", "kind": "StatefulSet", "name": name, "uid": uid, "blockOwnerDeletion": block}}))
	}
	sets := "/apis/apps/v1/namespaces/NS/statefulsets"
	start := func(t *testing.T) (*world, string) {
		w := newWorld(t)
		r := raw(http.MethodPost, sets, mediaJSON, statefulSet)(t, w)
		require.Equal(t, http.StatusCreated, r.code, r.text)
		return w, str(r.body, "metadata", "uid")
	}
	for _, row := range []struct {
		name  string
		owner func(uid string) (string, string)
		block bool
		stays bool
	}{
		{"right", func(uid string) (string, string) { return uid, "db" }, false, true},
		{"right and blocking", func(uid string) (string, string) { return uid, "db" }, true, true},
		{"wrong uid", func(string) (string, string) { return "00000000-0000-0000-0000-000000000000", "db" }, false, false},
		{"right uid, wrong name", func(uid string) (string, string) { return uid, "other" }, false, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w, uid := start(t)
			ownerUID, ownerName := row.owner(uid)
			r := apply(owned(w, ownerUID, ownerName, row.block))(t, w)
			require.Equal(t, http.StatusCreated, r.code, r.text)
			if row.stays {
				w.settle(t)
				require.Equal(t, http.StatusOK, get("db")(t, w).code)
				r := raw(http.MethodDelete, sets+"/db", mediaJSON, "")(t, w)
				require.Equal(t, http.StatusOK, r.code, r.text)
			}
			require.Eventually(t, func() bool { return get("db")(t, w).code == http.StatusNotFound }, 20*time.Second, 5*time.Millisecond)
		})
	}
	t.Run("texts", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.check(t, "create", step{want: "201"}, apply(service("ClusterIP"))(t, w))
		w.check(t, "no uid", step{want: "422 causes=3 field=metadata.ownerReferences.uid", says: `metadata.ownerReferences.uid: Invalid value: "": must not be empty`},
			apply(owned(w, "", "db", false))(t, w))
		w.check(t, "no name", step{want: "422 field=metadata.ownerReferences.name", says: "must not be empty"}, apply(owned(w, "u", "", false))(t, w))
	})
	t.Run("another owner replaces ours", func(t *testing.T) {
		t.Parallel()
		w, uid := start(t)
		r := raw(http.MethodPost, sets, mediaJSON, strings.Replace(statefulSet, `"name":"db"`, `"name":"two"`, 1))(t, w)
		require.Equal(t, http.StatusCreated, r.code, r.text)
		second := str(r.body, "metadata", "uid")
		for _, owner := range []string{uid + " db", second + " two"} {
			id, name, _ := strings.Cut(owner, " ")
			r := apply(owned(w, id, name, false))(t, w)
			refs, _ := dig(r.body, "metadata", "ownerReferences").([]any)
			require.Len(t, refs, 1, r.text)
			require.Equal(t, id, str(refs[0], "uid"))
		}
	})
}

// settle lets the controllers of the embedded server finish; a real one gets a moment.
func (w *world) settle(t *testing.T) {
	t.Helper()
	if w.embedded != nil {
		require.NoError(t, w.embedded.Settle())
		return
	}
	select {
	case <-time.After(3 * time.Second):
	case <-t.Context().Done():
	}
}

// TestParity_DryRun: the whole object that would be, and nothing changed.
func TestParity_DryRun(t *testing.T) {
	t.Parallel()
	tell(t, []story{
		{"of a change", []step{
			{do: apply(service("ClusterIP")), want: "201 ip=ip1"},
			{do: applyDry(service("NodePort")), want: "200 rv=same type=NodePort ip=ip1 np.mysql-rw=np1"},
			{do: get("db"), want: "200 rv=same type=ClusterIP np.mysql-rw="},
		}},
		{"of a creation", []step{
			{do: applyDry(service("NodePort")), want: "201 type=NodePort ip=ip1 np.mysql-rw=np1"},
			{do: get("db"), want: "404"},
			{do: create(service("NodePort"), "dryRun=All"), want: "201"},
			{do: get("db"), want: "404"},
		}},
		{"of a delete", []step{
			{do: apply(service("ClusterIP")), want: "201"},
			{do: remove("db", `{"dryRun":["All"]}`), want: "200"},
			{do: get("db"), want: "200"},
		}},
		{"of nothing known", []step{
			{do: applyQuery(service("ClusterIP"), "dryRun", "Some"), want: "422 reason=Invalid"},
		}},
	})
}
