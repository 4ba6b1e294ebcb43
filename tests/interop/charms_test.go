// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package interop

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// dispatch is what charmcraft's charm plugin writes for a Python charm.
const dispatch = `#!/bin/sh
JUJU_DISPATCH_PATH="${JUJU_DISPATCH_PATH:-$0}" PYTHONPATH=lib:venv exec /usr/bin/python3 ./src/charm.py
`

// manifest is what Juju wants of a charm with containers.
const manifest = `charmcraft-version: 3.0.0
bases:
- name: ubuntu
  channel: "22.04"
  architectures: [amd64, arm64]
`

// pythonCharm packs a charm of the folder charms with the packages of its requirements.txt and returns its folder. The
// test fails when the packages cannot be installed. No charmcraft: a charm is its files, what pip installs, and dispatch.
func pythonCharm(t *testing.T, name string) string {
	t.Helper()
	packed.Lock()
	defer packed.Unlock()
	out := filepath.Join(built.folder, "python-charms", name)
	if _, err := os.Stat(out); err == nil {
		return out
	}
	require.NoError(t, packPython(t.Context(), filepath.Join(venv(t), "bin", "python"), filepath.Join("charms", name), out))
	return out
}

var packed sync.Mutex

// packPython makes a charm folder of sources and of packages, unmodified, from PyPI.
func packPython(ctx context.Context, python, from, out string) error {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	partial := out + ".partial"
	if err := os.CopyFS(partial, os.DirFS(from)); err != nil {
		return fmt.Errorf("cannot pack %s: %w", from, err)
	}
	pip := exec.CommandContext(ctx, python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps",
		"--target", filepath.Join(partial, "venv"), "-r", filepath.Join(from, "requirements.txt"))
	if text, err := pip.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot install the packages of %s: %w\n%s", from, err, text)
	}
	if err := os.WriteFile(filepath.Join(partial, "dispatch"), []byte(dispatch), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(partial, "manifest.yaml"), []byte(manifest), 0o644); err != nil {
		return err
	}
	fmt.Printf("%s packed in %.1f s\n", filepath.Base(out), time.Since(began).Seconds())
	return os.Rename(partial, out)
}

// goCharm packs one of the charms of this repository.
func goCharm(t *testing.T, name string) string {
	t.Helper()
	packed.Lock()
	defer packed.Unlock()
	folder, pkg := "examples/"+name, "./examples/"+name
	if name == "drawbridge-k8s" {
		folder, pkg = ".", "./cmd/drawbridge"
	}
	out := filepath.Join(built.folder, "go-charms")
	file := filepath.Join(out, name+"_amd64.charm")
	if _, err := os.Stat(file); err == nil {
		return file
	}
	cmd := exec.CommandContext(t.Context(), "go", "run", "./tools/packcharm", "-version", "test", "-out", out, folder, pkg)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath -buildvcs=false")
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, string(text))
	return file
}
