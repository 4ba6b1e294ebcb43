// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package relation

import (
	"encoding/json"
)

// ClientStep is a row of the client table in exposure.go.
type ClientStep string

// The rows of the client table.
const (
	ClientWithdraw ClientStep = "D1"
	ClientFollow   ClientStep = "D2"
	ClientSilent   ClientStep = "D3"
	ClientBad      ClientStep = "D4"
	ClientHold     ClientStep = "D5"
	ClientGrant    ClientStep = "D6"
)

// Client is what is known of one client relation.
type Client struct {
	// Own is our application databag in it.
	Own map[string]string
	// Request is what the client asks for, RequestErr why that cannot be served.
	Request    Request
	RequestErr error
	// Foreign says that the credentials in Own are known not to be the current ones.
	Foreign bool
	// Mirrors are the parsed `data` of the client's units, as far as they were read; see AddMirror.
	Mirrors []map[string]string
}

// Given is what the client has been given, in the keys of v0.
func (c Client) Given() map[string]string { return Given(c.Own) }

// Decide is the client table.
func (c Client) Decide() ClientStep {
	holds := HoldsCredentials(c.Own)
	switch {
	case holds && (c.Foreign || c.Replaced() || c.contradicted()):
		return ClientWithdraw
	case holds:
		return ClientFollow
	case c.RequestErr != nil:
		return ClientBad
	case !c.Request.Asked():
		return ClientSilent
	case c.remembered():
		return ClientHold
	}
	return ClientGrant
}

// Replaced reports whether the client asks in another version than it was answered in, or, in v1, with another request.
func (c Client) Replaced() bool {
	return c.RequestErr == nil && c.Request.Asked() && HoldsCredentials(c.Own) && GivenID(c.Own) != c.Request.ID
}

// HoldsCredentials reports whether a client's databag holds credentials, or part of them.
func HoldsCredentials(own map[string]string) bool { return len(credentials(Given(own))) > 0 }

// UsesSecrets reports whether a client that holds credentials got them as secrets; this never changes later.
func UsesSecrets(own map[string]string) bool { return Given(own)[keySecretUser] != "" }

// credentials returns the keys of a databag that carry credentials, with secrets by their id alone.
func credentials(bag map[string]string) map[string]string {
	found := map[string]string{}
	for _, key := range []string{keySecretUser, keySecretTLS} {
		if bag[key] != "" {
			found[key] = SecretID(bag[key])
		}
	}
	for _, key := range []string{fieldUsername, fieldPassword} {
		if bag[key] != "" {
			found[key] = bag[key]
		}
	}
	return found
}

// contradicted reports whether a unit's mirror shows other credentials than the databag holds. A mirror that shows none
// yet, or not all, is only late.
func (c Client) contradicted() bool {
	own := credentials(c.Given())
	for _, mirror := range c.Mirrors {
		for key, value := range credentials(mirror) {
			if own[key] != value {
				return true
			}
		}
	}
	return false
}

// remembered reports whether a unit's mirror shows any credentials.
func (c Client) remembered() bool {
	for _, mirror := range c.Mirrors {
		if len(credentials(mirror)) > 0 {
			return true
		}
	}
	return false
}

// AddMirror takes in the databag of one of the client's units, whose `data` is what that unit has last seen of our
// application databag; in v1, of the response to its request.
func (c *Client) AddMirror(unitBag map[string]string) {
	id := GivenID(c.Own)
	if c.RequestErr == nil && c.Request.Asked() {
		id = c.Request.ID
	}
	if mirror := ParseMirror(unitBag, id); mirror != nil {
		c.Mirrors = append(c.Mirrors, mirror)
	}
}

// ParseMirror reads the `data` key of a client unit's databag, in v1 what it has of the request with this identifier.
// Anything that is not a JSON object of moderate size is as good as none; values that are not strings are left out.
func ParseMirror(unitBag map[string]string, id string) map[string]string {
	text := unitBag[keyData]
	if text == "" || len(text) > maxBag {
		return nil
	}
	var raw map[string]any
	if json.Unmarshal([]byte(text), &raw) != nil {
		return nil
	}
	if id != "" {
		raw, _ = raw[id].(map[string]any)
	}
	mirror := map[string]string{}
	for key, value := range raw {
		if s, ok := value.(string); ok {
			mirror[key] = s
		}
	}
	return mirror
}

// Follow returns the databag of a client that holds credentials, brought up to date: new endpoints, the version and the
// TLS settings of the backend, the mirror of its request. The credentials, and how they are given, stay.
func (c Client) Follow(requestBag map[string]string, addresses []Address, backend Backend) map[string]string {
	readWrite, readOnly := SplitAddresses(addresses)
	own := c.Given()
	answer := Answer{
		RequestBag: requestBag, Database: own[keyDatabase], Endpoints: readWrite, ReadOnlyEndpoints: readOnly,
		SecretUser: own[keySecretUser], SecretTLS: own[keySecretTLS],
		Username: own[fieldUsername], Password: own[fieldPassword], Version: backend.Version,
	}
	if own[keySecretTLS] == "" && c.plain(fieldTLS) {
		answer.TLS = backend.TLSText
	}
	if own[keySecretTLS] == "" && c.plain(fieldTLSCA) {
		answer.TLSCA = backend.TLSCA
	}
	// What cannot be served is not repeated: it may be hostile.
	keep := c.RequestErr != nil
	if response, v1 := given(c.Own); v1 {
		answer.Request = c.Request
		if c.Request.ID != response.ID {
			answer.Request, keep = Request{ID: response.ID, Salt: response.Salt}, true
		}
	}
	bag := answer.Bag()
	if keep {
		delete(bag, keyData)
	}
	return bag
}

// plain reports whether the field goes to a plain key: it was not asked for as a secret.
func (c Client) plain(field string) bool { return c.RequestErr == nil && !c.Request.WantsSecret(field) }

// SecretURIs returns the secrets that a databag names.
func SecretURIs(own map[string]string) []string {
	var uris []string
	bag := Given(own)
	for _, key := range []string{keySecretUser, keySecretTLS} {
		if bag[key] != "" {
			uris = append(uris, bag[key])
		}
	}
	return uris
}

// NamesSecret reports whether the user secret of a databag is the one with this id, in any spelling of the URI.
func NamesSecret(own map[string]string, id string) bool {
	uri := Given(own)[keySecretUser]
	return uri != "" && SecretID(uri) == SecretID(id)
}
