// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package relation

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds on what another application may make us read. They are far above anything a real charm writes.
const (
	maxBag       = 256 << 10 // bytes of one databag, keys and values
	maxValue     = 64 << 10  // bytes of one value that we use
	maxName      = 64        // characters of a database name (MySQL's own limit)
	maxListItems = 64        // fields in requested-secrets, endpoints in a list
)

// BadData says that a databag of the other side cannot be used, and why.
type BadData struct {
	// Key is the key at fault; empty when it is the databag as a whole.
	Key string
	// Problem completes "<key> ...": "is not a JSON list of strings".
	Problem string
}

// Error names the key and the problem. It repeats no value that may be secret; what it quotes is clipped and escaped.
func (e *BadData) Error() string {
	if e.Key == "" {
		return "its databag " + e.Problem
	}
	return e.Key + " " + e.Problem
}

// ParseRequest reads the request out of a requirer's application databag, in v1 where `version` says so, else in v0. A databag without a request gives the zero
// Request and no error; one that cannot be served gives a *BadData.
func ParseRequest(bag map[string]string) (Request, error) {
	if err := checkBag(bag); err != nil {
		return Request{}, err
	}
	if bag[keyVersion] == version1 {
		return parseVersion1(bag)
	}
	if bag[keyVersion] != "" && bag[keyDatabase] == "" {
		return Request{}, &BadData{keyVersion, fmt.Sprintf("is %q: versions 0 and 1 of data_interfaces are spoken here",
			clip(bag[keyVersion]))}
	}
	if bag[keyDatabase] == "" {
		return Request{}, nil
	}
	request := Request{
		Database:                 bag[keyDatabase],
		ExtraUserRoles:           bag[keyExtraUserRoles],
		ExternalNodeConnectivity: strings.EqualFold(bag[keyExternalNodeConnectivity], "true"),
	}
	if err := checkText(keyDatabase, request.Database); err != nil {
		return Request{}, err
	}
	if utf8.RuneCountInString(request.Database) > maxName {
		return Request{}, &BadData{keyDatabase, fmt.Sprintf("is longer than %d characters", maxName)}
	}
	if err := checkText(keyExtraUserRoles, request.ExtraUserRoles); err != nil {
		return Request{}, err
	}
	for _, key := range []string{keyEntityType, keyExtraGroupRoles, keyEntityPermissions, "requested-entity-secret",
		"prefix-matching"} {
		if bag[key] != "" {
			return Request{}, &BadData{key, "is not supported"}
		}
	}
	secrets, err := parseList(keyRequestedSecrets, bag[keyRequestedSecrets])
	if err != nil {
		return Request{}, err
	}
	request.RequestedSecrets = secrets
	return request, nil
}

// ParseBackend reads a provider's application databag. Extra keys are ignored, whatever they hold, so that an answer by
// a later version of the protocol to a v0 request is readable too.
func ParseBackend(bag map[string]string) (Backend, error) {
	if err := checkBag(bag); err != nil {
		return Backend{}, err
	}
	backend := Backend{
		Database: bag[keyDatabase], SecretUser: bag[keySecretUser], SecretTLS: bag[keySecretTLS],
		Username: bag[fieldUsername], Password: bag[fieldPassword], TLSCA: bag[fieldTLSCA], Version: bag[keyVersion],
	}
	backend.setTLS(bag[fieldTLS])
	for _, key := range []string{keyDatabase, keySecretUser, keySecretTLS, fieldUsername, fieldPassword, keyVersion} {
		if err := checkText(key, bag[key]); err != nil {
			return Backend{}, err
		}
	}
	var err error
	if backend.Endpoints, err = parseEndpoints(keyEndpoints, bag[keyEndpoints]); err != nil {
		return Backend{}, err
	}
	if backend.ReadOnlyEndpoints, err = parseEndpoints(keyReadOnlyEndpoints, bag[keyReadOnlyEndpoints]); err != nil {
		return Backend{}, err
	}
	return backend, nil
}

// setTLS takes the `tls` value in any spelling seen in the field.
func (b *Backend) setTLS(text string) {
	b.TLSText = text
	switch strings.ToLower(text) {
	case "true", "enabled":
		b.TLS = true
	default:
		b.TLS = false
	}
}

// parseEndpoints splits a comma-separated list of endpoints; empty items are dropped.
func parseEndpoints(key, text string) ([]string, error) {
	if err := checkText(key, text); err != nil {
		return nil, err
	}
	var endpoints []string
	for item := range strings.SplitSeq(text, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		if strings.ContainsAny(item, " /@?#\"'\\") {
			return nil, &BadData{key, "is not a list of host:port"}
		}
		endpoints = append(endpoints, item)
	}
	if len(endpoints) > maxListItems {
		return nil, &BadData{key, fmt.Sprintf("has more than %d entries", maxListItems)}
	}
	return endpoints, nil
}

// parseList reads a JSON list of strings; an empty text is an empty list.
func parseList(key, text string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	if len(text) > maxValue {
		return nil, &BadData{key, "is too long"}
	}
	var items []string
	if err := json.Unmarshal([]byte(text), &items); err != nil {
		return nil, &BadData{key, "is not a JSON list of strings"}
	}
	if len(items) > maxListItems {
		return nil, &BadData{key, fmt.Sprintf("has more than %d entries", maxListItems)}
	}
	return items, nil
}

// checkBag bounds a databag as a whole.
func checkBag(bag map[string]string) error {
	total := 0
	for key, value := range bag {
		total += len(key) + len(value)
	}
	if total > maxBag {
		return &BadData{"", fmt.Sprintf("is larger than %d KiB", maxBag>>10)}
	}
	return nil
}

// checkText refuses text that is too long, not UTF-8, or holds control characters.
func checkText(key, text string) error {
	switch {
	case len(text) > maxValue:
		return &BadData{key, "is too long"}
	case !utf8.ValidString(text):
		return &BadData{key, "is not UTF-8 text"}
	case strings.ContainsFunc(text, unicode.IsControl):
		return &BadData{key, "has control characters"}
	}
	return nil
}

// clip shortens text of the other side for a message.
func clip(text string) string {
	const most = 32
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most]) + "..."
}
