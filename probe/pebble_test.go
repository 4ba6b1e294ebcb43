// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package probe_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/canonical/pebble/client"
	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/probe"
	"github.com/drawbridge-k8s/drawbridge/workload/workloadtest"
)

func TestPebbleNotifier(t *testing.T) {
	t.Parallel()
	pebble := workloadtest.StartPebble(t, workloadtest.Options{})
	n := probe.PebbleNotifier(pebble.Socket, probe.NoticeKey)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	require.NoError(t, n.Notify(ctx))
	require.NoError(t, n.Notify(ctx))
	c, err := client.New(&client.Config{Socket: pebble.Socket})
	require.NoError(t, err)
	notices, err := c.Notices(&client.NoticesOptions{Keys: []string{probe.NoticeKey}})
	require.NoError(t, err)
	require.Len(t, notices, 1)
	require.Equal(t, "custom", string(notices[0].Type))
	require.Equal(t, 2, notices[0].Occurrences)
	require.Equal(t, notices[0].LastOccurred, notices[0].LastRepeated, "each one is a hook of its own")
}

func TestPebbleNotifier_Absent(t *testing.T) {
	t.Parallel()
	n := probe.PebbleNotifier(filepath.Join(t.TempDir(), "absent"), probe.NoticeKey)
	require.ErrorContains(t, n.Notify(t.Context()), "cannot send a notice")
}
