// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package hooktool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// execRunner executes the tools found on PATH.
type execRunner struct {
	path string
	env  []string
}

// passed are the variables that a tool's own client reads.
var passed = [...]string{
	"JUJU_CONTEXT_ID", "JUJU_AGENT_SOCKET_ADDRESS", "JUJU_AGENT_SOCKET_NETWORK",
	"JUJU_AGENT_TOKEN", "JUJU_AGENT_CA_CERT", "JUJU_UNIT_NAME", "PATH",
}

func newExecRunner(getenv func(string) string) *execRunner {
	env := os.Environ()
	for _, name := range passed {
		if value := getenv(name); value != "" {
			env = append(env, name+"="+value) // the last of a name counts
		}
	}
	return &execRunner{path: getenv("PATH"), env: env}
}

// Run executes the tool. When the context ends it is killed.
func (r *execRunner) Run(ctx context.Context, call Call) ([]byte, error) {
	file, err := lookPath(r.path, call.Tool)
	if err != nil {
		return nil, err
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, file, call.Args...)
	cmd.Args[0] = call.Tool
	cmd.Env = r.env
	cmd.WaitDelay = time.Second // a grandchild may hold the pipes open
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if call.Stdin != nil {
		cmd.Stdin = bytes.NewReader(call.Stdin)
	}
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return stdout.Bytes(), nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("cannot run %s: no answer from the tool: %w", call.Tool, context.Cause(ctx))
	case errors.As(err, &exit):
		return nil, newError(call.Tool, exit.ExitCode(), stderr.Bytes())
	}
	return nil, fmt.Errorf("cannot run %s: %w", call.Tool, err)
}

// lookPath finds a tool on the hook's own PATH, which need not be this
// process's.
func lookPath(path, tool string) (string, error) {
	for _, dir := range filepath.SplitList(path) {
		if dir == "" {
			continue
		}
		file := filepath.Join(dir, tool)
		if info, err := os.Stat(file); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return file, nil
		}
	}
	return "", fmt.Errorf("cannot run %s: not found on PATH", tool)
}
