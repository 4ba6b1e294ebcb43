// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package rules

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// oracles are what connections are tested against, by number; each is a test "conn-T<number>".
const oracles = `1 2 3 4 5 6 7 10 11 12 13 13b 14 15 16 17 18 19 20 21 22 23 24 25 26 27 27b 28 29 29b 29c 29d 29e
30 31 32 33 34 35 36 37 38 39 39b 39c 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 60 61 62 63 64 65 66 67
70 71 72 73 80 81 82 83 90 91 92 93 94 95 96 97`

// promised is how many rows of promised behaviour docs/connections.md has.
const promised = 44

// Every oracle of connections has a test of its name.
func TestConnectionsOraclesHaveTests(t *testing.T) {
	t.Parallel()
	tests := connectionTests(t)
	for oracle := range strings.FieldsSeq(oracles) {
		if !tests["conn-T"+oracle] {
			t.Errorf("no test is named conn-T%s", oracle)
		}
	}
}

// Every promised behaviour stands in docs/connections.md, with tests that exist, or with what stands in its place.
func TestConnectionsRowsHaveTests(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(repository(t), "docs", "connections.md"))
	require.NoError(t, err)
	tests := connectionTests(t)
	for i := range promised {
		row := regexp.MustCompile(fmt.Sprintf(`(?m)^\| S%d \|.*$`, i+1)).FindString(string(text))
		if row == "" {
			t.Errorf("docs/connections.md has no row S%d", i+1)
			continue
		}
		named := regexp.MustCompile(`conn-T[0-9]+[a-z]?`).FindAllString(row, -1)
		for _, name := range named {
			if !tests[name] {
				t.Errorf("row S%d of docs/connections.md names %s, which is no test", i+1, name)
			}
		}
		replaced := strings.Contains(row, "KubeDirector's own mechanism") || strings.Contains(row, "not in scope") || strings.Contains(row, "not supported")
		if len(named) == 0 && !replaced {
			t.Errorf("row S%d of docs/connections.md has neither a test nor what replaces it", i+1)
		}
	}
}

// connectionTests are the names of tests that begin with conn-T.
func connectionTests(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	name := regexp.MustCompile(`"(conn-T[0-9]+[a-z]?)"`)
	root := repository(t)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "out" || path == filepath.Join(root, "tests", "rules")) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, match := range name.FindAllStringSubmatch(string(text), -1) {
			found[match[1]] = true
		}
		return err
	})
	require.NoError(t, err)
	require.NotEmpty(t, found)
	return found
}
