// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package image

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// maxArchiveEntries bounds the entries of an archive, whose files are few.
const maxArchiveEntries = 10_000

// manifestName is the file of a "docker save" archive that says what is in it.
const manifestName = "manifest.json"

// archive is a tar file that holds an image: an OCI layout, what "docker save" writes, or both in one.
type archive struct {
	file   *os.File
	limits Limits
	files  map[string]section
	links  map[string]string
}

// section is where a file lies in the archive.
type section struct{ offset, size int64 }

func openArchive(name string, limits Limits) (source, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	a := &archive{file: file, limits: limits, files: map[string]section{}, links: map[string]string{}}
	if err := a.index(); err != nil {
		file.Close()
		return nil, err
	}
	return a, nil
}

// Close closes the file.
func (a *archive) Close() error { return a.file.Close() }

// index finds the files of the archive.
func (a *archive) index() error {
	info, err := a.file.Stat()
	if err != nil {
		return fmt.Errorf("cannot read archive: %w", err)
	}
	var head [4]byte
	if n, _ := a.file.ReadAt(head[:], 0); n >= 2 && (head[0] == 0x1f && head[1] == 0x8b || string(head[:]) == "\x28\xb5\x2f\xfd") {
		return errors.New("the archive is compressed: decompress it first")
	}
	reader := tar.NewReader(a.file)
	for count := 0; ; count++ {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("cannot read archive: %w", err)
		}
		if count == maxArchiveEntries {
			return fmt.Errorf("the archive has more than %d entries", maxArchiveEntries)
		}
		// The reader takes headers alone until it is asked for content.
		offset, err := a.file.Seek(0, io.SeekCurrent)
		if err != nil {
			return fmt.Errorf("cannot read archive: %w", err)
		}
		if err := a.entry(header, section{offset, header.Size}, info.Size()); err != nil {
			return fmt.Errorf("entry %q of the archive %w", header.Name, err)
		}
	}
	if len(a.files) == 0 {
		return errors.New("it is not a tar archive, or an empty one")
	}
	return nil
}

// entry takes one entry of the archive.
func (a *archive) entry(header *tar.Header, at section, size int64) error {
	name, err := entryName(header.Name)
	if err != nil {
		return err
	}
	_, twice := a.files[name]
	_, linked := a.links[name]
	if twice || linked {
		return errors.New("is there twice")
	}
	switch header.Typeflag {
	case tar.TypeDir, tar.TypeXGlobalHeader:
		return nil
	case tar.TypeReg:
		if at.size > size-at.offset {
			return errors.New("is larger than the archive")
		}
		a.files[name] = at
		return nil
	case tar.TypeSymlink: // "docker save" of old has them for a layer that is there twice
		target, err := entryName(path.Join(path.Dir(name), header.Linkname))
		if err != nil || path.IsAbs(header.Linkname) {
			return fmt.Errorf("is a link to %q, which leaves the archive", header.Linkname)
		}
		a.links[name] = target
		return nil
	}
	return fmt.Errorf("is %s", kindOf(header.Typeflag))
}

// open returns a file of the archive.
func (a *archive) open(name string) (io.ReadCloser, int64, error) {
	if target, ok := a.links[name]; ok {
		name = target
	}
	at, ok := a.files[name]
	if !ok {
		return nil, 0, fmt.Errorf("the archive has no file %q", name)
	}
	return io.NopCloser(io.NewSectionReader(a.file, at.offset, at.size)), at.size, nil
}

func (a *archive) blob(_ context.Context, d v1.Descriptor) (io.ReadCloser, error) {
	r, _, err := a.open(blobPath(d.Digest))
	return r, err
}

func (a *archive) contents(ctx context.Context) (contents, error) {
	_, isLayout := a.files[layoutName]
	if index, _, err := a.open(indexName); err == nil && isLayout {
		return onlyImage(ctx, a, index, a.limits)
	}
	if _, ok := a.files[manifestName]; !ok {
		return contents{}, fmt.Errorf("the archive holds no image: it has neither %s nor %s", manifestName, layoutName)
	}
	return a.saved()
}

// savedImage is one entry of the manifest of a "docker save" archive.
type savedImage struct {
	Config string
	Layers []string
}

// saved reads an archive of "docker save" without an OCI layout.
func (a *archive) saved() (contents, error) {
	data, err := a.document(manifestName)
	if err != nil {
		return contents{}, err
	}
	var images []savedImage
	if err := json.Unmarshal(data, &images); err != nil {
		return contents{}, fmt.Errorf("cannot read %s: %w", manifestName, err)
	}
	if len(images) != 1 {
		return contents{}, fmt.Errorf("it holds %d images; save one alone", len(images))
	}
	if n := len(images[0].Layers); n > a.limits.Layers {
		return contents{}, fmt.Errorf("it has %d layers, the limit is %d", n, a.limits.Layers)
	}
	var out contents
	if out.config, err = a.document(images[0].Config); err != nil {
		return contents{}, err
	}
	sum := sha256.Sum256(out.config)
	out.configDigest = v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(sum[:])}
	for _, name := range images[0].Layers {
		_, size, err := a.open(name)
		if err != nil {
			return contents{}, err
		}
		out.layers = append(out.layers, layer{size: size, open: func(context.Context) (io.ReadCloser, error) {
			r, _, err := a.open(name)
			return r, err
		}})
	}
	return out, nil
}

// document reads a small file of the archive.
func (a *archive) document(name string) ([]byte, error) {
	r, _, err := a.open(name)
	if err != nil {
		return nil, err
	}
	data, err := readDocument(r)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", name, err)
	}
	return data, nil
}

// entryName returns the clean name of an entry of a tar, "." for the root. Names that could mean something outside are
// refused.
func entryName(name string) (string, error) {
	if strings.HasPrefix(name, "/") {
		return "", errors.New("has an absolute path")
	}
	if strings.ContainsRune(name, 0) {
		return "", errors.New("has a name with a zero byte")
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return "", errors.New(`has a path with ".."`)
		}
	}
	return path.Clean(name), nil
}

// kindOf says what an entry is that is not supported.
func kindOf(typeflag byte) string {
	switch typeflag {
	case tar.TypeChar, tar.TypeBlock:
		return "a device"
	case tar.TypeFifo:
		return "a named pipe"
	case tar.TypeLink:
		return "a hard link"
	}
	return fmt.Sprintf("of type %q, which is not supported", typeflag)
}
