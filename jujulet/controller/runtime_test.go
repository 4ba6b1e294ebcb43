// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package controller

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestChooseRuntime(t *testing.T) {
	own, temporary := t.TempDir(), t.TempDir()
	long := filepath.Join(own, strings.Repeat("long", 20))
	require.NoError(t, os.Mkdir(long, 0o700))
	link := filepath.Join(own, "link")
	require.NoError(t, os.Symlink(temporary, link))
	name := folderName("/state")
	for _, test := range []struct {
		name       string
		uid        int
		xdg, tmp   string
		want, fail string
	}{
		{"root", 0, own, temporary, "/run/" + name, ""},
		{"a session", 1000, own, temporary, own + "/" + name, ""},
		{"no session", 1000, "", temporary, temporary + "/" + name, ""},
		{"nothing set", 1000, "", "", "/tmp/" + name, ""},
		{"a session that has ended", 1000, own + "/gone", "", "/tmp/" + name, ""},
		{"not a path", 1000, "run", "", "/tmp/" + name, ""},
		{"a link", 1000, link, "", temporary + "/" + name, ""},
		{"too long", 1000, long, temporary, temporary + "/" + name, ""},
		{"both too long", 1000, long, long, "/tmp/" + name, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := chooseRuntime("/state", test.uid, func(key string) string {
				return map[string]string{"XDG_RUNTIME_DIR": test.xdg, "TMPDIR": test.tmp}[key]
			})
			require.NoError(t, err)
			require.Equal(t, test.want, got)
			require.LessOrEqual(t, len(filepath.Join(got, podsFolder, "ctl", shortName("a/0"), agentSocket)), 107)
		})
	}
}

// While a cluster is up, its runtime folder is found from any environment; and no other folder is ever removed.
func TestRuntimeFolder(t *testing.T) {
	state, other := t.TempDir(), t.TempDir()
	record := func(text string) {
		require.NoError(t, os.WriteFile(filepath.Join(state, runtimeName), []byte(text), 0o600))
	}
	usual := RuntimeFolder(state)
	require.Equal(t, folderName(state), filepath.Base(usual))
	cfg := config{State: state, Runtime: filepath.Join(other, folderName(state))}
	require.NoError(t, makeRuntime(cfg))
	require.Equal(t, cfg.Runtime, RuntimeFolder(state))
	require.DirExists(t, filepath.Join(cfg.Runtime, podsFolder))
	info, err := os.Stat(cfg.Runtime)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())

	moved := config{State: state, Runtime: filepath.Join(t.TempDir(), folderName(state))}
	require.NoError(t, makeRuntime(moved), "of a cluster that was killed, and a new one in another session")
	require.NoDirExists(t, cfg.Runtime)
	require.NoError(t, removeRuntime(state, moved.Runtime))
	require.NoDirExists(t, moved.Runtime)
	require.NoFileExists(t, filepath.Join(state, runtimeName))
	require.Equal(t, usual, RuntimeFolder(state))

	for _, text := range []string{other, folderName(state), "../" + folderName(state), "", other + "/" + folderName("/other")} {
		record(text)
		require.Equal(t, usual, RuntimeFolder(state), "%q is not believed", text)
	}
	require.DirExists(t, other)
}

// What is at the place of the runtime folder already is never used, as it may be somebody else's.
func TestMakeRuntime_NotAnothers(t *testing.T) {
	state, private := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(private, "key"), nil, 0o600))
	cfg := config{State: state, Runtime: filepath.Join(t.TempDir(), folderName(state))}
	require.NoError(t, os.Symlink(private, cfg.Runtime))
	require.NoError(t, makeRuntime(cfg))
	info, err := os.Lstat(cfg.Runtime)
	require.NoError(t, err)
	require.True(t, info.IsDir(), "a folder, not the link")
	require.FileExists(t, filepath.Join(private, "key"))
}
