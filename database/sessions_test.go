// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package database

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// An address hangs when its server has taken a connection and been silent on it for long, until that ends or another one
// is served. Where nobody takes a connection nothing hangs.
func TestSessions_Hanging(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var mu sync.Mutex
	var taken []net.Conn
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			taken = append(taken, conn)
			mu.Unlock()
		}
	}()
	t.Cleanup(func() { listener.Close() })
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	nobody := silent.Addr().String()
	silent.Close()
	address := listener.Addr().String()

	sessions := NewSessions(t.Context(), Credentials{Username: "u", Password: "p"})
	defer sessions.Close()
	begin := func(address string) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		require.Error(t, sessions.Session(ctx, address))
	}
	begin(address)
	begin(nobody)
	require.Empty(t, sessions.Hanging(), "for minutes, not at once")
	sessions.hangsAfter = 20 * time.Millisecond
	hangs := func() bool { return len(sessions.Hanging()) > 0 }
	require.Eventually(t, hangs, 10*time.Second, time.Millisecond)
	require.Equal(t, []string{address}, sessions.Hanging())

	sessions.end(address, &login{})
	require.Empty(t, sessions.Hanging(), "another session was served meanwhile")
	begin(address)
	require.Eventually(t, hangs, 10*time.Second, time.Millisecond)
	mu.Lock()
	for _, conn := range taken {
		conn.Close()
	}
	mu.Unlock()
	require.Eventually(t, func() bool { return !hangs() }, 10*time.Second, time.Millisecond)
}
