// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"encoding/base64"
	"testing"

	"github.com/stretchr/testify/require"
)

func content(values ...string) map[string]string {
	out := map[string]string{}
	for i := 0; i < len(values); i += 2 {
		out[values[i]] = base64.StdEncoding.EncodeToString([]byte(values[i+1]))
	}
	return out
}

// A user secret is read by those it was granted to, and by its URI alone.
func TestUserSecrets_GrantAndRead(t *testing.T) {
	f := newModel(t)
	f.deploy("foo", "", 1)
	id, err := f.AddUserSecret(UserSecret{Name: "token", Description: "a token", Content: content("key", "one")})
	require.NoError(t, err)
	read := func(q SecretRead) (SecretValue, error) { return f.ReadSecret(t.Context(), "foo/0", q) }
	_, err = read(SecretRead{ID: id})
	require.EqualError(t, err, "permission denied")
	require.EqualError(t, f.GrantUserSecret("token", []string{"foo", "bar"}, true),
		`failed to grant/revoke secret: cannot change access to "secret:`+id+`" for "bar": invalid subject reference: application "bar" not found`)
	require.NoError(t, f.GrantUserSecret("token", []string{"foo"}, true))
	v, err := read(SecretRead{ID: id})
	require.NoError(t, err)
	require.Equal(t, content("key", "one"), v.Content)
	_, err = read(SecretRead{Label: "token"})
	require.EqualError(t, err, `secret with label "token" not found`, "a name is for the operator")
	managed, err := f.ManagedSecrets(t.Context(), "foo/0")
	require.NoError(t, err)
	require.Empty(t, managed)

	all, err := f.Secrets()
	require.NoError(t, err)
	require.Equal(t, []SecretAccess{{Target: "application-foo", Scope: "model-" + f.Info().UUID, Role: "view"}}, all[0].Access)
	require.Equal(t, []string{"<model>", "token", ""}, []string{all[0].Owner, all[0].Name, all[0].Label})

	require.NoError(t, f.GrantUserSecret("secret:"+id, []string{"foo"}, false))
	_, err = read(SecretRead{ID: id})
	require.EqualError(t, err, "permission denied")
	require.NoError(t, f.RemoveUserSecret(id, 0))
	require.EqualError(t, f.RemoveUserSecret("token", 0), `secret "token" not found`)
}

// A new revision is an event for those who read the old one; --auto-prune removes what nobody tracks.
func TestUserSecrets_Revisions(t *testing.T) {
	f := newModel(t)
	f.deploy("foo", "", 1)
	id, err := f.AddUserSecret(UserSecret{Name: "token", Content: content("key", "one")})
	require.NoError(t, err)
	require.NoError(t, f.GrantUserSecret(id, []string{"foo"}, true))
	_, err = f.ReadSecret(t.Context(), "foo/0", SecretRead{ID: id})
	require.NoError(t, err)
	require.EqualError(t, f.UpdateUserSecret(id, UserSecret{}), "at least one attribute to update must be specified")
	require.NoError(t, f.UpdateUserSecret(id, UserSecret{Content: content("key", "one"), Description: "same"}))
	latest := func() int {
		s, err := f.Snapshot(t.Context(), "foo/0")
		require.NoError(t, err)
		return s.Secrets[id].Latest
	}
	require.Equal(t, 1, latest())
	yes := true
	require.NoError(t, f.UpdateUserSecret("token", UserSecret{Content: content("key", "two"), AutoPrune: &yes}))
	require.Equal(t, 2, latest())
	revisions := func() (out []int) {
		all, err := f.Secrets()
		require.NoError(t, err)
		for _, r := range all[0].Revisions {
			out = append(out, r.Revision)
		}
		return out
	}
	require.Equal(t, []int{1, 2}, revisions(), "the first is tracked")
	_, err = f.ReadSecret(t.Context(), "foo/0", SecretRead{ID: id, Refresh: true})
	require.NoError(t, err)
	require.Equal(t, []int{2}, revisions())
}

func TestUserSecrets_Refusals(t *testing.T) {
	f := newModel(t)
	f.deploy("foo", "", 1)
	_, err := f.ClaimLeadership(t.Context(), "foo/0")
	require.NoError(t, err)
	const charms = "9m4e2mr0ui3e8a215n4g"
	_, err = f.CommitHook(t.Context(), "foo/0", HookCommit{Secrets: []SecretOp{{Op: "add", ID: charms, Content: content("key", "one")}}})
	require.NoError(t, err)
	require.EqualError(t, f.RemoveUserSecret(charms, 0), "permission denied")
	require.EqualError(t, f.UpdateUserSecret(charms, UserSecret{Name: "x"}), "permission denied")
	_, err = f.AddUserSecret(UserSecret{Name: "a", Content: content("key", "one")})
	require.NoError(t, err)
	_, err = f.AddUserSecret(UserSecret{Name: "a", Content: content("key", "one")})
	require.EqualError(t, err, `secret with name "a" already exists`)
	require.EqualError(t, f.UpdateUserSecret("b", UserSecret{Name: "c"}), `secret "b" not found`)
	require.EqualError(t, f.RemoveUserSecret("a", 7), `secret revision 7 not found`)

	for ref, id := range map[string]string{
		charms: charms, "secret:" + charms: charms, "secret://" + f.Info().UUID + "/" + charms: charms,
		"token": "", "secret:token": "", "other:" + charms: "",
	} {
		require.Equal(t, id, SecretID(ref), ref)
	}
}

// A grant to an application goes with it.
func TestUserSecrets_GrantEndsWithTheApplication(t *testing.T) {
	f := newModel(t)
	f.deploy("foo", "", 0)
	_, err := f.AddUserSecret(UserSecret{Name: "a", Content: content("key", "one")})
	require.NoError(t, err)
	require.NoError(t, f.GrantUserSecret("a", []string{"foo"}, true))
	require.NoError(t, f.RemoveApplication("foo"))
	all, err := f.Secrets()
	require.NoError(t, err)
	require.Empty(t, all[0].Access)
}
