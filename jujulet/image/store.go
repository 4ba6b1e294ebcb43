// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package image

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sys/unix"
)

// Image is an image of a store.
type Image struct {
	// ID is the digest of the image's configuration, "sha256:" and 64 hexadecimal digits. It covers the
	// configuration and the content of all layers.
	ID string `json:"id"`
	// Source is what was asked for when the image was added.
	Source string `json:"source"`
	// Manifest is the digest of the image's manifest, by which a registry knows it; empty if it had none.
	Manifest string `json:"manifest,omitempty"`
	// Env, WorkingDir, User, Entrypoint and Cmd are the image's own.
	Env        []string `json:"env,omitempty"`
	WorkingDir string   `json:"working-dir,omitempty"`
	User       string   `json:"user,omitempty"`
	Entrypoint []string `json:"entrypoint,omitempty"`
	Cmd        []string `json:"cmd,omitempty"`
	// Size is the number of bytes of the files, Entries the number of files, folders and links.
	Size    int64 `json:"size"`
	Entries int   `json:"entries"`
	// Notes says what could not be taken over as it was.
	Notes []string `json:"notes,omitempty"`
	// Root is the folder of the root filesystem. It must not be changed.
	Root string `json:"-"`
}

// Limits bound what an image may cost.
type Limits struct {
	// Bytes bounds the unpacked files of an image, and likewise what its layers are when decompressed.
	Bytes int64
	// Entries bounds the files, folders and links of all layers together.
	Entries int
	// Layers bounds the number of layers.
	Layers int
}

// DefaultLimits are those of a Store that names none: 20 GiB, a million entries, 500 layers.
var DefaultLimits = Limits{Bytes: 20 << 30, Entries: 1_000_000, Layers: 500}

// maxDocument bounds manifests, indexes and configurations in bytes.
const maxDocument = 4 << 20

// Store keeps images as unpacked folders.
type Store struct {
	// Dir is the folder of the store. It is made when an image is added.
	Dir string
	// Cache is the folder for the blobs of registries; empty means a folder in Dir.
	Cache string
	// Limits bound each image; zero values mean DefaultLimits.
	Limits Limits
	// Progress is told what is being done; it may be nil. It is called often.
	Progress func(Progress)
	// Transport reaches registries; nil means a usual one.
	Transport http.RoundTripper
	// Ordinary leaves owners and setuid bits out, since an ordinary user cannot give files away.
	Ordinary bool
}

// Progress is how far one step has come.
type Progress struct {
	// Step is what is done, such as "Pulling layer 2 of 3".
	Step string
	// Done and Total count bytes; Total is 0 if it is not known.
	Done, Total int64
}

// idPattern is what the ID of an image looks like.
var idPattern = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// files of an image's folder.
const (
	documentName = "image.json"
	rootName     = "root"
	newPrefix    = ".new-"
)

// Folder returns where a state folder has its images.
func Folder(state string) string { return filepath.Join(state, "images") }

// CacheFolder returns the user's folder for blobs of registries, $XDG_CACHE_HOME/jujulet or ~/.cache/jujulet; it is empty
// if the environment names neither.
func CacheFolder(getenv func(string) string) string {
	if cache := getenv("XDG_CACHE_HOME"); filepath.IsAbs(cache) {
		return filepath.Join(cache, "jujulet")
	}
	if home := getenv("HOME"); home != "" {
		return filepath.Join(home, ".cache", "jujulet")
	}
	return ""
}

// folder returns the folder of an image.
func (s *Store) folder(id string) string {
	return filepath.Join(s.Dir, strings.Replace(id, ":", "-", 1))
}

// Get returns an image that was added before. An error that is os.ErrNotExist says that there is none.
func (s *Store) Get(id string) (Image, error) {
	if !idPattern.MatchString(id) {
		return Image{}, fmt.Errorf("cannot find image %q: this is not the id of an image", id)
	}
	data, err := os.ReadFile(filepath.Join(s.folder(id), documentName))
	if err != nil {
		return Image{}, fmt.Errorf("cannot find image %s: %w", id, err)
	}
	var image Image
	if err := json.Unmarshal(data, &image); err != nil {
		return Image{}, fmt.Errorf("cannot read image %s: %w", id, err)
	}
	image.Root = filepath.Join(s.folder(id), rootName)
	return image, nil
}

// Add makes the image that from names part of the store: the path of an archive or of an OCI layout folder, else a
// reference to a registry. If the store has it already, only what tells its digest is read.
func (s *Store) Add(ctx context.Context, from string) (Image, error) {
	image, err := s.add(ctx, from)
	if err != nil {
		return Image{}, fmt.Errorf("cannot use image %q: %w", from, err)
	}
	return image, nil
}

func (s *Store) add(ctx context.Context, from string) (Image, error) {
	unlock, err := s.lock()
	if err != nil {
		return Image{}, err
	}
	defer unlock()
	source, err := s.open(from)
	if err != nil {
		return Image{}, err
	}
	defer source.Close()
	found, err := source.contents(ctx)
	if err != nil {
		return Image{}, err
	}
	config, err := parseConfig(found)
	if err != nil {
		return Image{}, err
	}
	id := found.configDigest.String()
	if image, err := s.Get(id); err == nil {
		image.Source = from
		return image, nil
	} else if !errors.Is(err, os.ErrNotExist) {
		return Image{}, err
	}
	image := Image{
		ID: id, Source: from, Env: config.Config.Env, WorkingDir: config.Config.WorkingDir, User: config.Config.User,
		Entrypoint: config.Config.Entrypoint, Cmd: config.Config.Cmd,
	}
	if found.manifest != (v1.Hash{}) {
		image.Manifest = found.manifest.String()
	}
	return s.unpack(ctx, image, found.layers, config.RootFS.DiffIDs)
}

// unpack makes the image's folder. It has its name only when it is complete.
func (s *Store) unpack(ctx context.Context, image Image, layers []layer, digests []v1.Hash) (Image, error) {
	dir, err := os.MkdirTemp(s.Dir, newPrefix)
	if err != nil {
		return Image{}, fmt.Errorf("cannot make folder: %w", err)
	}
	defer os.RemoveAll(dir)
	if err := os.Mkdir(filepath.Join(dir, rootName), 0o755); err != nil {
		return Image{}, fmt.Errorf("cannot make folder: %w", err)
	}
	root, err := os.OpenRoot(filepath.Join(dir, rootName))
	if err != nil {
		return Image{}, fmt.Errorf("cannot open folder: %w", err)
	}
	defer root.Close()
	u := newUnpacker(root, s.limits(), !s.Ordinary)
	for i, l := range layers {
		step := fmt.Sprintf("Unpacking layer %d of %d", i+1, len(layers))
		if err := s.unpackLayer(ctx, u, l, digests[i], step); err != nil {
			return Image{}, fmt.Errorf("layer %d of %d: %w", i+1, len(layers), err)
		}
	}
	if err := u.finish(); err != nil {
		return Image{}, err
	}
	image.Size, image.Entries, image.Notes = u.bytes, u.entries, u.notes()
	data, err := json.Marshal(image)
	if err != nil {
		return Image{}, fmt.Errorf("cannot write image: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, documentName), data, 0o600); err != nil {
		return Image{}, fmt.Errorf("cannot write image: %w", err)
	}
	if err := os.Rename(dir, s.folder(image.ID)); err != nil {
		return Image{}, fmt.Errorf("cannot keep image: %w", err)
	}
	image.Root = filepath.Join(s.folder(image.ID), rootName)
	return image, nil
}

// unpackLayer unpacks one layer and checks the digest of its decompressed content.
func (s *Store) unpackLayer(ctx context.Context, u *unpacker, l layer, want v1.Hash, step string) error {
	packed, err := l.open(ctx)
	if err != nil {
		return err
	}
	defer packed.Close()
	counted := &countingReader{from: packed, step: step, total: l.size, report: s.Progress}
	plain, err := decompress(counted)
	if err != nil {
		return err
	}
	defer plain.Close()
	verified := newVerifier(io.LimitReader(plain, u.limits.Bytes+tarOverhead))
	if err := u.layer(ctx, verified); err != nil {
		return err
	}
	// What comes after the end of the tar belongs to the digest, too.
	if _, err := io.Copy(io.Discard, verified); err != nil {
		return fmt.Errorf("cannot read: %w", err)
	}
	return verified.check(want)
}

// limits returns the limits with the defaults in the place of zeros.
func (s *Store) limits() Limits {
	limits := s.Limits
	if limits.Bytes == 0 {
		limits.Bytes = DefaultLimits.Bytes
	}
	if limits.Entries == 0 {
		limits.Entries = DefaultLimits.Entries
	}
	if limits.Layers == 0 {
		limits.Layers = DefaultLimits.Layers
	}
	return limits
}

// lock makes the store's folder and keeps others from adding to it. Only one adds at a time, so what has an
// unfinished name is left over from one that was killed.
func (s *Store) lock() (unlock func(), err error) {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make folder: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(s.Dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot lock images: %w", err)
	}
	for err = unix.EINTR; errors.Is(err, unix.EINTR); {
		err = unix.Flock(int(file.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("cannot lock images: %w", err)
	}
	left, _ := filepath.Glob(filepath.Join(s.Dir, newPrefix+"*")) // the pattern is well formed
	for _, path := range left {
		if err := os.RemoveAll(path); err != nil {
			file.Close()
			return nil, fmt.Errorf("cannot remove what is left of an image: %w", err)
		}
	}
	return func() { file.Close() }, nil
}

// parseConfig reads the image's configuration and refuses an image that is not for this machine.
func parseConfig(found contents) (*v1.ConfigFile, error) {
	config, err := v1.ParseConfigFile(strings.NewReader(string(found.config)))
	if err != nil {
		return nil, fmt.Errorf("cannot read its configuration: %w", err)
	}
	if system := config.OS; system != "" && system != "linux" {
		return nil, fmt.Errorf("it is for %s/%s, this machine is linux/%s", system, config.Architecture, runtime.GOARCH)
	}
	if arch := config.Architecture; arch != "" && arch != runtime.GOARCH {
		return nil, fmt.Errorf("it is for linux/%s, this machine is linux/%s", arch, runtime.GOARCH)
	}
	if len(config.RootFS.DiffIDs) != len(found.layers) {
		return nil, fmt.Errorf("it has %d layers, its configuration names %d", len(found.layers), len(config.RootFS.DiffIDs))
	}
	for _, d := range config.RootFS.DiffIDs {
		if d.Algorithm != "sha256" {
			return nil, fmt.Errorf("digest %q is not a sha256", d)
		}
	}
	return config, nil
}
