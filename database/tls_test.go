// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package database_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/database/databasetest"
)

// TLS is used when the server offers it, whatever names its certificate has.
func TestSession_PrefersTLS(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "elsewhere.test"}, NotAfter: time.Now().Add(time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	folder := t.TempDir()
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
		return path
	}
	s := databasetest.Start(t, "--ssl-cert="+write("cert", "CERTIFICATE", certificate), "--ssl-key="+write("key", "PRIVATE KEY", private),
		"--require-secure-transport=ON")
	require.NoError(t, s.Root.Session(t.Context(), s.Address))
	require.NotEmpty(t, s.Query(t, s.Root, "", "SHOW SESSION STATUS LIKE 'Ssl_cipher'")[0][1])
}
