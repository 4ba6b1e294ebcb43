// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package database_test

import (
	"context"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/database"
	"github.com/drawbridge-k8s/drawbridge/database/databasetest"
)

// countingServer looks names up, and locks a host out after five errors.
func countingServer(t *testing.T) *databasetest.Server {
	t.Helper()
	return databasetest.StartWithHosts(t, databasetest.GatewayHosts, "--skip-name-resolve=0", "--max-connect-errors=5", "--performance-schema=ON")
}

// connectErrors is the server's counter for the gateway; a host that it does
// not keep has none.
func connectErrors(t *testing.T, s *databasetest.Server) int {
	t.Helper()
	rows := s.Query(t, s.Root, "", "SELECT SUM_CONNECT_ERRORS FROM performance_schema.host_cache WHERE IP = '"+databasetest.GatewayIP+"'")
	if len(rows) == 0 {
		return 0
	}
	n, err := strconv.Atoi(rows[0][0])
	require.NoError(t, err)
	return n
}

// Sessions never count as connect errors; bare connects do, and lock the host
// out for everybody, which Session names.
func TestSession_NeverLocksItsHostOut(t *testing.T) {
	t.Parallel()
	s := countingServer(t)
	address := s.Gateway(t)
	wrong := database.Credentials{Username: s.Root.Username, Password: "x"}
	for range 20 {
		require.Equal(t, database.CodeAccessDenied, database.Code(wrong.Session(t.Context(), address)))
	}
	require.Zero(t, connectErrors(t, s))
	for range 20 {
		require.NoError(t, s.Root.Session(t.Context(), address))
	}
	require.Zero(t, connectErrors(t, s))

	for i := range 6 {
		conn, err := net.Dial("tcp", address)
		require.NoError(t, err)
		conn.Close()
		require.Eventually(t, func() bool { return connectErrors(t, s) >= min(i+1, 5) }, 10*time.Second, 10*time.Millisecond)
	}
	err := s.Root.Session(t.Context(), address)
	require.Equal(t, database.CodeHostBlocked, database.Code(err), "%v", err)
	require.ErrorContains(t, err, "FLUSH HOSTS")
}

// A stalled server gets the logins that were begun meanwhile brought to their
// end. Given up, they would have locked the host out.
func TestSessions_StalledServer(t *testing.T) {
	t.Parallel()
	s := countingServer(t)
	address := s.Gateway(t)
	sessions := database.NewSessions(t.Context(), s.Root)
	defer sessions.Close()
	s.Pause(t)
	timeOut(t, address, sessions.Session)
	s.Resume(t)
	require.Eventually(t, func() bool { return sessions.Session(t.Context(), address) == nil }, 10*time.Second, 10*time.Millisecond)
	require.Zero(t, connectErrors(t, s))

	s.Pause(t)
	timeOut(t, address, s.Root.Session)
	s.Resume(t)
	require.Eventually(t, func() bool {
		return database.Code(s.Root.Session(t.Context(), address)) == database.CodeHostBlocked
	}, 10*time.Second, 10*time.Millisecond, "the control must lock the host out")
}

// timeOut begins more sessions than can wait at once.
func timeOut(t *testing.T, address string, session func(context.Context, string) error) {
	t.Helper()
	for range 25 {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		require.ErrorIs(t, session(ctx, address), context.DeadlineExceeded)
		cancel()
	}
}
