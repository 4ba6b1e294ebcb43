// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/go-sql-driver/mysql"
)

// Rows is the outcome of a statement: the values as text, NULL as "NULL".
type Rows struct {
	Columns []string
	Values  [][]string
}

// Query logs in at address, runs one statement in schema (none when "") and
// returns its rows, at most limit of them. It is bounded by ctx, by DialTimeout
// and by StatementTimeout. Errors carry the server's own text about the
// statement, which is the caller's.
func (c Credentials) Query(ctx context.Context, address, schema, statement string, limit int) (Rows, error) {
	connector, err := newConnector(c.config(address, schema))
	if err != nil {
		return Rows{}, err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	ctx, cancel := context.WithTimeout(ctx, DialTimeout+StatementTimeout)
	defer cancel()
	rows, err := db.QueryContext(ctx, statement)
	if err != nil {
		return Rows{}, queryError(address, err)
	}
	defer rows.Close()
	var out Rows
	if out.Columns, err = rows.Columns(); err != nil {
		return Rows{}, queryError(address, err)
	}
	for len(out.Values) < limit && rows.Next() {
		values := make([]sql.NullString, len(out.Columns))
		into := make([]any, len(values))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			return Rows{}, queryError(address, err)
		}
		row := make([]string, len(values))
		for i, value := range values {
			row[i] = "NULL"
			if value.Valid {
				row[i] = value.String
			}
		}
		out.Values = append(out.Values, row)
	}
	if err := rows.Err(); err != nil {
		return Rows{}, queryError(address, err)
	}
	return out, nil
}

func queryError(address string, err error) error {
	var refused *mysql.MySQLError
	if !errors.As(err, &refused) || quotesUser(refused.Number) {
		return newError("query "+address, err)
	}
	text := fmt.Sprintf("error %d: %s", refused.Number, printable(refused.Message, maxServerMessage))
	return fmt.Errorf("cannot query %s: %w", address, &serverError{refused.Number, text})
}

// quotesUser reports whether the server's text of an error names the user.
func quotesUser(code uint16) bool {
	return code == CodeAccessDenied || code == CodeDatabaseAccessDenied
}
