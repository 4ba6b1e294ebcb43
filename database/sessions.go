// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package database

import (
	"context"
	"net"
	"slices"
	"sync"
	"time"
)

const (
	// patience is how long a login that nobody waits for any more may go on: less
	// than the gateway keeps it. A peer that has gone is noticed within minutes.
	patience = 8 * time.Hour
	// fewWaiting is how many there may be at one address at any pace.
	fewWaiting = 4
	// hangsAfter is how long a connection waits before its address is said to hang. One whose peer has gone has ended
	// by then: keep-alives find that out in 150 s.
	hangsAfter = 3 * time.Minute
)

// Sessions opens sessions as Credentials.Session does, for a process that does
// so for long.
//
// A server that stalls (a full disk, a frozen machine) still has its kernel
// accept connections. One that was given up meanwhile is counted as a connect
// error when the server comes back, and enough of them lock the host out. So
// here a login that has begun is brought to its end, in the background when
// its caller's time is over, and after a few the next begin ever more seldom:
// what is under way when the process ends is counted all the same.
//
// An address that begins to answer is reached within redialEvery.
type Sessions struct {
	credentials Credentials
	stop        context.CancelFunc
	stopped     context.Context
	work        sync.WaitGroup

	mu         sync.Mutex
	waiting    map[string][]*login // by address, oldest first
	hangsAfter time.Duration
}

// login is one session under way.
type login struct {
	begun time.Time
	done  chan struct{}
	err   error // once done
	// connected is when the server's side took the connection; zero before that, and once a later one was served.
	connected time.Time
}

// NewSessions returns sessions with these credentials. They end with ctx; the
// caller closes them.
func NewSessions(ctx context.Context, c Credentials) *Sessions {
	s := &Sessions{credentials: c, waiting: make(map[string][]*login), hangsAfter: hangsAfter}
	s.stopped, s.stop = context.WithCancel(ctx)
	return s
}

// Close gives up every login under way, and waits for that.
func (s *Sessions) Close() {
	s.stop()
	s.work.Wait()
}

// Session opens, pings and closes a session at address; see
// Credentials.Session. It returns when ctx ends, while the login goes on.
func (s *Sessions) Session(ctx context.Context, address string) error {
	l := s.begin(address)
	select {
	case <-l.done:
		return l.err
	case <-ctx.Done():
		return newError("open a session at "+address, ctx.Err())
	}
}

// begin starts a login. Where a few wait already it joins the newest, until
// that has waited as long as passed between the first and it.
func (s *Sessions) begin(address string) *login {
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting := s.waiting[address]
	if n := len(waiting); n >= fewWaiting {
		newest := waiting[n-1]
		if time.Since(newest.begun) < newest.begun.Sub(waiting[0].begun) {
			return newest
		}
	}
	l := &login{begun: time.Now(), done: make(chan struct{})}
	s.waiting[address] = append(waiting, l)
	s.work.Go(func() {
		ctx, cancel := context.WithTimeout(s.stopped, patience)
		defer cancel()
		config := s.credentials.config(address, "")
		config.ReadTimeout, config.WriteTimeout = patience, patience
		config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := redial(ctx, network, address)
			if err == nil {
				s.mu.Lock()
				l.connected = time.Now()
				s.mu.Unlock()
			}
			return conn, err
		}
		l.err = session(ctx, config)
		s.end(address, l)
		close(l.done)
	})
	return l
}

func (s *Sessions) end(address string, ended *login) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var left []*login
	for _, l := range s.waiting[address] {
		if l == ended {
			continue
		}
		if ended.err == nil {
			l.connected = time.Time{} // the server works: it is this connection that does not
		}
		left = append(left, l)
	}
	s.waiting[address] = left
	if len(left) == 0 {
		delete(s.waiting, address)
	}
}

// Hanging returns the addresses, sorted, whose server has taken a connection and been silent on it for minutes. Whoever
// opens another one there and gives it up adds to what the server will count as connect errors.
func (s *Sessions) Hanging() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var hanging []string
	for address, logins := range s.waiting {
		if slices.ContainsFunc(logins, func(l *login) bool {
			return !l.connected.IsZero() && time.Since(l.connected) >= s.hangsAfter
		}) {
			hanging = append(hanging, address)
		}
	}
	slices.Sort(hanging)
	return hanging
}
