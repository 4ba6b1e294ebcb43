// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package controller

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// secretHandlers serves "juju"'s verbs about secrets. Whoever owns the machine sees them all: reading here makes no unit
// an observer.
func (c *modelWorker) secretHandlers(mux *http.ServeMux) {
	plain(c, mux, "show-secret", c.getSecret)
	plain(c, mux, "secrets", c.getSecrets)
	plain(c, mux, "add-secret", func(_ context.Context, r control.UserSecretRequest) (string, error) {
		id, err := c.model.AddUserSecret(userSecret(r))
		return "secret:" + id, err
	})
	plain(c, mux, "update-secret", func(_ context.Context, r control.UserSecretRequest) (none, error) {
		return none{}, c.model.UpdateUserSecret(r.Ref, userSecret(r))
	})
	plain(c, mux, "grant-secret", func(_ context.Context, r control.GrantSecretRequest) (none, error) {
		return none{}, c.model.GrantUserSecret(r.Ref, r.Applications, !r.Revoke)
	})
	plain(c, mux, "remove-secret", func(_ context.Context, r control.RemoveSecretRequest) (none, error) {
		return none{}, c.model.RemoveUserSecret(r.Ref, r.Revision)
	})
}

func userSecret(r control.UserSecretRequest) model.UserSecret {
	return model.UserSecret{Name: r.Name, Description: r.Description, Content: r.Content, AutoPrune: r.AutoPrune}
}

// getSecret returns one secret by URI, bare id, name or owner's label.
func (c *modelWorker) getSecret(_ context.Context, r control.SecretRequest) (control.Secret, error) {
	all, err := c.model.Secrets()
	if err != nil {
		return control.Secret{}, err
	}
	id := model.SecretID(r.Ref)
	i := slices.IndexFunc(all, func(s model.SecretView) bool {
		return id != "" && s.ID == id || id == "" && r.Ref != "" && (s.Name == r.Ref || s.Label == r.Ref)
	})
	if i < 0 {
		if id == "" {
			id = r.Ref
		}
		return control.Secret{}, notFound("secret %q not found", id)
	}
	view := viewSecret(all[i])
	revision := r.Revision
	if revision == 0 {
		revision = view.Revision
	}
	j := slices.IndexFunc(all[i].Revisions, func(v model.SecretRevisionView) bool { return v.Revision == revision })
	if j < 0 {
		return control.Secret{}, notFound("secret revision \"%s/%d\" not found", all[i].ID, revision)
	}
	if !r.Reveal {
		return view, nil
	}
	view.Content, err = decoded(all[i].Revisions[j].Content)
	latest := all[i].Revisions[len(all[i].Revisions)-1]
	view.Checksum = checksum(latest.Content)
	return view, err
}

// getSecrets lists all secrets without content.
func (c *modelWorker) getSecrets(context.Context, none) ([]control.Secret, error) {
	all, err := c.model.Secrets()
	if err != nil {
		return nil, err
	}
	views := make([]control.Secret, len(all))
	for i, s := range all {
		views[i] = viewSecret(s)
	}
	return views, nil
}

// viewSecret shows a secret without content.
func viewSecret(s model.SecretView) control.Secret {
	view := control.Secret{
		URI: "secret:" + s.ID, Label: s.Label, Name: s.Name, Description: s.Description, Owner: s.Owner, OwnerKind: s.OwnerKind,
		Revision: s.Latest, Rotation: s.Rotate, Rotates: s.NextRotate, Created: s.Created, Updated: s.Updated, Access: s.Access,
	}
	for _, r := range s.Revisions {
		view.Revisions = append(view.Revisions, control.SecretRevision{Revision: r.Revision, Created: r.Created, Expires: r.Expire})
		if r.Revision == s.Latest {
			view.Expires = r.Expire
		}
	}
	return view
}

func decoded(content map[string]string) (map[string]string, error) {
	out := map[string]string{}
	for key, value := range content {
		text, err := base64.StdEncoding.DecodeString(value)
		if err != nil {
			return nil, fmt.Errorf("cannot read key %q of the secret: %w", key, err)
		}
		out[key] = string(text)
	}
	return out, nil
}

// checksum is Juju 3.6's: SHA-256 of the JSON of the encoded values.
func checksum(content map[string]string) string {
	raw, err := json.Marshal(content)
	if err != nil {
		panic("internal error: " + err.Error()) // a map of strings
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}
