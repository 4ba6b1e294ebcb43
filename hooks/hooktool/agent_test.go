// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package hooktool_test

import (
	"net"
	"net/rpc"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/hooks/hooktool"
)

// Request and Response are the agent's side of the protocol.
type Request struct {
	ContextId   string
	Dir         string
	CommandName string
	Args        []string
	StdinSet    bool
	Stdin       []byte
	Token       string
}

type Response struct {
	Code   int
	Stdout []byte
	Stderr []byte
}

// Jujuc is an agent that answers with answer and remembers what it was asked.
type Jujuc struct {
	mu          sync.Mutex
	requests    []Request
	connections int
	answer      func(Request) (Response, error)
}

func (j *Jujuc) Main(req Request, resp *Response) error {
	j.mu.Lock()
	j.requests = append(j.requests, req)
	answer := j.answer
	j.mu.Unlock()
	if answer == nil {
		return nil
	}
	r, err := answer(req)
	*resp = r
	return err
}

func (j *Jujuc) last() Request {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.requests[len(j.requests)-1]
}

// agent serves j on a socket and returns the environment of a hook.
func agent(t *testing.T, j *Jujuc) map[string]string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "agent.socket")
	l, err := net.Listen("unix", socket)
	require.NoError(t, err)
	server := rpc.NewServer()
	require.NoError(t, server.Register(j))
	var served sync.WaitGroup
	served.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			j.mu.Lock()
			j.connections++
			j.mu.Unlock()
			go server.ServeConn(conn)
		}
	})
	t.Cleanup(func() { l.Close(); served.Wait() })
	return map[string]string{
		"JUJU_CONTEXT_ID":           "db/0-start-0123",
		"JUJU_AGENT_SOCKET_NETWORK": "unix",
		"JUJU_AGENT_SOCKET_ADDRESS": socket,
	}
}

func connect(t *testing.T, env map[string]string) *hooktool.Client {
	t.Helper()
	c, err := hooktool.Connect(t.Context(), func(name string) string { return env[name] })
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

func says(stdout string) func(Request) (Response, error) {
	return func(Request) (Response, error) { return Response{Stdout: []byte(stdout)}, nil }
}
