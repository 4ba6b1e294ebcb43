// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package agent

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// archiveSource is a Controller with a charm, and nothing else.
type archiveSource struct {
	Controller
	archives []*model.CharmArchive // one for each time that it is asked; the last one stays
}

func (s *archiveSource) CharmArchive(context.Context, string) (*model.CharmArchive, error) {
	a := s.archives[0]
	if len(s.archives) > 1 {
		s.archives = s.archives[1:]
	}
	return a, nil
}

func TestRemote_CharmArchive(t *testing.T) {
	t.Parallel()
	content := func(n int) []byte { return bytes.Repeat([]byte("0123456"), n/7+1)[:n] }
	for _, size := range []int{0, 1, archivePartSize - 1, archivePartSize, archivePartSize + 1, 3*archivePartSize + 17} {
		want := &model.CharmArchive{Hash: "h", Data: content(size)}
		r := dialSource(t, &archiveSource{archives: []*model.CharmArchive{want}})
		for range 2 {
			got, err := r.CharmArchive(t.Context(), "foo/0")
			require.NoError(t, err)
			require.Equal(t, want.Hash, got.Hash)
			require.True(t, bytes.Equal(want.Data, got.Data), "%d bytes", size)
		}
	}
}

func TestArchiveParts(t *testing.T) {
	t.Parallel()
	size := 2*archivePartSize + 1
	p := &archiveParts{source: &archiveSource{archives: []*model.CharmArchive{{Hash: "a", Data: make([]byte, size)}, {Hash: "b", Data: make([]byte, size)}}}}
	first, err := p.read(t.Context(), "foo/0", 0)
	require.NoError(t, err)
	require.Len(t, first.Data, archivePartSize)
	for _, offset := range []int{-1, size + 1} {
		_, err = p.read(t.Context(), "foo/0", offset)
		require.ErrorContains(t, err, "it has 524289 bytes")
	}
	last, err := p.read(t.Context(), "foo/0", 2*archivePartSize)
	require.NoError(t, err)
	require.Equal(t, archivePart{Hash: "a", Size: size, Data: []byte{0}}, last)
	require.Nil(t, p.held, "after the last part")
	again, err := p.read(t.Context(), "foo/0", archivePartSize)
	require.NoError(t, err)
	require.Equal(t, "b", again.Hash, "a charm that was changed is seen by its hash")
}

// dialSource connects to a server of a controller.
func dialSource(t *testing.T, c Controller) *Remote {
	dir, err := os.MkdirTemp("", "ctl")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, l, c, "foo/0") }()
	t.Cleanup(func() { cancel(); <-served })
	r, err := Dial(ctx, filepath.Join(dir, "s"))
	require.NoError(t, err)
	t.Cleanup(func() { r.Close() })
	return r
}
