// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestScp_FoldersComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	source := filepath.Join(folder, "source")
	require.NoError(t, os.MkdirAll(filepath.Join(source, "below"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(source, "below", "script"), []byte("run"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(source, "file"), []byte("text"), 0o640))
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(source, "link")))
	var archive bytes.Buffer
	require.NoError(t, pack(source, "name", &archive))
	var warnings bytes.Buffer
	target := filepath.Join(folder, "target")
	require.NoError(t, unpack(&archive, "name", target, &app{Environment: Environment{Err: &warnings}}))
	text, err := os.ReadFile(filepath.Join(target, "file"))
	require.NoError(t, err)
	require.Equal(t, "text", string(text))
	info, err := os.Stat(filepath.Join(target, "below", "script"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o755), info.Mode())
	require.NoFileExists(t, filepath.Join(target, "link"), "links are left out")
}

// What comes out of a container may say anything; nothing is written outside the place that was asked for.
func TestScp_ArchivesOfContainersAreHostile(t *testing.T) {
	t.Parallel()
	for name, entries := range map[string][]tar.Header{
		"above":          {{Name: "../evil", Typeflag: tar.TypeReg}},
		"above, nested":  {{Name: "wanted/../../evil", Typeflag: tar.TypeReg}},
		"absolute":       {{Name: "/evil", Typeflag: tar.TypeReg}},
		"another":        {{Name: "evil", Typeflag: tar.TypeReg}},
		"a longer name":  {{Name: "wanted-evil", Typeflag: tar.TypeReg}},
		"through a link": {{Name: "wanted", Typeflag: tar.TypeSymlink, Linkname: "../.."}, {Name: "wanted/evil", Typeflag: tar.TypeReg}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var archive bytes.Buffer
			writer := tar.NewWriter(&archive)
			for _, header := range entries {
				header.Mode = 0o644
				require.NoError(t, writer.WriteHeader(&header))
			}
			require.NoError(t, writer.Close())
			folder := t.TempDir()
			require.NoError(t, os.Mkdir(filepath.Join(folder, "here"), 0o755))
			require.Error(t, unpack(&archive, "wanted", filepath.Join(folder, "here", "wanted"), &app{Environment: Environment{Err: io.Discard}}))
			require.NoFileExists(t, filepath.Join(folder, "evil"))
			require.NoFileExists(t, filepath.Join(folder, "here", "evil"))
		})
	}
}

// A link that stands here already leads nowhere either.
func TestScp_LinksHereAreNotFollowedOut(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	target := filepath.Join(folder, "here", "wanted")
	require.NoError(t, os.MkdirAll(target, 0o755))
	require.NoError(t, os.Symlink("../..", filepath.Join(target, "link")))
	var archive bytes.Buffer
	writer := tar.NewWriter(&archive)
	require.NoError(t, writer.WriteHeader(&tar.Header{Name: "wanted/link/evil", Typeflag: tar.TypeReg, Mode: 0o644}))
	require.NoError(t, writer.Close())
	require.Error(t, unpack(&archive, "wanted", target, &app{Environment: Environment{Err: io.Discard}}))
	require.NoFileExists(t, filepath.Join(folder, "evil"))
}
