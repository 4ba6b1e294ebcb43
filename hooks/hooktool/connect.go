// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package hooktool

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/rpc"
	"os"
	"sync"
	"time"
)

// dialTimeout bounds the connection to the agent's socket, which is local.
const dialTimeout = 3 * time.Second

// Connect returns a client for the hook whose environment getenv reads: over
// the agent's socket, or by executing the tools where that socket is absent
// or refuses. It fails when there is no hook (JUJU_CONTEXT_ID is not set).
func Connect(ctx context.Context, getenv func(string) string) (*Client, error) {
	contextID := getenv("JUJU_CONTEXT_ID")
	if contextID == "" {
		return nil, errors.New("cannot call hook tools: JUJU_CONTEXT_ID is not set")
	}
	dir, err := os.Getwd()
	if err != nil {
		dir = "/"
	}
	r := &rpcRunner{
		network:   getenv("JUJU_AGENT_SOCKET_NETWORK"),
		address:   getenv("JUJU_AGENT_SOCKET_ADDRESS"),
		contextID: contextID,
		token:     getenv("JUJU_AGENT_TOKEN"),
		dir:       dir,
	}
	if r.network == "" {
		r.network = "unix"
	}
	if r.network == "unix" && r.address != "" {
		if _, err := r.client(ctx); err == nil {
			return New(r), nil
		} else if ctx.Err() != nil {
			return nil, err
		}
	}
	return New(newExecRunner(getenv)), nil
}

// request and response are Juju's own; gob matches them by field name.
type request struct {
	ContextId   string //nolint:revive // Juju's spelling
	Dir         string
	CommandName string
	Args        []string
	StdinSet    bool
	Stdin       []byte
	Token       string
}

type response struct {
	Code   int
	Stdout []byte
	Stderr []byte
}

// rpcRunner calls the agent over its socket, on one connection.
type rpcRunner struct {
	network, address, contextID, token, dir string

	mu   sync.Mutex
	conn *rpc.Client
}

// client returns the connection, made anew if the last one was given up.
func (r *rpcRunner) client(ctx context.Context) (*rpc.Client, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conn != nil {
		return r.conn, nil
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, r.network, r.address)
	if err != nil {
		return nil, fmt.Errorf("cannot reach the unit agent: %w", err)
	}
	r.conn = rpc.NewClient(conn)
	return r.conn, nil
}

// drop gives a connection up: what was asked on it may still be running.
func (r *rpcRunner) drop(c *rpc.Client) {
	r.mu.Lock()
	if r.conn == c {
		r.conn = nil
	}
	r.mu.Unlock()
	c.Close()
}

// Run makes the call. A call that its context ends is abandoned together with
// its connection; it is never made twice, since not every tool may be.
func (r *rpcRunner) Run(ctx context.Context, call Call) ([]byte, error) {
	client, err := r.client(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot run %s: %w", call.Tool, err)
	}
	req := request{
		ContextId: r.contextID, Dir: r.dir, Token: r.token,
		CommandName: call.Tool, Args: call.Args,
		StdinSet: call.Stdin != nil, Stdin: call.Stdin,
	}
	var resp response
	pending := client.Go("Jujuc.Main", req, &resp, make(chan *rpc.Call, 1))
	select {
	case <-ctx.Done():
		r.drop(client)
		return nil, fmt.Errorf("cannot run %s: no answer from the unit agent: %w", call.Tool, context.Cause(ctx))
	case <-pending.Done:
	}
	var refused rpc.ServerError
	switch {
	case errors.As(pending.Error, &refused):
		return nil, &Error{Tool: call.Tool, Code: 1, Message: string(refused)}
	case pending.Error != nil:
		r.drop(client)
		return nil, fmt.Errorf("cannot run %s: %w", call.Tool, pending.Error)
	case resp.Code != 0:
		return nil, newError(call.Tool, resp.Code, resp.Stderr)
	}
	return resp.Stdout, nil
}

// Close closes the connection.
func (r *rpcRunner) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conn == nil {
		return nil
	}
	err := r.conn.Close()
	r.conn = nil
	return err
}
