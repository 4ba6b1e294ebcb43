// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/connections"
)

// document writes a document with two ConfigMaps of one type, one without a type, and an application.
func document(t *testing.T) string {
	t.Helper()
	labels := map[string]string{connections.LabelType: "model"}
	metadata, err := connections.Metadata{Category: "spark", Services: map[string]connections.Service{
		"livy": {Exported: "livy", Endpoints: []string{"http://spark-0:8998"}}}}.Text()
	require.NoError(t, err)
	in := connections.Input{Seen: map[string]connections.Seen{}, Remotes: []connections.Remote{{App: "spark", Metadata: metadata}}}
	for _, m := range []connections.ConfigMap{
		{Name: "model-prediction", Labels: labels, Data: map[string]string{"version": "3", "a/b~c": "odd"}},
		{Name: "noise-recognition", Labels: labels, Data: map[string]string{"version": "9"}},
		{Name: "krb", Data: map[string]string{"krb5.conf": "[libdefaults]\n\tx = y"}, Binary: map[string][]byte{"keytab": {0, 1, 0xff}}},
	} {
		in.Options.ConfigMaps = append(in.Options.ConfigMaps, connections.Name{Name: m.Name})
		in.Seen[m.Name] = connections.Seen{State: connections.OK, Map: m, Size: m.Size()}
	}
	in.Options.ConfigMaps = append(in.Options.ConfigMaps, connections.Name{Name: "gone"})
	in.Seen["gone"] = connections.Seen{State: connections.Missing}
	path := filepath.Join(t.TempDir(), "configmeta.json")
	require.NoError(t, os.WriteFile(path, connections.Decide(in).Text, 0o600))
	return path
}

func TestConnq(t *testing.T) {
	t.Parallel()
	path := document(t)
	ask := func(args ...string) (string, string, int) {
		var out, problem bytes.Buffer
		code := run(append([]string{"--file", path}, args...), &out, &problem)
		return out.String(), problem.String(), code
	}
	says := func(t *testing.T, want string, args ...string) {
		t.Helper()
		out, problem, code := ask(args...)
		require.Zero(t, code, problem)
		require.Equal(t, want, out)
		require.Empty(t, problem)
	}
	t.Run("conn-T60", func(t *testing.T) {
		says(t, "clusters\nconfigmaps\nhash\nproblems\n", "get", "connections")
	})
	t.Run("conn-T61", func(t *testing.T) {
		says(t, "http://spark-0:8998\n", "get", "connections.clusters.spark.services.livy.endpoints")
		says(t, "http://spark-0:8998\n", "cluster", "spark", "livy")
		says(t, "livy\n", "cluster", "spark")
		says(t, "spark\n", "cluster")
	})
	t.Run("conn-T62", func(t *testing.T) {
		says(t, "3\n", "get", "connections.configmaps.model.model-prediction.data.version")
		says(t, "9\n", "get", "connections.configmaps.model.noise-recognition.data.version")
		says(t, "\"9\"\n", "--json", "get", "connections.configmaps.model.noise-recognition.data.version")
	})
	t.Run("conn-T63", func(t *testing.T) {
		says(t, "[libdefaults]\n\tx = y", "configmap", "krb", "krb5.conf")
		says(t, "\x00\x01\xff", "configmap", "krb", "keytab")
		says(t, "keytab\nkrb5.conf\n", "configmap", "krb")
		says(t, "[libdefaults]\n\tx = y\n", "get", "connections.configmaps.untyped.krb.data.krb5.conf")
	})
	t.Run("conn-T64", func(t *testing.T) {
		for _, args := range [][]string{{"get", "connections.nosuch"}, {"configmap", "nosuch"}, {"configmap", "krb", "nosuch"},
			{"cluster", "nosuch"}, {"cluster", "spark", "nosuch"}, {"get", "--pointer", "/nosuch"}} {
			out, problem, code := ask(args...)
			require.Equal(t, 1, code, args)
			require.Empty(t, out)
			require.Equal(t, 1, strings.Count(problem, "\n"), problem)
		}
	})
	t.Run("conn-T65", func(t *testing.T) {
		says(t, "odd\n", "get", "--pointer", "/connections/configmaps/model/model-prediction/data/a~1b~0c")
		says(t, "[libdefaults]\n\tx = y\n", "get", "--pointer", "/connections/configmaps/untyped/krb/data/krb5.conf")
	})
	t.Run("conn-T66", func(t *testing.T) {
		for _, file := range []string{filepath.Join(t.TempDir(), "none"), t.TempDir()} {
			var out, problem bytes.Buffer
			require.Equal(t, 2, run([]string{"--file", file, "hash"}, &out, &problem))
			require.Empty(t, out.String())
		}
		broken := filepath.Join(t.TempDir(), "broken")
		require.NoError(t, os.WriteFile(broken, []byte("{"), 0o600))
		require.Equal(t, 2, run([]string{"--file", broken, "hash"}, &bytes.Buffer{}, &bytes.Buffer{}))
	})
	out, _, code := ask("list")
	require.Zero(t, code)
	require.Regexp(t, `(?m)^configmap\tmodel\tmodel-prediction\tok\t[0-9a-f]{12}$`, out)
	require.Contains(t, out, "configmap\t-\tgone\tmissing\t-\n")
	require.Contains(t, out, "cluster\t-\tspark\tok\t")
	out, _, _ = ask("hash")
	require.Regexp(t, "^sha256:[0-9a-f]{64}\n$", out)
	for _, args := range [][]string{{}, {"dance"}, {"--loud", "hash"}, {"get", "a", "b"}, {"configmap"}, {"hash", "--file"}} {
		_, problem, code := ask(args...)
		require.Equal(t, 2, code, args)
		require.Contains(t, problem, "usage: connq")
	}
}
