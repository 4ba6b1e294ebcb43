// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package database_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/database"
	"github.com/drawbridge-k8s/drawbridge/database/databasetest"
)

// refusal is a greeting that refuses: error 1045.
const refusal = "\x16\x00\x00\x00\xff\x15\x04#28000Access denied"

// A session that began while the address dropped everything is through soon
// after it has begun to answer; the kernel alone would take up to 2 s here.
func TestSessions_AddressThatDropsPackets(t *testing.T) {
	t.Parallel()
	address, answer := databasetest.Silent(t, func(conn net.Conn) {
		_, _ = conn.Write([]byte(refusal))
		conn.Close()
	})
	sessions := database.NewSessions(t.Context(), database.Credentials{Username: "u", Password: "p"})
	defer sessions.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	ended := make(chan error, 1)
	var answered atomic.Int64
	begin := time.Now()
	time.AfterFunc(1200*time.Millisecond, func() { // just after the kernel's second packet
		answered.Store(time.Now().UnixNano())
		answer()
	})
	go func() { ended <- sessions.Session(ctx, address) }()
	require.Equal(t, database.CodeAccessDenied, database.Code(<-ended))
	require.Greater(t, time.Since(begin), 1200*time.Millisecond)
	require.Less(t, time.Since(time.Unix(0, answered.Load())), 800*time.Millisecond)

	quiet, _ := databasetest.Silent(t, func(net.Conn) {})
	begin = time.Now()
	require.ErrorIs(t, sessions.Session(ctx, quiet), context.DeadlineExceeded)
	require.InDelta(t, database.DialTimeout.Seconds(), time.Since(begin).Seconds(), 0.4, "what is dialled has its bound")
}

// What never answers does not get ever more logins.
func TestSessions_FewWait(t *testing.T) {
	t.Parallel()
	var accepted atomic.Int32
	address := serve(t, func(net.Conn) { accepted.Add(1) })
	sessions := database.NewSessions(t.Context(), database.Credentials{Username: "u", Password: "p"})
	defer sessions.Close()
	timeOut(t, address, sessions.Session) // in half a second
	require.GreaterOrEqual(t, accepted.Load(), int32(4))
	require.LessOrEqual(t, accepted.Load(), int32(9), "ever more seldom")
}
