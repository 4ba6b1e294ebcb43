// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package controller

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/pod"
)

// hostProcess runs a session's command on the host.
type hostProcess struct{ cmd *exec.Cmd }

func (p hostProcess) Wait(context.Context) (int, error) {
	err := p.cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if status, ok := exit.Sys().(interface{ Signal() unix.Signal }); ok && exit.ExitCode() < 0 {
			return 128 + int(status.Signal()), nil
		}
		return exit.ExitCode(), nil
	}
	return 0, err
}

func (p hostProcess) Signal(sig unix.Signal) error { return unix.Kill(p.cmd.Process.Pid, sig) }

// sessionClient returns a client of a server whose sessions run on the host.
func sessionClient(t *testing.T) *control.Client {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	start := func(ctx context.Context, c pod.Command) (running, error) {
		cmd := exec.CommandContext(ctx, c.Args[0], c.Args[1:]...)
		stdin, err := cmd.StdinPipe()
		if err != nil {
			return nil, err
		}
		cmd.Stdout, cmd.Stderr, cmd.WaitDelay = c.Stdout, c.Stderr, time.Second
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		go func() {
			_, _ = io.Copy(stdin, c.Stdin)
			stdin.Close()
		}()
		return hostProcess{cmd}, nil
	}
	c := &Controller{log: slog.New(slog.DiscardHandler)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/shell", func(w http.ResponseWriter, r *http.Request) {
		var request control.ShellRequest
		if err := readRequest(r, &request); err != nil {
			refuse(w, err)
			return
		}
		c.upgrade(w, r, func(ctx context.Context, s session) { s.run(ctx, request, start) })
	})
	mux.HandleFunc("POST /v1/info", func(w http.ResponseWriter, _ *http.Request) { refuse(w, notFound("no info today")) })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- serveHTTP(ctx, l, mux, time.Second) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	return control.New(path)
}

func TestSession(t *testing.T) {
	t.Parallel()
	client := sessionClient(t)
	var stdout, stderr bytes.Buffer
	code, err := client.Shell(t.Context(), control.ShellRequest{
		Command: []string{"sh", "-c", "cat; echo problem >&2; exit 7"},
	}, control.Streams{Stdin: strings.NewReader(strings.Repeat("line\n", 50000)), Stdout: &stdout, Stderr: &stderr})
	require.NoError(t, err)
	require.Equal(t, 7, code)
	require.Equal(t, 250000, stdout.Len())
	require.Equal(t, "problem\n", stderr.String())
}

func TestSessionEndsWithItsClient(t *testing.T) {
	t.Parallel()
	client := sessionClient(t)
	ctx, cancel := context.WithCancel(t.Context())
	started := make(chan struct{})
	go func() {
		<-started
		cancel()
	}()
	_, err := client.Shell(ctx, control.ShellRequest{Command: []string{"sh", "-c", "echo up; exec sleep 600"}},
		control.Streams{Stdout: writerFunc(func(p []byte) (int, error) { close(started); return len(p), nil })})
	require.ErrorIs(t, err, context.Canceled)
}

func TestSessionRefusals(t *testing.T) {
	t.Parallel()
	client := sessionClient(t)
	_, err := client.Shell(t.Context(), control.ShellRequest{Command: []string{"/does/not/exist"}}, control.Streams{})
	require.Error(t, err)
	_, err = client.Info(t.Context())
	require.Equal(t, control.KindNotFound, control.KindOf(err))
	require.EqualError(t, err, "no info today")
	_, err = control.New(filepath.Join(t.TempDir(), "none")).Info(t.Context())
	require.Equal(t, control.KindUnavailable, control.KindOf(err))
	require.ErrorContains(t, err, "nothing answers")
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
