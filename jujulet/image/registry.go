// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package image

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Time limits of a registry: for the beginning of an answer, and for a silence within one.
const (
	answerTimeout  = 30 * time.Second
	silenceTimeout = 60 * time.Second
)

// registryImage is an image of a registry. Its blobs are cached by digest.
type registryImage struct {
	store     *Store
	reference name.Reference
	puller    *remote.Puller
	cache     string
	pulled    int
}

// openRegistry reads a reference to an image.
func (s *Store) openRegistry(from string) (source, error) {
	reference, err := name.ParseReference(from)
	if err != nil {
		return nil, fmt.Errorf("it is no file here, and no reference to a registry: %w", err)
	}
	transport := s.Transport
	if transport == nil {
		transport = defaultTransport()
	}
	puller, err := remote.NewPuller(
		remote.WithAuthFromKeychain(authn.DefaultKeychain), remote.WithTransport(&loopbackOnly{transport}), remote.WithUserAgent("jujulet"),
	)
	if err != nil {
		return nil, err
	}
	cache := s.Cache
	if cache == "" {
		cache = filepath.Join(s.Dir, "cache")
	}
	cache = filepath.Join(cache, "blobs", "sha256")
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make cache: %w", err)
	}
	return &registryImage{store: s, reference: reference, puller: puller, cache: cache}, nil
}

func defaultTransport() http.RoundTripper {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = answerTimeout
	transport.DialContext = (&net.Dialer{Timeout: 10 * time.Second}).DialContext
	return transport
}

// loopbackOnly refuses what is not encrypted, unless it stays on this machine.
type loopbackOnly struct{ next http.RoundTripper }

// RoundTrip passes a request on.
func (l *loopbackOnly) RoundTrip(r *http.Request) (*http.Response, error) {
	if host := r.URL.Hostname(); r.URL.Scheme != "https" && host != "localhost" && !net.ParseIP(host).IsLoopback() {
		return nil, fmt.Errorf("%s does not speak https, and plain http is for this machine alone", r.URL.Host)
	}
	return l.next.RoundTrip(r)
}

// Close does nothing.
func (r *registryImage) Close() error { return nil }

// contents asks the registry what the reference stands for, unless that is a digest that is known already.
func (r *registryImage) contents(ctx context.Context) (contents, error) {
	r.report(Progress{Step: "Asking " + r.reference.Context().RegistryStr()})
	if digest, ok := r.reference.(name.Digest); ok {
		if found, err := r.cached(ctx, digest); err == nil {
			return found, nil
		}
	}
	d, err := r.puller.Get(ctx, r.reference)
	if err != nil {
		return contents{}, fmt.Errorf("cannot pull: %w", err)
	}
	if err := r.keep(d.Digest, bytes.NewReader(d.Manifest)); err != nil {
		return contents{}, err
	}
	return follow(ctx, r, d.Descriptor, r.store.limits())
}

// cached follows a digest whose document is in the cache.
func (r *registryImage) cached(ctx context.Context, digest name.Digest) (contents, error) {
	hash, err := v1.NewHash(digest.DigestStr())
	if err != nil {
		return contents{}, err
	}
	if err := checkDescriptor(v1.Descriptor{Digest: hash}); err != nil {
		return contents{}, err
	}
	data, err := os.ReadFile(filepath.Join(r.cache, hash.Hex))
	if err != nil {
		return contents{}, err
	}
	if len(data) > maxDocument {
		return contents{}, errors.New("not a manifest")
	}
	manifest, err := v1.ParseManifest(bytes.NewReader(data)) // an index has a media type, too
	if err != nil {
		return contents{}, err
	}
	return follow(ctx, r, v1.Descriptor{Digest: hash, MediaType: manifest.MediaType, Size: int64(len(data))}, r.store.limits())
}

// blob opens a blob of the cache, and pulls it first if it is not there or spoilt.
func (r *registryImage) blob(ctx context.Context, d v1.Descriptor) (io.ReadCloser, error) {
	path := filepath.Join(r.cache, d.Digest.Hex)
	if cached, err := openCached(path, d.Digest); err == nil {
		return cached, nil
	}
	if d.MediaType.IsIndex() || d.MediaType.IsImage() {
		return r.pullManifest(ctx, d)
	}
	if limit := r.store.limits().Bytes; d.Size > limit {
		return nil, fmt.Errorf("%s has %d bytes, the limit is %d", d.Digest, d.Size, limit)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	layer, err := r.puller.Layer(ctx, r.reference.Context().Digest(d.Digest.String()))
	if err != nil {
		return nil, fmt.Errorf("cannot pull %s: %w", d.Digest, err)
	}
	packed, err := layer.Compressed()
	if err != nil {
		return nil, fmt.Errorf("cannot pull %s: %w", d.Digest, err)
	}
	defer packed.Close()
	watched := watchSilence(packed, cancel)
	defer watched.stop()
	r.pulled++
	counted := &countingReader{from: watched, step: fmt.Sprintf("Pulling part %d of the image", r.pulled), total: d.Size, report: r.store.Progress}
	if err := r.keep(d.Digest, io.LimitReader(counted, d.Size+1)); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, fmt.Errorf("cannot pull %s: %w", d.Digest, err)
	}
	return openCached(path, d.Digest)
}

// pullManifest pulls the manifest or index that an index names.
func (r *registryImage) pullManifest(ctx context.Context, d v1.Descriptor) (io.ReadCloser, error) {
	got, err := r.puller.Get(ctx, r.reference.Context().Digest(d.Digest.String()))
	if err != nil {
		return nil, fmt.Errorf("cannot pull %s: %w", d.Digest, err)
	}
	if err := r.keep(d.Digest, bytes.NewReader(got.Manifest)); err != nil {
		return nil, err
	}
	return io.NopCloser(bytes.NewReader(got.Manifest)), nil
}

// keep puts content into the cache if it is what the digest says.
func (r *registryImage) keep(digest v1.Hash, content io.Reader) error {
	file, err := os.CreateTemp(r.cache, newPrefix)
	if err != nil {
		return fmt.Errorf("cannot write cache: %w", err)
	}
	defer os.Remove(file.Name())
	v := newVerifier(content)
	_, err = io.Copy(file, v)
	if err == nil {
		err = v.check(digest)
	}
	if e := file.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(file.Name(), filepath.Join(r.cache, digest.Hex))
	}
	return err
}

// report tells what is being done.
func (r *registryImage) report(p Progress) {
	if r.store.Progress != nil {
		r.store.Progress(p)
	}
}

// openCached opens a blob of the cache, if it is what its digest says.
func openCached(path string, digest v1.Hash) (io.ReadCloser, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read cache: %w", err)
	}
	v := newVerifier(file)
	_, err = io.Copy(io.Discard, v)
	if err == nil {
		err = v.check(digest)
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("cannot read cache: %w", err)
	}
	return file, nil
}

// silence ends a download from which nothing comes.
type silence struct {
	from  io.Reader
	timer *time.Timer
}

func watchSilence(from io.Reader, cancel context.CancelCauseFunc) *silence {
	return &silence{from, time.AfterFunc(silenceTimeout, func() {
		cancel(fmt.Errorf("nothing came for %s", silenceTimeout))
	})}
}

// Read reads and begins to wait anew.
func (s *silence) Read(p []byte) (int, error) {
	n, err := s.from.Read(p)
	s.timer.Reset(silenceTimeout)
	return n, err
}

func (s *silence) stop() { s.timer.Stop() }
