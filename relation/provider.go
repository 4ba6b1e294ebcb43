// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package relation

import (
	"maps"
	"slices"
	"strings"
)

// Keys of the application databags and fields of the secrets, as the protocol names them.
const (
	keyData                     = "data"
	keyDatabase                 = "database"
	keyEndpoints                = "endpoints"
	keyReadOnlyEndpoints        = "read-only-endpoints"
	keySecretUser               = "secret-user"
	keySecretTLS                = "secret-tls"
	keyVersion                  = "version"
	keyRequests                 = "requests"
	keyRequestID                = "request-id"
	keyRequestedSecrets         = "requested-secrets"
	keyExtraUserRoles           = "extra-user-roles"
	keyExtraGroupRoles          = "extra-group-roles"
	keyEntityType               = "entity-type"
	keyEntityPermissions        = "entity-permissions"
	keyExternalNodeConnectivity = "external-node-connectivity"

	fieldUsername = "username"
	fieldPassword = "password"
	fieldTLS      = "tls"
	fieldTLSCA    = "tls-ca"
	fieldURIs     = "uris"
)

// Request is what a requirer asks for in its application databag. The zero Request is "nothing asked yet".
type Request struct {
	// Database is the name asked for; this key is the request.
	Database string
	// RequestedSecrets are the fields that the requirer wants as secrets; all others go to plain keys.
	RequestedSecrets []string
	// ExtraUserRoles is the comma-separated list of roles asked for; usually empty.
	ExtraUserRoles string
	// ExternalNodeConnectivity says whether the requirer asked for an address outside the cluster; it is not acted on.
	ExternalNodeConnectivity bool
	// ID identifies the request of a requirer that speaks v1; empty in v0. Salt goes with it, and both are given back.
	ID, Salt string
}

// V1 reports whether the requirer speaks version 1 of the protocol, in which all credentials are given as secrets and the
// answer is an item of `requests`.
func (r Request) V1() bool { return r.ID != "" }

// Asked reports whether there is a request at all.
func (r Request) Asked() bool { return r.Database != "" }

// WantsSecret reports whether the field is to be given in a secret rather than in a plain key.
func (r Request) WantsSecret(field string) bool {
	return r.V1() || slices.Contains(r.RequestedSecrets, field)
}

// Answer is what a provider gives to one requirer. Exactly one of SecretUser and Username with Password is used.
type Answer struct {
	// Request is the request that is answered. It decides the version of the protocol that the answer is written in.
	Request Request
	// RequestBag is the requirer's application databag, for the `data` mirror of v0.
	RequestBag map[string]string
	// Database is echoed exactly as asked.
	Database string
	// Endpoints and ReadOnlyEndpoints are host:port pairs, published in the order given.
	Endpoints, ReadOnlyEndpoints []string
	// SecretUser and SecretTLS are the URIs of secrets granted to the relation; empty = none.
	SecretUser, SecretTLS string
	// Username, Password, TLS and TLSCA are plain values, only for fields that the requirer did not ask as secrets.
	Username, Password, TLS, TLSCA string
	// Version is the version text of the engine.
	Version string
}

// Bag returns every key that an answer owns in the provider's application databag; keys that this answer leaves out are
// "" so that Diff deletes them. Credentials and endpoints belong into one flush.
func (a Answer) Bag() map[string]string {
	if a.Request.V1() {
		return a.bagVersion1()
	}
	bag := WithdrawnBag(nil)
	bag[keyData] = Mirror(a.RequestBag)
	bag[keyDatabase] = a.Database
	bag[keyEndpoints] = joinEndpoints(a.Endpoints)
	bag[keyReadOnlyEndpoints] = joinEndpoints(a.ReadOnlyEndpoints)
	bag[keySecretUser] = a.SecretUser
	bag[keySecretTLS] = a.SecretTLS
	bag[fieldUsername] = a.Username
	bag[fieldPassword] = a.Password
	bag[fieldTLS] = a.TLS
	bag[fieldTLSCA] = a.TLSCA
	bag[keyVersion] = a.Version
	return bag
}

// joinEndpoints is a list of endpoints as the protocol writes it.
func joinEndpoints(endpoints []string) string { return strings.Join(endpoints, ",") }

// WithdrawnBag returns what a provider changes in a databag of its own to take its answer back. `data` stays: without it
// the next relation-changed would look like a new request to the other side's bookkeeping. In v1 the response stays as
// well, with nothing in it: a requirer that finds none does not look, and would never notice.
func WithdrawnBag(own map[string]string) map[string]string {
	bag := map[string]string{
		keyDatabase: "", keyEndpoints: "", keyReadOnlyEndpoints: "", keySecretUser: "", keySecretTLS: "",
		fieldUsername: "", fieldPassword: "", fieldTLS: "", fieldTLSCA: "", keyVersion: "", keyRequests: "",
	}
	if response, ok := given(own); ok {
		maps.Copy(bag, wireResponse{Resource: response.Resource, ID: response.ID, Salt: response.Salt}.bag())
	}
	return bag
}
