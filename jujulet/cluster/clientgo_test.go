// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cluster_test

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cluster"
)

// TestClientGo runs the generated clients, over a socket and without one.
func TestClientGo(t *testing.T) {
	t.Parallel()
	for _, door := range []string{"socket", "direct"} {
		t.Run(door, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, cluster.Options{})
			config := &rest.Config{Host: "http://embedded", BearerToken: adminToken, QPS: -1, UserAgent: "clientgo/1", Timeout: 20 * time.Second}
			if door == "socket" {
				web := httptest.NewServer(s.Handler())
				t.Cleanup(web.Close)
				config.Host = web.URL
			} else {
				config.Transport = s.RoundTripper()
			}
			t.Cleanup(s.Close)
			client, err := kubernetes.NewForConfig(config)
			require.NoError(t, err)
			useTyped(t, client)
		})
	}
}

func useTyped(t *testing.T, client *kubernetes.Clientset) {
	t.Helper()
	ctx, services := t.Context(), client.CoreV1().Services("dev")
	desired := applycorev1.Service("db", "dev").WithSpec(applycorev1.ServiceSpec().WithType(corev1.ServiceTypeNodePort).
		WithPorts(applycorev1.ServicePort().WithName("mysql-rw").WithPort(6446).WithProtocol(corev1.ProtocolTCP)))
	svc, err := services.Apply(ctx, desired, metav1.ApplyOptions{FieldManager: "m", Force: true})
	require.NoError(t, err)
	require.NotZero(t, svc.Spec.Ports[0].NodePort)
	again, err := services.Apply(ctx, desired, metav1.ApplyOptions{FieldManager: "m", Force: true})
	require.NoError(t, err)
	require.Equal(t, svc.ResourceVersion, again.ResourceVersion)
	svc.Labels = map[string]string{"a": "b"}
	svc, err = services.Update(ctx, svc, metav1.UpdateOptions{})
	require.NoError(t, err)
	_, err = services.Update(ctx, again, metav1.UpdateOptions{})
	require.True(t, apierrors.IsConflict(err), "%v", err)
	_, err = services.Create(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "db"}, Spec: svc.Spec}, metav1.CreateOptions{})
	require.True(t, apierrors.IsInvalid(err), "the node port is taken: %v", err)
	_, err = services.Get(ctx, "x", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err))
	list, err := services.List(ctx, metav1.ListOptions{LabelSelector: "a=b", Limit: 1})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	uid := types.UID("other")
	err = services.Delete(ctx, "db", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	require.True(t, apierrors.IsConflict(err), "%v", err)
	require.NoError(t, services.Delete(ctx, "db", metav1.DeleteOptions{}))
	review, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "patch", Resource: "services", Namespace: "dev"}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.True(t, review.Status.Allowed)
	_, lists, err := client.Discovery().ServerGroupsAndResources()
	require.NoError(t, err)
	require.NotEmpty(t, lists)
	_, err = client.Discovery().OpenAPISchema()
	require.NoError(t, err)
	_, err = client.AppsV1().Deployments("dev").List(ctx, metav1.ListOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}
