// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package pods

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/jujulet/controller"
)

// The tutorial's commands, taken from the page itself, do what the page says.
func TestTutorial(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "jujulet.md"))
	require.NoError(t, err)
	_, section, found := strings.Cut(string(page), "## Your own charm in five minutes\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	blocks := strings.Split(section, "```sh\n")[1:]
	require.Len(t, blocks, 3)
	folder := filepath.Join(built.folder, "tutorial")
	require.NoError(t, os.Mkdir(folder, 0o755))
	state := filepath.Join(folder, "state")
	t.Cleanup(func() {
		require.NoError(t, controller.Down(context.Background(), controller.DownOptions{State: state}))
	})
	output := ""
	for _, block := range blocks {
		script, _, closed := strings.Cut(block, "```")
		require.True(t, closed)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, "sh", "-e", "-c", script)
		cmd.Dir = folder
		cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(built.jujulet)+":"+os.Getenv("PATH"), "JUJULET_STATE="+state)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		output += string(out)
	}
	for _, want := range []string{"says Hello", "[hello] Hello", "said: Hello, World", "\"config-changed\" hook"} {
		require.Contains(t, output, want)
	}
	require.NoDirExists(t, state)
}
