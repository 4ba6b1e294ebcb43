// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package kube

import (
	"os"
	"os/exec"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// The table that holds the embedded API to what the real one was seen to do holds the real one, too.
func TestParity(t *testing.T) {
	// One story at a time: the numbers of node ports that they ask for are one server's.
	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-parallel=1", "-v", "-run", "Parity", "./jujulet/cluster")
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "PARITY_SERVER="+servers.URL, "PARITY_TOKEN="+servers.Token, "PARITY_CA="+servers.CAFile)
	out, err := cmd.CombinedOutput()
	for _, line := range regexp.MustCompile(`(?m)^.*(--- SKIP: |accepted difference: ).*$`).FindAll(out, -1) {
		t.Logf("%s", line)
	}
	stories := len(regexp.MustCompile(`(?m)^ {4,}--- PASS: `).FindAll(out, -1))
	t.Logf("%d stories passed on %s", stories, servers.Version)
	require.Equal(t, version, servers.Version)
	require.NoError(t, err, "%s", out)
	require.Greater(t, stories, 50, "%s", out)
}
