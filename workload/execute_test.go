// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package workload_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/workload"
	"github.com/drawbridge-k8s/drawbridge/workload/workloadtest"
)

// What the document of connections needs of a container, on a real Pebble.
func TestContainer_FilesAndCommands(t *testing.T) {
	t.Parallel()
	pebble := workloadtest.StartPebble(t, workloadtest.Options{})
	container, err := workload.Dial(t.Context(), pebble.Socket)
	require.NoError(t, err)
	defer container.Close()
	run := func(timeout time.Duration, script string) workload.Outcome {
		outcome, err := container.Execute(t.Context(), workload.Command{
			Args: []string{"/bin/sh", "-c", script}, Environment: map[string]string{"CONNECTIONS_HASH": "h"}, Timeout: timeout})
		require.NoError(t, err)
		return outcome
	}
	require.Equal(t, workload.Outcome{Output: "h"}, run(time.Minute, "echo $CONNECTIONS_HASH"))
	require.Equal(t, workload.Outcome{Code: 3, Output: "no"}, run(time.Minute, "echo no >&2; exit 3"))
	long := run(time.Minute, "i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done")
	require.LessOrEqual(t, len(long.Output), 4<<10)
	require.True(t, strings.HasSuffix(long.Output, "line 2999"))
	t.Run("conn-T52", func(t *testing.T) {
		begin := time.Now()
		outcome := run(time.Second, "exec sleep 60")
		require.True(t, outcome.Timeout)
		require.Equal(t, -1, outcome.Code)
		require.Less(t, time.Since(begin), 20*time.Second)
	})
	outcome, err := container.Execute(t.Context(), workload.Command{Args: []string{"/nosuch"}, Timeout: time.Second})
	require.NoError(t, err)
	require.Equal(t, -1, outcome.Code)
	require.NotEmpty(t, outcome.Output)

	folder := filepath.Join(pebble.Folder(), "private")
	for range 2 {
		require.NoError(t, container.MakeDir(t.Context(), folder, 0o700))
	}
	file := filepath.Join(folder, "document")
	size, err := container.Size(t.Context(), file)
	require.NoError(t, err)
	require.Equal(t, int64(-1), size)
	require.NoError(t, container.Push(t.Context(), file, []byte("text"), 0o640))
	size, err = container.Size(t.Context(), file)
	require.NoError(t, err)
	require.Equal(t, int64(4), size)
	for path, mode := range map[string]os.FileMode{folder: 0o700, file: 0o640} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Perm(), path)
	}
}
