// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package conformance

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/jujulet/hooktools"
)

// clients are the two programs that may stand behind a tool's name.
func clients() map[string]string { return map[string]string{"jujuc": jujuc, "jujulet": jujulet} }

// testCall is one call of testdata/calls.txt.
type testCall struct {
	line    int
	context string
	words   []string
	stdin   string
	want    answer
}

// readCalls reads the table. Words are split at spaces; quotes group.
func readCalls(t *testing.T) []testCall {
	t.Helper()
	raw, err := os.ReadFile("testdata/calls.txt")
	require.NoError(t, err)
	var out []testCall
	context := ""
	for i, line := range strings.Split(string(raw), "\n") {
		last := len(out) - 1
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "== "):
			context = line[3:]
		case strings.HasPrefix(line, "\t< "):
			out[last].stdin = unquote(t, i, line[3:])
		case strings.HasPrefix(line, "\t"):
			m := regexp.MustCompile(`^\t(\d) ("(?:[^"\\]|\\.)*") ("(?:[^"\\]|\\.)*")$`).FindStringSubmatch(line)
			require.NotNil(t, m, "line %d: %s", i+1, line)
			out[last].want = answer{int(m[1][0] - '0'), unquote(t, i, m[2]), unquote(t, i, m[3])}
		default:
			c := testCall{line: i + 1, context: context}
			for _, w := range regexp.MustCompile(`'[^']*'|\S+`).FindAllString(line, -1) {
				c.words = append(c.words, strings.Trim(w, "'"))
			}
			out = append(out, c)
		}
	}
	return out
}

func unquote(t *testing.T, line int, text string) string {
	t.Helper()
	out, err := strconv.Unquote(text)
	require.NoError(t, err, "line %d: %s", line+1, text)
	return out
}

// contexts are the hooks and the action of the table, by name: how each is made to
// run, and how it ends.
func (w *world) contexts() map[string]func() *held {
	fire := func(unit, hook string, args map[string]string) func() *held {
		return func() *held {
			return w.hold(unit, hook, func() error { return w.model.Fire(unit, hook, args) })
		}
	}
	return map[string]func() *held{
		"hook": fire("foo/0", "db-relation-changed", map[string]string{"remote": "bar/0"}),
		"none": fire("foo/1", "update-status", nil),
		"lead": fire("foo/0", "update-status", nil),
		"action": func() *held {
			return w.hold("foo/0", "act", func() error {
				_, _, err := w.model.EnqueueAction([]string{"foo/0"}, "act", map[string]any{
					"a": map[string]any{"b": 1.0}, "s": "x", "l": []any{1.0, "y"}, "t": true,
				})
				return err
			})
		},
	}
}

// ends is what becomes of a context that exits 0. "lead" has secret operations that
// only the commit can refuse.
var ends = map[string]string{
	"hook": "db-relation-changed", "none": "update-status", "lead": "failed update-status", "action": "action act",
}

// Every tool, driven by Juju's client and by ours, answers as Juju's do.
func TestTools(t *testing.T) {
	table := readCalls(t)
	for name, client := range clients() {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, client)
			var now *held
			context := ""
			for _, c := range table {
				if c.context != context {
					if now != nil {
						require.Equal(t, ends[context], now.end(0))
					}
					context, now = c.context, w.contexts()[c.context]()
				}
				w.check(now, c)
			}
			require.Equal(t, ends[context], now.end(0))
		})
	}
	checkAllTools(t, table)
}

// check makes a call of the table.
func (w *world) check(h *held, c testCall) {
	w.t.Helper()
	args := make([]string, len(c.words))
	for i, word := range c.words {
		args[i] = w.real(word)
	}
	got := h.call(c.stdin, nil, args[0], args[1:]...)
	got.stdout, got.stderr = w.plain(got.stdout), w.plain(got.stderr)
	if got != c.want {
		w.t.Errorf("calls.txt:%d: %q:\n got %v\nwant %v", c.line, c.words, got, c.want)
	}
}

// checkAllTools fails when a tool of ours is never called.
func checkAllTools(t *testing.T, table []testCall) {
	t.Helper()
	called := map[string]bool{}
	for _, c := range table {
		called[c.words[0]] = true
	}
	for _, name := range hooktools.Names() {
		require.True(t, called[name], "testdata/calls.txt does not call %s", name)
	}
	require.Len(t, called, len(hooktools.Names()))
	fmt.Printf("%d tools, %d calls with each of 2 clients\n", len(called), len(table))
}
