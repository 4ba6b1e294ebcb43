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

const (
	v1ID       = "96c10afb02583382"
	v1Salt     = "Zk3n8QwLr5TbV0xY"
	v1Requests = `[{"resource": "orders", "request-id": "96c10afb02583382", "salt": "Zk3n8QwLr5TbV0xY", "extra-user-roles": null, "extra-group-roles": null, "external-node-connectivity": true, "entity-type": null, "entity-permissions": null, "secret-mtls": null}]`
)

// v1Bag is a requirer's databag with these requests.
func v1Bag(requests string) map[string]string {
	return map[string]string{"version": "v1", "requests": requests}
}

// v1Answer is our databag with the answer to the golden request.
func v1Answer(t require.TestingT, change func(*Answer)) map[string]string {
	request, err := ParseRequest(v1Bag(v1Requests))
	require.NoError(t, err)
	answer := Answer{
		Request: request, RequestBag: v1Bag(v1Requests), Database: request.Database,
		Endpoints: []string{"10.0.0.44:31604"}, ReadOnlyEndpoints: []string{"10.0.0.44:31907"},
		SecretUser: "secret:d2fjn1fmp25004or68b0", SecretTLS: "secret:d2fjn1nmp25004or68bg", Version: "8.0.42",
	}
	if change != nil {
		change(&answer)
	}
	return applied(nil, answer.Bag())
}

// Golden: data_interfaces v1, as the requirer asks and the provider answers.
func TestGolden_V1(t *testing.T) {
	t.Parallel()
	request, err := ParseRequest(v1Bag(v1Requests))
	require.NoError(t, err)
	require.Equal(t, Request{Database: "orders", ID: v1ID, Salt: v1Salt, ExternalNodeConnectivity: true}, request)
	for _, field := range []string{"username", "password", "tls", "tls-ca"} {
		require.True(t, request.WantsSecret(field), "v1 has no plain credentials")
	}
	bag := v1Answer(t, nil)
	require.Len(t, bag, 3)
	require.Equal(t, "v1", bag["version"])
	require.JSONEq(t, `{"96c10afb02583382": {"resource": "orders", "request-id": "96c10afb02583382", "salt": "Zk3n8QwLr5TbV0xY", "external-node-connectivity": true}}`, bag["data"])
	require.JSONEq(t, `[{"resource": "orders", "request-id": "96c10afb02583382", "salt": "Zk3n8QwLr5TbV0xY", "endpoints": "10.0.0.44:31604", "read-only-endpoints": "10.0.0.44:31907", "secret-user": "secret:d2fjn1fmp25004or68b0", "secret-tls": "secret:d2fjn1nmp25004or68bg", "secret-extra": null, "secret-entity": null, "version": "8.0.42"}]`, bag["requests"])

	require.True(t, HoldsCredentials(bag))
	require.True(t, UsesSecrets(bag))
	require.Equal(t, v1ID, GivenID(bag))
	require.Equal(t, []string{"secret:d2fjn1fmp25004or68b0", "secret:d2fjn1nmp25004or68bg"}, SecretURIs(bag))
	require.True(t, NamesSecret(bag, "d2fjn1fmp25004or68b0"))
	require.Equal(t, []Address{{"10.0.0.44:31604", "10.0.0.44:31907"}}, BagAddresses(bag))
	require.Equal(t, "orders", Given(bag)["database"])
}

// A request without an identifier has the one that its resource and its salt make.
func TestV1_IdentifierFromTheSalt(t *testing.T) {
	t.Parallel()
	request, err := ParseRequest(v1Bag(`[{"database": "orders", "request-id": null, "salt": "Zk3n8QwLr5TbV0xY"}]`))
	require.NoError(t, err)
	require.Equal(t, v1ID, request.ID)
	require.Equal(t, "orders", request.Database)
}

func TestParseRequest_V1Hostile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ requests, want string }{
		"none yet":            {"", ""},
		"an empty list":       {"[]", ""},
		"null":                {"null", ""},
		"no resource yet":     {`[{"resource": "", "request-id": "1"}]`, ""},
		"an entry of nothing": {"[null]", ""},
		"not JSON":            {"[{", "requests is not a JSON list of requests"},
		"an object":           {"{}", "requests is not a JSON list of requests"},
		"a resource of digits": {`[{"resource": 123, "request-id": "1"}]`,
			"requests is not a JSON list of requests"},
		"huge":          {`[{"resource": "` + strings.Repeat("x", 70<<10) + `"}]`, "requests is too long"},
		"deep":          {strings.Repeat("[", 60<<10), "requests is not a JSON list of requests"},
		"two":           {`[{"resource": "a", "request-id": "1"}, {"resource": "b", "request-id": "2"}]`, "requests has 2 entries: one in a relation is served here"},
		"no identifier": {`[{"resource": "a"}]`, "request-id is not an identifier"},
		"a reserved identifier": {`[{"resource": "a", "request-id": "status"}]`,
			"request-id is not an identifier"},
		"an identifier with a quote": {`[{"resource": "a", "request-id": "\""}]`, "request-id is not an identifier"},
		"a long identifier":          {`[{"resource": "a", "request-id": "` + strings.Repeat("1", 65) + `"}]`, "request-id is not an identifier"},
		"a long name":                {`[{"resource": "` + strings.Repeat("x", 65) + `", "request-id": "1"}]`, "resource is longer than 64 characters"},
		"a control character":        {`[{"resource": "a\u0000b", "request-id": "1"}]`, "resource has control characters"},
		"a control in the salt":      {`[{"resource": "a", "request-id": "1", "salt": "\u001b[2J"}]`, "salt has control characters"},
		"a long salt":                {`[{"resource": "a", "request-id": "1", "salt": "` + strings.Repeat("x", 65) + `"}]`, "salt is longer than 64 characters"},
		"an entity":                  {`[{"resource": "a", "request-id": "1", "entity-type": "USER"}]`, "entity-type is not supported"},
		"permissions":                {`[{"resource": "a", "request-id": "1", "entity-permissions": []}]`, "entity-permissions is not supported"},
		"a certificate":              {`[{"resource": "a", "request-id": "1", "secret-mtls": "secret:x"}]`, "secret-mtls is not supported"},
		"a wanted name":              {`[{"resource": "a", "request-id": "1", "secret-requested-entity": "secret:x"}]`, "secret-requested-entity is not supported"},
		"a prefix":                   {`[{"resource": "a", "request-id": "1", "prefix-matching": "all"}]`, "prefix-matching is not supported"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			request, err := ParseRequest(v1Bag(c.requests))
			require.False(t, request.Asked())
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.IsType(t, &BadData{}, err)
			require.EqualError(t, err, c.want)
		})
	}
}

// A v1 answer is taken back with the response left in place, empty: the library looks at no databag without one, and its
// mirror would show the old credentials for ever.
func TestWithdrawnBag_V1LeavesAnEmptyResponse(t *testing.T) {
	t.Parallel()
	bag := v1Answer(t, nil)
	gone := applied(bag, Diff(bag, WithdrawnBag(bag)))
	require.Equal(t, bag["data"], gone["data"])
	require.Equal(t, "v1", gone["version"])
	require.JSONEq(t, `[{"resource": "orders", "request-id": "96c10afb02583382", "salt": "Zk3n8QwLr5TbV0xY", "endpoints": null, "read-only-endpoints": null, "secret-user": null, "secret-tls": null, "secret-extra": null, "secret-entity": null, "version": null}]`, gone["requests"])
	require.False(t, HoldsCredentials(gone))
	require.Empty(t, SecretURIs(gone))
	require.Empty(t, BagAddresses(gone))
	require.Empty(t, Given(gone))
	require.Empty(t, Diff(gone, WithdrawnBag(gone)), "a second time there is nothing to do")
	require.Equal(t, bag, applied(gone, Diff(gone, v1Answer(t, nil))), "and given again")
}

// Each version is taken back whole where the other takes its place.
func TestAnswer_ReplacesTheOtherVersion(t *testing.T) {
	t.Parallel()
	v0 := applied(nil, Answer{RequestBag: map[string]string{"database": "orders"}, Database: "orders",
		Endpoints: []string{"h:1"}, ReadOnlyEndpoints: []string{"h:2"}, SecretUser: "secret:u", Version: "8.0"}.Bag())
	v1 := v1Answer(t, nil)
	require.Equal(t, v1, applied(v0, Diff(v0, fill(v1, v0))))
	request, err := ParseRequest(v1Bag(v1Requests))
	require.NoError(t, err)
	require.Equal(t, ClientWithdraw, Client{Own: v0, Request: request}.Decide())
	require.Equal(t, ClientWithdraw, Client{Own: v1, Request: Request{Database: "orders"}}.Decide())
	require.Equal(t, ClientFollow, Client{Own: v1, Request: request}.Decide())
	other := request
	other.ID = "1"
	require.Equal(t, ClientWithdraw, Client{Own: v1, Request: other}.Decide())
	require.Equal(t, ClientFollow, Client{Own: v1}.Decide(), "one that asks no more keeps what it has")
	require.Equal(t, ClientFollow, Client{Own: v1, RequestErr: &BadData{}}.Decide())
}

// fill is an answer's whole wish: every key of the other databag that it does not have is deleted.
func fill(wanted, other map[string]string) map[string]string {
	full := applied(nil, wanted)
	for key := range other {
		if _, ok := full[key]; !ok {
			full[key] = ""
		}
	}
	return full
}

func TestFollow_V1(t *testing.T) {
	t.Parallel()
	own := v1Answer(t, nil)
	request, err := ParseRequest(v1Bag(v1Requests))
	require.NoError(t, err)
	client := Client{Own: own, Request: request}
	backend := Backend{Version: "8.4.1", TLSText: "True", TLS: true, TLSCA: "PEM"}
	bag := applied(own, Diff(own, client.Follow(v1Bag(v1Requests), []Address{a1}, backend)))
	require.Equal(t, v1Answer(t, func(a *Answer) {
		a.Endpoints, a.ReadOnlyEndpoints, a.Version = []string{a1.ReadWrite}, []string{a1.ReadOnly}, "8.4.1"
	}), bag, "TLS is in its secret, never in a plain key")

	for name, change := range map[string]func(*Client){
		"not asked any more": func(c *Client) { c.Request = Request{} },
		"bad":                func(c *Client) { c.Request, c.RequestErr = Request{}, &BadData{} },
		"another name under the same identifier": func(c *Client) {
			c.Request.Database = "other"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changed := client
			change(&changed)
			bag := applied(own, Diff(own, changed.Follow(nil, []Address{a1}, backend)))
			require.Equal(t, v1ID, GivenID(bag))
			require.Equal(t, "orders", Given(bag)["database"])
			require.Equal(t, a1.ReadWrite, Given(bag)["endpoints"])
			require.Contains(t, bag["data"], v1ID, "without it the requirer fails")
		})
	}
}

func TestMirror_V1(t *testing.T) {
	t.Parallel()
	text := `{"96c10afb02583382": {"resource": "orders", "secret-user": "secret:u", "x": 1}, "secret-user": "secret:old", "status": {}}`
	require.Equal(t, map[string]string{"resource": "orders", "secret-user": "secret:u"},
		ParseMirror(map[string]string{"data": text}, v1ID))
	require.Equal(t, map[string]string{"secret-user": "secret:old"}, ParseMirror(map[string]string{"data": text}, ""))
	for _, text := range []string{"", "null", "[]", `{"96c10afb02583382": []}`, `{"96c10afb02583382": "x"}`} {
		require.Empty(t, ParseMirror(map[string]string{"data": text}, v1ID), text)
	}
	request, err := ParseRequest(v1Bag(v1Requests))
	require.NoError(t, err)
	client := Client{Request: request}
	client.AddMirror(map[string]string{"data": text})
	require.Equal(t, ClientHold, client.Decide())
	client = Client{Request: request}
	client.AddMirror(map[string]string{"data": `{"secret-user": "secret:of-its-time-in-v0"}`})
	require.Equal(t, ClientGrant, client.Decide())
	client = Client{Request: request, Own: v1Answer(t, nil)}
	client.AddMirror(map[string]string{"data": text})
	require.Equal(t, ClientWithdraw, client.Decide(), "it shows another secret")
}

// No text in a databag makes the readers fail, and what they accept is written and read back the same.
func TestV1_AnyText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{v1Requests, "[{}]", `[{"resource":"a","salt":"<&>"}]`})).Draw(t, "requests")
		request, err := ParseRequest(v1Bag(text))
		Given(map[string]string{"requests": text})
		ParseMirror(map[string]string{"data": text}, v1ID)
		if err != nil || !request.Asked() {
			return
		}
		bag := applied(nil, Answer{Request: request, Database: request.Database, SecretUser: "secret:u"}.Bag())
		if GivenID(bag) != request.ID || Given(bag)["database"] != request.Database {
			t.Fatalf("%v is not read back from %v", request, bag)
		}
	})
}
