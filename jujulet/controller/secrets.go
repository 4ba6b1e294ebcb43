// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package controller

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// secretRequest is control's request for a secret.
type secretRequest struct {
	Ref    string `json:"ref"`
	Reveal bool   `json:"reveal"`
}

// viewSecret shows a secret, with the content of its latest revision if reveal.
func viewSecret(s model.SecretView, reveal bool) (control.Secret, error) {
	view := control.Secret{URI: "secret:" + s.ID, Label: s.Label, Description: s.Description, Owner: s.Owner, Revision: s.Latest}
	if !reveal {
		return view, nil
	}
	view.Content = map[string]string{}
	for key, value := range s.Revisions[len(s.Revisions)-1].Content {
		text, err := base64.StdEncoding.DecodeString(value)
		if err != nil {
			return view, fmt.Errorf("cannot read key %q of secret %q: %w", key, s.ID, err)
		}
		view.Content[key] = string(text)
	}
	return view, nil
}

// getSecret returns one secret by URI, bare id or owner's label.
func (c *modelWorker) getSecret(_ context.Context, r secretRequest) (control.Secret, error) {
	all, err := c.model.Secrets()
	if err != nil {
		return control.Secret{}, err
	}
	// "secret:<id>" and "secret://<model>/<id>" name the same.
	id := strings.TrimPrefix(r.Ref, "secret:")
	id = id[strings.LastIndexByte(id, '/')+1:]
	i := slices.IndexFunc(all, func(s model.SecretView) bool { return s.ID == id })
	if i < 0 {
		i = slices.IndexFunc(all, func(s model.SecretView) bool { return s.Label != "" && s.Label == r.Ref })
	}
	if i < 0 {
		return control.Secret{}, notFound("secret %q not found", r.Ref)
	}
	return viewSecret(all[i], r.Reveal)
}

// getSecrets lists all secrets without content.
func (c *modelWorker) getSecrets(context.Context, none) ([]control.Secret, error) {
	all, err := c.model.Secrets()
	if err != nil {
		return nil, err
	}
	views := make([]control.Secret, len(all))
	for i, s := range all {
		if views[i], err = viewSecret(s, false); err != nil {
			return nil, err
		}
	}
	return views, nil
}
