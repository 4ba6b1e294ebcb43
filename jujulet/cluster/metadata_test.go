// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cluster_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cluster"
)

// TestMetadata reads objects with client-go's client for metadata alone.
func TestMetadata(t *testing.T) {
	t.Parallel()
	s := newServer(t, cluster.Options{})
	t.Cleanup(s.Close)
	client, err := metadata.NewForConfig(&rest.Config{Host: "http://embedded", BearerToken: adminToken, QPS: -1, Transport: s.RoundTripper(), Timeout: 20 * time.Second})
	require.NoError(t, err)
	maps := client.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace("dev")
	_, err = s.Admin().Create(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "dev", Name: "a", Labels: map[string]string{"x": "y"}}, Data: map[string]string{"k": "content"}})
	require.NoError(t, err)
	one, err := maps.Get(t.Context(), "a", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "y", one.Labels["x"])
	all, err := maps.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, all.Items, 1)
	w, err := maps.Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=a"})
	require.NoError(t, err)
	defer w.Stop()
	event := <-w.ResultChan()
	require.Equal(t, one.ResourceVersion, event.Object.(*metav1.PartialObjectMetadata).ResourceVersion)
	require.NoError(t, s.Admin().Delete(cluster.ConfigMap, "dev", "a"))
	event = <-w.ResultChan()
	require.EqualValues(t, "DELETED", event.Type)
}
