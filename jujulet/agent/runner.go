// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package agent

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"syscall"
	"time"
)

// Command is one process of the charm: dispatch, or the script of a command.
type Command struct {
	Path string   // absolute
	Args []string // without the program
	Dir  string
	Env  []string // all of it; nothing else is inherited
	// Stdout and Stderr receive the process's output.
	Stdout, Stderr io.Writer
}

// Runner runs a command and returns its exit code. The error tells that it could
// not be started, or was killed by a signal (ErrTerminated).
type Runner func(ctx context.Context, c Command) (exit int, err error)

// ErrTerminated is returned by a Runner whose process was killed by SIGTERM or
// SIGKILL: the hook is queued again.
var ErrTerminated = errors.New("hook execution was terminated by signal")

// outputGrace is how long output of leftover children is awaited after the end of
// the process.
const outputGrace = 100 * time.Millisecond

// Execute is the Runner that executes the program; ctx kills it.
func Execute(ctx context.Context, c Command) (int, error) {
	cmd := exec.CommandContext(ctx, c.Path, c.Args...)
	cmd.Args[0] = c.Path
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = c.Dir, c.Env, c.Stdout, c.Stderr
	cmd.WaitDelay = outputGrace
	// Killed with its children; what has made a session of its own lives on.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err := cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return 0, err
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		if s := status.Signal(); s == syscall.SIGTERM || s == syscall.SIGKILL {
			return -1, ErrTerminated
		}
		return -1, errors.New(exit.Error()) // "signal: segmentation fault"
	}
	return exit.ExitCode(), nil
}
