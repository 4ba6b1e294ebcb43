// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package database_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/database"
	"github.com/drawbridge-k8s/drawbridge/database/databasetest"
)

func admin(t *testing.T, s *databasetest.Server, c database.Credentials) *database.Admin {
	t.Helper()
	a, err := database.Open(t.Context(), c, s.Address)
	require.NoError(t, err)
	t.Cleanup(func() { a.Close() })
	return a
}

// Tests that share a server use names of their own.
func TestAdmin(t *testing.T) {
	t.Parallel()
	s := databasetest.Start(t)
	for name, test := range map[string]func(*testing.T, *databasetest.Server){
		"user sees its database only":           testAdmin_UserSeesItsDatabaseOnly,
		"password is the given one":             testAdmin_PasswordIsTheGivenOne,
		"router user serves clients":            testAdmin_RouterUserServesClients,
		"list users takes the prefix literally": testAdmin_ListUsersTakesThePrefixLiterally,
		"errors carry no credential":            testErrors_CarryNoCredential,
		"session: what is wrong":                testSession_WhatIsWrong,
		"client users with long names":          testClientUsers_LongNames,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, s)
		})
	}
}

func testAdmin_UserSeesItsDatabaseOnly(t *testing.T, s *databasetest.Server) {
	a := admin(t, s, s.Root)
	for _, name := range []string{"a_b", "axb", "a-b"} {
		require.NoError(t, a.EnsureDatabase(t.Context(), name))
		require.NoError(t, a.EnsureDatabase(t.Context(), name), "twice")
	}
	client := database.Credentials{Username: "relation-5-7", Password: database.NewPassword()}
	require.NoError(t, a.EnsureUser(t.Context(), client.Username, client.Password, "a_b"))
	s.Query(t, client, "a_b", "CREATE TABLE t (id INT)")
	for _, other := range []string{"axb", "a-b", "mysql"} {
		_, err := client.Query(t.Context(), s.Address, other, "SELECT 1", 1)
		require.Equal(t, database.CodeDatabaseAccessDenied, database.Code(err), "%s: %v", other, err)
	}
	require.Equal(t, [][]string{{"a_b"}, {"information_schema"}}, s.Query(t, client, "", "SHOW DATABASES"))
}

func testAdmin_PasswordIsTheGivenOne(t *testing.T, s *databasetest.Server) {
	a := admin(t, s, s.Root)
	first := database.Credentials{Username: "u-1", Password: "it's first"}
	second := database.Credentials{Username: "u-1", Password: `"second";-- %`}
	require.NoError(t, a.EnsureUser(t.Context(), first.Username, first.Password, "d"))
	require.NoError(t, first.Session(t.Context(), s.Address))
	require.NoError(t, a.EnsureUser(t.Context(), second.Username, second.Password, "d"))
	require.NoError(t, second.Session(t.Context(), s.Address))
	require.Equal(t, database.CodeAccessDenied, database.Code(first.Session(t.Context(), s.Address)))

	require.NoError(t, a.DropUser(t.Context(), "u-1"))
	require.NoError(t, a.DropUser(t.Context(), "u-1"), "twice")
	require.Equal(t, database.CodeAccessDenied, database.Code(second.Session(t.Context(), s.Address)))
}

// A router's user is all that our charm has on a charmed backend.
func testAdmin_RouterUserServesClients(t *testing.T, s *databasetest.Server) {
	router := database.Credentials{Username: "relation-4", Password: database.NewPassword()}
	require.NoError(t, admin(t, s, s.Root).EnsureRouterUser(t.Context(), router.Username, router.Password))
	a := admin(t, s, router)
	require.NoError(t, a.EnsureDatabase(t.Context(), "orders"))
	for _, user := range []string{"relation-4-7", "relation-4-12", "relation-41-7", "relationX4-7", "relation-4-7-3", "relation-4-x"} {
		require.NoError(t, a.EnsureUser(t.Context(), user, database.NewPassword(), "orders"))
	}
	users, err := a.ClientUsers(t.Context(), "relation-4")
	require.NoError(t, err)
	require.Equal(t, map[int]string{7: "relation-4-7", 12: "relation-4-12"}, users)
	version, err := a.Version(t.Context())
	require.NoError(t, err)
	require.Contains(t, version, "MariaDB")
}

func testAdmin_ListUsersTakesThePrefixLiterally(t *testing.T, s *databasetest.Server) {
	a := admin(t, s, s.Root)
	for _, user := range []string{"a_b-1", "axb-1", "a%-1", "a|_-1", "a'-1"} {
		require.NoError(t, a.EnsureUser(t.Context(), user, "p", "d"))
	}
	for prefix, want := range map[string][]string{
		"a_": {"a_b-1"}, "a%": {"a%-1"}, "a|": {"a|_-1"}, "a'": {"a'-1"}, "A": nil,
		"a": {"a%-1", "a'-1", "a_b-1", "all", "axb-1", "a|_-1"},
	} {
		got, err := a.ListUsers(t.Context(), prefix)
		require.NoError(t, err)
		require.Equal(t, want, got, prefix)
	}
	// What looks like a role of MariaDB is not one of ours.
	s.Query(t, s.Root, "", "CREATE ROLE `a-role`")
	got, err := a.ListUsers(t.Context(), "a-")
	require.NoError(t, err)
	require.Empty(t, got)
}

// Names that try to be statements end as names, or are refused; in each
// sql_mode that changes what quotes and backslashes mean.
func TestAdmin_HostileNames(t *testing.T) {
	t.Parallel()
	s := databasetest.Start(t)
	s.Query(t, s.Root, "", "CREATE DATABASE victim")
	for _, mode := range []string{"", "ANSI_QUOTES,NO_BACKSLASH_ESCAPES", "ANSI", "TRADITIONAL"} {
		t.Run("sql_mode="+mode, func(t *testing.T) {
			s.Query(t, s.Root, "", "SET GLOBAL sql_mode = '"+mode+"'")
			a := admin(t, s, s.Root)
			require.Contains(t, s.Query(t, s.Root, "", "SELECT @@sql_mode")[0][0], mode)
			for _, name := range []string{
				"", "x`; DROP DATABASE victim; -- ", "x' OR '1'='1", `x\`, "x\x00", "x\ny", "..", "a.b", "a b", "%", "ünicode", strings.Repeat("a", 65),
				"mysql", "MySQL", "sys", "information_schema", "performance_schema", "mysql_innodb_cluster_metadata",
			} {
				require.Error(t, a.EnsureDatabase(t.Context(), name), name)
				require.Error(t, a.EnsureUser(t.Context(), "u", "p", name), name)
			}
			for _, user := range []string{"", `x\`, `\'; DROP DATABASE victim; -- `, "x\x00", "x\n", "\xff", strings.Repeat("a", 33)} {
				require.Error(t, a.EnsureUser(t.Context(), user, "p", "d"), user)
				require.Error(t, a.DropUser(t.Context(), user), user)
			}
			for _, password := range []string{"", `\`, "a\x00", "\xff", "a\nb"} {
				err := a.EnsureUser(t.Context(), "u", password, "d")
				require.Error(t, err, password)
			}
			for _, user := range []string{"'@'%' x", "''; DROP DATABASE victim", `"`, "`", "a--", "/*", "%", "_"} {
				c := database.Credentials{Username: user, Password: `'; DROP DATABASE victim; -- "` + "`"}
				require.NoError(t, a.EnsureUser(t.Context(), c.Username, c.Password, "d"), user)
				require.NoError(t, c.Session(t.Context(), s.Address), user)
				got, err := a.ListUsers(t.Context(), user)
				require.NoError(t, err)
				require.Contains(t, got, user)
				require.NoError(t, a.DropUser(t.Context(), user))
				require.Error(t, c.Session(t.Context(), s.Address), user)
			}
			require.Equal(t, [][]string{{"victim"}}, s.Query(t, s.Root, "", "SHOW DATABASES LIKE 'victim'"))
		})
	}
}

// A server's texts quote users and statements; ours never do.
func testErrors_CarryNoCredential(t *testing.T, s *databasetest.Server) {
	const user, password = "visible-user", "visible-secret"
	plain := database.Credentials{Username: user, Password: password}
	require.NoError(t, admin(t, s, s.Root).EnsureUser(t.Context(), "limited", "Aa1-567890", "d"))
	limited := admin(t, s, database.Credentials{Username: "limited", Password: "Aa1-567890"})
	_, openErr := database.Open(t.Context(), plain, s.Address)
	for name, err := range map[string]error{
		"session":     plain.Session(t.Context(), s.Address),
		"open":        openErr,
		"not allowed": limited.EnsureUser(t.Context(), user, password, "d"),
		"list":        func() error { _, err := limited.ListUsers(t.Context(), user); return err }(),
		"drop":        limited.DropUser(t.Context(), user),
		"database":    limited.EnsureDatabase(t.Context(), "e"),
	} {
		require.Error(t, err, name)
		require.NotZero(t, database.Code(err), "%s: %v", name, err)
		require.NotContains(t, err.Error(), user, name)
		require.NotContains(t, err.Error(), password, name)
		require.NotContains(t, err.Error(), "limited", name)
	}
}

func testSession_WhatIsWrong(t *testing.T, s *databasetest.Server) {
	closing := serve(t, func(c net.Conn) { c.Close() })
	silent := serve(t, func(net.Conn) {})
	tests := []struct {
		name, address, text string
		c                   database.Credentials
	}{
		{"wrong password", s.Address, "refuses these credentials (error 1045)", database.Credentials{Username: "all", Password: "x"}},
		{"nobody", s.Address, "refuses these credentials (error 1045)", database.Credentials{Username: "nobody"}},
		{"nothing listens", databasetest.FreeAddress(t), "connection refused", s.Root},
		{"closed at once", closing, "the connection was closed before the database had answered", s.Root},
		{"silent", silent, "timed out", s.Root},
		{"no such name", "no-such-host.invalid.:3306", "no-such-host.invalid. has no address", s.Root},
		{"no address", "a:b:c", "cannot", s.Root},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			begun := time.Now()
			err := test.c.Session(ctx, test.address)
			require.ErrorContains(t, err, test.text)
			require.Equal(t, strings.HasPrefix(test.name, "no "), database.Unresolved(err))
			require.Less(t, time.Since(begun), 2*time.Second)
		})
	}
	require.NoError(t, s.Root.Session(t.Context(), s.Address))
}

func TestSession_TooManyConnections(t *testing.T) {
	t.Parallel()
	s := databasetest.Start(t, "--max-connections=10")
	require.NoError(t, admin(t, s, s.Root).EnsureUser(t.Context(), "u", "p", "d"))
	user := database.Credentials{Username: "u", Password: "p"}
	for range 10 { // and root has one of them open
		if a, err := database.Open(t.Context(), user, s.Address); err == nil {
			defer a.Close()
		}
	}
	err := user.Session(t.Context(), s.Address)
	require.Equal(t, database.CodeTooManyConnections, database.Code(err), "%v", err)
}

// serve accepts connections on loopback until the test ends.
func serve(t *testing.T, each func(net.Conn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { conn.Close() })
			each(conn)
		}
	}()
	return listener.Addr().String()
}

func TestUserName(t *testing.T) {
	t.Parallel()
	long := "relation-4_" + strings.Repeat("0123456789abcdef", 2)
	for _, test := range []struct {
		backend string
		id      int
		want    string
	}{
		{"relation-4", 7, "relation-4-7"},
		{long[:26], 12345, long[:26] + "-12345"},
		{long[:26], 123456, long[:19] + "798e6f-123456"},
		{long, 7, "relation-4_0123456789abc" + "be8387-7"},
		{strings.Repeat("ü", 40), 7, strings.Repeat("ü", 24) + "bdf9bf-7"},
	} {
		got := database.UserName(test.backend, test.id)
		require.LessOrEqual(t, utf8.RuneCountInString(got), 32)
		require.Equal(t, test.want, got)
	}
	require.NotEqual(t, database.UserName(long+"a", 7), database.UserName(long+"b", 7))
}

// What is listed for a backend user is what was named for it, however long.
func testClientUsers_LongNames(t *testing.T, s *databasetest.Server) {
	a := admin(t, s, s.Root)
	backend := "relation-4_" + strings.Repeat("0123456789abcdef", 2)
	want := map[int]string{}
	for _, id := range []int{0, 7, 99999, 2147483647} {
		want[id] = database.UserName(backend, id)
		require.NoError(t, a.EnsureUser(t.Context(), want[id], "p", "d"))
		require.NoError(t, a.EnsureUser(t.Context(), database.UserName(backend+"x", id), "p", "d"))
	}
	got, err := a.ClientUsers(t.Context(), backend)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestNewPassword(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 200 {
		password := database.NewPassword()
		require.Regexp(t, `^([a-zA-Z0-9]{8}-){3}[a-zA-Z0-9]{8}$`, password)
		require.Regexp(t, `[a-z]`, password)
		require.Regexp(t, `[A-Z]`, password)
		require.Regexp(t, `[0-9]`, password)
		require.False(t, seen[password])
		seen[password] = true
	}
}
