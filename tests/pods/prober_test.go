// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package pods

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/tour"
)

// prober logs in from a client's network every 20 ms, and knows when an address answered first.
type prober struct {
	orders *io.PipeWriter

	mu    sync.Mutex
	first map[string]time.Time
	news  chan struct{}
	lines bytes.Buffer
}

// newProber starts a prober in a client's pod with the credentials that the client was given. It ends with the test.
func (c *cluster) newProber(t *testing.T, client string) *prober {
	t.Helper()
	status, err := c.Status(t.Context())
	require.NoError(t, err)
	given := bag(status, client)
	secret, err := c.ShowSecret(t.Context(), given["secret-user"], true)
	require.NoError(t, err)
	in, orders := io.Pipe()
	p := &prober{orders: orders, first: map[string]time.Time{}, news: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer in.Close()
		_, _ = c.Shell(ctx, control.ShellRequest{Unit: client + "/0", Self: true, Command: []string{tour.ProbeCommand}},
			control.Streams{Stdin: in, Stdout: p, Stderr: io.Discard})
	}()
	t.Cleanup(func() { cancel(); <-done })
	p.order(t, tour.ProbeOrder{Login: &tour.Login{
		Username: secret.Content["username"], Password: secret.Content["password"], Database: given["database"],
	}})
	return p
}

func (p *prober) order(t *testing.T, o tour.ProbeOrder) {
	t.Helper()
	data, err := json.Marshal(o)
	require.NoError(t, err)
	_, err = p.orders.Write(append(data, '\n'))
	require.NoError(t, err)
}

// Write takes the prober's output.
func (p *prober) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines.Write(data)
	for {
		line, rest, found := bytes.Cut(p.lines.Bytes(), []byte{'\n'})
		if !found {
			return len(data), nil
		}
		var l tour.ProbeLine
		if err := json.Unmarshal(line, &l); err != nil {
			return 0, err
		}
		if l.First {
			p.first[l.Address] = time.Unix(0, l.At)
			close(p.news)
			p.news = make(chan struct{})
		}
		p.lines.Next(p.lines.Len() - len(rest))
	}
}

// answered waits for the first answer of an address.
func (p *prober) answered(t *testing.T, address string) time.Time {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		p.mu.Lock()
		at, ok := p.first[address]
		news := p.news
		p.mu.Unlock()
		if ok {
			return at
		}
		select {
		case <-news:
		case <-ctx.Done():
			require.FailNow(t, "no answer", "%s does not answer in the client's network", address)
		}
	}
}
