// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// dialTimeout bounds one connect to the control socket.
const dialTimeout = 3 * time.Second

// callTimeout bounds a plain call; calls that wait take theirs from ctx.
const callTimeout = 60 * time.Second

// Client talks to one cluster process. It is safe for concurrent use.
type Client struct {
	socket string
	http   *http.Client
	model  string
}

// New returns a client of the control socket at this path. It connects only
// when used.
func New(socket string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return dialSocket(ctx, socket) }
	return &Client{
		socket: socket,
		http:   &http.Client{Transport: &http.Transport{DialContext: dial, MaxIdleConnsPerHost: 8}},
	}
}

// ModelParameter is the query parameter that carries the model of a request.
const ModelParameter = "model"

// In returns a client for one model; "" is the current model. Closing either of
// the two is enough.
func (c *Client) In(model string) *Client {
	in := *c
	in.model = model
	return &in
}

// url is the address of a request.
func (c *Client) url(path string) string {
	return "http://jujulet/v1/" + path + "?" + url.Values{ModelParameter: {c.model}}.Encode()
}

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Kubernetes returns a transport and a base URL that reach the embedded
// Kubernetes API with the rights of an administrator, from the host.
func (c *Client) Kubernetes() (http.RoundTripper, string) {
	return c.http.Transport, "http://jujulet" + KubernetesPrefix
}

// dialSocket connects to the control socket. In a folder that is everybody's
// another user may have made it: such a one learns nothing.
func dialSocket(ctx context.Context, socket string) (net.Conn, error) {
	if info, err := os.Lstat(filepath.Dir(socket)); err == nil && os.Geteuid() != 0 {
		if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Geteuid() {
			return nil, &Error{KindUnavailable, fmt.Sprintf("cannot reach jujulet at %s: it belongs to another user (%d)", socket, stat.Uid)}
		}
	}
	dialer := net.Dialer{Timeout: dialTimeout}
	conn, err := dialer.DialContext(ctx, "unix", socket)
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, &Error{KindUnavailable, fmt.Sprintf("cannot reach jujulet at %s: nothing answers", socket)}
	}
	return conn, nil
}

// call posts in as JSON to path and decodes the answer into out; both may be
// nil.
func (c *Client) call(ctx context.Context, path string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return c.wait(ctx, path, in, out)
}

// wait is call without a timeout of its own.
func (c *Client) wait(ctx context.Context, path string, in, out any) error {
	body, err := c.open(ctx, path, in)
	if err != nil {
		return err
	}
	defer body.Close()
	if out == nil {
		_, err := io.Copy(io.Discard, body)
		return err
	}
	if err := json.NewDecoder(body).Decode(out); err != nil {
		return fmt.Errorf("cannot read the answer to %s: %w", path, err)
	}
	return nil
}

// open posts in and returns the body of a good answer.
func (c *Client) open(ctx context.Context, path string, in any) (io.ReadCloser, error) {
	data, err := json.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("cannot write the request %s: %w", path, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url(path), bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("cannot make the request %s: %w", path, err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, transportError(path, err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	return nil, readError(path, resp)
}

// transportError keeps refusals and context ends apart from broken transport.
func transportError(path string, err error) error {
	var refusal *Error
	if errors.As(err, &refusal) {
		return refusal
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return &Error{KindTimeout, fmt.Sprintf("cannot %s: no answer in time", path)}
	}
	if errors.Is(err, context.Canceled) {
		return err
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return &Error{KindUnavailable, fmt.Sprintf("cannot %s: connection to jujulet lost: %v", path, err)}
}

// readError turns an answer that is not 200 into an *Error.
func readError(path string, resp *http.Response) error {
	data, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	refusal := &Error{}
	if json.Unmarshal(data, refusal) != nil || refusal.Message == "" {
		return &Error{KindInternal, fmt.Sprintf("cannot %s: %s: %s", path, resp.Status, bytes.TrimSpace(data))}
	}
	return refusal
}

// lines decodes a stream of JSON values into each until the stream or ctx
// ends or each fails.
func lines[T any](ctx context.Context, c *Client, path string, in any, each func(T) error) error {
	body, err := c.open(ctx, path, in)
	if err != nil {
		return err
	}
	defer body.Close()
	decoder := json.NewDecoder(body)
	for {
		var value T
		if err := decoder.Decode(&value); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return transportError(path, err)
		}
		if err := each(value); err != nil {
			return err
		}
	}
}
