// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package controller_test

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/controller"
	"github.com/drawbridge-k8s/drawbridge/jujulet/image"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// imageLayer is what Pebble finds in the image.
const imageLayer = `services:
  report: {override: replace, command: /opt/bin/report stay, startup: enabled}
`

// reportImage is an image with one static program and a layer for Pebble, and nothing else.
func reportImage(t *testing.T) v1.Image {
	t.Helper()
	program := filepath.Join(t.TempDir(), "report")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./testdata/report")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	binary, err := os.ReadFile(program)
	require.NoError(t, err)

	var packed bytes.Buffer
	w := tar.NewWriter(&packed)
	for _, f := range []struct {
		name    string
		mode    int64
		content []byte
	}{
		{"opt/bin/report", 0o755, binary},
		{"var/lib/pebble/default/layers/001-report.yaml", 0o644, []byte(imageLayer)},
	} {
		require.NoError(t, w.WriteHeader(&tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.content)), Typeflag: tar.TypeReg}))
		_, err := w.Write(f.content)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed.Bytes())), nil })
	require.NoError(t, err)
	made, err := mutate.AppendLayers(empty.Image, layer)
	require.NoError(t, err)
	config, err := made.ConfigFile()
	require.NoError(t, err)
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", runtime.GOARCH
	config.Config = v1.Config{Env: []string{"PATH=/opt/bin", "COLOUR=blue"}, WorkingDir: "/srv/work", User: "1234"}
	made, err = mutate.ConfigFile(made, config)
	require.NoError(t, err)
	return made
}

// An image of a registry is the root of a workload container, and is there after down and up without its registry.
func TestEndToEnd_Image(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	reference := strings.TrimPrefix(server.URL, "http://") + "/report:1"
	tag, err := name.ParseReference(reference)
	require.NoError(t, err)
	require.NoError(t, remote.Write(tag, reportImage(t)))

	c := newCluster(t)
	_, err = c.Deploy(t.Context(), control.DeployRequest{Charm: trivial, Units: 1, Resources: map[string]string{
		"web-image": model.PinImage(reference, "sha256:"+strings.Repeat("0", 64))}})
	require.ErrorContains(t, err, "is not in the state folder")
	store := image.Store{Dir: image.Folder(c.state), Cache: t.TempDir(), Ordinary: os.Geteuid() != 0}
	added, err := store.Add(t.Context(), reference)
	require.NoError(t, err)
	result, err := c.Deploy(t.Context(), control.DeployRequest{Charm: trivial, Units: 1, Resources: map[string]string{
		"web-image": model.PinImage(reference, added.ID)}})
	require.NoError(t, err)
	require.Empty(t, result.DefaultImages)
	c.await(t, "deployed", func(s model.Status) bool { return settled(s, "trivial/0", "hello") })

	checkReport(t, c)
	server.Close()
	require.NoError(t, controller.Down(context.Background(), controller.DownOptions{State: c.state}))
	c.up()
	c.await(t, "up again", func(s model.Status) bool { return settled(s, "trivial/0", "hello") })
	checkReport(t, c)
}

// checkReport looks at what the image's program sees as a service of Pebble and beside it.
func checkReport(t *testing.T, c *cluster) {
	t.Helper()
	out, code := c.run(t, "trivial/0", "web", "/charm/bin/pebble", "start", "report")
	require.Zero(t, code, out)
	out, code = c.run(t, "trivial/0", "web", "/charm/bin/pebble", "logs", "report")
	require.Zero(t, code, out)
	for _, line := range []string{
		"folder /srv/work <nil>", "COLOUR blue", "PATH /opt/bin", "HOME /root", "JUJU_CONTAINER_NAME web", "user 0",
		"root charm dev etc home opt proc root run srv sys tmp var <nil>",
	} {
		require.Contains(t, out, line)
	}
	out, code = c.run(t, "trivial/0", "web", "report")
	require.Zero(t, code, out)
	require.Contains(t, out, "COLOUR blue")
}
