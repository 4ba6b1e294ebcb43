// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package main

import (
	"archive/zip"
	"debug/elf"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// testPack packs the charm at the root of the repository. Packing for another
// architecture would compile everything once more; `make charm ARCH=arm64` does.
func testPack(t *testing.T) string {
	t.Helper()
	path, err := pack(t.Context(), options{
		folder: ".", mainPackage: "./cmd/drawbridge", arch: "amd64", out: t.TempDir(), version: "1.2.3",
		program: "./cmd/connq",
	})
	require.NoError(t, err)
	return path
}

func TestPack_SameBytesTwice(t *testing.T) {
	t.Chdir("../..")
	first, err := os.ReadFile(testPack(t))
	require.NoError(t, err)
	second, err := os.ReadFile(testPack(t))
	require.NoError(t, err)
	require.Equal(t, len(first), len(second))
	require.True(t, string(first) == string(second), "the archive is not reproducible")
}

// What Juju asks of an archive: files at its root, an executable dispatch, a
// manifest with base and architecture (juju/charm v12).
func TestPack_AsJujuAcceptsIt(t *testing.T) {
	t.Chdir("../..")
	path := testPack(t)
	require.Equal(t, "drawbridge-k8s_amd64.charm", filepath.Base(path))
	archive, err := zip.OpenReader(path)
	require.NoError(t, err)
	defer archive.Close()
	files := map[string]*zip.File{}
	for _, f := range archive.File {
		files[f.Name] = f
	}
	for _, name := range []string{"metadata.yaml", "config.yaml", "actions.yaml", "manifest.yaml", "version", "dispatch", "connq"} {
		require.Contains(t, files, name)
	}
	require.NotContains(t, files, "charmcraft.yaml")
	require.Equal(t, os.FileMode(0o755), files["dispatch"].Mode().Perm())
	requireStatic(t, files["dispatch"], elf.EM_X86_64)
	require.Equal(t, os.FileMode(0o755), files["connq"].Mode().Perm())
	requireStatic(t, files["connq"], elf.EM_X86_64)
	require.Less(t, files["connq"].UncompressedSize64, uint64(4<<20), "it is brought into every workload")

	charm, err := model.ReadCharm(path)
	require.NoError(t, err)
	require.Equal(t, "drawbridge-k8s", charm.Meta.Name)
	require.Equal(t, "22.04/stable", charm.Bases[0].Channel)
	require.Equal(t, []string{"amd64"}, charm.Bases[0].Architectures)
}

func TestManifest_OtherArchitecture(t *testing.T) {
	text, err := manifest("../../charmcraft.yaml", "arm64")
	require.NoError(t, err)
	require.Contains(t, string(text), "arm64")
	require.NotContains(t, string(text), "amd64")
}

// requireStatic checks that dispatch needs nothing of the charm's image.
func requireStatic(t *testing.T, f *zip.File, machine elf.Machine) {
	t.Helper()
	from, err := f.Open()
	require.NoError(t, err)
	defer from.Close()
	path := filepath.Join(t.TempDir(), "dispatch")
	to, err := os.Create(path)
	require.NoError(t, err)
	_, err = io.Copy(to, from)
	require.NoError(t, err)
	require.NoError(t, to.Close())
	binary, err := elf.Open(path)
	require.NoError(t, err)
	defer binary.Close()
	require.Equal(t, machine, binary.Machine)
	libraries, err := binary.ImportedLibraries()
	require.NoError(t, err)
	require.Empty(t, libraries)
	require.Nil(t, binary.Section(".interp"), "dispatch is not static")
}

// Charmcraft refuses a key that stands both in charmcraft.yaml and in the files
// that it merges.
func TestCharmcraft_NoKeyTwice(t *testing.T) {
	t.Chdir("../..")
	var charmcraft, metadata map[string]any
	for name, into := range map[string]*map[string]any{"charmcraft.yaml": &charmcraft, "metadata.yaml": &metadata} {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		require.NoError(t, yaml.Unmarshal(text, into))
	}
	for key := range charmcraft {
		require.Contains(t, []string{"type", "platforms", "parts"}, key)
		require.NotContains(t, metadata, key)
	}
}

func TestManifest_Refusals(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "charmcraft.yaml")
	require.NoError(t, os.WriteFile(path, []byte("platforms: {'ubuntu@22.04:amd64': }\n"), 0o644))
	_, err := manifest(path, "riscv64")
	require.ErrorContains(t, err, `cannot pack for "riscv64"`)
	require.NoError(t, os.WriteFile(path, []byte("platforms: {jammy: }\n"), 0o644))
	_, err = manifest(path, "amd64")
	require.ErrorContains(t, err, `cannot read platform "jammy"`)
}
