// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package relation

// DefaultRequestedSecrets are the fields that our requirers ask to be given as Juju secrets.
func DefaultRequestedSecrets() []string {
	return []string{fieldUsername, fieldPassword, fieldTLS, fieldTLSCA, fieldURIs}
}

// Bag returns the keys that a requirer writes to its application databag to make the request. It must reach the provider
// in one flush: a provider that sees `database` without `requested-secrets` answers in plain text for ever.
func (r Request) Bag() map[string]string {
	bag := map[string]string{keyDatabase: r.Database}
	if len(r.RequestedSecrets) > 0 {
		bag[keyRequestedSecrets] = jsonList(r.RequestedSecrets)
	}
	if r.ExtraUserRoles != "" {
		bag[keyExtraUserRoles] = r.ExtraUserRoles
	}
	if r.ExternalNodeConnectivity {
		bag[keyExternalNodeConnectivity] = "true"
	}
	return bag
}

// BackendRequest returns what drawbridge-k8s asks its backend for: the database `drawbridge`, the role, and secrets.
func BackendRequest(role string) Request {
	return Request{Database: "drawbridge", ExtraUserRoles: role, RequestedSecrets: DefaultRequestedSecrets()}
}

// Backend is what a provider has answered to a requirer, read from its application databag. Credentials may stand in
// secrets (SecretUser, SecretTLS hold the URIs; UseUserSecret and UseTLSSecret take the contents) or in plain keys.
type Backend struct {
	// Database is the name of the database that the provider made; empty while it has not answered.
	Database string
	// Endpoints and ReadOnlyEndpoints are host:port pairs in the provider's order; a trailing dot is kept.
	Endpoints, ReadOnlyEndpoints []string
	// SecretUser and SecretTLS are secret URIs, empty where the provider gave none.
	SecretUser, SecretTLS string
	// Username and Password are the credentials, from plain keys until UseUserSecret replaces them.
	Username, Password string
	// TLS says whether the provider offers TLS. Source: `tls`, in any of the spellings true/True/enabled.
	TLS bool
	// TLSText is `tls` as the provider wrote it, empty if it did not.
	TLSText string
	// TLSCA is the PEM chain of the provider's certificate authority, often empty.
	TLSCA string
	// Version is the version text of the engine.
	Version string
}

// UseUserSecret takes the credentials from the content of the secret that SecretUser names.
func (b *Backend) UseUserSecret(content map[string]string) {
	b.Username, b.Password = content[fieldUsername], content[fieldPassword]
}

// UseTLSSecret takes the TLS settings from the content of the secret that SecretTLS names.
func (b *Backend) UseTLSSecret(content map[string]string) {
	b.setTLS(content[fieldTLS])
	b.TLSCA = content[fieldTLSCA]
}

// Missing names what a usable answer still lacks ("endpoints", "username and password", ...), or is empty. It counts
// a secret that is named but not read yet as lacking.
func (b Backend) Missing() string {
	switch {
	case b.Database == "" && b.SecretUser == "" && b.Username == "":
		return "an answer"
	case b.Username == "" || b.Password == "":
		return "username and password"
	case len(b.Endpoints) == 0:
		return "endpoints"
	}
	return ""
}
