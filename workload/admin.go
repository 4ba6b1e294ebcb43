// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package workload

import (
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

const (
	adminTimeout  = 2 * time.Second
	maxAdminReply = 1 << 20
)

// admin is HAProxy's own port for questions. It is on the pod's loopback, which
// the charm's container shares; no tool in the workload container is needed.
type admin struct{ port int }

// info is what HAProxy tells about itself.
type info struct {
	version string
	hash    string // of the configuration that it runs
}

// info asks the running worker.
func (a admin) info(ctx context.Context) (info, error) {
	text, err := a.ask(ctx, "show info")
	if err != nil {
		return info{}, err
	}
	var got info
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch key {
		case "Version":
			// Debian's "2.6.12-1+deb12u4" is 2.6.12.
			got.version, _, _ = strings.Cut(value, "-")
		case "description":
			got.hash = value
		}
	}
	return got, nil
}

// servers asks for the state of the servers, as a new worker reads it.
func (a admin) servers(ctx context.Context) (string, error) { return a.ask(ctx, "show servers state") }

func (a admin) ask(ctx context.Context, command string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(a.port)))
	if err != nil {
		return "", fmt.Errorf("cannot ask HAProxy: %w", err)
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return "", fmt.Errorf("cannot ask HAProxy: %w", err)
	}
	if _, err := io.WriteString(conn, command+"\n"); err != nil {
		return "", fmt.Errorf("cannot ask HAProxy: %w", err)
	}
	reply, err := io.ReadAll(io.LimitReader(conn, maxAdminReply))
	if err != nil {
		return "", fmt.Errorf("cannot ask HAProxy: %w", err)
	}
	return string(reply), nil
}
