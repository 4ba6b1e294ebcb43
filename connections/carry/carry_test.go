// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package carry

import (
	"context"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/connections"
	"github.com/drawbridge-k8s/drawbridge/examples/exampletest"
	"github.com/drawbridge-k8s/drawbridge/hooks"
	"github.com/drawbridge-k8s/drawbridge/hooks/hooktool"
	"github.com/drawbridge-k8s/drawbridge/workload"
)

// box is a container in memory.
type box struct {
	files  map[string]string
	pushes int
}

func (b *box) ReadFile(_ context.Context, path string) ([]byte, bool, error) {
	text, found := b.files[path]
	return []byte(text), found, nil
}

func (b *box) Size(_ context.Context, path string) (int64, error) {
	if text, found := b.files[path]; found {
		return int64(len(text)), nil
	}
	return -1, nil
}

func (b *box) Push(_ context.Context, path string, content []byte, _ fs.FileMode) error {
	b.files[path] = string(content)
	b.pushes++
	return nil
}

func (b *box) MakeDir(context.Context, string, fs.FileMode) error { return nil }

func (b *box) Execute(context.Context, workload.Command) (workload.Outcome, error) {
	return workload.Outcome{}, nil
}

func (b *box) Close() {}

// connq is brought once, again after an upgrade of the charm or in a new container, and never holds anything up.
func TestPushTool(t *testing.T) {
	t.Parallel()
	tool := filepath.Join(t.TempDir(), "connq")
	b := &box{files: map[string]string{}}
	p := &Pass{h: Host{Tool: tool, Log: slog.New(slog.DiscardHandler)}}
	p.pushTool(t.Context(), b)
	require.Zero(t, b.pushes, "a charm that was packed without it")
	require.NoError(t, os.WriteFile(tool, []byte("program"), 0o755))
	p.pushTool(t.Context(), b)
	require.Equal(t, "program", b.files[connections.Tool])
	b.pushes = 0
	p.pushTool(t.Context(), b)
	require.Zero(t, b.pushes)
	require.NoError(t, os.WriteFile(tool, []byte("another"), 0o755))
	p.pushTool(t.Context(), b)
	require.Equal(t, "another", b.files[connections.Tool])
	delete(b.files, connections.Tool)
	p.pushTool(t.Context(), b)
	require.Equal(t, "another", b.files[connections.Tool])
}

// A charm that connects to nothing itself shows its metadata with Publish.
func TestPublish(t *testing.T) {
	t.Parallel()
	j := exampletest.New("db")
	r := j.Relate("connection:4", "app", map[string]string{})
	m := connections.Metadata{Name: "db", Category: "mariadb"}
	publish := func(ctx context.Context, h *hooks.Hook) error { return Publish(ctx, h, hooktool.GoalState{}, m) }
	event := hooks.Event{Kind: hooks.RelationJoined, Endpoint: connections.EndpointProvided, RelationID: 4}
	j.Hook(t, publish, event)
	read, err := connections.ParseMetadata(r.Bags["db"][connections.KeyMetadata])
	require.NoError(t, err)
	require.Equal(t, "mariadb", read.Category)
	j.Writes = nil
	j.Hook(t, publish, event)
	require.Empty(t, j.Writes)
	event.Kind, m.Category = hooks.RelationBroken, "other"
	j.Hook(t, publish, event)
	require.Empty(t, j.Writes, "a relation that is going is left alone")
}
