// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package relation

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"unicode/utf8"
)

// version1 is what a requirer writes under `version` to speak v1; the provider answers with the same.
const version1 = "v1"

// requestID is what the identifier of a v1 request may look like. The library makes 16 hexadecimal digits.
var requestID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// reservedID is a key that `data` has besides the identifiers of requests.
const reservedID = "status"

// wireRequest is one item of a v1 requirer's `requests`. Null and absent are the same.
type wireRequest struct {
	Resource                 string `json:"resource"`
	Database                 string `json:"database"` // another name of the resource
	ID                       string `json:"request-id"`
	Salt                     string `json:"salt"`
	ExtraUserRoles           string `json:"extra-user-roles"`
	ExternalNodeConnectivity bool   `json:"external-node-connectivity"`

	// What is not served here.
	ExtraGroupRoles       any `json:"extra-group-roles"`
	EntityType            any `json:"entity-type"`
	EntityPermissions     any `json:"entity-permissions"`
	SecretMTLS            any `json:"secret-mtls"`
	SecretRequestedEntity any `json:"secret-requested-entity"`
	RequestedEntitySecret any `json:"requested-entity-secret"`
	PrefixMatching        any `json:"prefix-matching"`
}

// parseVersion1 reads the request out of the databag of a requirer that speaks v1. One request in a relation is served;
// a list without one, or one that names no resource, asks for nothing yet.
func parseVersion1(bag map[string]string) (Request, error) {
	text := bag[keyRequests]
	if text == "" {
		return Request{}, nil
	}
	if len(text) > maxValue {
		return Request{}, &BadData{keyRequests, "is too long"}
	}
	var items []wireRequest
	if err := json.Unmarshal([]byte(text), &items); err != nil {
		return Request{}, &BadData{keyRequests, "is not a JSON list of requests"}
	}
	switch len(items) {
	case 0:
		return Request{}, nil
	case 1:
		return items[0].request()
	}
	return Request{}, &BadData{keyRequests, fmt.Sprintf("has %d entries: one in a relation is served here", len(items))}
}

// request checks one item.
func (w wireRequest) request() (Request, error) {
	for _, unsupported := range []struct {
		key   string
		value any
	}{
		{keyEntityType, w.EntityType}, {keyExtraGroupRoles, w.ExtraGroupRoles}, {keyEntityPermissions, w.EntityPermissions},
		{"secret-mtls", w.SecretMTLS}, {"secret-requested-entity", w.SecretRequestedEntity},
		{"requested-entity-secret", w.RequestedEntitySecret}, {"prefix-matching", w.PrefixMatching},
	} {
		if unsupported.value != nil && unsupported.value != "" {
			return Request{}, &BadData{unsupported.key, "is not supported"}
		}
	}
	request := Request{
		Database: w.Resource, ExtraUserRoles: w.ExtraUserRoles, ExternalNodeConnectivity: w.ExternalNodeConnectivity,
		ID: w.ID, Salt: w.Salt,
	}
	if request.Database == "" {
		request.Database = w.Database
	}
	if request.Database == "" {
		return Request{}, nil
	}
	if request.ID == "" && request.Salt != "" {
		request.ID = hashID(request.Database, request.Salt)
	}
	if !requestID.MatchString(request.ID) || request.ID == reservedID {
		return Request{}, &BadData{keyRequestID, "is not an identifier"}
	}
	for _, field := range [][2]string{{"resource", request.Database}, {"salt", request.Salt}, {keyExtraUserRoles, request.ExtraUserRoles}} {
		if err := checkText(field[0], field[1]); err != nil {
			return Request{}, err
		}
		if utf8.RuneCountInString(field[1]) > maxName {
			return Request{}, &BadData{field[0], fmt.Sprintf("is longer than %d characters", maxName)}
		}
	}
	return request, nil
}

// hashID is the identifier of a request that has none of its own.
func hashID(resource, salt string) string {
	sum := sha256.Sum256([]byte(resource + ":" + salt))
	return hex.EncodeToString(sum[:])[:16]
}

// wireResponse is one item of a v1 provider's `requests`; what is not given is null.
type wireResponse struct {
	Resource          string  `json:"resource"`
	ID                string  `json:"request-id"`
	Salt              string  `json:"salt"`
	Endpoints         *string `json:"endpoints"`
	ReadOnlyEndpoints *string `json:"read-only-endpoints"`
	SecretUser        *string `json:"secret-user"`
	SecretTLS         *string `json:"secret-tls"`
	SecretExtra       *string `json:"secret-extra"`
	SecretEntity      *string `json:"secret-entity"`
	Version           *string `json:"version"`
}

// bag returns the databag that has this response.
func (w wireResponse) bag() map[string]string {
	return map[string]string{keyVersion: version1, keyRequests: compact([]wireResponse{w})}
}

// compact is JSON of a value of this package's own types.
func compact(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic("internal error: a databag does not encode as JSON: " + err.Error())
	}
	return string(text)
}

// given returns the response that stands in a databag of ours, and whether there is one.
func given(own map[string]string) (wireResponse, bool) {
	if own[keyRequests] == "" {
		return wireResponse{}, false
	}
	var responses []wireResponse
	if json.Unmarshal([]byte(own[keyRequests]), &responses) != nil || len(responses) == 0 || responses[0].ID == "" {
		return wireResponse{}, false
	}
	return responses[0], true
}

// flat returns a response in the keys of v0.
func (w wireResponse) flat() map[string]string {
	bag := map[string]string{}
	for key, value := range map[string]*string{
		keyEndpoints: w.Endpoints, keyReadOnlyEndpoints: w.ReadOnlyEndpoints,
		keySecretUser: w.SecretUser, keySecretTLS: w.SecretTLS, keyVersion: w.Version,
	} {
		if value != nil && *value != "" {
			bag[key] = *value
		}
	}
	if len(bag) > 0 { // a response that was withdrawn gives no database either
		bag[keyDatabase] = w.Resource
	}
	return bag
}

// Given returns what a databag of ours gives to its client, in the keys of v0 whatever the version that it is written in.
func Given(own map[string]string) map[string]string {
	if response, ok := given(own); ok {
		return response.flat()
	}
	return own
}

// GivenID returns the identifier of the v1 request that a databag of ours answers, or answered before it was withdrawn;
// empty if it is written in v0.
func GivenID(own map[string]string) string {
	response, _ := given(own)
	return response.ID
}

// bagVersion1 is Bag for a v1 requirer. All credentials are in secrets, and `data` has the request without what is unset:
// a requirer that does not find its request there fails.
func (a Answer) bagVersion1() map[string]string {
	bag := WithdrawnBag(nil)
	response := wireResponse{
		Resource: a.Database, ID: a.Request.ID, Salt: a.Request.Salt,
		Endpoints: optional(joinEndpoints(a.Endpoints)), ReadOnlyEndpoints: optional(joinEndpoints(a.ReadOnlyEndpoints)),
		SecretUser: optional(a.SecretUser), SecretTLS: optional(a.SecretTLS), Version: optional(a.Version),
	}
	maps.Copy(bag, response.bag())
	bag[keyData] = compact(map[string]any{a.Request.ID: mirroredRequest{
		Resource: a.Request.Database, ID: a.Request.ID, Salt: a.Request.Salt, ExtraUserRoles: a.Request.ExtraUserRoles,
		ExternalNodeConnectivity: a.Request.ExternalNodeConnectivity,
	}})
	return bag
}

// mirroredRequest is a request as a v1 provider repeats it in `data`.
type mirroredRequest struct {
	Resource                 string `json:"resource"`
	ID                       string `json:"request-id"`
	Salt                     string `json:"salt,omitempty"`
	ExtraUserRoles           string `json:"extra-user-roles,omitempty"`
	ExternalNodeConnectivity bool   `json:"external-node-connectivity,omitempty"`
}

// optional is nil for the empty text.
func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
