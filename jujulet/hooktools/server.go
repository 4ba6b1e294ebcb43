// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package hooktools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/rpc"
	"path/filepath"
	"sync"
)

// Request is the argument of Jujuc.Main. Its form is Juju's.
type Request struct {
	ContextId   string
	Dir         string
	CommandName string
	Args        []string
	StdinSet    bool
	Stdin       []byte
	Token       string
}

// ExecResponse is the reply of Jujuc.Main: what the tool printed and its exit code.
type ExecResponse struct {
	Code   int
	Stdout []byte
	Stderr []byte
}

// noStdin is the exact text that asks a client to send its standard input.
const noStdin = "hook tool requires stdin, none supplied"

var errNoStdin = errors.New(noStdin)

// call is one run of one tool.
type call struct {
	ctx      context.Context
	hook     *Context
	flags    *flags
	args     []string
	dir      string
	stdin    []byte
	stdinSet bool
	stdout   bytes.Buffer
	stderr   bytes.Buffer
}

// parse reads the options that were added before and returns the rest.
func (c *call) parse() ([]string, error) { return c.flags.parse(c.args) }

// readStdin returns the client's standard input; without one the call fails so
// that the client sends it.
func (c *call) readStdin() ([]byte, error) {
	if !c.stdinSet {
		return nil, errNoStdin
	}
	return c.stdin, nil
}

// Jujuc is the RPC receiver; its name is part of the protocol.
type Jujuc struct {
	ctx   context.Context
	hook  *Context
	tools map[string]tool
	mu    sync.Mutex
}

// Main runs one tool. Errors are those of the protocol; a failing tool is a reply
// with a code.
func (j *Jujuc) Main(req Request, resp *ExecResponse) error {
	switch {
	case req.Token != "": // only remote charms have one
		return errors.New("bad request: token does not match")
	case req.CommandName == "":
		return errors.New("bad request: command not specified")
	case !filepath.IsAbs(req.Dir):
		return errors.New("bad request: Dir is not absolute")
	case req.ContextId != j.hook.ID:
		return fmt.Errorf("bad request: wrong context ID; got %q", req.ContextId)
	}
	t, ok := j.tools[req.CommandName]
	if !ok {
		return fmt.Errorf("bad request: unknown command: %s", req.CommandName)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.hook.closed() {
		return fmt.Errorf("bad request: wrong context ID; got %q", req.ContextId)
	}
	c := &call{
		ctx: j.ctx, hook: j.hook, flags: newFlags(), args: req.Args, dir: req.Dir,
		stdin: req.Stdin, stdinSet: req.StdinSet,
	}
	err := t.run(c)
	if errors.Is(err, errNoStdin) {
		return errNoStdin
	}
	j.hook.countCall()
	resp.Code = c.finish(t, req.CommandName, err)
	resp.Stdout, resp.Stderr = c.stdout.Bytes(), c.stderr.Bytes()
	return nil
}

// finish turns a tool's error into its exit code and message.
func (c *call) finish(t tool, name string, err error) int {
	if err == nil {
		return 0
	}
	if errors.Is(err, errHelp) {
		c.stdout.Reset()
		fmt.Fprintf(&c.stdout, "Usage: %s\n\nSummary:\n%s\n", joinWords(name, t.usage), t.summary)
		return 0
	}
	c.stdout.Reset()
	fmt.Fprintf(&c.stderr, "ERROR %v\n", err)
	var usage *usageError
	if errors.As(err, &usage) {
		return 2
	}
	return 1
}

func joinWords(a, b string) string {
	if b == "" {
		return a
	}
	return a + " " + b
}

// Server serves the tools of one hook context.
type Server struct {
	listener net.Listener
	wg       sync.WaitGroup
	mu       sync.Mutex
	conns    map[net.Conn]bool
	done     bool
	hook     *Context
}

// Serve serves the tools on the listener until Close. Tool calls are made one
// after the other, each with ctx.
func Serve(ctx context.Context, l net.Listener, hook *Context) (*Server, error) {
	s := &Server{listener: l, conns: map[net.Conn]bool{}, hook: hook}
	r := rpc.NewServer()
	if err := r.Register(&Jujuc{ctx: ctx, hook: hook, tools: tools()}); err != nil {
		return nil, fmt.Errorf("cannot serve hook tools: %w", err)
	}
	s.wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if !s.track(conn) {
				conn.Close()
				return
			}
			s.wg.Go(func() {
				r.ServeConn(conn)
				s.untrack(conn)
			})
		}
	})
	return s, nil
}

func (s *Server) track(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done {
		return false
	}
	s.conns[c] = true
	return true
}

func (s *Server) untrack(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// Close ends the service: leftover children get connection errors. It waits for
// a call that is under way.
func (s *Server) Close() {
	s.hook.close()
	s.mu.Lock()
	s.done = true
	s.listener.Close()
	for c := range s.conns {
		c.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
}
