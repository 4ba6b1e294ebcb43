// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cluster_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cluster"
)

func encode(t *testing.T, o cluster.Object) string {
	t.Helper()
	data, err := json.Marshal(o)
	require.NoError(t, err)
	return string(data)
}

func openDB(t *testing.T, path string) *bbolt.DB {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second})
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// TestPersistence: what survives a restart, and what does not.
func TestPersistence(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "model.db")
	db := openDB(t, path)
	s := newServer(t, cluster.Options{DB: db})
	a := s.Admin()
	created, err := a.Create(nodePortService("db"))
	require.NoError(t, err)
	_, err = a.Create(pod("db-0", "db", "", false))
	require.NoError(t, err)
	_, err = a.Create(&corev1.Secret{ObjectMeta: meta("gone")})
	require.NoError(t, err)
	require.NoError(t, a.Delete(cluster.Secret, "dev", "gone"))
	require.NoError(t, s.Settle())
	before := s.Version()
	s.Close()
	require.NoError(t, db.Close())

	again, err := cluster.New(cluster.Options{DB: openDB(t, path)})
	require.NoError(t, err)
	a = again.Admin()
	require.GreaterOrEqual(t, again.Version(), before, "a version is never given twice")
	svc, err := cluster.Get[*corev1.Service](a, "dev", "db")
	require.NoError(t, err)
	require.JSONEq(t, encode(t, created), encode(t, svc), "uid, address and node port are as before")
	_, err = a.Get(cluster.Pod, "dev", "db-0")
	require.True(t, apierrors.IsNotFound(err), "pods do not survive")
	_, err = a.Get(cluster.Secret, "dev", "gone")
	require.True(t, apierrors.IsNotFound(err))
	slices, err := cluster.List[*discoveryv1.EndpointSlice](a, "", "")
	require.NoError(t, err)
	require.Empty(t, slices, "endpoint slices do not survive")
	require.Equal(t, adminToken, again.Token("dev", "admin"))

	clash := nodePortService("other")
	clash.Spec.Ports[0].NodePort = svc.Spec.Ports[0].NodePort
	_, err = a.Create(clash)
	require.True(t, apierrors.IsInvalid(err), "allocated numbers stay taken: %v", err)
	_, err = cluster.Change(a, "dev", "db", func(s *corev1.Service) error { s.Labels = map[string]string{"a": "b"}; return nil })
	require.NoError(t, err)
}

// TestPersistence_Versions: changes of what is not persisted raise the version for good too.
func TestPersistence_Versions(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "model.db")
	db := openDB(t, path)
	s := newServer(t, cluster.Options{DB: db})
	for i := range 1100 {
		_, err := s.Admin().Create(&discoveryv1.EndpointSlice{ObjectMeta: meta(fmt.Sprintf("e%d", i)), AddressType: discoveryv1.AddressTypeIPv4})
		require.NoError(t, err)
	}
	before := s.Version()
	require.NoError(t, db.Close())
	again, err := cluster.New(cluster.Options{DB: openDB(t, path)})
	require.NoError(t, err)
	require.GreaterOrEqual(t, again.Version(), before)
}
