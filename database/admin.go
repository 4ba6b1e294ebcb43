// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package database

import (
	"context"
	"database/sql"
	"fmt"
)

// Admin is a connection that makes databases and users. Each statement is
// bounded by StatementTimeout, and safe to repeat.
type Admin struct {
	db  *sql.DB
	own Credentials // never to be seen in an error
}

// Open logs in at address ("host:port") with rights to make databases and
// users. The caller closes it.
func Open(ctx context.Context, c Credentials, address string) (*Admin, error) {
	connector, err := newConnector(c.config(address, ""))
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	ctx, cancel := context.WithTimeout(ctx, DialTimeout+StatementTimeout)
	defer cancel()
	if err := db.PingContext(ctx); err != nil {
		db.Close()
		return nil, newError("log in at "+address, err)
	}
	return &Admin{db: db, own: c}, nil
}

// Close ends the connection.
func (a *Admin) Close() error { return a.db.Close() }

// Version returns the server's version text, such as "8.0.42" or
// "10.11.19-MariaDB".
func (a *Admin) Version(ctx context.Context) (string, error) {
	rows, err := a.query(ctx, "read the server's version", "SELECT VERSION()")
	if err != nil || len(rows) == 0 {
		return "", err
	}
	return rows[0], nil
}

// EnsureDatabase makes a database unless it is there. The name must be one
// that ValidDatabase takes.
func (a *Admin) EnsureDatabase(ctx context.Context, name string) error {
	if err := ValidDatabase(name); err != nil {
		return err
	}
	return a.exec(ctx, "make database "+name, "CREATE DATABASE IF NOT EXISTS `"+name+"`")
}

// EnsureUser makes '<user>'@'%' with this password and all rights on this one
// database, which must be one that ValidDatabase takes and need not be there.
// An existing user gets the password and the rights.
func (a *Admin) EnsureUser(ctx context.Context, user, password, database string) error {
	if err := ValidDatabase(database); err != nil {
		return err
	}
	return a.ensureUser(ctx, user, password, grantPattern(database), "")
}

// EnsureRouterUser makes '<user>'@'%' with this password, that may do
// everything and pass it on: what a requirer with the role "mysqlrouter" gets.
func (a *Admin) EnsureRouterUser(ctx context.Context, user, password string) error {
	return a.ensureUser(ctx, user, password, "*.*", " WITH GRANT OPTION")
}

func (a *Admin) ensureUser(ctx context.Context, user, password, on, option string) error {
	const verb = "make a user"
	to, err := account(user)
	if err != nil {
		return fmt.Errorf("cannot %s: %w", verb, err)
	}
	literal, err := quote(password)
	if err != nil || password == "" {
		return fmt.Errorf("cannot %s: the password is empty or has a character that cannot be quoted", verb)
	}
	for _, statement := range []string{
		"CREATE USER IF NOT EXISTS " + to + " IDENTIFIED BY " + literal,
		"ALTER USER " + to + " IDENTIFIED BY " + literal,
		"GRANT ALL PRIVILEGES ON " + on + " TO " + to + option,
	} {
		if err := a.exec(ctx, verb, statement, password, literal, user); err != nil {
			return err
		}
	}
	return nil
}

// DropUser removes '<user>'@'%'; one that is not there is no error. Sessions
// that the user has open go on, as the server wants it.
func (a *Admin) DropUser(ctx context.Context, user string) error {
	name, err := account(user)
	if err != nil {
		return fmt.Errorf("cannot drop a user: %w", err)
	}
	return a.exec(ctx, "drop a user", "DROP USER IF EXISTS "+name, user)
}

// ListUsers returns the users '<name>'@'%' whose names start with prefix,
// sorted. It needs SELECT on mysql.user.
func (a *Admin) ListUsers(ctx context.Context, prefix string) ([]string, error) {
	pattern, err := likePrefix(prefix)
	if err != nil {
		return nil, fmt.Errorf("cannot list users: %w", err)
	}
	return a.query(ctx, "list users",
		"SELECT User FROM mysql.user WHERE Host = "+anyHost+" AND User LIKE "+pattern+" ORDER BY User")
}

// ClientUsers returns the users that were made under backendUser for clients,
// by the id of the relation that they were made for: those of UserName.
func (a *Admin) ClientUsers(ctx context.Context, backendUser string) (map[int]string, error) {
	names, err := a.ListUsers(ctx, userPrefix(backendUser))
	if err != nil {
		return nil, err
	}
	users := make(map[int]string)
	for _, name := range names {
		if id, ok := relationOf(name, backendUser); ok {
			users[id] = name
		}
	}
	return users, nil
}

func (a *Admin) exec(ctx context.Context, verb, statement string, hidden ...string) error {
	ctx, cancel := context.WithTimeout(ctx, StatementTimeout)
	defer cancel()
	if _, err := a.db.ExecContext(ctx, statement); err != nil {
		return newError(verb, err, append(hidden, a.own.Password, a.own.Username)...)
	}
	return nil
}

// query returns the first column.
func (a *Admin) query(ctx context.Context, verb, statement string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, StatementTimeout)
	defer cancel()
	rows, err := a.db.QueryContext(ctx, statement)
	if err != nil {
		return nil, newError(verb, err, a.own.Password, a.own.Username)
	}
	defer rows.Close()
	var values []string
	for rows.Next() {
		var value string
		if err := rows.Scan(&value); err != nil {
			return nil, newError(verb, err, a.own.Password, a.own.Username)
		}
		values = append(values, value)
	}
	if err := rows.Err(); err != nil {
		return nil, newError(verb, err, a.own.Password, a.own.Username)
	}
	return values, nil
}
