// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package tour

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/go-sql-driver/mysql"
)

// Login is what a session needs: it travels on a pipe, never in an argument list.
type Login struct {
	Username string `json:"username"`
	Password string `json:"password"`
	Database string `json:"database,omitempty"`
}

// QueryOrder asks for one statement through one address (host:port).
type QueryOrder struct {
	Login
	Address string `json:"address"`
	SQL     string `json:"sql"`
}

// QueryAnswer is what came back: the number of rows, or why there are none.
type QueryAnswer struct {
	Rows  int    `json:"rows"`
	Error string `json:"error,omitempty"`
}

// queryTimeout bounds a whole query: dial, login, statement, rows.
const queryTimeout = 5 * time.Second

// Query is the body of the hidden command `__query`: it reads one QueryOrder from in, runs it through a real session and
// writes one QueryAnswer to out. A query that fails is an answer, not an error.
func Query(ctx context.Context, in io.Reader, out io.Writer) error {
	var order QueryOrder
	if err := json.NewDecoder(in).Decode(&order); err != nil {
		return fmt.Errorf("cannot read query order: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	rows, err := countRows(ctx, order)
	answer := QueryAnswer{Rows: rows}
	if err != nil {
		answer.Error = err.Error()
	}
	if err := json.NewEncoder(out).Encode(answer); err != nil {
		return fmt.Errorf("cannot write query answer: %w", err)
	}
	return nil
}

func countRows(ctx context.Context, order QueryOrder) (int, error) {
	connector, err := mysql.NewConnector(sessionConfig(order.Login, order.Address, queryTimeout))
	if err != nil {
		return 0, fmt.Errorf("cannot use address %q: %w", order.Address, err)
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	db.SetMaxOpenConns(1)
	rows, err := db.QueryContext(ctx, order.SQL)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	count := 0
	for rows.Next() {
		count++
	}
	return count, rows.Err()
}

// login opens one session and closes it properly: a session that is not closed counts against the client's host.
func login(ctx context.Context, l Login, address string, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	connector, err := mysql.NewConnector(sessionConfig(l, address, timeout))
	if err != nil {
		return err
	}
	conn, err := connector.Connect(ctx)
	if err != nil {
		return err
	}
	return conn.Close()
}

func sessionConfig(l Login, address string, timeout time.Duration) *mysql.Config {
	c := mysql.NewConfig()
	c.User, c.Passwd, c.DBName = l.Username, l.Password, l.Database
	c.Net, c.Addr = "tcp", address
	c.TLSConfig = "preferred"
	c.Timeout, c.ReadTimeout, c.WriteTimeout = timeout, timeout, timeout
	c.Logger = &mysql.NopLogger{}
	return c
}

// reason gives the short cause of a failed login, the same text for the same cause, so that only changes are reported.
func reason(err error) string {
	var refused *mysql.MySQLError
	var network *net.OpError
	switch {
	case errors.As(err, &refused):
		return fmt.Sprintf("refused by the server with error %d", refused.Number)
	case errors.Is(err, context.DeadlineExceeded):
		return "timed out"
	case errors.As(err, &network) && network.Timeout():
		return "timed out"
	case errors.As(err, &network) && network.Err != nil:
		return network.Err.Error()
	default:
		return err.Error()
	}
}
