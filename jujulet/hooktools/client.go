// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package hooktools

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/rpc"
	"os"
	"path/filepath"
	"time"
)

// dialTimeout bounds the connection to the agent.
const dialTimeout = 10 * time.Second

// ClientMain is the hook tool that a charm executes: it sends the command named
// by args[0] to the agent in the environment, prints what comes back and returns
// the exit code: that of the tool, 1 if the agent cannot be asked.
func ClientMain(args []string) int {
	c := client{getenv: os.Getenv, stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr}
	return c.main(args)
}

type client struct {
	getenv         func(string) string
	stdin          io.Reader
	stdout, stderr io.Writer
}

func (c client) main(args []string) int {
	resp, err := c.call(args)
	if err != nil {
		fmt.Fprintf(c.stderr, "ERROR %v\n", err)
		return 1
	}
	c.stdout.Write(resp.Stdout)
	c.stderr.Write(resp.Stderr)
	return resp.Code
}

func (c client) call(args []string) (*ExecResponse, error) {
	id := c.getenv("JUJU_CONTEXT_ID")
	if id == "" {
		return nil, errors.New("JUJU_CONTEXT_ID not set")
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("cannot get current folder: %w", err)
	}
	address, network := c.getenv("JUJU_AGENT_SOCKET_ADDRESS"), c.getenv("JUJU_AGENT_SOCKET_NETWORK")
	switch {
	case address == "":
		return nil, errors.New("JUJU_AGENT_SOCKET_ADDRESS not set")
	case network == "":
		return nil, errors.New("JUJU_AGENT_SOCKET_NETWORK not set")
	}
	conn, err := net.DialTimeout(network, address, dialTimeout)
	if err != nil {
		return nil, err
	}
	peer := rpc.NewClient(conn)
	defer peer.Close()
	req := Request{
		ContextId: id, Dir: dir, CommandName: filepath.Base(args[0]), Args: args[1:],
		Token: c.getenv("JUJU_AGENT_TOKEN"),
	}
	resp := new(ExecResponse)
	err = peer.Call("Jujuc.Main", req, resp)
	if err != nil && err.Error() == noStdin {
		if req.Stdin, err = io.ReadAll(c.stdin); err != nil {
			return nil, fmt.Errorf("cannot read standard input: %w", err)
		}
		req.StdinSet = true
		err = peer.Call("Jujuc.Main", req, resp)
	}
	return resp, err
}
