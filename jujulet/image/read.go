// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package image

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/klauspost/compress/zstd"
)

// maxWindow bounds the memory that a zstd layer may ask for.
const maxWindow = 128 << 20

// decompress returns the plain content of what is compressed with gzip or zstd, or not at all.
func decompress(r io.Reader) (io.ReadCloser, error) {
	buffered := bufio.NewReaderSize(r, 64<<10)
	head, err := buffered.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("cannot read: %w", err)
	}
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		plain, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, fmt.Errorf("cannot decompress: %w", err)
		}
		return plain, nil
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		plain, err := zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, fmt.Errorf("cannot decompress: %w", err)
		}
		return plain.IOReadCloser(), nil
	}
	return io.NopCloser(buffered), nil
}

// verifier computes the sha256 of what is read through it.
type verifier struct {
	from io.Reader
	hash hash.Hash
}

func newVerifier(r io.Reader) *verifier { return &verifier{r, sha256.New()} }

// Read reads and remembers.
func (v *verifier) Read(p []byte) (int, error) {
	n, err := v.from.Read(p)
	v.hash.Write(p[:n])
	return n, err
}

// check compares the digest of all that was read.
func (v *verifier) check(want v1.Hash) error {
	if got := hex.EncodeToString(v.hash.Sum(nil)); want.Algorithm != "sha256" || got != want.Hex {
		return fmt.Errorf("the content is not what its digest says: sha256:%s instead of %s", got, want)
	}
	return nil
}

// countingReader reports how much was read through it.
type countingReader struct {
	from        io.Reader
	step        string
	done, total int64
	report      func(Progress)
}

// Read reads and reports.
func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.done += int64(n)
	if c.report != nil {
		c.report(Progress{c.step, c.done, c.total})
	}
	return n, err
}
