// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package controller

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cluster"
	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

func TestManifest(t *testing.T) {
	t.Parallel()
	api, err := cluster.New(cluster.Options{})
	require.NoError(t, err)
	t.Cleanup(api.Close)
	c := &modelWorker{Controller: &Controller{admin: api.Admin()}, info: model.Info{Name: "dev"}}
	_, err = c.admin.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "dev"}})
	require.NoError(t, err)
	apply := func(text string) []string {
		done, err := c.postObjects(t.Context(), applyRequest{Manifest: text})
		require.NoError(t, err)
		return done
	}
	const two = "# the first\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {x: \"y\"}}\ndata: {k: \"1\", l: \"2\"}\n---\n" +
		"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, namespace: dev}\nbinaryData: {x: AAE=}\n"
	require.Equal(t, []string{"configmap/a created", "configmap/b created"}, apply(two))
	require.Equal(t, []string{"configmap/a unchanged", "configmap/b unchanged"}, apply(two))
	require.Equal(t, []string{"configmap/a configured"}, apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: \"3\"}}"))
	a, err := cluster.Get[*corev1.ConfigMap](c.admin, "dev", "a")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"k": "3"}, a.Data, "what the manifest no longer has goes")
	for text, problem := range map[string]string{
		"":                               "no objects passed to apply",
		"a: [":                           "cannot read the manifest",
		"{metadata: {name: a}}":          "a document has no kind",
		"{apiVersion: v1, kind: Secret}": "cannot apply a Secret of v1: only ConfigMaps",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: other}}": `cannot apply to namespace "other"`,
		"{apiVersion: v1, kind: ConfigMap}":                                        "without a name",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: A_B}}":                 "Invalid value",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, date: {}}":         "unknown field",
	} {
		_, err := c.postObjects(t.Context(), applyRequest{Manifest: text})
		require.ErrorContains(t, err, problem, text)
		require.Equal(t, control.KindInvalid, control.KindOf(err), text)
	}
	_, err = c.deleteObject(t.Context(), objectRequest{Kind: "cm", Name: "a"})
	require.NoError(t, err)
	_, err = c.deleteObject(t.Context(), objectRequest{Kind: "ConfigMap", Name: "a"})
	require.Equal(t, control.KindNotFound, control.KindOf(err))
	_, err = c.deleteObject(t.Context(), objectRequest{Kind: "service", Name: "a"})
	require.ErrorContains(t, err, "only ConfigMaps can be deleted")
}
