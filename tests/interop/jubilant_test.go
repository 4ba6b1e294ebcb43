// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package interop

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/jujulet/controller"
)

// TestJubilant runs the tests in jubilant/ with the library jubilant on a cluster of their own, and prints which.
func TestJubilant(t *testing.T) {
	interpreter, folder := python(t), state(t, "jubilant")
	env := append(os.Environ(), "JUJULET_STATE="+folder, "JUJULET="+built.jujulet, "PYTHONDONTWRITEBYTECODE=1", "TZ=UTC")
	out, errs, code := command(t, env, built.jujulet, "up", "--update-status=off")
	require.Zero(t, code, "%s%s", out, errs)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.NoError(t, controller.Down(ctx, controller.DownOptions{State: folder}))
	})
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, interpreter, "-m", "unittest", "discover", "-v")
	cmd.Dir, cmd.Env = "jubilant", env
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 30 * time.Second
	ran := tests(t, cmd)
	require.GreaterOrEqual(t, ran, 22, "tests of Python that have passed")
	if t.Failed() {
		log, _, _ := command(t, env, built.jujulet, "debug-log", "--replay", "--no-tail")
		t.Log(log)
	}
}

// verdict is how unittest -v says how a test has ended.
var verdict = regexp.MustCompile(` \.\.\. (ok|FAIL|ERROR|skipped.*)$`)

// tests runs unittest, prints what it says, fails if it does, and returns how many tests passed.
func tests(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	reader, writer := io.Pipe()
	cmd.Stdout, cmd.Stderr = writer, writer
	require.NoError(t, cmd.Start())
	done := make(chan error, 1)
	go func() {
		err := cmd.Wait()
		writer.Close()
		done <- err
	}()
	passed := 0
	for lines := bufio.NewScanner(reader); lines.Scan(); {
		t.Log(lines.Text())
		if match := verdict.FindStringSubmatch(lines.Text()); match != nil && match[1] == "ok" {
			passed++
		}
	}
	if err := <-done; err != nil {
		t.Errorf("the tests in Python have failed: %v", err)
	}
	return passed
}
