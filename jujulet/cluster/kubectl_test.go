// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cluster_test

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cluster"
)

// manifest is a Service as people write it.
const manifest = `
apiVersion: v1
kind: Service
metadata:
  name: db
  labels: {app: db}
spec:
  type: NodePort
  selector: {app.kubernetes.io/name: db}
  ports:
  - {name: mysql-rw, port: 6446, nodePort: 31234}
  - {name: mysql-ro, port: 6447, nodePort: 31235}
`

// TestKubectl runs the real kubectl, where there is one, against the server over TLS.
func TestKubectl(t *testing.T) {
	t.Parallel()
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("kubectl is not on PATH: install it to check the server against the real client")
	}
	s := newServer(t, cluster.Options{})
	web := httptest.NewTLSServer(s.Handler())
	t.Cleanup(web.Close)
	t.Cleanup(s.Close)
	home := t.TempDir()
	config := kubeconfig(t, home, web)
	run := func(stdin string, args ...string) (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		cmd := exec.CommandContext(ctx, kubectl, append([]string{"--kubeconfig", config, "--cache-dir", filepath.Join(home, "cache")}, args...)...)
		cmd.Env = append(os.Environ(), "HOME="+home)
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for _, step := range []struct {
		stdin string
		args  string
		want  string
		fails bool
	}{
		{args: "version", want: "v1.36.3"},
		{args: "get nodes", want: "No resources found"},
		{stdin: manifest, args: "apply -f -", want: "service/db created"},
		{stdin: manifest, args: "apply -f -", want: "service/db unchanged"},
		{args: "get svc db", want: "6446:31234/TCP,6447:31235/TCP"},
		{args: "get svc db", want: "EXTERNAL-IP"},
		{args: "get all", want: "service/db"},
		{args: "get svc -A -o wide", want: "app.kubernetes.io/name=db"},
		{stdin: strings.Replace(manifest, "NodePort", "LoadBalancer", 1), args: "apply -f -", want: "service/db configured"},
		{args: "get svc db", want: "<pending>"},
		{stdin: manifest, args: "apply --server-side --force-conflicts -f -", want: "serverside-applied"},
		{stdin: strings.Replace(manifest, "31235", "31236", 1), args: "diff -f -", want: "31236", fails: true},
		{stdin: strings.Replace(manifest, "31235", "31234", 1), args: "apply --server-side -f -", want: "provided port is already allocated", fails: true},
		{args: "annotate svc db a.b/c=d", want: "service/db annotate"},
		{args: "label svc db tier=front", want: "service/db label"},
		{args: `patch svc db -p {"spec":{"type":"ClusterIP"}}`, want: "patched"},
		{args: "get svc db -o jsonpath={.spec.type}", want: "ClusterIP"},
		{args: "describe svc db", want: "10.152.183."},
		{args: "create configmap cm --from-literal=a=b", want: "configmap/cm created"},
		{args: "create secret generic se --from-literal=a=b", want: "secret/se created"},
		{args: "get cm,secret", want: "secret/se"},
		{args: "wait --for=jsonpath={.data.a}=b cm/cm --timeout=10s", want: "condition met"},
		{args: "get deployments", want: `the server doesn't have a resource type "deployments"`, fails: true},
		{args: "auth can-i patch services", want: "yes"},
		{args: "delete svc db", want: `service "db" deleted`},
		{args: "get svc db", want: `services "db" not found`, fails: true},
		{args: "delete ns dev", want: `namespace "dev" deleted`},
	} {
		out, err := run(step.stdin, strings.Fields(step.args)...)
		require.Contains(t, out, step.want, "kubectl %s", step.args)
		require.Equal(t, step.fails, err != nil, "kubectl %s: %v\n%s", step.args, err, out)
		require.NotContains(t, strings.ToLower(out), "warning: error", "kubectl %s", step.args)
	}
}

func kubeconfig(t *testing.T, dir string, web *httptest.Server) string {
	t.Helper()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw})
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: c
clusters: [{name: c, cluster: {server: %q, certificate-authority-data: %s}}]
users: [{name: u, user: {token: %s}}]
contexts: [{name: c, context: {cluster: c, user: u, namespace: dev}}]
`, web.URL, base64.StdEncoding.EncodeToString(ca), adminToken)
	path := filepath.Join(dir, "kubeconfig")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}
