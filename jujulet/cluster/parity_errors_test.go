// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cluster_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestParity_Errors: errors by shape.
func TestParity_Errors(t *testing.T) {
	t.Parallel()
	const services = "/api/v1/namespaces/NS/services"
	simple := service("ClusterIP")
	stale := `Operation cannot be fulfilled on services "db": the object has been modified; please apply your changes to the latest version and try again`
	rv := func(v string) change { return set("metadata.resourceVersion", v) }
	uid := set("metadata.uid", "00000000-0000-0000-0000-000000000000")
	exists := step{do: apply(simple), want: "201"}
	tell(t, []story{
		{"missing object", []step{
			{do: get("x"), want: "404 reason=NotFound kind=services", says: `services "x" not found`},
			{do: raw(http.MethodPatch, services+"/x", mediaMerge, `{}`), want: "404 reason=NotFound", says: `services "x" not found`},
			{do: remove("x", ""), want: "404 reason=NotFound", says: `services "x" not found`},
			{do: raw(http.MethodPatch, services+"/x/status", mediaMerge, `{}`), want: "404 reason=NotFound"},
		}},
		{"apply in a missing namespace", []step{
			{do: raw(http.MethodPatch, "/api/v1/namespaces/missing/services/db?fieldManager=m", mediaApply, simple), want: "404 reason=NotFound kind=namespaces", says: `namespaces "missing" not found`},
			{do: raw(http.MethodPost, "/api/v1/namespaces/missing/services", mediaJSON, simple), want: "404 kind=namespaces"},
			{do: raw(http.MethodGet, "/api/v1/namespaces/missing/services", "", ""), want: "200"},
		}},
		{"create twice", []step{
			{do: create(simple), want: "201"},
			{do: create(simple), want: "409 reason=AlreadyExists kind=services", says: `services "db" already exists`},
		}},
		{"stale version", []step{
			exists,
			{do: put(service("ClusterIP", rv("1"))), want: "409 reason=Conflict causes=0", says: stale},
			{do: patch(mediaMerge, `{"metadata":{"resourceVersion":"1","labels":{"a":"b"}}}`), want: "409 reason=Conflict causes=0", says: stale},
			{do: apply(service("ClusterIP", rv("1"))), want: "409 reason=Conflict causes=0", says: stale},
		}},
		{"delete with the wrong uid", []step{
			exists,
			{do: remove("db", `{"preconditions":{"uid":"x"}}`), want: "409 reason=Conflict"},
			{do: remove("db", `{"preconditions":{"resourceVersion":"1"}}`), want: "409 reason=Conflict"},
			{do: get("db"), want: "200"},
		}},
		{"wrong uid in the body", []step{
			exists,
			{do: apply(service("ClusterIP", uid)), want: "422 reason=Invalid field=metadata.uid", says: "field is immutable"},
			{do: patch(mediaMerge, `{"metadata":{"uid":"00000000-0000-0000-0000-000000000000"}}`), want: "422 field=metadata.uid", says: "field is immutable"},
		}},
		{"JSON patch whose test fails", []step{
			exists,
			{do: patch(mediaJSONPatch, `[{"op":"test","path":"/metadata/name","value":"x"}]`), want: "422 reason=Invalid", says: "the server rejected our request due to an error in our request"},
			{do: patch(mediaJSONPatch, `[{"op":"test","path":"/metadata/name","value":"db"},{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]`), want: "200 l.a=b"},
		}},
		{"no field manager", []step{
			{do: applyQuery(simple, "fieldManager", ""), want: "422 reason=Invalid", says: "fieldManager: Required value: is required for apply patch"},
		}},
		{"broken bodies", []step{
			exists,
			{do: create(`{"kind":`), want: "400 reason=BadRequest"},
			{do: raw(http.MethodPatch, services+"/db?fieldManager=m", mediaApply, `{"kind":`), want: "400 reason=BadRequest"},
			{do: patch(mediaMerge, `{"kind":`), want: "400 reason=BadRequest"},
			{do: patch(mediaJSONPatch, `{}`), want: "400 reason=BadRequest"},
			{do: create(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}`), want: "400 reason=BadRequest"},
		}},
		{"name mismatch", []step{
			exists,
			{do: raw(http.MethodPatch, services+"/other?fieldManager=m", mediaApply, simple), want: "400 reason=BadRequest", says: "does not match the name on the URL"},
			{do: raw(http.MethodPut, services+"/other", mediaJSON, simple), want: "400 reason=BadRequest", says: "does not match the name on the URL"},
			{do: put(service("ClusterIP", set("metadata.namespace", "elsewhere"))), want: "400 reason=BadRequest", says: "does not match the namespace sent on the request"},
		}},
		{"managed fields in an apply", []step{
			{do: apply(service("ClusterIP", set("metadata.managedFields", []any{map[string]any{"manager": "m"}}))), want: "400 reason=BadRequest", says: "metadata.managedFields must be nil"},
		}},
		{"unknown field", []step{
			{do: create(service("ClusterIP", spec("bogus", 1)), "fieldValidation=Strict"), want: "400 reason=BadRequest", says: `strict decoding error: unknown field "spec.bogus"`},
			{do: apply(service("ClusterIP", spec("bogus", 1))), want: "500 reason=", says: "failed to create typed patch object"},
			{do: create(service("ClusterIP", spec("bogus", 1))), want: "201"},
		}},
		{"the same port twice", []step{
			{do: apply(service("ClusterIP", port(1, "port", 6446))), want: "500 reason=", says: "failed to create typed patch object"},
		}},
		{"unknown patch type", []step{
			exists,
			{do: patch("application/bogus", `{}`), want: "415 reason=UnsupportedMediaType"},
		}},
		{"update without a version", []step{
			exists,
			{do: put(service("ClusterIP", annotations("a/b", "c"))), want: "200 a.a/b=c ip=ip1"},
		}},
		{"apply with a version on an absent object creates it", []step{
			{do: applyDry(service("ClusterIP", rv("7"))), want: "201"},
		}},
		{"delete answers with the object", []step{
			exists,
			{do: remove("db", ""), want: "200 type=ClusterIP ip=ip1"},
			{do: get("db"), want: "404"},
		}},
		{"too large", []step{
			{do: apply(service("ClusterIP", annotations("a/b", strings.Repeat("x", 3<<20)))), want: "413 reason=RequestEntityTooLarge", says: "3145728"},
		}},
		{"bad names", []step{
			{do: create(service("ClusterIP", named("Bad_Name"))), want: "422 field=metadata.name"},
			{do: create(service("ClusterIP", func(m map[string]any) { delete(m, "metadata") })), want: "422 field=metadata.name", says: "name or generateName is required"},
		}},
		{"outside the table", []step{
			{do: raw(http.MethodGet, "/api/v1/namespaces/NS/podtemplatez", "", ""), want: "404 reason=NotFound"},
			{do: raw(http.MethodDelete, services, mediaJSON, ""), want: "405 reason=MethodNotAllowed"},
			{do: raw("BREW", services, "", ""), want: "405 reason=MethodNotAllowed"},
			{do: raw(http.MethodPost, services+"/db", mediaJSON, simple), want: "405 reason=MethodNotAllowed"},
		}},
	})
}

// TestParity_GenerateName: five characters are added.
func TestParity_GenerateName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := create(service("ClusterIP", set("metadata", map[string]any{"generateName": "db-"})))(t, w)
	require.Equal(t, http.StatusCreated, r.code, r.text)
	require.Regexp(t, `^db-[a-z0-9]{5}$`, str(r.body, "metadata", "name"))
}

// TestParity_Terminating: apply to a Service that is being deleted succeeds; the last finalizer ends it.
func TestParity_Terminating(t *testing.T) {
	t.Parallel()
	tell(t, []story{{"finalizer", []step{
		{do: apply(service("ClusterIP")), want: "201"},
		{do: patch(mediaMerge, `{"metadata":{"finalizers":["a.b/c"]}}`), want: "200 deleting=false"},
		{do: remove("db", ""), want: "200 deleting=true"},
		{do: apply(service("NodePort")), want: "200 deleting=true type=NodePort"},
		{do: patch(mediaMerge, `{"metadata":{"finalizers":["a.b/c","d.e/f"]}}`), want: "422", says: "no new finalizers can be added if the object is being deleted"},
		{do: patch(mediaMerge, `{"metadata":{"finalizers":null}}`), want: "200 deleting=true"},
		{do: get("db"), want: "404"},
	}}})
}
