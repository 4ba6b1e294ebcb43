// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package tour

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// Timings of the prober. While an address has not answered it is asked every ProbeInterval, whatever became of the
// attempts before; once it has, settledInterval is enough to see it go silent, and leaves the machine to the others.
const (
	// ProbeInterval is the time between two logins at an address that has not answered yet.
	ProbeInterval = 20 * time.Millisecond

	settledInterval = 250 * time.Millisecond
	attemptTimeout  = 600 * time.Millisecond
	maxInFlight     = 32
)

// ProbeOrder is one line of the prober's standard input. The first line has the login. Addresses are those to begin with:
// one that is known already begins anew, and its next answer is reported as a first one. Drop are those to leave alone.
type ProbeOrder struct {
	*Login
	Addresses []string `json:"addresses,omitempty"`
	Drop      []string `json:"drop,omitempty"`
}

// ProbeLine is one line of the prober's standard output: an address began or ceased to answer.
type ProbeLine struct {
	Address string `json:"address"`
	// At is when the login that showed it was complete (or failed), in nanoseconds since 1970.
	At int64 `json:"at"`
	OK bool  `json:"ok"`
	// First marks the first answer since the address was named in an order.
	First  bool   `json:"first,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// LoginProbe is the body of the hidden command `__login-probe`. It follows the orders on in, one JSON object a line,
// until in ends or ctx does, and writes a line for each transition to out.
func LoginProbe(ctx context.Context, in io.Reader, out io.Writer) error {
	return newProber(out, login).run(ctx, in)
}

// session logs in once; a nil error is an answer.
type session func(ctx context.Context, l Login, address string, timeout time.Duration) error

type prober struct {
	session session
	ctx     context.Context
	wait    sync.WaitGroup

	mu      sync.Mutex // guards what follows, and the order of lines
	out     *json.Encoder
	login   *Login
	targets map[string]*target
}

// target is one address. round counts the orders that named it: an attempt begun in an earlier round says nothing about
// the current one.
type target struct {
	address  string
	round    int
	known    bool
	ok       bool
	answered bool
	reason   string
	inFlight int
	kick     chan struct{}
	dropped  chan struct{} // closed when the address is dropped
}

func newProber(out io.Writer, s session) *prober {
	return &prober{session: s, out: json.NewEncoder(out), targets: map[string]*target{}}
}

func (p *prober) run(ctx context.Context, in io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	p.ctx = ctx
	defer p.wait.Wait()
	defer cancel()
	lines := make(chan []byte)
	failed := make(chan error, 1)
	go scanLines(ctx, in, lines, failed)
	for {
		select {
		case <-ctx.Done():
			return nil
		case line, more := <-lines:
			if !more {
				return <-failed
			}
			if err := p.order(line); err != nil {
				return err
			}
		}
	}
}

// scanLines ends with the reader: a read of standard input cannot be broken off, so the process may leave it behind.
func scanLines(ctx context.Context, in io.Reader, lines chan<- []byte, failed chan<- error) {
	defer close(lines)
	scanner := bufio.NewScanner(in)
	for scanner.Scan() {
		select {
		case lines <- append([]byte(nil), scanner.Bytes()...):
		case <-ctx.Done():
			failed <- nil
			return
		}
	}
	failed <- scanner.Err()
}

func (p *prober) order(line []byte) error {
	var o ProbeOrder
	if err := json.Unmarshal(line, &o); err != nil {
		return fmt.Errorf("cannot read probe order: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if o.Login != nil {
		p.login = o.Login
	}
	if p.login == nil {
		return errors.New("cannot probe: the first order has no login")
	}
	for _, address := range o.Drop {
		if t := p.targets[address]; t != nil {
			t.round++
			close(t.dropped)
			delete(p.targets, address)
		}
	}
	for _, address := range o.Addresses {
		t := p.targets[address]
		if t == nil {
			t = &target{address: address, kick: make(chan struct{}, 1), dropped: make(chan struct{})}
			p.targets[address] = t
			p.wait.Add(1)
			go p.follow(t)
		}
		t.round++
		t.known, t.answered = false, false
		select {
		case t.kick <- struct{}{}:
		default:
		}
	}
	return nil
}

// follow asks one address until the prober ends.
func (p *prober) follow(t *target) {
	defer p.wait.Done()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-t.dropped:
			return
		case <-t.kick:
		case <-timer.C:
		}
		p.mu.Lock()
		interval := ProbeInterval
		if t.known && t.ok {
			interval = settledInterval
		}
		round, l, start := t.round, *p.login, t.inFlight < maxInFlight
		if start {
			t.inFlight++
		}
		p.mu.Unlock()
		if start {
			p.wait.Add(1)
			go p.attempt(t, round, l)
		}
		timer.Reset(interval)
	}
}

func (p *prober) attempt(t *target, round int, l Login) {
	defer p.wait.Done()
	err := p.session(p.ctx, l, t.address, attemptTimeout)
	at := time.Now().UnixNano()
	p.mu.Lock()
	defer p.mu.Unlock()
	t.inFlight--
	if round != t.round || p.ctx.Err() != nil {
		return
	}
	line := ProbeLine{Address: t.address, At: at, OK: err == nil}
	if err != nil {
		line.Reason = reason(err)
	}
	line.First = line.OK && !t.answered
	if t.known && t.ok == line.OK && t.reason == line.Reason {
		return
	}
	t.known, t.ok, t.reason = true, line.OK, line.Reason
	t.answered = t.answered || line.OK
	_ = p.out.Encode(line) // the reader has gone: its end of standard input ends us too
}
