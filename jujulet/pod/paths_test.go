// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package pod_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/jujulet/pod"
)

func TestResolveIn(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "var/lib"), 0o755))
	for link, to := range map[string]string{
		"var/run": "/run", "var/rel": "../run", "var/out": "../../../../etc", "var/loop": "loop", "var/two": "run/x",
	} {
		require.NoError(t, os.Symlink(to, filepath.Join(root, link)))
	}
	for path, want := range map[string]string{
		"/var/lib/juju":        "/var/lib/juju",
		"/var/run/secrets":     "/run/secrets",
		"/var/rel/secrets":     "/run/secrets",
		"/var/out/passwd":      "/etc/passwd",
		"/var/two/y":           "/run/x/y",
		"/../../etc":           "/etc",
		"relative":             "/relative",
		"/no/such/../folder/x": "/no/folder/x",
		"/":                    "",
	} {
		got, err := pod.ResolveIn(root, path)
		require.NoError(t, err)
		require.Equal(t, filepath.Join(root, want), got, path)
	}
	_, err := pod.ResolveIn(root, "/var/loop/x")
	require.ErrorContains(t, err, "too many links")
}

func TestParseMounts(t *testing.T) {
	got, err := pod.ParseMounts(`22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 master:2 - ext4 /dev/vda rw
28 27 0:25 / /mnt/with\040blank ro - tmpfs none ro
29 27 0:26 / /mnt/twice rw - tmpfs none rw
30 29 0:27 / /mnt/twice rw - xfs /dev/vdb rw
`)
	require.NoError(t, err)
	require.Equal(t, []string{"/proc proc", "/ ext4", "/mnt/with blank tmpfs", "/mnt/twice xfs"}, got)
	_, err = pod.ParseMounts("nonsense\n")
	require.ErrorContains(t, err, "unexpected line")
}
