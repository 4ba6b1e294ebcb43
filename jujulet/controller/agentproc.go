// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package controller

import (
	"bufio"
	"context"
	"io"
	"path"
	"strings"
	"time"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/pod"
)

// AgentCommand is the hidden command that is a unit's agent: see [AgentMain].
const AgentCommand = "__agent"

// agentArgs is the command line of a unit's agent in its pod.
func (u *unit) agentArgs() []string {
	return []string{
		control.BinaryInPod, AgentCommand,
		"--model=" + u.c.info.Name,
		"--unit=" + u.name,
		"--socket=" + path.Join(controlFolder, agentSocket),
		"--update-status=" + u.c.config.UpdateStatus.String(),
	}
}

// runAgent keeps the agent running in the charm container. The container
// counts as ready while it runs.
func (u *unit) runAgent(ctx context.Context, box sandbox) {
	for ctx.Err() == nil {
		started := u.c.clock()
		u.change(pod.CharmContainer, func(c *containerState) {
			c.running, c.started, c.ready, c.since = true, true, true, started
		})
		output, wait := u.logOutput()
		exit, err := u.execAgent(ctx, box, pod.Command{Args: u.agentArgs(), Stdout: output, Stderr: output})
		output.Close()
		wait()
		if ctx.Err() != nil || u.isEnding() {
			return
		}
		u.log.Warn("agent ended", "unit", u.name, "exit", exit, "error", err)
		u.change(pod.CharmContainer, func(c *containerState) {
			c.ready, c.exit = false, int32(exit)
			c.restarts++
		})
		if !sleep(ctx, restartDelay) {
			return
		}
	}
}

// execAgent runs one agent to its end; meanwhile replace finds it.
func (u *unit) execAgent(ctx context.Context, box sandbox, command pod.Command) (int, error) {
	process, err := box.Spawn(ctx, pod.CharmContainer, command)
	if err != nil {
		return -1, err
	}
	u.mu.Lock()
	u.agent = process
	u.mu.Unlock()
	exit, err := process.Wait(ctx)
	u.mu.Lock()
	u.agent = nil
	u.mu.Unlock()
	return exit, err
}

// logOutput returns a writer whose lines become log records, and a function
// that waits for the last of them.
func (u *unit) logOutput() (io.WriteCloser, func()) {
	reader, writer := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		lines := bufio.NewScanner(reader)
		for lines.Scan() {
			if text := strings.TrimSpace(lines.Text()); text != "" {
				u.log.Info(text, "unit", u.name, "from", "agent")
			}
		}
		_, _ = io.Copy(io.Discard, reader)
	}()
	return writer, func() {
		select {
		case <-done:
		case <-time.After(time.Second):
		}
	}
}
