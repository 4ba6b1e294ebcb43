// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cluster_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cluster"
)

// adminToken is the token of the account that may do everything.
const adminToken = "admin-token"

// newServer makes a server with the namespace dev and an account that may do everything.
func newServer(t *testing.T, o cluster.Options) *cluster.Server {
	t.Helper()
	s, err := cluster.New(o)
	require.NoError(t, err)
	_, err = cluster.Ensure(s.Admin(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "dev"}})
	require.NoError(t, err)
	require.NoError(t, s.SetAccount("dev", "admin", adminToken, cluster.TrustedRules()))
	return s
}
