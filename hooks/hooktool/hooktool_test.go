// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package hooktool_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"gopkg.in/yaml.v3"

	"github.com/drawbridge-k8s/drawbridge/hooks/hooktool"
)

func TestClient_Reads(t *testing.T) {
	t.Parallel()
	type client = *hooktool.Client
	for _, test := range []struct {
		name   string
		call   func(context.Context, client) (any, error)
		stdout string
		argv   string
		want   any
	}{
		{"config", func(ctx context.Context, c client) (any, error) { return c.ConfigGet(ctx) },
			`{"a":"x","b":true,"n":1000000}`, "config-get --format json", map[string]any{"a": "x", "b": true, "n": 1e6}},
		{"config, none", func(ctx context.Context, c client) (any, error) { return c.ConfigGet(ctx) },
			"null\n", "config-get --format json", map[string]any(nil)},
		{"leader", func(ctx context.Context, c client) (any, error) { return c.IsLeader(ctx) }, "true\n", "is-leader --format json", true},
		{"goal state", func(ctx context.Context, c client) (any, error) { return c.GoalState(ctx) },
			`{"units":{"db/0":{"status":"active","since":"x"},"db/1":{"status":"dying"}},"relations":{"database":{"app":{"status":"joined"},"app/0":{"status":"active"}}}}`,
			"goal-state --format json", hooktool.GoalState{
				Units:     map[string]string{"db/0": "active", "db/1": "dying"},
				Relations: map[string]map[string]string{"database": {"app": "joined", "app/0": "active"}}}},
		{"relation ids by number", func(ctx context.Context, c client) (any, error) { return c.RelationIDs(ctx, "db") },
			`["db:12","db:3"]`, "relation-ids --format json -- db", []string{"db:3", "db:12"}},
		{"units", func(ctx context.Context, c client) (any, error) { return c.RelationUnits(ctx, "db:3") },
			`["b/0","a/1"]`, "relation-list --format json -r db:3", []string{"a/1", "b/0"}},
		{"application", func(ctx context.Context, c client) (any, error) { return c.RelationApp(ctx, "db:3") },
			`"app"`, "relation-list --format json -r db:3 --app", "app"},
		{"model", func(ctx context.Context, c client) (any, error) { return c.RelationModel(ctx, "db:3") },
			`{"uuid":"u"}`, "relation-model-get --format json -r db:3", "u"},
		{"unit databag", func(ctx context.Context, c client) (any, error) { return c.RelationGet(ctx, "db:3", "app/0") },
			`{"k":"v"}`, "relation-get --format json -r db:3 -- - app/0", map[string]string{"k": "v"}},
		{"application databag", func(ctx context.Context, c client) (any, error) { return c.RelationGetApp(ctx, "db:3", "app") },
			`{"k":"v"}`, "relation-get --format json -r db:3 --app -- - app", map[string]string{"k": "v"}},
		{"status", func(ctx context.Context, c client) (any, error) {
			s, m, err := c.StatusGet(ctx)
			return []any{s, m}, err
		}, `{"status":"waiting","message":"for it","status-data":{}}`, "status-get --format json --include-data", []any{hooktool.Waiting, "for it"}},
		{"state", func(ctx context.Context, c client) (any, error) { return c.StateGet(ctx) },
			`{"k":""}`, "state-get --format json", map[string]string{"k": ""}},
		{"secret by id", func(ctx context.Context, c client) (any, error) {
			return c.SecretGet(ctx, hooktool.SecretRef{ID: "secret:1", Label: "l", Refresh: true})
		}, `{"password":"p"}`, "secret-get --format json --label l --refresh -- secret:1", map[string]string{"password": "p"}},
		{"secret by label", func(ctx context.Context, c client) (any, error) {
			return c.SecretGet(ctx, hooktool.SecretRef{Label: "l", Peek: true})
		}, `{"password":"p"}`, "secret-get --format json --label l --peek", map[string]string{"password": "p"}},
		{"secret ids", func(ctx context.Context, c client) (any, error) { return c.SecretIDs(ctx) }, `["b","a"]`, "secret-ids --format json", []string{"a", "b"}},
		{"secret ids, none", func(ctx context.Context, c client) (any, error) { return c.SecretIDs(ctx) }, `null`, "secret-ids --format json", []string(nil)},
		{"secret info", func(ctx context.Context, c client) (any, error) {
			return c.SecretInfo(ctx, hooktool.SecretRef{Label: "l"})
		}, `{"abc":{"revision":2,"label":"l","owner":"application"}}`, "secret-info-get --format json --label l",
			hooktool.SecretInfo{ID: "abc", Label: "l", Owner: "application", Revision: 2}},
		{"network", func(ctx context.Context, c client) (any, error) {
			bind, ingress, err := c.NetworkGet(ctx, "db")
			return []any{bind, ingress}, err
		}, `{"bind-addresses":[{"addresses":[{"value":"10.1.0.2","cidr":""}]}],"ingress-addresses":["10.152.183.9"]}`,
			"network-get --format json -- db", []any{"10.1.0.2", []string{"10.152.183.9"}}},
		{"action", func(ctx context.Context, c client) (any, error) { return c.ActionGet(ctx) }, `{"n":1}`, "action-get --format json", map[string]any{"n": 1.0}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			j := &Jujuc{answer: says(test.stdout)}
			c := connect(t, agent(t, j))
			got, err := test.call(t.Context(), c)
			require.NoError(t, err)
			if m, ok := got.(map[string]any); ok && len(m) == 0 {
				require.Empty(t, test.want)
			} else {
				require.Equal(t, test.want, got)
			}
			require.Equal(t, test.argv, strings.Join(append([]string{j.last().CommandName}, j.last().Args...), " "))
			require.Equal(t, "db/0-start-0123", j.last().ContextId)
			require.True(t, filepath.IsAbs(j.last().Dir))
			require.False(t, j.last().StdinSet)
			require.Equal(t, 1, c.Calls())
		})
	}
}

func TestClient_Writes(t *testing.T) {
	t.Parallel()
	type client = *hooktool.Client
	values := map[string]string{"b": "x=1", "a": "", "-c": " d "}
	const document = `{"-c": " d ", "a": "", "b": "x=1"}` + "\n"
	for _, test := range []struct {
		name  string
		call  func(context.Context, client) error
		argv  string
		stdin string
	}{
		{"relation-set", func(ctx context.Context, c client) error { return c.RelationSet(ctx, "db:3", values) }, "relation-set -r db:3 --file -", document},
		{"relation-set --app", func(ctx context.Context, c client) error { return c.RelationSetApp(ctx, "db:3", values) }, "relation-set -r db:3 --app --file -", document},
		{"state-set", func(ctx context.Context, c client) error { return c.StateSet(ctx, values) }, "state-set --file -", document},
		{"state-delete", func(ctx context.Context, c client) error { return c.StateDelete(ctx, "-k") }, "state-delete -- -k", ""},
		{"status-set", func(ctx context.Context, c client) error { return c.StatusSet(ctx, hooktool.Blocked, "--help") }, "status-set -- blocked --help", ""},
		{"juju-log", func(ctx context.Context, c client) error { return c.Log(ctx, slog.LevelWarn, "-x") }, "juju-log --log-level WARNING -- -x", ""},
		{"version", func(ctx context.Context, c client) error { return c.ApplicationVersionSet(ctx, "2.6") }, "application-version-set -- 2.6", ""},
		{"open-port", func(ctx context.Context, c client) error { return c.OpenPort(ctx, "6446/tcp") }, "open-port -- 6446/tcp", ""},
		{"action-set", func(ctx context.Context, c client) error {
			return c.ActionSet(ctx, map[string]string{"b.c": "1", "a": "=x"})
		}, "action-set -- a==x b.c=1", ""},
		{"action-fail", func(ctx context.Context, c client) error { return c.ActionFail(ctx, "-no") }, "action-fail -- -no", ""},
		{"action-log", func(ctx context.Context, c client) error { return c.ActionLog(ctx, "m") }, "action-log -- m", ""},
		{"secret-grant", func(ctx context.Context, c client) error { return c.SecretGrant(ctx, "secret:1", "db:3") }, "secret-grant --relation db:3 -- secret:1", ""},
		{"secret-revoke", func(ctx context.Context, c client) error { return c.SecretRevoke(ctx, "secret:1", "db:3") }, "secret-revoke --relation db:3 -- secret:1", ""},
		{"secret-remove", func(ctx context.Context, c client) error { return c.SecretRemove(ctx, "secret:1") }, "secret-remove -- secret:1", ""},
		{"secret-remove --revision", func(ctx context.Context, c client) error { return c.SecretRemoveRevision(ctx, "secret:1", 2) }, "secret-remove --revision 2 -- secret:1", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			j := &Jujuc{}
			require.NoError(t, test.call(t.Context(), connect(t, agent(t, j))))
			require.Equal(t, test.argv, strings.Join(append([]string{j.last().CommandName}, j.last().Args...), " "))
			require.Equal(t, test.stdin, string(j.last().Stdin))
			require.Equal(t, test.stdin != "", j.last().StdinSet)
		})
	}
	t.Run("nothing to write makes no call", func(t *testing.T) {
		t.Parallel()
		c := connect(t, agent(t, &Jujuc{}))
		require.NoError(t, errors.Join(c.RelationSet(t.Context(), "db:3", nil), c.RelationSetApp(t.Context(), "db:3", nil),
			c.StateSet(t.Context(), nil), c.ActionSet(t.Context(), nil)))
		require.Zero(t, c.Calls())
	})
}

// Secret content goes through a file that nobody else can read and that is
// gone afterwards, never through an argument.
func TestClient_SecretContent(t *testing.T) {
	t.Parallel()
	const password = "p4ss\n\"word\""
	var file, content string
	j := &Jujuc{answer: func(r Request) (Response, error) {
		for i, arg := range r.Args {
			if arg == "--file" {
				file = r.Args[i+1]
			}
		}
		info, err := os.Stat(file)
		if err != nil || info.Mode().Perm() != 0o600 || !filepath.IsAbs(file) {
			return Response{Code: 1, Stderr: []byte("bad file")}, nil
		}
		text, err := os.ReadFile(file)
		content = string(text)
		return Response{Stdout: []byte("secret:abc\n")}, err
	}}
	c := connect(t, agent(t, j))
	check := func(argv string) {
		t.Helper()
		var read map[string]string
		require.NoError(t, yaml.Unmarshal([]byte(content), &read))
		require.Equal(t, map[string]string{"password": password}, read)
		got := strings.Join(j.last().Args, " ")
		require.Equal(t, argv, strings.Replace(got, file, "FILE", 1))
		require.NoFileExists(t, file)
		require.NotContains(t, string(j.last().Stdin), "p4ss")
	}
	id, err := c.SecretAdd(t.Context(), hooktool.Secret{Label: "l", Description: "d", Content: map[string]string{"password": password}})
	require.NoError(t, err)
	require.Equal(t, "secret:abc", id)
	check("--file FILE --label l --description d")
	require.NoError(t, c.SecretSet(t.Context(), "secret:abc", map[string]string{"password": password}))
	check("--file FILE -- secret:abc")

	j.mu.Lock()
	j.answer = func(Request) (Response, error) { return Response{Code: 1, Stderr: []byte("ERROR no\n")}, nil }
	j.mu.Unlock()
	require.Error(t, c.SecretSet(t.Context(), "secret:abc", map[string]string{"password": password}))
	file = j.last().Args[1]
	require.NoFileExists(t, file, "removed after a failure too")
}

func TestClient_Errors(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name                 string
		response             Response
		err                  error
		want                 hooktool.Error
		notFound, permission bool
	}{
		{name: "relation", response: Response{Code: 2, Stderr: []byte("ERROR invalid value \"db:99\" for option -r: relation not found\n")},
			want: hooktool.Error{Code: 2, Message: `invalid value "db:99" for option -r: relation not found`}, notFound: true},
		{name: "secret", response: Response{Code: 1, Stderr: []byte("ERROR secret \"x\" not found\n")},
			want: hooktool.Error{Code: 1, Message: `secret "x" not found`}, notFound: true},
		{name: "denied", response: Response{Code: 1, Stderr: []byte("ERROR permission denied\n")},
			want: hooktool.Error{Code: 1, Message: "permission denied"}, permission: true},
		{name: "not the leader", response: Response{Code: 1, Stderr: []byte("ERROR cannot write relation settings\n")},
			want: hooktool.Error{Code: 1, Message: "cannot write relation settings"}, permission: true},
		{name: "a note before it", response: Response{Code: 1, Stderr: []byte("--format flag deprecated\nERROR this unit is not the leader\n")},
			want: hooktool.Error{Code: 1, Message: "this unit is not the leader"}, permission: true},
		{name: "the agent refuses", err: errors.New("bad request: wrong context ID; got \"x\""),
			want: hooktool.Error{Code: 1, Message: "bad request: wrong context ID; got \"x\""}},
		{name: "silent", response: Response{Code: 1}, want: hooktool.Error{Code: 1, Message: "no message"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := connect(t, agent(t, &Jujuc{answer: func(Request) (Response, error) { return test.response, test.err }}))
			_, err := c.RelationGetApp(t.Context(), "db:99", "app")
			test.want.Tool = "relation-get"
			var got *hooktool.Error
			require.ErrorAs(t, err, &got)
			require.Equal(t, test.want, *got)
			require.Equal(t, test.notFound, hooktool.IsNotFound(err))
			require.Equal(t, test.permission, hooktool.IsPermission(err))
		})
	}
	t.Run("no JSON, and what was read is not told", func(t *testing.T) {
		t.Parallel()
		c := connect(t, agent(t, &Jujuc{answer: says("{secret")}))
		_, err := c.StateGet(t.Context())
		require.ErrorContains(t, err, "cannot read the output of state-get")
		require.NotContains(t, err.Error(), "secret")
		require.False(t, hooktool.IsNotFound(err))
	})
}

// A tool that does not answer ends with its own deadline, and the next call is
// made on another connection.
func TestClient_HangingAgent(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	j := &Jujuc{answer: func(r Request) (Response, error) {
		if r.CommandName == "relation-ids" {
			<-release
		}
		return Response{Stdout: []byte("true")}, nil
	}}
	c := connect(t, agent(t, j))
	t.Cleanup(func() { close(release) })
	c.SetTimeout(50 * time.Millisecond)
	_, err := c.RelationIDs(t.Context(), "db")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	c.SetTimeout(hooktool.DefaultTimeout)
	leader, err := c.IsLeader(t.Context())
	require.NoError(t, err)
	require.True(t, leader)
	require.Equal(t, 2, c.Calls())
	j.mu.Lock()
	defer j.mu.Unlock()
	require.Equal(t, 2, j.connections)
}

func TestClient_OneConnection(t *testing.T) {
	t.Parallel()
	j := &Jujuc{answer: says("true")}
	c := connect(t, agent(t, j))
	for range 20 {
		_, err := c.IsLeader(t.Context())
		require.NoError(t, err)
	}
	require.Equal(t, 1, j.connections)
	require.Equal(t, 20, c.Calls())
}

func TestClient_AgentGoes(t *testing.T) {
	t.Parallel()
	j := &Jujuc{answer: says("true")}
	env := agent(t, j)
	c := connect(t, env)
	require.NoError(t, os.Remove(env["JUJU_AGENT_SOCKET_ADDRESS"]))
	require.NoError(t, c.Close())
	_, err := c.IsLeader(t.Context())
	require.ErrorContains(t, err, "cannot run is-leader: cannot reach the unit agent")
}

// tools makes executables of scripts and returns the environment of a hook
// that has no agent's socket.
func tools(t *testing.T, scripts map[string]string) map[string]string {
	t.Helper()
	dir := t.TempDir()
	for name, script := range scripts {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o755))
	}
	return map[string]string{
		"JUJU_CONTEXT_ID":           "db/0-start-0123",
		"JUJU_AGENT_SOCKET_ADDRESS": filepath.Join(dir, "absent"),
		"PATH":                      dir + ":/usr/bin:/bin",
	}
}

func TestExec(t *testing.T) {
	t.Parallel()
	env := tools(t, map[string]string{
		"relation-get":  `echo "{\"argv\":\"$*\",\"context\":\"$JUJU_CONTEXT_ID\"}"`,
		"relation-set":  `dd of="$(dirname "$0")/written" 2>/dev/null; echo "$*" >"$(dirname "$0")/argv"`,
		"relation-list": `echo "ERROR relation not found" >&2; exit 2`,
		"is-leader":     `sleep 60`,
	})
	c := connect(t, env)
	bag, err := c.RelationGet(t.Context(), "db:3", "app/0")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"argv": "--format json -r db:3 -- - app/0", "context": "db/0-start-0123"}, bag)

	require.NoError(t, c.RelationSet(t.Context(), "db:3", map[string]string{"password": "p4ss"}))
	dir, _, _ := strings.Cut(env["PATH"], ":")
	written, err := os.ReadFile(filepath.Join(dir, "written"))
	require.NoError(t, err)
	require.Equal(t, "{\"password\": \"p4ss\"}\n", string(written))
	argv, err := os.ReadFile(filepath.Join(dir, "argv"))
	require.NoError(t, err)
	require.NotContains(t, string(argv), "p4ss")

	_, err = c.RelationUnits(t.Context(), "db:9")
	require.True(t, hooktool.IsNotFound(err))

	c.SetTimeout(100 * time.Millisecond)
	begin := time.Now()
	_, err = c.IsLeader(t.Context())
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Less(t, time.Since(begin), 10*time.Second)

	_, err = c.StateGet(t.Context())
	require.EqualError(t, err, "cannot run state-get: not found on PATH")
	require.NoError(t, c.Close())
}

func TestConnect_RefusedSocketFallsBack(t *testing.T) {
	t.Parallel()
	env := tools(t, map[string]string{"is-leader": "echo true"})
	// Bound and never listening. One that listened and was closed could live on for a moment, in a process that another
	// test is just starting.
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	require.NoError(t, unix.Bind(fd, &unix.SockaddrUnix{Name: env["JUJU_AGENT_SOCKET_ADDRESS"]}))
	require.NoError(t, unix.Close(fd))
	leader, err := connect(t, env).IsLeader(t.Context())
	require.NoError(t, err)
	require.True(t, leader)
}

func TestConnect_OutsideAHook(t *testing.T) {
	t.Parallel()
	_, err := hooktool.Connect(t.Context(), func(string) string { return "" })
	require.EqualError(t, err, "cannot call hook tools: JUJU_CONTEXT_ID is not set")
}

// recorder is a Runner that keeps what it was given.
type recorder struct{ call hooktool.Call }

func (r *recorder) Run(_ context.Context, call hooktool.Call) ([]byte, error) {
	r.call = call
	return nil, nil
}

// What is written to a file or to standard input comes out the same, whether
// it is read as YAML or as JSON.
func FuzzDocument(f *testing.F) {
	for _, seed := range []string{"", "yes", "~", "null", "0x10", "1.50", " a ", "a: b", "- x", "#", "\"", "\\", "\t\n\r", "\x00\x7f\u0085\u2028\ufeff", "😀", strings.Repeat("x", 3000), "\xff"} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, key, value string) {
		r := &recorder{}
		require.NoError(t, hooktool.New(r).StateSet(t.Context(), map[string]string{"k" + key: value}))
		valid := func(s string) string { return string(bytes.ToValidUTF8([]byte(s), []byte("\ufffd"))) }
		if valid(key) != key || valid(value) != value || len(key) > 500 {
			return // invalid UTF-8 is replaced; YAML bounds keys
		}
		want := map[string]string{"k" + key: value}
		var read map[string]string
		require.NoError(t, json.Unmarshal(r.call.Stdin, &read))
		require.Equal(t, want, read)
		read = nil
		require.NoError(t, yaml.Unmarshal(r.call.Stdin, &read), "%q", r.call.Stdin)
		require.Equal(t, want, read)
	})
}
