// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package interop

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// venv returns the folder of the virtual environment that has the packages of requirements.txt. It is made once for
// all tests of a run, with the system's Python: that one is in pods too. The test fails when it cannot be made.
func venv(t *testing.T) string {
	t.Helper()
	folder, err := makeVenv()
	require.NoError(t, err)
	return folder
}

// python returns the interpreter of [venv].
func python(t *testing.T) string { return filepath.Join(venv(t), "bin", "python") }

var makeVenv = sync.OnceValues(func() (string, error) {
	began := time.Now()
	folder := filepath.Join(built.folder, "venv")
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	interpreter := filepath.Join(folder, "bin", "python")
	for _, args := range [][]string{
		{systemPython(), "-m", "venv", folder},
		// No cache, no configuration but the environment's: what is installed is what requirements.txt names.
		{interpreter, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "-r", "requirements.txt"},
		{interpreter, "-m", "pip", "check"},
	} {
		if text, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput(); err != nil {
			return "", fmt.Errorf("cannot make the virtual environment: %v: %w\n%s", args, err, text)
		}
	}
	fmt.Printf("virtual environment made in %.1f s\n", time.Since(began).Seconds())
	return folder, nil
})

// systemPython prefers the distribution's interpreter: pods see it, and none below /root or /home.
func systemPython() string {
	const system = "/usr/bin/python3"
	if _, err := os.Stat(system); err == nil {
		return system
	}
	return "python3"
}

// The environment has what requirements.txt says, in these versions.
func TestVirtualEnvironment(t *testing.T) {
	file, err := os.Open("requirements.txt")
	require.NoError(t, err)
	defer file.Close()
	frozen, _, code := command(t, nil, python(t), "-m", "pip", "freeze", "--all")
	require.Zero(t, code)
	installed := map[string]bool{}
	for line := range strings.Lines(strings.ToLower(frozen)) {
		installed[strings.TrimSpace(line)] = true
	}
	names := 0
	for lines := bufio.NewScanner(file); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		require.Contains(t, line, "==", "requirements.txt pins")
		require.True(t, installed[strings.ToLower(line)], "%s is not among %v", line, frozen)
		names++
	}
	require.Positive(t, names)
}
