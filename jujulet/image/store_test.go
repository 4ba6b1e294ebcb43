// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/stretchr/testify/require"
)

// testImage is an image for this machine with the given layers.
func testImage(t *testing.T, arch string, layers ...[]byte) v1.Image {
	t.Helper()
	image := empty.Image
	for _, l := range layers {
		made, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(l)), nil })
		require.NoError(t, err)
		image, err = mutate.AppendLayers(image, made)
		require.NoError(t, err)
	}
	config, err := image.ConfigFile()
	require.NoError(t, err)
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", arch
	config.Config = v1.Config{
		Env: []string{"PATH=/opt/bin:/bin", "COLOUR=blue"}, WorkingDir: "/work", User: "app", Entrypoint: []string{"/bin/x"}, Cmd: []string{"-v"},
	}
	image, err = mutate.ConfigFile(image, config)
	require.NoError(t, err)
	return image
}

// twoLayers is an image that puts one layer on another.
func twoLayers(t *testing.T) v1.Image {
	t.Helper()
	return testImage(t, runtime.GOARCH,
		tarOf(t, folder("bin"), file("bin/x", "program"), file("etc/old", "old"), symlink("lib", "/usr/lib")),
		tarOf(t, file("etc/.wh.old", ""), file("etc/new", "new")))
}

var twoLayersTree = []string{"bin/", "bin/x=program", "etc/", "etc/new=new", "lib -> /usr/lib"}

func newStore(t *testing.T) *Store {
	t.Helper()
	return &Store{Dir: filepath.Join(t.TempDir(), "images"), Cache: filepath.Join(t.TempDir(), "cache"), Ordinary: true}
}

// idOf is the digest of the configuration of an image.
func idOf(t *testing.T, image v1.Image) string {
	t.Helper()
	id, err := image.ConfigName()
	require.NoError(t, err)
	return id.String()
}

// saved writes what "docker save" writes.
func saved(t *testing.T, images ...v1.Image) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "saved.tar")
	all := map[name.Reference]v1.Image{}
	for i, image := range images {
		tag, err := name.NewTag("test/image:" + string(rune('a'+i)))
		require.NoError(t, err)
		all[tag] = image
	}
	require.NoError(t, tarball.MultiRefWriteToFile(path, all))
	return path
}

// ociLayout writes an OCI layout folder.
func ociLayout(t *testing.T, images ...v1.Image) string {
	t.Helper()
	path, err := layout.Write(filepath.Join(t.TempDir(), "layout"), empty.Index)
	require.NoError(t, err)
	for _, image := range images {
		require.NoError(t, path.AppendImage(image))
	}
	return string(path)
}

// tarFolder packs a folder as a tar.
func tarFolder(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "layout.tar")
	out, err := os.Create(path)
	require.NoError(t, err)
	w := tar.NewWriter(out)
	require.NoError(t, w.AddFS(os.DirFS(dir)))
	require.NoError(t, w.Close())
	require.NoError(t, out.Close())
	return path
}

// registryOf serves an image on loopback and counts the requests.
func registryOf(t *testing.T) (host string, requests *atomic.Int32) {
	t.Helper()
	requests = &atomic.Int32{}
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://"), requests
}

func push(t *testing.T, reference string, what remote.Taggable) {
	t.Helper()
	ref, err := name.ParseReference(reference)
	require.NoError(t, err)
	if index, ok := what.(v1.ImageIndex); ok {
		require.NoError(t, remote.WriteIndex(ref, index))
		return
	}
	require.NoError(t, remote.Write(ref, what.(v1.Image)))
}

func TestStore_AddsFromEverySource(t *testing.T) {
	t.Parallel()
	host, _ := registryOf(t)
	image := twoLayers(t)
	push(t, host+"/team/image:1", image)
	folder := ociLayout(t, image)
	for _, from := range []string{saved(t, image), folder, tarFolder(t, folder), host + "/team/image:1"} {
		s := newStore(t)
		got, err := s.Add(t.Context(), from)
		require.NoError(t, err)
		require.Equal(t, idOf(t, image), got.ID)
		require.Equal(t, from, got.Source)
		require.Equal(t, []string{"PATH=/opt/bin:/bin", "COLOUR=blue"}, got.Env)
		require.Equal(t, "/work", got.WorkingDir)
		require.Equal(t, "app", got.User)
		require.Equal(t, []string{"/bin/x"}, got.Entrypoint)
		require.Equal(t, twoLayersTree, tree(t, got.Root))
		again, err := s.Get(got.ID)
		require.NoError(t, err)
		require.Equal(t, got, again)
	}
}

// What was added once is there without its source; nothing is unpacked twice, nothing is left beside it.
func TestStore_KeepsByDigest(t *testing.T) {
	t.Parallel()
	host, requests := registryOf(t)
	image := twoLayers(t)
	push(t, host+"/image:1", image)
	s := newStore(t)
	first, err := s.Add(t.Context(), host+"/image:1")
	require.NoError(t, err)
	info, err := os.Stat(first.Root)
	require.NoError(t, err)

	digest, err := image.Digest()
	require.NoError(t, err)
	before := requests.Load()
	second, err := s.Add(t.Context(), host+"/image@"+digest.String())
	require.NoError(t, err)
	require.Equal(t, before, requests.Load(), "a digest that is known asks nobody")
	require.Equal(t, first.Root, second.Root)
	after, err := os.Stat(second.Root)
	require.NoError(t, err)
	require.True(t, os.SameFile(info, after))

	other := &Store{Dir: filepath.Join(t.TempDir(), "images"), Cache: s.Cache, Ordinary: true}
	_, err = other.Add(t.Context(), host+"/image@"+digest.String())
	require.NoError(t, err)
	require.Equal(t, before, requests.Load(), "another store takes the layers of the cache")

	entries, err := os.ReadDir(s.Dir)
	require.NoError(t, err)
	require.Len(t, entries, 2, "the image and the lock")
	_, err = s.Get("sha256:" + strings.Repeat("0", 64))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = s.Get("../x")
	require.ErrorContains(t, err, "not the id of an image")
}

func TestStore_TakesWhatIsForThisMachine(t *testing.T) {
	t.Parallel()
	host, _ := registryOf(t)
	mine, foreign := twoLayers(t), testImage(t, "riscv", tarOf(t, file("foreign", "")))
	platform := func(image v1.Image, arch string) mutate.IndexAddendum {
		return mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}}}
	}
	index := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), platform(foreign, "riscv"), platform(mine, runtime.GOARCH))
	push(t, host+"/many:1", index)
	got, err := newStore(t).Add(t.Context(), host+"/many:1")
	require.NoError(t, err)
	require.Equal(t, idOf(t, mine), got.ID)

	only := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), platform(foreign, "riscv"))
	push(t, host+"/foreign:1", only)
	_, err = newStore(t).Add(t.Context(), host+"/foreign:1")
	require.ErrorContains(t, err, "it has nothing for linux/"+runtime.GOARCH)
	_, err = newStore(t).Add(t.Context(), saved(t, foreign))
	require.ErrorContains(t, err, "it is for linux/riscv, this machine is linux/"+runtime.GOARCH)
}

func TestStore_Refuses(t *testing.T) {
	t.Parallel()
	host, _ := registryOf(t)
	image := twoLayers(t)
	write := func(data []byte) string {
		path := filepath.Join(t.TempDir(), "file.tar")
		require.NoError(t, os.WriteFile(path, data, 0o600))
		return path
	}
	escaping := testImage(t, runtime.GOARCH, tarOf(t, file("../outside", "x")))
	push(t, host+"/escaping:1", escaping)
	spoilt := ociLayout(t, image)
	spoil(t, spoilt)
	notLayout := t.TempDir()
	cases := []struct{ name, from, want string }{
		{"escaping, archive", saved(t, escaping), `layer 1 of 1: entry "../outside" has a path with ".."`},
		{"escaping, registry", host + "/escaping:1", `layer 1 of 1: entry "../outside" has a path with ".."`},
		{"spoilt layer", spoilt, "the content is not what its digest says"},
		{"two images", saved(t, image, testImage(t, runtime.GOARCH)), "it holds 2 images; save one alone"},
		{"two images, layout", ociLayout(t, image, testImage(t, runtime.GOARCH)), "it holds 2 images; save one alone"},
		{"no tar", write([]byte("hello")), "cannot read archive"},
		{"empty file", write(nil), "it is not a tar archive, or an empty one"},
		{"compressed", write([]byte("\x1f\x8b\x08\x00")), "the archive is compressed"},
		{"tar of something", write(tarOf(t, file("a", "b"))), "the archive holds no image"},
		{"absolute entry", write(tarOf(t, file("/manifest.json", "[]"))), `entry "/manifest.json" of the archive has an absolute path`},
		{"entry with dots", write(tarOf(t, file("../manifest.json", "[]"))), `entry "../manifest.json" of the archive has a path with ".."`},
		{"entry twice", write(tarOf(t, file("manifest.json", "[]"), file("manifest.json", "[]"))), `entry "manifest.json" of the archive is there twice`},
		{"link out of the archive", write(tarOf(t, symlink("manifest.json", "/etc/passwd"))), `is a link to "/etc/passwd", which leaves the archive`},
		{"device", write(tarOf(t, special("manifest.json", tar.TypeChar))), `entry "manifest.json" of the archive is a device`},
		{"sparse", write(sparseLayer("1099511627776")), `entry "bomb" of the archive is larger than the archive`},
		{"layers named with dots", write(tarOf(t, file("manifest.json", `[{"Config":"../x","Layers":[]}]`))), `the archive has no file "../x"`},
		{"folder without an image", notLayout, "the folder holds no image"},
		{"no such file", "/does/not/exist.tar", "no such file"},
		{"no reference", "What Is This", "no reference to a registry"},
		{"unknown image", host + "/unknown:1", "cannot pull"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newStore(t)
			_, err := s.Add(t.Context(), c.from)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "cannot use image")
			left, err := filepath.Glob(filepath.Join(s.Dir, "*"))
			require.NoError(t, err)
			for _, l := range left {
				require.Equal(t, "lock", filepath.Base(l), "nothing is left of a refused image")
			}
		})
	}
}

// spoil changes the last byte of the largest blob's content, which is a layer.
func spoil(t *testing.T, dir string) {
	t.Helper()
	blobs, err := filepath.Glob(filepath.Join(dir, "blobs", "sha256", "*"))
	require.NoError(t, err)
	for _, b := range blobs {
		data, err := os.ReadFile(b)
		require.NoError(t, err)
		if !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
			continue
		}
		plain, err := decompress(bytes.NewReader(data))
		require.NoError(t, err)
		content, err := io.ReadAll(plain)
		require.NoError(t, err)
		content = bytes.Replace(content, []byte("program"), []byte("malware"), 1)
		require.NoError(t, os.WriteFile(b, content, 0o600))
	}
}

// A blob of the cache that was changed is pulled again.
func TestStore_HealsItsCache(t *testing.T) {
	t.Parallel()
	host, _ := registryOf(t)
	push(t, host+"/image:1", twoLayers(t))
	s := newStore(t)
	_, err := s.Add(t.Context(), host+"/image:1")
	require.NoError(t, err)
	blobs, err := filepath.Glob(filepath.Join(s.Cache, "blobs", "sha256", "*"))
	require.NoError(t, err)
	require.Len(t, blobs, 4, "manifest, configuration, two layers")
	for _, b := range blobs {
		data, err := os.ReadFile(b)
		require.NoError(t, err)
		data[len(data)-1] ^= 1
		require.NoError(t, os.WriteFile(b, data, 0o600))
	}
	s.Dir = filepath.Join(t.TempDir(), "images")
	got, err := s.Add(t.Context(), host+"/image:1")
	require.NoError(t, err)
	require.Equal(t, twoLayersTree, tree(t, got.Root))
}

// Plain http is for loopback alone; the library itself would use it for private networks, too.
func TestStore_PlainHTTPOnLoopbackOnly(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	var asked []string
	s.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
		asked = append(asked, r.URL.Scheme)
		return nil, errors.New("refused by the test")
	})
	_, err := s.Add(t.Context(), "10.1.2.3:5000/image:1")
	require.ErrorContains(t, err, "10.1.2.3:5000")
	require.NotContains(t, asked, "http")
	require.NotEmpty(t, asked)
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Two that add the same image at the same time wait for each other; what one that was killed left is removed.
func TestStore_Concurrent(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	require.NoError(t, os.MkdirAll(filepath.Join(s.Dir, newPrefix+"left", "root"), 0o700))
	from := saved(t, twoLayers(t))
	errs := make(chan error, 4)
	for range cap(errs) {
		go func() {
			_, err := (&Store{Dir: s.Dir, Ordinary: true}).Add(t.Context(), from)
			errs <- err
		}()
	}
	for range cap(errs) {
		select {
		case err := <-errs:
			require.NoError(t, err)
		case <-time.After(20 * time.Second):
			t.Fatal("no end")
		}
	}
	require.NoDirExists(t, filepath.Join(s.Dir, newPrefix+"left"))
}
