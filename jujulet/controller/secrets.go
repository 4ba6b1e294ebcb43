// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package controller

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/bbolt"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
)

// secretsBucket is the model's bucket of secrets, by bare id. Whoever owns the
// machine may read it without being a unit: reading through the model would
// make a unit an observer of the secret.
var secretsBucket = []byte("juju-secrets")

// storedSecret is the part of a secret in the store that is shown.
type storedSecret struct {
	ID          string `json:"id"`
	Owner       string `json:"owner"`
	Label       string `json:"label"`
	Description string `json:"description"`
	Latest      int    `json:"latest"`
	Revisions   map[int]struct {
		Content map[string]string `json:"content"` // base64 values
	} `json:"revisions"`
}

// secretRequest is control's request for a secret.
type secretRequest struct {
	Ref    string `json:"ref"`
	Reveal bool   `json:"reveal"`
}

// storedSecrets reads all secrets, by id.
func (c *Controller) storedSecrets() ([]storedSecret, error) {
	var all []storedSecret
	err := c.model.DB().View(func(tx *bbolt.Tx) error {
		bucket := tx.Bucket(secretsBucket)
		if bucket == nil {
			return nil
		}
		return bucket.ForEach(func(id, data []byte) error {
			var s storedSecret
			if err := json.Unmarshal(data, &s); err != nil {
				return fmt.Errorf("cannot read secret %q: %w", id, err)
			}
			all = append(all, s)
			return nil
		})
	})
	return all, err
}

// view shows a secret, with the content of its latest revision if reveal.
func (s storedSecret) view(reveal bool) (control.Secret, error) {
	view := control.Secret{URI: "secret:" + s.ID, Label: s.Label, Description: s.Description, Owner: s.Owner, Revision: s.Latest}
	if !reveal {
		return view, nil
	}
	view.Content = map[string]string{}
	for key, value := range s.Revisions[s.Latest].Content {
		text, err := base64.StdEncoding.DecodeString(value)
		if err != nil {
			return view, fmt.Errorf("cannot read key %q of secret %q: %w", key, s.ID, err)
		}
		view.Content[key] = string(text)
	}
	return view, nil
}

// getSecret returns one secret by URI, bare id or owner's label.
func (c *Controller) getSecret(_ context.Context, r secretRequest) (control.Secret, error) {
	all, err := c.storedSecrets()
	if err != nil {
		return control.Secret{}, err
	}
	// "secret:<id>" and "secret://<model>/<id>" name the same.
	id := strings.TrimPrefix(r.Ref, "secret:")
	id = id[strings.LastIndexByte(id, '/')+1:]
	i := slices.IndexFunc(all, func(s storedSecret) bool { return s.ID == id })
	if i < 0 {
		i = slices.IndexFunc(all, func(s storedSecret) bool { return s.Label != "" && s.Label == r.Ref })
	}
	if i < 0 {
		return control.Secret{}, notFound("secret %q not found", r.Ref)
	}
	return all[i].view(r.Reveal)
}

// getSecrets lists all secrets without content.
func (c *Controller) getSecrets(context.Context, none) ([]control.Secret, error) {
	all, err := c.storedSecrets()
	if err != nil {
		return nil, err
	}
	views := make([]control.Secret, len(all))
	for i, s := range all {
		if views[i], err = s.view(false); err != nil {
			return nil, err
		}
	}
	return views, nil
}
