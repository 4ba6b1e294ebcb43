// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

// Package database speaks SQL to the backend: the session that a probe opens
// through an address, and the databases and users that are made for clients.
//
// Every statement is valid on MySQL 8.0 and 8.4 and on MariaDB. Names and
// passwords are quoted so that the text means the same under every sql_mode,
// and no error of this package carries a password, a user name or text that
// the server quoted from a statement.
package database

import (
	"context"
	"database/sql/driver"
	"time"

	"github.com/go-sql-driver/mysql"
)

// Bounds on what is waited for.
const (
	// DialTimeout bounds making one TCP connection.
	DialTimeout = 3 * time.Second
	// StatementTimeout bounds one statement, or one login.
	StatementTimeout = 5 * time.Second
)

// Credentials are what a server lets somebody in with.
type Credentials struct {
	Username string
	Password string
}

// Session opens a session at address ("host:port"), pings it and closes it as
// the protocol wants. Nil means that a database answers there and takes the
// credentials. It is bounded by ctx, by DialTimeout and by StatementTimeout.
// Code tells the server's error number; Unresolved whether the host has no
// address yet.
func (c Credentials) Session(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, DialTimeout+StatementTimeout)
	defer cancel()
	return session(ctx, c.config(address, ""))
}

func session(ctx context.Context, config *mysql.Config) error {
	connector, err := newConnector(config)
	if err != nil {
		return err
	}
	conn, err := connector.Connect(ctx)
	if err != nil {
		return newError("open a session at "+config.Addr, err)
	}
	err = conn.(driver.Pinger).Ping(ctx)
	if closeErr := conn.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return newError("end a session at "+config.Addr, err)
	}
	return nil
}

// config is of connections to address.
//
// TLS is used whenever the server offers it, but neither verified nor insisted
// on: a client that hangs up half way through a login is counted by the server
// against its host, and behind a gateway that host stands for everybody. The
// names in the server's certificate could not cover our addresses anyway.
func (c Credentials) config(address, database string) *mysql.Config {
	config := mysql.NewConfig()
	config.User, config.Passwd, config.DBName = c.Username, c.Password, database
	config.Net, config.Addr = "tcp", address
	config.TLSConfig = "preferred"
	config.Timeout = DialTimeout
	config.ReadTimeout, config.WriteTimeout = StatementTimeout, StatementTimeout
	config.Logger = &mysql.NopLogger{}
	return config
}

func newConnector(config *mysql.Config) (driver.Connector, error) {
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, newError("prepare a session at "+config.Addr, err)
	}
	return connector, nil
}
