// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package hooktools

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// add adds a secret and returns its URI.
func (b *bench) add(args ...string) string {
	b.t.Helper()
	uri := strings.TrimSpace(b.ok("secret-add", args...))
	require.Regexp(b.t, `^secret:[0-9a-v]{20}$`, uri)
	return uri
}

func TestSecrets_SameHookVisibility(t *testing.T) {
	b := newBench(t).hook("foo/0", changed(), nil)
	uri := b.add("--label", "mine", "--description", "d", "password=one", "user-name=u")
	id := strings.TrimPrefix(uri, "secret:")
	b.table([][2]string{
		{"secret-get " + uri, "0|password: one\nuser-name: u\n|"},
		{"secret-get --label mine", "0|password: one\nuser-name: u\n|"},
		{"secret-get --label mine password", "2||ERROR secret URI \"password\" not valid\n"},
		{"secret-get " + id + " password#base64", "0|b25l\n|"},
		{"secret-get " + uri + " nope", "1||ERROR secret key value \"nope\" not found\n"},
		{"secret-ids", "0|" + id + "\n|"},
		{"secret-grant " + uri + " -r db:1", "0||"},
		{"secret-add --label mine password=x", "1||ERROR secret with label \"mine\" already exists\n"},
	})
	require.Contains(t, b.ok("secret-info-get", uri), "revision: 1\n")
	_, err := b.model.ReadSecret(t.Context(), "foo/1", readOf(id))
	require.ErrorContains(t, err, "not found", "nobody else sees it before the commit")
	b.commit()
	require.JSONEq(t, `{"`+id+`":{"revision":1,"label":"mine","owner":"application","description":"d",
		"access":[{"target":"application-bar","scope":"relation-bar.db#foo.db","role":"view"}]}}`, b.ok("secret-info-get", "--label", "mine", "--format", "json"))

	// The other side reads it, and follows revisions only when it says so.
	b.hook("bar/0", nil, nil)
	require.Equal(t, "one\n", b.ok("secret-get", uri, "password", "--label", "theirs"))
	b.hook("foo/0", changed(), nil)
	b.ok("secret-get", uri)
	b.ok("secret-set", uri, "password=two")
	b.table([][2]string{
		{"secret-get " + uri + " password", "0|one\n|"},
		{"secret-get --label mine --peek", "0|password: two\n|"},
		{"secret-get " + uri + " --refresh --format json", "0|{\"password\":\"two\"}\n|"},
		{"secret-get " + uri + " --refresh --peek", "2||ERROR specify one of --peek or --refresh but not both\n"},
	})
	b.commit()
	require.Equal(t, "two\n", b.ok("secret-get", uri, "password"))
	b.ok("secret-set", uri, "password=two")
	b.commit()
	require.Contains(t, b.ok("secret-info-get", uri), "revision: 2\n", "unchanged content makes no revision")
	b.hook("bar/0", nil, nil)
	b.table([][2]string{
		{"secret-get --label theirs --format json", "0|{\"password\":\"one\",\"user-name\":\"u\"}\n|"},
		{"secret-get " + uri + " password --peek", "0|two\n|"},
		{"secret-get " + uri + " password", "0|one\n|"},
		{"secret-get " + uri + " password --refresh", "0|two\n|"},
		{"secret-get " + uri + " password", "0|two\n|"},
		{"secret-ids --format json", "0|null\n|"},
		{"secret-get --label nothing", "1||ERROR secret with label \"nothing\" not found\n"},
		{"secret-grant " + uri + " -r 1", "1||ERROR secret \"" + id + "\" not found\n"},
		{"secret-set " + uri + " password=three", "0||"},
	})
	_, err = b.model.CommitHook(t.Context(), "bar/0", b.context.Commit())
	require.EqualError(t, err, "permission denied", "another's secret is refused at the commit, as by Juju")
}

func TestSecrets_AccessEnds(t *testing.T) {
	b := newBench(t).hook("foo/0", changed(), nil)
	uri := b.add("password=one")
	b.commit()
	b.hook("bar/0", nil, nil)
	b.table([][2]string{{"secret-get " + uri, "1||ERROR permission denied\n"}})
	b.hook("foo/0", changed(), nil)
	b.ok("secret-grant", uri, "--relation", "1", "--unit", "bar/0")
	b.commit()
	b.hook("bar/0", nil, nil)
	b.ok("secret-get", uri)
	b.hook("foo/0", changed(), nil)
	b.ok("secret-revoke", uri, "--unit", "bar/0")
	b.commit()
	b.hook("bar/0", nil, nil)
	b.table([][2]string{{"secret-get " + uri, "1||ERROR permission denied\n"}})
	b.hook("foo/1", nil, nil)
	require.Equal(t, "password: one\n", b.ok("secret-get", uri), "every unit of the owner reads")
	b.hook("foo/0", nil, nil)
	b.ok("secret-remove", uri)
	b.commit()
	b.table([][2]string{{"secret-get " + uri, "1||ERROR secret \"" + strings.TrimPrefix(uri, "secret:") + "\" not found\n"}})
}

func TestSecrets_BadInput(t *testing.T) {
	b := newBench(t).hook("foo/0", nil, nil)
	b.table([][2]string{
		{"secret-add", "2||ERROR missing secret value or filename\n"},
		{"secret-add ab=x", "2||ERROR key \"ab\" not valid\n"},
		{"secret-add Key=x", "2||ERROR key \"Key\" not valid\n"},
		{"secret-add password=", "2||ERROR key value \"password=\" not valid\n"},
		{"secret-add password", "2||ERROR key value \"password\" not valid\n"},
		{"secret-add --expire yesterday password=x", "2||ERROR expire time or duration \"yesterday\" not valid\n"},
		{"secret-add --expire -1h password=x", "2||ERROR negative expire duration \"-1h\" not valid\n"},
		{"secret-add --file -", "2||ERROR open -: no such file or directory\n"},
		{"secret-add password#file=/nonexistent/x", "2||ERROR reading content for secret key \"password\": open /nonexistent/x: no such file or directory\n"},
		{"secret-add --rotate sometimes password=x", "2||ERROR rotate policy \"sometimes\" not valid\n"},
		{"secret-add --owner nobody password=x", "2||ERROR secret owner \"nobody\" not valid\n"},
		{"secret-get", "2||ERROR require either a secret URI or label\n"},
		{"secret-get nonsense", "2||ERROR secret URI \"nonsense\" not valid\n"},
		{"secret-grant", "2||ERROR missing secret URI\n"},
	})
}

func trap18(t *testing.T) {
	b := newBench(t).hook("foo/0", nil, nil)
	key := b.write("key", "from a file\n")
	all := b.write("all.yaml", "user-name: u\npassword: ' p '\n")
	uri := b.add("--file", all, "cert#file="+key, "raw#base64=AAE=")
	var got map[string]string
	require.NoError(t, json.Unmarshal([]byte(b.ok("secret-get", uri, "--format", "json")), &got))
	require.Equal(t, map[string]string{"user-name": "u", "password": " p ", "cert": "from a file\n", "raw": "\x00\x01"}, got)
}

func TestSecrets_UnitOwned(t *testing.T) {
	b := newBench(t).hook("foo/1", nil, nil)
	uri := b.add("--owner", "unit", "--label", "own", "password=x")
	b.commit()
	require.Equal(t, "password: x\n", b.ok("secret-get", "--label", "own"))
	b.hook("foo/0", nil, nil)
	require.Equal(t, 1, b.run("", "secret-get", uri).Code)
	require.Empty(t, b.ok("secret-ids"))
}
