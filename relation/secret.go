// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package relation

import (
	"fmt"
	"strconv"
	"strings"
)

// Secret groups of the protocol that are used here.
const (
	// GroupUser holds username and password.
	GroupUser = "user"
	// GroupTLS holds tls and tls-ca.
	GroupTLS = "tls"
)

// SecretLabel returns the protocol's own label of a relation's secret, `<endpoint>.<relation id>.<group>.secret`, as a
// reader attaches it or a provider without a backend of its own gives it.
func SecretLabel(endpoint string, relationID int, group string) string {
	return fmt.Sprintf("%s.%d.%s.secret", endpoint, relationID, group)
}

// ClientSecretLabel returns the label of a client's secret in drawbridge-k8s: by client and by backend relation, so that
// credentials made on one backend are never taken for those of the next. Labels are per viewer: no client sees it.
func ClientSecretLabel(clientID, backendID int, group string) string {
	return fmt.Sprintf("database.%d.backend.%d.%s.secret", clientID, backendID, group)
}

// ParseClientSecretLabel takes a label of ClientSecretLabel apart; ok is false for any other label.
func ParseClientSecretLabel(label string) (clientID, backendID int, group string, ok bool) {
	parts := strings.Split(label, ".")
	if len(parts) != 6 || parts[0] != "database" || parts[2] != "backend" || parts[5] != "secret" {
		return 0, 0, "", false
	}
	clientID, errClient := strconv.Atoi(parts[1])
	backendID, errBackend := strconv.Atoi(parts[3])
	if errClient != nil || errBackend != nil || label != ClientSecretLabel(clientID, backendID, parts[4]) {
		return 0, 0, "", false
	}
	return clientID, backendID, parts[4], true
}

// SecretID returns what identifies a secret in its URI: Juju writes both `secret:<id>` and `secret://<model>/<id>`.
func SecretID(uri string) string {
	uri = strings.TrimPrefix(strings.TrimSpace(uri), "secret:")
	if i := strings.LastIndexByte(uri, '/'); i >= 0 {
		uri = uri[i+1:]
	}
	return uri
}
