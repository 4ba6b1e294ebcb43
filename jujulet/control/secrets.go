// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package control

import (
	"context"
	"time"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// Secret is a secret as "juju show-secret" prints it, shown to whoever owns the machine.
type Secret struct {
	URI         string `json:"uri"`             // "secret:<id>"
	Label       string `json:"label,omitempty"` // of a charm's secret
	Name        string `json:"name,omitempty"`  // of a user secret
	Description string `json:"description,omitempty"`
	Owner       string `json:"owner"` // application or unit name, or "<model>"
	// OwnerKind is application, unit or model.
	OwnerKind string    `json:"owner-kind"`
	Revision  int       `json:"revision"` // the latest
	Rotation  string    `json:"rotation,omitempty"`
	Rotates   time.Time `json:"rotates"` // zero: never
	Expires   time.Time `json:"expires"` // of the latest revision; zero: never
	Created   time.Time `json:"created"`
	Updated   time.Time `json:"updated"`
	// Revisions are oldest first.
	Revisions []SecretRevision     `json:"revisions,omitempty"`
	Access    []model.SecretAccess `json:"access,omitempty"` // targets and scopes are tags
	// Checksum of the latest revision and Content are there only with reveal.
	Checksum string            `json:"checksum,omitempty"`
	Content  map[string]string `json:"content,omitempty"`
}

// SecretRevision is one revision of a [Secret].
type SecretRevision struct {
	Revision int       `json:"revision"`
	Created  time.Time `json:"created"`
	Expires  time.Time `json:"expires"` // zero: never
}

// SecretRequest names a secret to show: by URI, bare id, or name or label.
type SecretRequest struct {
	Ref      string `json:"ref"`
	Reveal   bool   `json:"reveal,omitempty"`
	Revision int    `json:"revision,omitempty"` // 0 is the latest
}

// UserSecretRequest makes a user secret (Ref "") or changes one. Empty fields are not changed.
type UserSecretRequest struct {
	Ref         string            `json:"ref,omitempty"`
	Name        string            `json:"name,omitempty"`
	Description string            `json:"description,omitempty"`
	Content     map[string]string `json:"content,omitempty"` // base64 values
	AutoPrune   *bool             `json:"auto-prune,omitempty"`
}

// GrantSecretRequest lets applications read a user secret, or no longer.
type GrantSecretRequest struct {
	Ref          string   `json:"ref"`
	Applications []string `json:"applications"`
	Revoke       bool     `json:"revoke,omitempty"`
}

// RemoveSecretRequest removes a user secret, or (Revision not 0) one revision of it.
type RemoveSecretRequest struct {
	Ref      string `json:"ref"`
	Revision int    `json:"revision,omitempty"`
}

// ShowSecret returns a secret by its URI, bare id, name or owner's label; reveal adds the content of the latest revision.
func (c *Client) ShowSecret(ctx context.Context, ref string, reveal bool) (Secret, error) {
	return c.SecretRevision(ctx, SecretRequest{Ref: ref, Reveal: reveal})
}

// SecretRevision is [Client.ShowSecret] for any revision.
func (c *Client) SecretRevision(ctx context.Context, r SecretRequest) (Secret, error) {
	var out Secret
	return out, c.call(ctx, "show-secret", r, &out)
}

// Secrets lists all secrets without content, by id.
func (c *Client) Secrets(ctx context.Context) ([]Secret, error) {
	var out []Secret
	return out, c.call(ctx, "secrets", nil, &out)
}

// AddSecret makes a user secret and returns its URI.
func (c *Client) AddSecret(ctx context.Context, r UserSecretRequest) (string, error) {
	var out string
	return out, c.call(ctx, "add-secret", r, &out)
}

// UpdateSecret changes a user secret.
func (c *Client) UpdateSecret(ctx context.Context, r UserSecretRequest) error {
	return c.call(ctx, "update-secret", r, nil)
}

// GrantSecret gives or takes the right to read a user secret.
func (c *Client) GrantSecret(ctx context.Context, r GrantSecretRequest) error {
	return c.call(ctx, "grant-secret", r, nil)
}

// RemoveSecret removes a user secret or one of its revisions.
func (c *Client) RemoveSecret(ctx context.Context, r RemoveSecretRequest) error {
	return c.call(ctx, "remove-secret", r, nil)
}
