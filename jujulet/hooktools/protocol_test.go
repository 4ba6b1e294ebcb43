// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package hooktools

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

func readOf(id string) model.SecretRead { return model.SecretRead{ID: id} }

// rpcError makes a raw call and returns the RPC error's text.
func (b *bench) rpcError(req Request) string {
	b.t.Helper()
	err := b.client.Call("Jujuc.Main", req, &ExecResponse{})
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestProtocol_RefusedRequests(t *testing.T) {
	b := newBench(t).hook("foo/0", nil, nil)
	id := b.context.ID
	require.Equal(t, "bad request: command not specified", b.rpcError(Request{ContextId: id, Dir: "/"}))
	require.Equal(t, "bad request: Dir is not absolute", b.rpcError(Request{ContextId: id, Dir: "x", CommandName: "is-leader"}))
	require.Equal(t, `bad request: wrong context ID; got "old"`, b.rpcError(Request{ContextId: "old", Dir: "/", CommandName: "is-leader"}))
	require.Equal(t, "bad request: token does not match", b.rpcError(Request{ContextId: id, Dir: "/", CommandName: "is-leader", Token: "x"}))
	require.Equal(t, "bad request: unknown command: rm", b.rpcError(Request{ContextId: id, Dir: "/", CommandName: "rm"}))
}

func trap16(t *testing.T) {
	b := newBench(t).hook("foo/0", changed(), nil)
	req := Request{ContextId: b.context.ID, Dir: "/", CommandName: "relation-set", Args: []string{"--file", "-"}}
	require.Equal(t, "hook tool requires stdin, none supplied", b.rpcError(req))
	req.Args = []string{"a=b"}
	require.Empty(t, b.rpcError(req))
	require.Equal(t, 1, b.context.Calls(), "the refused call is not counted")
	req = Request{ContextId: b.context.ID, Dir: "/", CommandName: "state-set", Args: []string{"--file", "-"}}
	require.Equal(t, "hook tool requires stdin, none supplied", b.rpcError(req))
}

func trap17(t *testing.T) {
	b := newBench(t).hook("foo/0", nil, nil)
	b.context.close()
	require.Contains(t, b.rpcError(Request{ContextId: b.context.ID, Dir: "/", CommandName: "is-leader"}), "wrong context ID")
}

func TestClient(t *testing.T) {
	b := newBench(t).hook("foo/0", changed(), nil)
	var out, errs bytes.Buffer
	env := map[string]string{"JUJU_AGENT_SOCKET_ADDRESS": "/nowhere/agent.socket", "JUJU_AGENT_SOCKET_NETWORK": "unix"}
	c := client{
		getenv: func(k string) string { return env[k] }, stdin: strings.NewReader(""), stdout: &out, stderr: &errs,
	}
	require.Equal(t, 1, c.main([]string{"/x/is-leader"}))
	require.Equal(t, "ERROR JUJU_CONTEXT_ID not set\n", errs.String())
	errs.Reset()
	env["JUJU_CONTEXT_ID"] = b.context.ID
	require.Equal(t, 1, c.main([]string{"is-leader"}))
	require.Contains(t, errs.String(), "ERROR dial unix")
}

func trap25(t *testing.T) {
	b := newBench(t).hook("foo/1", nil, nil)
	require.Equal(t, "False\n", b.ok("is-leader"))
	require.NoError(t, b.model.SetLeader("foo/1"))
	require.Equal(t, "False\n", b.ok("is-leader"))
	b.hook("foo/1", nil, nil)
	require.Equal(t, "True\n", b.ok("is-leader"))
	require.NoError(t, b.model.SetLeader("foo/0"))
	require.Equal(t, "False\n", b.ok("is-leader"), "a yes is asked again")
}

func trap07(t *testing.T) {
	b := newBench(t).hook("foo/0", changed(), nil)
	require.Equal(t, "v\n", b.ok("relation-get", "k", "bar/0"))
	require.Equal(t, "b\n", b.ok("relation-get", "--app", "a", "bar"))
	_, err := b.model.CommitHook(t.Context(), "bar/0", model.HookCommit{Relations: []model.RelationWrite{
		{Relation: b.relation, Values: map[string]string{"k": "new"}},
		{Relation: b.relation, App: true, Values: map[string]string{"a": "new"}},
	}})
	require.NoError(t, err)
	require.Equal(t, "b\n", b.ok("relation-get", "--app", "a", "bar"), "once in a hook")
	cache := b.context.Cache
	b.hook("foo/0", changed(), nil)
	b.context.Cache = cache
	require.Equal(t, "new\n", b.ok("relation-get", "--app", "a", "bar"))
	require.Equal(t, "v\n", b.ok("relation-get", "k", "bar/0"), "until a hook about the unit")
	cache.Forget(b.relation, "bar/0")
	require.Equal(t, "new\n", b.ok("relation-get", "k", "bar/0"))
}
