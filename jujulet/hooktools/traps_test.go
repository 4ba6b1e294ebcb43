// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package hooktools

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTraps are what a naive runner gets wrong, as far as the tools have a part in
// it; tests/rules knows where the others are.
func TestTraps(t *testing.T) {
	t.Run("trap-7 remote databags are cached", trap07)
	t.Run("trap-12 exit codes", trap12)
	t.Run("trap-13 missing keys are no errors", trap13)
	t.Run("trap-14 what is trimmed, what deletes", trap14)
	t.Run("trap-15 forms of flags", trap15)
	t.Run("trap-16 standard input is asked for only when read", trap16)
	t.Run("trap-17 a closed context refuses", trap17)
	t.Run("trap-18 files are read by the agent", trap18)
	t.Run("trap-25 not the leader is sticky", trap25)
	t.Run("trap-37 databags are strings", trap37)
	t.Run("trap-39 goal-state has the own unit", trap39)
}

func trap12(t *testing.T) {
	b := newBench(t).hook("foo/1", nil, nil)
	for code, calls := range map[int][]string{
		2: {"relation-get", "relation-get -r db:99", "relation-get --bogus", "is-leader x", "status-set nope", "relation-set -r 1 x"},
		1: {"relation-get -r 1 - baz/0", "status-set --application active", "resource-get nope", "action-get", "state-get --strict k"},
		0: {"relation-get -r 1 nope bar/0", "relation-ids nope", "config-get nope", "relation-set -r 1", "is-leader --help"},
	} {
		for _, c := range calls {
			words, err := split(c)
			require.NoError(t, err)
			require.Equal(t, code, b.run("", words[0], words[1:]...).Code, c)
		}
	}
	b.table([][2]string{
		{"network-get db -r db:99", "2||ERROR invalid value \"db:99\" for option -r: relation not found\n"},
	})
}

func trap13(t *testing.T) {
	b := newBench(t).hook("foo/0", changed(), nil)
	b.table([][2]string{
		{"relation-get nope", "0||"},
		{"relation-get nope --format json", "0|null\n|"},
		{"config-get nope --format json", "0|null\n|"},
		{"state-get nope", "0||"},
		{"state-get nope --format json", "0|\"\"\n|"},
		{"state-get --format json", "0|null\n|"},
		{"secret-ids --format json", "0|null\n|"},
		{"secret-ids", "0||"},
		{"relation-ids nope --format json", "0|[]\n|"},
	})
}

func trap14(t *testing.T) {
	b := newBench(t).hook("foo/0", changed(), nil)
	file := b.write("f.yaml", "b: '  file  '\n")
	b.table([][2]string{
		{"relation-set ' a =  arg  ' --file " + file, "0||"},
		{"relation-get --format json - foo/0", "0|{\"a\":\"arg\",\"b\":\"  file  \"}\n|"},
		{"relation-set a=", "0||"},
		{"relation-get --format json - foo/0", "0|{\"b\":\"  file  \"}\n|"},
		{"state-set ' a =  arg  ' e=", "0||"},
		{"state-get --format json", "0|{\"a\":\"arg\",\"e\":\"\"}\n|"},
	})
}

func trap15(t *testing.T) {
	b := newBench(t).hook("foo/0", changed(), nil)
	for _, c := range []string{
		"relation-get --app=False k", "relation-get k --app=false", "relation-get k bar/0 --format smart", "relation-get --format=smart -- k bar/0",
		"relation-get -r1 k", "relation-get k -r db:1 bar/0", "relation-get --app=0 k",
	} {
		b.table([][2]string{{c, "0|v\n|"}})
	}
	b.table([][2]string{
		{"status-set blocked --application=False -- '-dashes --everywhere'", "0||"},
		{"status-get --include-data --format json", `0|{"message":"-dashes --everywhere","status":"blocked","status-data":{}}` + "\n|"},
		{"config-get on", "0|True\n|"},
		{"config-get on --format json", "0|true\n|"},
		{"config-get on --format yaml", "0|true\n|"},
		{"relation-get --app=maybe", "2||ERROR invalid value \"maybe\" for option --app: strconv.ParseBool: parsing \"maybe\": invalid syntax\n"},
	})
}

func trap37(t *testing.T) {
	b := newBench(t).hook("foo/0", changed(), nil)
	r := b.run("i: 010\nf: 1.50\nb: yes\nn: ~\n", "relation-set", "--file", "-")
	require.Zero(t, r.Code)
	require.JSONEq(t, `{"i":"010","f":"1.50","b":"yes"}`, b.ok("relation-get", "--format", "json", "-", "foo/0"))
	for _, nested := range []string{"i: new\na: [1]\n", "i: new\na: {b: 1}\n", "- 1\n"} {
		r := b.run(nested, "relation-set", "--file", "-")
		require.Equal(t, 1, r.Code, nested)
		require.Contains(t, string(r.Stderr), "ERROR yaml: unmarshal errors:")
	}
	require.Equal(t, "010\n", b.ok("relation-get", "i", "foo/0"), "nothing was set")
}

func trap39(t *testing.T) {
	b := newBench(t).hook("foo/0", nil, nil)
	g, err := b.model.GoalState(t.Context(), "foo/0")
	require.NoError(t, err)
	require.Contains(t, g.Units, "foo/0")
	require.Len(t, g.Units, 2)
	require.NoError(t, b.model.Scale("foo", 1))
	out := b.ok("goal-state", "--format", "json")
	require.Contains(t, out, `"foo/1":{"status":"dying"`, "not dead yet")
	require.NotContains(t, out, "mates", "peers are not listed")
}
