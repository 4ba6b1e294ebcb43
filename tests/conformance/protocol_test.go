// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// both runs a test with each client, in a held relation hook of the leader.
func both(t *testing.T, test func(t *testing.T, w *world, h *held)) {
	t.Helper()
	for name, client := range clients() {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, client)
			test(t, w, w.contexts()["hook"]())
		})
	}
}

// What is not a call of a tool in a running hook is refused by the protocol.
func TestProtocol_Refusals(t *testing.T) {
	both(t, func(t *testing.T, w *world, h *held) {
		path, _, _ := strings.Cut(h.getenv("PATH"), ":")
		require.NoError(t, os.Symlink(jujuc, filepath.Join(path, "no-such-tool")))
		id := h.getenv("JUJU_CONTEXT_ID")
		for _, c := range []struct {
			env  []string
			tool string
			want string
		}{
			{[]string{"JUJU_CONTEXT_ID=foo/0-stale-1"}, "is-leader", `1||ERROR bad request: wrong context ID; got "foo/0-stale-1"` + "\n"},
			{[]string{"JUJU_CONTEXT_ID="}, "is-leader", "1||ERROR JUJU_CONTEXT_ID not set\n"},
			{[]string{"JUJU_AGENT_SOCKET_ADDRESS="}, "is-leader", "1||ERROR JUJU_AGENT_SOCKET_ADDRESS not set\n"},
			{[]string{"JUJU_AGENT_SOCKET_NETWORK="}, "is-leader", "1||ERROR JUJU_AGENT_SOCKET_NETWORK not set\n"},
			{[]string{"JUJU_AGENT_TOKEN=x"}, "is-leader", "1||ERROR bad request: token does not match\n"},
			{[]string{"JUJU_AGENT_SOCKET_ADDRESS=/nowhere"}, "is-leader", "1||ERROR dial unix /nowhere: connect: no such file or directory\n"},
			{nil, "is-leader", "0|True\n|"},
		} {
			require.Equal(t, c.want, h.call("", c.env, c.tool).String(), "%v %s", c.env, c.tool)
		}
		require.Equal(t, "1||ERROR bad request: unknown command: no-such-tool\n", h.call("", nil, "no-such-tool").String())
		require.Equal(t, "db-relation-changed", h.end(0))
		require.Contains(t, h.call("", nil, "is-leader").String(), "1||ERROR dial unix", "after the hook")
		next := w.contexts()["hook"]()
		require.NotEqual(t, id, next.getenv("JUJU_CONTEXT_ID"))
		require.Contains(t, h.call("", nil, "is-leader").String(), "wrong context ID", "what is left of the hook before")
		require.Equal(t, "db-relation-changed", next.end(0))
	})
}

// Values of half a megabyte, and bytes that are no text, come through whole.
func TestProtocol_LargeAndBinary(t *testing.T) {
	both(t, func(t *testing.T, w *world, h *held) {
		large := strings.Repeat("0123456789abcdef", 1<<15)
		require.Equal(t, "0||", h.call("big: "+large+"\n", nil, "relation-set", "--file", "-").String())
		require.Equal(t, answer{0, large + "\n", ""}, h.call("", nil, "relation-get", "big", "foo/0"))
		quoted := `{"bin": "\u0000\u0001\u001b\u2028é"}`
		require.Equal(t, "0||", h.call(quoted, nil, "relation-set", "--file", "-").String())
		require.Equal(t, answer{0, "\x00\x01\x1b\u2028é\n", ""}, h.call("", nil, "relation-get", "bin", "foo/0"))
		require.Equal(t, "0||", h.call(large, nil, "is-leader", "--format", "json", "-o", "leader.json").String(), "standard input that nobody reads")
		raw, err := os.ReadFile(filepath.Join(w.dir, "leader.json"))
		require.NoError(t, err)
		require.Equal(t, "true\n", string(raw))
		content := filepath.Join(w.dir, "content")
		require.NoError(t, os.WriteFile(content, []byte("\xff\x00\xfe"), 0o600))
		uri := strings.TrimSpace(h.call("", nil, "secret-add", "bytes#file="+content).stdout)
		require.Equal(t, "0|/wD+\n|", h.call("", nil, "secret-get", uri, "bytes#base64").String())
		require.Equal(t, "db-relation-changed", h.end(0))
		s, err := w.model.Status()
		require.NoError(t, err)
		require.Equal(t, large, s.Relations[len(s.Relations)-1].Bags["foo/0"]["big"])
	})
}

// Calls that are made at once are made one after the other; none is lost.
func TestProtocol_Concurrent(t *testing.T) {
	both(t, func(t *testing.T, _ *world, h *held) {
		const n = 24
		var group sync.WaitGroup
		answers := make([]answer, n)
		for i := range n {
			group.Go(func() {
				answers[i] = h.call(fmt.Sprintf("k%d: v%d\n", i, i), nil, "state-set", "--file", "-")
			})
		}
		group.Wait()
		for i, a := range answers {
			require.Equal(t, "0||", a.String())
			require.Equal(t, fmt.Sprintf("0|v%d\n|", i), h.call("", nil, "state-get", fmt.Sprintf("k%d", i)).String())
		}
		require.Equal(t, "db-relation-changed", h.end(0))
	})
}

// A hook that fails leaves nothing of what its tools have buffered.
func TestProtocol_FailedHook(t *testing.T) {
	both(t, func(t *testing.T, w *world, h *held) {
		require.Equal(t, "0||", h.call("", nil, "relation-set", "lost=1").String())
		require.Equal(t, "0||", h.call("", nil, "status-set", "blocked", "kept").String())
		require.Equal(t, "failed db-relation-changed", h.end(3))
		s, err := w.model.Status()
		require.NoError(t, err)
		require.NotContains(t, s.Relations[len(s.Relations)-1].Bags["foo/0"], "lost")
		require.Equal(t, "kept", s.Applications["foo"].Units["foo/0"].RawWorkload.Message)
	})
}

// --help is an answer on standard output, and exit code 0, for every tool.
func TestHelp(t *testing.T) {
	both(t, func(t *testing.T, _ *world, h *held) {
		for _, tool := range []string{"relation-get", "secret-add", "is-leader", "open-port"} {
			for _, flag := range []string{"--help", "-h"} {
				got := h.call("", nil, tool, flag)
				require.Zero(t, got.code)
				require.Empty(t, got.stderr)
				require.Contains(t, got.stdout, "Usage: "+tool)
				require.Contains(t, got.stdout, "\nSummary:\n")
			}
		}
	})
}
