// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package control

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

// SessionProtocol is the value of the Upgrade header of a session.
const SessionProtocol = "jujulet-session"

// ShellRequest runs a command in a unit's container or outside the cluster.
// Command nil is an interactive shell.
type ShellRequest struct {
	Unit      string   `json:"unit,omitempty"`      // "app/0" or "app/leader"; not with Outside
	Container string   `json:"container,omitempty"` // "" is charm
	Outside   bool     `json:"outside,omitempty"`   // the outside host: it sees nodes and load balancers only
	Self      bool     `json:"self,omitempty"`      // Command are arguments of jujulet itself
	Command   []string `json:"command,omitempty"`
	Env       []string `json:"env,omitempty"` // NAME=value, added
	Dir       string   `json:"dir,omitempty"`
	TTY       bool     `json:"tty,omitempty"`
	Size      Size     `json:"size,omitzero"` // first size of the terminal
}

// Size is a terminal's size in characters.
type Size struct {
	Rows uint16 `json:"rows"`
	Cols uint16 `json:"cols"`
}

// Streams are the ends of a session on the caller's side. A nil Stdin is
// empty; a nil writer discards. With a terminal all output comes on Stdout.
type Streams struct {
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	Resize  <-chan Size      // may be nil
	Signals <-chan os.Signal // passed on to the command; may be nil
}

// Shell runs a session and returns the command's exit code (128 + n when
// signal n ended it). When ctx ends, the command's process group is killed.
func (c *Client) Shell(ctx context.Context, r ShellRequest, s Streams) (int, error) {
	conn, reader, err := c.upgrade(ctx, "shell", r)
	if err != nil {
		return -1, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()

	frames := NewFrames(reader, conn)
	done := make(chan struct{})
	defer close(done)
	if s.Stdin != nil {
		go copyIn(frames, s.Stdin)
	} else {
		// A command that has ended already takes no input: its exit is still to be read.
		_ = frames.Write(FrameStdin, nil)
	}
	go forward(frames, s, done)

	code, err := receive(frames, s)
	if ctx.Err() != nil {
		return -1, ctx.Err()
	}
	return code, err
}

// receive copies output until the exit frame.
func receive(frames *Frames, s Streams) (int, error) {
	for {
		kind, payload, err := frames.Read()
		if err != nil {
			return -1, transportError("shell", err)
		}
		switch kind {
		case FrameStdout:
			err = write(s.Stdout, payload)
		case FrameStderr:
			err = write(s.Stderr, payload)
		case FrameExit:
			var exit Exit
			if err := json.Unmarshal(payload, &exit); err != nil {
				return -1, fmt.Errorf("cannot read the exit code: %w", err)
			}
			if exit.Error != nil {
				return -1, exit.Error
			}
			return exit.Code, nil
		default:
			err = fmt.Errorf("cannot read the session: unexpected frame %d", kind)
		}
		if err != nil {
			return -1, err
		}
	}
}

func write(w io.Writer, p []byte) error {
	if w == nil {
		return nil
	}
	_, err := w.Write(p)
	return err
}

// copyIn sends standard input; an empty frame is its end.
func copyIn(frames *Frames, stdin io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		n, err := stdin.Read(buf)
		if n > 0 && frames.Write(FrameStdin, buf[:n]) != nil {
			return
		}
		if err != nil {
			_ = frames.Write(FrameStdin, nil)
			return
		}
	}
}

// forward sends sizes and signals until done closes.
func forward(frames *Frames, s Streams, done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case size, ok := <-s.Resize:
			if !ok {
				s.Resize = nil
				continue
			}
			data, _ := json.Marshal(size)
			_ = frames.Write(FrameResize, data)
		case sig, ok := <-s.Signals:
			if !ok {
				s.Signals = nil
			} else if name := signalName(sig); name != "" {
				_ = frames.Write(FrameSignal, []byte(name))
			}
		}
	}
}

// upgrade posts r and takes the connection over.
func (c *Client) upgrade(ctx context.Context, path string, r any) (net.Conn, *bufio.Reader, error) {
	data, err := json.Marshal(r)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot write the request %s: %w", path, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url(path), bytes.NewReader(data))
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make the request %s: %w", path, err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", SessionProtocol)
	conn, err := dialSocket(ctx, c.socket)
	if err != nil {
		return nil, nil, err
	}
	_ = conn.SetDeadline(time.Now().Add(callTimeout))
	if err := req.Write(conn); err != nil {
		conn.Close()
		return nil, nil, transportError(path, err)
	}
	reader := bufio.NewReader(conn)
	resp, err := http.ReadResponse(reader, req)
	if err != nil {
		conn.Close()
		return nil, nil, transportError(path, err)
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		defer conn.Close()
		return nil, nil, readError(path, resp)
	}
	_ = conn.SetDeadline(time.Time{})
	return conn, reader, nil
}

// Exit is the payload of the last frame of a session.
type Exit struct {
	Code  int    `json:"code"`
	Error *Error `json:"error,omitempty"` // the command did not start
}

// FrameKind is the first byte of a frame.
type FrameKind byte

// The frames of a session. An empty FrameStdin is the end of input.
const (
	FrameStdin FrameKind = iota + 1
	FrameStdout
	FrameStderr
	FrameResize // JSON Size
	FrameSignal // name, such as SIGINT
	FrameExit   // JSON Exit; the last
)

// maxFrame bounds a payload, in bytes.
const maxFrame = 1 << 20

// Frames reads and writes the frames of a session: one byte of kind, four of
// length (big endian), the payload. Write may be called concurrently.
type Frames struct {
	r  io.Reader
	mu sync.Mutex
	w  io.Writer
}

// NewFrames returns frames over a connection.
func NewFrames(r io.Reader, w io.Writer) *Frames { return &Frames{r: r, w: w} }

// Write sends one frame.
func (f *Frames) Write(kind FrameKind, payload []byte) error {
	if len(payload) > maxFrame {
		return errors.New("cannot write frame: too large")
	}
	n := len(payload)
	head := []byte{byte(kind), byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}
	f.mu.Lock()
	defer f.mu.Unlock()
	_, err := f.w.Write(append(head, payload...))
	return err
}

// Read returns the next frame.
func (f *Frames) Read() (FrameKind, []byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(f.r, head[:]); err != nil {
		return 0, nil, err
	}
	n := int(head[1])<<24 | int(head[2])<<16 | int(head[3])<<8 | int(head[4])
	if n > maxFrame {
		return 0, nil, fmt.Errorf("cannot read frame: %d bytes", n)
	}
	payload := make([]byte, n)
	if _, err := io.ReadFull(f.r, payload); err != nil {
		return 0, nil, err
	}
	return FrameKind(head[0]), payload, nil
}
