// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package hooktool

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
)

// DefaultTimeout bounds one call of a hook tool.
const DefaultTimeout = 10 * time.Second

// Call is one call of a hook tool.
type Call struct {
	Tool  string   // "relation-get"
	Args  []string // without the tool's name; never holds a secret
	Stdin []byte   // nil: the tool gets no standard input
}

// Runner runs hook tools. A tool that ends with a code other than 0 is an
// *Error; any other error means that the tool could not be run.
type Runner interface {
	Run(ctx context.Context, call Call) (stdout []byte, err error)
}

// Error is a hook tool that was run and failed.
type Error struct {
	Tool    string
	Code    int    // exit code: 2 for a bad argument, 1 for all else
	Message string // standard error without the leading "ERROR "
}

// Error names the tool and gives its message.
func (e *Error) Error() string {
	return fmt.Sprintf("cannot run %s: %s", e.Tool, e.Message)
}

// IsNotFound reports whether err is a hook tool's answer that the relation or
// the secret named is not there (Juju 3.6: the text ends in or holds "not
// found").
func IsNotFound(err error) bool { return hasMessage(err, "not found") }

// IsPermission reports whether err is a hook tool's refusal: no access to a
// databag or secret, or a write that only the leader may make.
func IsPermission(err error) bool {
	return hasMessage(err, "permission denied") ||
		hasMessage(err, "not the leader") ||
		hasMessage(err, "cannot write relation settings")
}

// Client calls hook tools. It is safe for concurrent use, though the agent
// answers one call at a time.
type Client struct {
	runner  Runner
	calls   atomic.Int64
	timeout time.Duration
	tempDir string // for secret content; "" is the system's
}

// New returns a client over r; calls are bounded by DefaultTimeout each.
func New(r Runner) *Client { return &Client{runner: r, timeout: DefaultTimeout} }

// SetTimeout replaces the bound of one call. It is not safe while calls run.
func (c *Client) SetTimeout(d time.Duration) { c.timeout = d }

// Calls returns how many calls have been made so far, failed ones included.
func (c *Client) Calls() int { return int(c.calls.Load()) }

// Close gives up the connection to the agent, if there is one.
func (c *Client) Close() error {
	if closer, ok := c.runner.(interface{ Close() error }); ok {
		return closer.Close()
	}
	return nil
}

// run makes one call under its own deadline.
func (c *Client) run(ctx context.Context, stdin []byte, tool string, args ...string) ([]byte, error) {
	c.calls.Add(1)
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	return c.runner.Run(ctx, Call{Tool: tool, Args: args, Stdin: stdin})
}

// do makes a call of which nothing is read.
func (c *Client) do(ctx context.Context, tool string, args ...string) error {
	_, err := c.run(ctx, nil, tool, args...)
	return err
}

// read makes a call with --format json and decodes its output into v. Empty
// output and null leave v as it is.
func (c *Client) read(ctx context.Context, v any, tool string, args ...string) error {
	args = append([]string{"--format", "json"}, args...)
	out, err := c.run(ctx, nil, tool, args...)
	if err != nil {
		return err
	}
	if len(strings.TrimSpace(string(out))) == 0 {
		return nil
	}
	if err := json.Unmarshal(out, v); err != nil {
		// The decoder's own text may quote what was read, and that may be secret.
		return fmt.Errorf("cannot read the output of %s: not the JSON expected", tool)
	}
	return nil
}
