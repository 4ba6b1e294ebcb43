// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package database

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxUserName = 32
	hashDigits  = 6
	anyHost     = "'%'"
)

// databaseName is what a name is made of; its length is counted, since a bound in the pattern is dear in every start.
var databaseName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

const maxDatabaseName = 64

// systemSchemas belong to the server or to its cluster.
var systemSchemas = []string{
	"information_schema", "mysql", "mysql_innodb_cluster_metadata", "ndbinfo", "performance_schema", "sys",
}

// ValidDatabase says why a client may not have a database of this name; nil
// when it may: 1 to 64 of A-Z a-z 0-9 _ -, and no schema of the server itself.
func ValidDatabase(name string) error {
	if len(name) > maxDatabaseName || !databaseName.MatchString(name) {
		return fmt.Errorf("cannot use database name %q: allowed are 1 to 64 of A-Z a-z 0-9 _ -", printable(name, 70))
	}
	if slices.Contains(systemSchemas, strings.ToLower(name)) {
		return fmt.Errorf("cannot use database name %q: it belongs to the server", name)
	}
	return nil
}

// UserName is the name of the user made under backendUser for the relation
// with this id: "<backendUser>-<id>". Where that is longer than the 32
// characters which MySQL allows, the first part is cut and six hexadecimal
// digits of its hash are added.
func UserName(backendUser string, relationID int) string {
	tail := "-" + strconv.Itoa(relationID)
	if utf8.RuneCountInString(backendUser)+len(tail) <= maxUserName {
		return backendUser + tail
	}
	sum := sha256.Sum256([]byte(backendUser))
	keep := maxUserName - len(tail) - hashDigits
	return string([]rune(backendUser)[:keep]) + hex.EncodeToString(sum[:])[:hashDigits] + tail
}

// userPrefix starts the name of every user made under backendUser, and maybe
// of others.
func userPrefix(backendUser string) string {
	const longestTail = len("-2147483647")
	runes := []rune(backendUser)
	return string(runes[:min(len(runes), maxUserName-hashDigits-longestTail)])
}

// relationOf is the inverse of UserName.
func relationOf(user, backendUser string) (id int, ok bool) {
	at := strings.LastIndexByte(user, '-')
	if at < 0 {
		return 0, false
	}
	id, err := strconv.Atoi(user[at+1:])
	return id, err == nil && id >= 0 && UserName(backendUser, id) == user
}

const passwordLetters = "abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"

// NewPassword returns a random password of letters, digits and dashes, which
// also stands unescaped in a URI. It has more than 180 bits of chance in it and
// satisfies the usual password policies of a server.
func NewPassword() string {
	for {
		var groups []string
		for range 4 {
			groups = append(groups, randomLetters(8))
		}
		password := strings.Join(groups, "-")
		if strings.ContainsFunc(password, unicode.IsLower) && strings.ContainsFunc(password, unicode.IsUpper) &&
			strings.ContainsFunc(password, unicode.IsDigit) {
			return password
		}
	}
}

// randomLetters draws n letters, each with equal chance.
func randomLetters(n int) string {
	limit := 256 - 256%len(passwordLetters)
	out := make([]byte, 0, n)
	for draw := make([]byte, 1); len(out) < n; {
		rand.Read(draw) //nolint:errcheck // never fails since Go 1.24
		if int(draw[0]) < limit {
			out = append(out, passwordLetters[int(draw[0])%len(passwordLetters)])
		}
	}
	return string(out)
}

// quote makes a string literal that means the same under every sql_mode. What
// could not (backslashes, control characters) is refused.
func quote(text string) (string, error) {
	if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return r == '\\' || unicode.IsControl(r) }) {
		return "", errors.New("it has a character that cannot be quoted")
	}
	return "'" + strings.ReplaceAll(text, "'", "''") + "'", nil
}

// account makes '<user>'@'%'.
func account(user string) (string, error) {
	if user == "" || utf8.RuneCountInString(user) > maxUserName {
		return "", fmt.Errorf("a user name has 1 to %d characters", maxUserName)
	}
	literal, err := quote(user)
	if err != nil {
		return "", fmt.Errorf("user name: %w", err)
	}
	return literal + "@" + anyHost, nil
}

// grantPattern makes the object of a grant on this database only: there, _ and
// % stand for other characters.
func grantPattern(database string) string {
	return "`" + strings.NewReplacer("_", `\_`, "%", `\%`).Replace(database) + "`.*"
}

// likePrefix makes a LIKE pattern and its escape for texts that start with prefix.
func likePrefix(prefix string) (string, error) {
	literal, err := quote(strings.NewReplacer("|", "||", "_", "|_", "%", "|%").Replace(prefix) + "%")
	return literal + " ESCAPE '|'", err
}
