// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package conformance

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Both clients reach the server of a running hook, and what they write is
// committed when it ends.
func TestHook_BothClients(t *testing.T) {
	for name, client := range map[string]string{"jujuc": jujuc, "jujulet": jujulet} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, client)
			h := w.hold("foo/0", "db-relation-changed", func() error {
				return w.model.Fire("foo/0", "db-relation-changed", map[string]string{"remote": "bar/0"})
			})
			require.Equal(t, "0|k: v\nn1: \"1\"\n|", h.call("", nil, "relation-get").String())
			require.Equal(t, "0||", h.call("a: b\n", nil, "relation-set", "--file", "-").String())
			require.Equal(t, "db-relation-changed", h.end(0))
			s, err := w.model.Status()
			require.NoError(t, err)
			require.Equal(t, "b", s.Relations[len(s.Relations)-1].Bags["foo/0"]["a"])
		})
	}
}
