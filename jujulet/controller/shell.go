// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package controller

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/pod"
)

// defaultShell is what runs when no command is given.
var defaultShell = []string{"/bin/sh", "-c", "if command -v bash >/dev/null; then exec bash; fi; exec sh"}

// running is a command that was started somewhere.
type running interface {
	Wait(ctx context.Context) (int, error)
	Signal(sig unix.Signal) error
}

// openShell serves a session: a command in a container or outside.
func (c *modelWorker) openShell(w http.ResponseWriter, r *http.Request) {
	var request control.ShellRequest
	if err := readRequest(r, &request); err != nil {
		refuse(w, err)
		return
	}
	start, err := c.shellStarter(&request)
	if err != nil {
		refuse(w, err)
		return
	}
	c.upgrade(w, r, func(ctx context.Context, s session) { s.run(ctx, request, start) })
}

// session is a connection that has left HTTP.
type session struct {
	r *bufio.Reader
	w net.Conn
}

// upgrade takes the connection over for serve.
func (c *Controller) upgrade(w http.ResponseWriter, r *http.Request, serve func(context.Context, session)) {
	if r.Header.Get("Upgrade") != control.SessionProtocol {
		refuse(w, invalid("cannot open a session: the connection is not to be upgraded to %s", control.SessionProtocol))
		return
	}
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		refuse(w, invalid("cannot open a session on this connection"))
		return
	}
	conn, buffered, err := hijacker.Hijack()
	if err != nil {
		refuse(w, err)
		return
	}
	defer conn.Close()
	const answer = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + control.SessionProtocol + "\r\n\r\n"
	if _, err := io.WriteString(conn, answer); err != nil {
		c.log.Debug("cannot open a session", "error", err)
		return
	}
	serve(r.Context(), session{buffered.Reader, conn})
}

// starter starts a session's command.
type starter func(ctx context.Context, command pod.Command) (running, error)

// shellStarter decides where and what to run.
func (c *modelWorker) shellStarter(r *control.ShellRequest) (starter, error) {
	if r.Outside {
		if r.Self {
			r.Command = append([]string{control.BinaryInPod}, r.Command...)
		}
		return c.startOutside, nil
	}
	name, err := c.unitName(r.Unit)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	u := c.units[name]
	c.mu.Unlock()
	if u == nil {
		return nil, &control.Error{Kind: control.KindConflict, Message: "the pod of unit \"" + name + "\" is not running"}
	}
	box, err := u.current()
	if err != nil {
		return nil, err
	}
	container := r.Container
	if container == "" {
		container = pod.CharmContainer
	}
	if names := u.containers(); !slices.Contains(names, container) {
		return nil, notFound("unit %q has no container %q: it has %q", name, container, names)
	}
	if r.Self {
		if container != pod.CharmContainer {
			return nil, invalid("cannot run jujulet in container %q: only the charm container has it", container)
		}
		r.Command = append([]string{control.BinaryInPod}, r.Command...)
	}
	if container == pod.CharmContainer {
		// As in Juju's own shells: hook tools and Pebble are on the PATH.
		r.Env = append([]string{"PATH=" + shellPath(name)}, r.Env...)
	}
	return func(ctx context.Context, command pod.Command) (running, error) {
		return box.Spawn(ctx, container, command)
	}, nil
}

// shellPath is the PATH of a shell in a charm container.
func shellPath(unit string) string {
	return filepath.Join("/var/lib/juju/tools", "unit-"+podName(unit)) + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/charm/bin"
}

// run runs a command with its streams in frames.
func (s session) run(ctx context.Context, request control.ShellRequest, start starter) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	frames := control.NewFrames(s.r, s.w)
	stdin, feed := io.Pipe()
	resize := make(chan pod.Size, 1)
	command := pod.Command{
		Args: request.Command, Env: request.Env, Dir: request.Dir, Stdin: stdin, TTY: request.TTY,
		Stdout: frameWriter{frames, control.FrameStdout},
		Stderr: frameWriter{frames, control.FrameStderr},
		Size:   pod.Size{Rows: request.Size.Rows, Cols: request.Size.Cols},
		Resize: resize,
	}
	if len(command.Args) == 0 {
		command.Args = defaultShell
	}
	process, err := start(ctx, command)
	if err != nil {
		sendExit(frames, -1, err)
		return
	}
	var reading sync.WaitGroup
	reading.Go(func() { readSession(frames, feed, resize, process, cancel) })
	code, err := process.Wait(ctx)
	stdin.Close()
	sendExit(frames, code, err)
	s.w.Close() // ends the reading
	reading.Wait()
}

// readSession takes the client's frames. A client that has gone ends the
// command.
func readSession(frames *control.Frames, feed *io.PipeWriter, resize chan<- pod.Size, process running, gone func()) {
	defer gone()
	defer feed.Close()
	for {
		kind, payload, err := frames.Read()
		if err != nil {
			return
		}
		switch kind {
		case control.FrameStdin:
			if len(payload) == 0 {
				feed.Close()
			} else {
				_, _ = feed.Write(payload) // the command may have closed its input
			}
		case control.FrameResize:
			var size control.Size
			if json.Unmarshal(payload, &size) == nil {
				select {
				case resize <- pod.Size{Rows: size.Rows, Cols: size.Cols}:
				default:
				}
			}
		case control.FrameSignal:
			if signal := unix.SignalNum(string(payload)); signal != 0 {
				_ = process.Signal(signal)
			}
		case control.FrameStdout, control.FrameStderr, control.FrameExit:
			return // not for a client to send
		default:
			return
		}
	}
}

// sendExit sends the last frame.
func sendExit(frames *control.Frames, code int, err error) {
	exit := control.Exit{Code: code}
	if err != nil {
		exit.Error = asRefusal(err)
	}
	data, _ := json.Marshal(exit)
	_ = frames.Write(control.FrameExit, data)
}

// frameWriter writes output as frames of one kind.
type frameWriter struct {
	frames *control.Frames
	kind   control.FrameKind
}

// chunk is the largest payload written at once, in bytes.
const chunk = 64 << 10

// Write sends p.
func (f frameWriter) Write(p []byte) (int, error) {
	for sent := 0; sent < len(p); {
		n := min(len(p)-sent, chunk)
		if err := f.frames.Write(f.kind, p[sent:sent+n]); err != nil {
			return sent, err
		}
		sent += n
	}
	return len(p), nil
}
