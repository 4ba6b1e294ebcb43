// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package image

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// source is where an image comes from.
type source interface {
	// contents finds the one image for this machine.
	contents(ctx context.Context) (contents, error)
	Close() error
}

// contents are the parts of an image.
type contents struct {
	manifest     v1.Hash // zero in archives of old
	config       []byte
	configDigest v1.Hash
	layers       []layer // lowest first
}

// layer is one layer, compressed or not.
type layer struct {
	size int64 // as it comes; 0 if not known
	open func(context.Context) (io.ReadCloser, error)
}

// blobs opens the parts of an image by their digests. What it returns need not be checked yet.
type blobs interface {
	blob(ctx context.Context, d v1.Descriptor) (io.ReadCloser, error)
}

// open finds out what from is.
func (s *Store) open(from string) (source, error) {
	info, err := os.Stat(from)
	switch {
	case err == nil && info.IsDir():
		return openLayout(from, s.limits())
	case err == nil && info.Mode().IsRegular():
		return openArchive(from, s.limits())
	case err == nil:
		return nil, errors.New("it is neither a file nor a folder")
	case filepath.IsAbs(from) || !errors.Is(err, os.ErrNotExist):
		return nil, err
	}
	return s.openRegistry(from)
}

// IsLayout tells whether a folder holds an image in the OCI layout rather than a root filesystem.
func IsLayout(folder string) bool {
	for _, name := range []string{layoutName, indexName} {
		if info, err := os.Stat(filepath.Join(folder, name)); err != nil || !info.Mode().IsRegular() {
			return false
		}
	}
	return true
}

// files of an OCI layout.
const (
	layoutName = "oci-layout"
	indexName  = "index.json"
)

// maxIndexes bounds how deep indexes may be nested.
const maxIndexes = 4

// follow reads the image of a descriptor, which is an index, from which it takes what is for this machine, or a
// manifest.
func follow(ctx context.Context, from blobs, d v1.Descriptor, limits Limits) (contents, error) {
	for range maxIndexes {
		if !d.MediaType.IsIndex() {
			return followManifest(ctx, from, d, limits)
		}
		data, err := document(ctx, from, d)
		if err != nil {
			return contents{}, err
		}
		index, err := v1.ParseIndexManifest(bytes.NewReader(data))
		if err != nil {
			return contents{}, fmt.Errorf("cannot read index %s: %w", d.Digest, err)
		}
		fitting := forThisMachine(index.Manifests)
		if len(fitting) == 0 {
			return contents{}, fmt.Errorf("it has nothing for linux/%s", runtime.GOARCH)
		}
		d = fitting[0]
	}
	return contents{}, errors.New("its indexes are nested too deep")
}

// forThisMachine returns the images and indexes that are for this machine, or do not say what they are for.
func forThisMachine(all []v1.Descriptor) []v1.Descriptor {
	var out []v1.Descriptor
	for _, d := range all {
		if d.Platform != nil && (d.Platform.OS != "linux" || d.Platform.Architecture != runtime.GOARCH) {
			continue
		}
		if d.MediaType.IsIndex() || d.MediaType.IsImage() {
			out = append(out, d)
		}
	}
	return out
}

// followManifest reads a manifest and the configuration that it names.
func followManifest(ctx context.Context, from blobs, d v1.Descriptor, limits Limits) (contents, error) {
	if !d.MediaType.IsImage() {
		return contents{}, fmt.Errorf("%s is a %q, not an image", d.Digest, d.MediaType)
	}
	data, err := document(ctx, from, d)
	if err != nil {
		return contents{}, err
	}
	manifest, err := v1.ParseManifest(bytes.NewReader(data))
	if err != nil {
		return contents{}, fmt.Errorf("cannot read manifest %s: %w", d.Digest, err)
	}
	if len(manifest.Layers) > limits.Layers {
		return contents{}, fmt.Errorf("it has %d layers, the limit is %d", len(manifest.Layers), limits.Layers)
	}
	if t := manifest.Config.MediaType; t != types.OCIConfigJSON && t != types.DockerConfigJSON {
		return contents{}, fmt.Errorf("%s holds a %q, not a container image", d.Digest, t)
	}
	out := contents{manifest: d.Digest, configDigest: manifest.Config.Digest}
	if out.config, err = document(ctx, from, manifest.Config); err != nil {
		return contents{}, err
	}
	for _, l := range manifest.Layers {
		if !l.MediaType.IsLayer() {
			return contents{}, fmt.Errorf("layer %s is a %q, which is not supported", l.Digest, l.MediaType)
		}
		if err := checkDescriptor(l); err != nil {
			return contents{}, err
		}
		out.layers = append(out.layers, layer{size: l.Size, open: func(ctx context.Context) (io.ReadCloser, error) {
			return from.blob(ctx, l)
		}})
	}
	return out, nil
}

// document reads a small blob and checks its digest.
func document(ctx context.Context, from blobs, d v1.Descriptor) ([]byte, error) {
	if err := checkDescriptor(d); err != nil {
		return nil, err
	}
	r, err := from.blob(ctx, d)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	v := newVerifier(r)
	data, err := readDocument(v)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", d.Digest, err)
	}
	return data, v.check(d.Digest)
}

// readDocument reads all of a small document.
func readDocument(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxDocument+1))
	if err == nil && len(data) > maxDocument {
		err = fmt.Errorf("it is larger than %d bytes", maxDocument)
	}
	return data, err
}

// checkDescriptor refuses digests that could be something else than the name of a file.
func checkDescriptor(d v1.Descriptor) error {
	if !idPattern.MatchString(d.Digest.String()) {
		return fmt.Errorf("digest %q is not a sha256", d.Digest)
	}
	if d.Size < 0 {
		return fmt.Errorf("%s has a size of %d", d.Digest, d.Size)
	}
	return nil
}

// blobPath is where an OCI layout has a blob.
func blobPath(digest v1.Hash) string { return "blobs/" + digest.Algorithm + "/" + digest.Hex }

// layoutFolder is a folder in the OCI layout.
type layoutFolder struct {
	root   *os.Root
	limits Limits
}

func openLayout(folder string, limits Limits) (source, error) {
	if !IsLayout(folder) {
		return nil, fmt.Errorf("the folder holds no image: %s and %s are not there", layoutName, indexName)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	return &layoutFolder{root, limits}, nil
}

// Close closes the folder.
func (l *layoutFolder) Close() error { return l.root.Close() }

func (l *layoutFolder) contents(ctx context.Context) (contents, error) {
	file, err := l.root.Open(indexName)
	if err != nil {
		return contents{}, fmt.Errorf("cannot read index: %w", err)
	}
	defer file.Close()
	return onlyImage(ctx, l, file, l.limits)
}

func (l *layoutFolder) blob(_ context.Context, d v1.Descriptor) (io.ReadCloser, error) {
	file, err := l.root.Open(blobPath(d.Digest))
	if err != nil {
		return nil, fmt.Errorf("%s is missing: %w", d.Digest, err)
	}
	return file, nil
}

// onlyImage reads the one image that the index of an OCI layout names.
func onlyImage(ctx context.Context, from blobs, index io.Reader, limits Limits) (contents, error) {
	data, err := readDocument(index)
	if err != nil {
		return contents{}, fmt.Errorf("cannot read index: %w", err)
	}
	manifest, err := v1.ParseIndexManifest(bytes.NewReader(data))
	if err != nil {
		return contents{}, fmt.Errorf("cannot read index: %w", err)
	}
	fitting := forThisMachine(manifest.Manifests)
	switch len(fitting) {
	case 0:
		return contents{}, fmt.Errorf("it has nothing for linux/%s", runtime.GOARCH)
	case 1:
		return follow(ctx, from, fitting[0], limits)
	}
	for _, d := range fitting[1:] {
		if d.Digest != fitting[0].Digest {
			return contents{}, fmt.Errorf("it holds %d images; save one alone", len(fitting))
		}
	}
	return follow(ctx, from, fitting[0], limits)
}
