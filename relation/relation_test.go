// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package relation_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	. "github.com/drawbridge-k8s/drawbridge/relation"
)

const eightFields = `["username", "password", "tls", "tls-ca", "uris", "read-only-uris", "entity-name", "entity-password"]`

// applied is what a databag reads after relation-set.
func applied(current, changes map[string]string) map[string]string {
	bag := map[string]string{}
	for key, value := range current {
		bag[key] = value
	}
	for key, value := range changes {
		bag[key] = value
		if value == "" {
			delete(bag, key)
		}
	}
	return bag
}

// Golden: data_interfaces v0 with secrets, NodePort; without `uris`.
func TestGolden_AnswerWithSecrets(t *testing.T) {
	t.Parallel()
	requestBag := map[string]string{
		"database": "orders", "external-node-connectivity": "true",
		"provided-secrets": `["mtls-cert"]`, "requested-secrets": eightFields,
	}
	request, err := ParseRequest(requestBag)
	require.NoError(t, err)
	require.True(t, request.WantsSecret("password"))
	answer := Answer{
		RequestBag: requestBag, Database: request.Database,
		Endpoints:         []string{"10.0.0.44:31604", "10.0.0.45:31604"},
		ReadOnlyEndpoints: []string{"10.0.0.44:31907", "10.0.0.45:31907"},
		SecretUser:        "secret:d2fjn1fmp25004or68b0", SecretTLS: "secret:d2fjn1nmp25004or68bg", Version: "8.0.42",
	}
	require.Equal(t, map[string]string{
		"data":     `{"database": "orders", "external-node-connectivity": "true", "provided-secrets": "[\"mtls-cert\"]", "requested-secrets": "[\"username\", \"password\", \"tls\", \"tls-ca\", \"uris\", \"read-only-uris\", \"entity-name\", \"entity-password\"]"}`,
		"database": "orders", "endpoints": "10.0.0.44:31604,10.0.0.45:31604",
		"read-only-endpoints": "10.0.0.44:31907,10.0.0.45:31907",
		"secret-user":         "secret:d2fjn1fmp25004or68b0", "secret-tls": "secret:d2fjn1nmp25004or68bg", "version": "8.0.42",
	}, applied(nil, Diff(nil, answer.Bag())))
}

// Golden: v0 without secrets, with the trailing dot.
func TestGolden_AnswerPlain(t *testing.T) {
	t.Parallel()
	requestBag := map[string]string{"database": "orders"}
	request, err := ParseRequest(requestBag)
	require.NoError(t, err)
	require.False(t, request.WantsSecret("password"))
	answer := Answer{
		RequestBag: requestBag, Database: "orders", Username: "relation-7", Password: "k3yR",
		Endpoints:         []string{"our-router-service.prod.svc.cluster.local.:6446"},
		ReadOnlyEndpoints: []string{"our-router-service.prod.svc.cluster.local.:6447"},
		TLS:               "False", Version: "8.0.42",
	}
	require.Equal(t, map[string]string{
		"data": `{"database": "orders"}`, "database": "orders", "username": "relation-7", "password": "k3yR",
		"endpoints":           "our-router-service.prod.svc.cluster.local.:6446",
		"read-only-endpoints": "our-router-service.prod.svc.cluster.local.:6447", "tls": "False", "version": "8.0.42",
	}, applied(nil, Diff(nil, answer.Bag())))
}

// Golden: our requirer towards mysql-k8s, and its answer.
func TestGolden_Requirer(t *testing.T) {
	t.Parallel()
	require.Equal(t, map[string]string{
		"database": "drawbridge", "extra-user-roles": "charmed_router",
		"requested-secrets": `["username", "password", "tls", "tls-ca", "uris"]`,
	}, BackendRequest("charmed_router").Bag())
	backend, err := ParseBackend(map[string]string{
		"data":     `{"database": "drawbridge"}`,
		"database": "drawbridge", "endpoints": "mysql-k8s-primary.prod.svc.cluster.local.:3306",
		"read-only-endpoints": "mysql-k8s-replicas.prod.svc.cluster.local.:3306",
		"secret-user":         "secret:d2fk01vmp25004or68c0", "version": "8.0.42-0ubuntu0.22.04.1",
	})
	require.NoError(t, err)
	require.Equal(t, "username and password", backend.Missing())
	backend.UseUserSecret(map[string]string{"username": "relation-4_0123", "password": "x"})
	require.Empty(t, backend.Missing())
	require.Equal(t, []string{"mysql-k8s-primary.prod.svc.cluster.local.:3306"}, backend.Endpoints)
	require.False(t, backend.TLS)
}

// Golden: a v1 provider that answers a v0 request is readable.
func TestGolden_AnswerOfV1Provider(t *testing.T) {
	t.Parallel()
	backend, err := ParseBackend(map[string]string{
		"data":     `{"resource": "orders", "salt": "DOw7o5vsr5totxCj", "external-node-connectivity": true, "requested-secrets": ["username", "password"], "provided-secrets": ["mtls-cert"]}`,
		"resource": "orders", "salt": "DOw7o5vsr5totxCj", "database": "orders", "endpoints": "h:1",
		"read-only-endpoints": "h:2", "secret-user": "secret:u", "secret-tls": "secret:t", "version": "8.0",
	})
	require.NoError(t, err)
	backend.UseUserSecret(map[string]string{"username": "u", "password": "p"})
	backend.UseTLSSecret(map[string]string{"tls": "true", "tls-ca": "PEM"})
	require.Empty(t, backend.Missing())
	require.True(t, backend.TLS)
	require.Equal(t, []string{"h:2"}, backend.ReadOnlyEndpoints)
}

func TestParseRequest_Hostile(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		bag  map[string]string
		want string // "" = fine
	}{
		"empty":               {nil, ""},
		"no database yet":     {map[string]string{"requested-secrets": eightFields}, ""},
		"plain":               {map[string]string{"database": "orders"}, ""},
		"v2":                  {map[string]string{"version": "v2", "requests": "[]"}, `version is "v2": versions 0 and 1 of data_interfaces are spoken here`},
		"secrets not JSON":    {map[string]string{"database": "o", "requested-secrets": "[username"}, "requested-secrets is not a JSON list of strings"},
		"secrets no list":     {map[string]string{"database": "o", "requested-secrets": `{"a":1}`}, "requested-secrets is not a JSON list of strings"},
		"secrets of numbers":  {map[string]string{"database": "o", "requested-secrets": `[1]`}, "requested-secrets is not a JSON list of strings"},
		"secrets null":        {map[string]string{"database": "o", "requested-secrets": `null`}, ""},
		"too many secrets":    {map[string]string{"database": "o", "requested-secrets": "[" + strings.Repeat(`"a",`, 100) + `"a"]`}, "requested-secrets has more than 64 entries"},
		"long name":           {map[string]string{"database": strings.Repeat("x", 65)}, "database is longer than 64 characters"},
		"control characters":  {map[string]string{"database": "a\x00b"}, "database has control characters"},
		"newline":             {map[string]string{"database": "a\nb"}, "database has control characters"},
		"not UTF-8":           {map[string]string{"database": "a\xff"}, "database is not UTF-8 text"},
		"huge value":          {map[string]string{"database": "o", "x": strings.Repeat("x", 300<<10)}, "its databag is larger than 256 KiB"},
		"huge name":           {map[string]string{"database": strings.Repeat("x", 70<<10)}, "database is too long"},
		"entity":              {map[string]string{"database": "o", "entity-type": "USER"}, "entity-type is not supported"},
		"group roles":         {map[string]string{"database": "o", "extra-group-roles": "g"}, "extra-group-roles is not supported"},
		"prefix":              {map[string]string{"database": "o*", "prefix-matching": "x"}, "prefix-matching is not supported"},
		"roles are passed on": {map[string]string{"database": "o", "extra-user-roles": "admin"}, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			request, err := ParseRequest(c.bag)
			if c.want == "" {
				require.NoError(t, err)
				require.Equal(t, c.bag["database"], request.Database)
				return
			}
			require.EqualError(t, err, c.want)
			require.IsType(t, &BadData{}, err)
			require.False(t, request.Asked())
		})
	}
}

func TestParseBackend_Hostile(t *testing.T) {
	t.Parallel()
	for name, bag := range map[string]map[string]string{
		"endpoint with control":   {"endpoints": "h:1\x1b[2J"},
		"endpoint with path":      {"endpoints": "h:1/x"},
		"endpoint with user":      {"endpoints": "u@h:1"},
		"endpoint with a blank":   {"endpoints": "h :1"},
		"too many":                {"endpoints": strings.Repeat("h:1,", 65)},
		"password with a newline": {"password": "a\nb"},
		"huge":                    {"x": strings.Repeat("x", 300<<10)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ParseBackend(bag)
			require.IsType(t, &BadData{}, err)
			require.NotContains(t, err.Error(), "\x1b")
		})
	}
}

func TestMirror_StableAndReadable(t *testing.T) {
	t.Parallel()
	bag := map[string]string{"b": `["<x>&"]`, "a": "1", "data": "{}"}
	require.Equal(t, `{"a": "1", "b": "[\"<x>&\"]"}`, Mirror(bag))
	require.Equal(t, "{}", Mirror(nil))
	rapid.Check(t, func(t *rapid.T) {
		bag := rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "bag")
		delete(bag, "data")
		text := Mirror(bag)
		if text != Mirror(bag) {
			t.Fatalf("not stable: %q", text)
		}
		back := ParseMirror(map[string]string{"data": text}, "")
		for key, value := range bag {
			valid := strings.ToValidUTF8(key, "\ufffd") == key && strings.ToValidUTF8(value, "\ufffd") == value
			if valid && back[key] != value {
				t.Fatalf("lost %q: %q in %q", key, value, text)
			}
		}
	})
}

func TestParseMirror_Hostile(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "null", "[]", "{", `"x"`, strings.Repeat("x", 300<<10)} {
		require.Empty(t, ParseMirror(map[string]string{"data": text}, ""))
	}
	require.Equal(t, map[string]string{"a": "1"}, ParseMirror(map[string]string{"data": `{"a":"1","b":2,"c":[1]}`}, ""))
}

func TestDiff(t *testing.T) {
	t.Parallel()
	current := map[string]string{"same": "1", "changed": "1", "gone": "1", "foreign": "1"}
	desired := map[string]string{"same": "1", "changed": "2", "gone": "", "new": "1", "absent": ""}
	require.Equal(t, map[string]string{"changed": "2", "gone": "", "new": "1"}, Diff(current, desired))
	require.Empty(t, Diff(applied(current, Diff(current, desired)), desired), "a second time there is nothing to do")
}

// Withdrawing takes every key of an answer but `data`.
func TestWithdrawnBag_TakesBackEverything(t *testing.T) {
	t.Parallel()
	answer := Answer{
		RequestBag: map[string]string{"database": "x"}, Database: "x", Endpoints: []string{"h:1"}, ReadOnlyEndpoints: []string{"h:2"},
		SecretUser: "secret:u", SecretTLS: "secret:t", Username: "u", Password: "p", TLS: "True", TLSCA: "pem", Version: "1",
	}
	bag := applied(nil, answer.Bag())
	require.Equal(t, map[string]string{"data": `{"database": "x"}`}, applied(bag, Diff(bag, WithdrawnBag(bag))))
}

func TestFollow_KeepsCredentialsAndTheWayTheyAreGiven(t *testing.T) {
	t.Parallel()
	own := map[string]string{"database": "orders", "secret-user": "secret:u", "endpoints": "h:1", "data": "{}", "theirs": "x"}
	client := Client{Own: own, Request: Request{Database: "other", RequestedSecrets: []string{"username", "password"}}}
	backend := Backend{Version: "11", TLSText: "True"}
	bag := applied(own, Diff(own, client.Follow(map[string]string{"database": "other"}, []Address{a1}, backend)))
	require.Equal(t, map[string]string{
		"database": "orders", "secret-user": "secret:u", "endpoints": a1.ReadWrite, "read-only-endpoints": a1.ReadOnly,
		"data": `{"database": "other"}`, "version": "11", "tls": "True", "theirs": "x",
	}, bag)
	client.RequestErr = &BadData{Key: "database", Problem: "has control characters"}
	require.NotContains(t, client.Follow(map[string]string{"database": "\x00"}, []Address{a1}, backend), "data")
}

func TestPeer_RoundTripAndGarbled(t *testing.T) {
	t.Parallel()
	peer := Peer{Schema: "1", Pending: true, PendingSince: noon, ServiceHash: "h", Backend: "4", Verified: []Address{a1, a2}, Leader: "x/0"}
	bag := peer.Bag()
	require.Equal(t, "true", bag["service-pending"])
	require.Equal(t, "2026-11-30T12:00:00Z", bag["service-pending-since"])
	require.Equal(t, "10.0.0.1:6446,10.0.0.2:6446", bag["endpoints"])
	require.Equal(t, peer, ParsePeer(bag))
	require.Empty(t, Diff(applied(nil, bag), ParsePeer(bag).Bag()))

	garbled := ParsePeer(map[string]string{"service-pending": "yes", "service-pending-since": "soon", "endpoints": "a b", "schema": "7"})
	require.True(t, garbled.Pending)
	require.True(t, garbled.PendingSince.IsZero())
	require.Empty(t, garbled.Verified)
	require.Equal(t, "7", garbled.Bag()["schema"], "a newer schema is kept")
	require.False(t, ParsePeer(map[string]string{"service-pending": "false"}).Pending)
}

func TestAddresses_Pairing(t *testing.T) {
	t.Parallel()
	require.Equal(t, []Address{{"[fd00::1]:6446", "[fd00::1]:6447"}, {"a:6446", "a:6447"}},
		PairAddresses([]string{"a:6446", "[fd00::1]:6446", "a:6446", "lonely:6446"}, []string{"[fd00::1]:6447", "a:6447"}))
	require.Equal(t, "fd00::1", Address{ReadWrite: "[fd00::1]:6446"}.Host())
	readWrite, readOnly := SplitAddresses([]Address{a1, a2})
	require.Equal(t, []Address{a1, a2}, PairAddresses(readWrite, readOnly))
}

func TestSecretLabels(t *testing.T) {
	t.Parallel()
	client, backend, group, ok := ParseClientSecretLabel(ClientSecretLabel(7, 4, GroupUser))
	require.True(t, ok)
	require.Equal(t, []any{7, 4, "user"}, []any{client, backend, group})
	for _, label := range []string{"", "database.7.user.secret", "database.07.backend.4.user.secret", "x.7.backend.4.user.secret"} {
		_, _, _, ok := ParseClientSecretLabel(label)
		require.False(t, ok, label)
	}
	require.Equal(t, "database.7.user.secret", SecretLabel("database", 7, GroupUser))
	for _, uri := range []string{"abc", "secret:abc", "secret://model/abc", " secret:abc\n"} {
		require.Equal(t, "abc", SecretID(uri))
	}
}
