// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/rs/xid"
)

// User secrets are the model's own: `juju add-secret` makes them, and charms read those that were granted to them. Juju
// 3.6: they have a name for the operator, no label for charms, and never expire or rotate.
const (
	modelOwned = "model"
	// modelOwner is the owner as Juju shows it; no application or unit can have the name.
	modelOwner = "<model>"
	// noRelation is the relation of a grant that no relation carries.
	noRelation = -1
)

// UserSecret is what `juju add-secret` and `update-secret` say of a secret. Nil and empty fields are not changed.
type UserSecret struct {
	Name        string
	Description string
	Content     map[string]string // base64 values
	// AutoPrune removes revisions once nobody tracks them.
	AutoPrune *bool
}

// secretReference is what Juju takes for a secret's URI rather than its name: a bare id, "secret:<id>" or
// "secret://<model>/<id>".
var secretReference = regexp.MustCompile(`^(?:secret:(?:/{0,2}[0-9a-f-]{36}/)?)?([0-9a-v]{20})$`)

// SecretID returns the bare id in a secret's URI, "" if it is none.
func SecretID(ref string) string {
	match := secretReference.FindStringSubmatch(ref)
	if match == nil {
		return ""
	}
	return match[1]
}

// AddUserSecret makes a secret of the model and returns its bare id.
func (m *Model) AddUserSecret(u UserSecret) (string, error) {
	id := xid.New().String()
	if len(u.Content) == 0 {
		return "", errf(Invalid, "empty secret value not valid")
	}
	err := m.update(func(t *txn) error {
		s := &secretDoc{
			ID: id, OwnerKind: modelOwned, Owner: modelOwner, Latest: 1, Created: t.now, Updated: t.now,
			Revisions: map[int]revisionDoc{1: {Content: u.Content, Created: t.now}}, Consumers: map[string]consumerDoc{},
			Description: u.Description,
		}
		if err := t.nameSecret(s, u.Name); err != nil {
			return err
		}
		return t.putSecret(s)
	})
	return id, err
}

// nameSecret names a user secret; names are unique in the model.
func (t *txn) nameSecret(s *secretDoc, name string) error {
	if id := t.labelled(ownerLabel(modelOwner, name)); name != "" && id != "" && id != s.ID {
		return errf(Exists, "secret with name %q already exists", name)
	}
	s.Label = name
	return nil
}

// UpdateUserSecret changes a secret of the model, named by URI or name. Content that is the same makes no revision.
func (m *Model) UpdateUserSecret(ref string, u UserSecret) error {
	if u.Name == "" && u.Description == "" && len(u.Content) == 0 && u.AutoPrune == nil {
		return errf(Invalid, "at least one attribute to update must be specified")
	}
	return m.update(func(t *txn) error {
		s, err := t.userSecret(ref)
		if err != nil {
			return err
		}
		if u.Name != "" {
			if err := t.nameSecret(s, u.Name); err != nil {
				return err
			}
		}
		if u.Description != "" {
			s.Description = u.Description
		}
		if u.AutoPrune != nil {
			s.AutoPrune = *u.AutoPrune
		}
		s.Updated = t.now
		if len(u.Content) > 0 && !maps.Equal(u.Content, s.Revisions[s.Latest].Content) {
			s.Latest++
			s.Revisions[s.Latest] = revisionDoc{Content: u.Content, Created: t.now}
		}
		return t.putSecret(s)
	})
}

// userSecret finds a secret of the model by URI or name.
func (t *txn) userSecret(ref string) (*secretDoc, error) {
	id := SecretID(ref)
	if id == "" {
		if id = t.labelled(ownerLabel(modelOwner, ref)); id == "" {
			return nil, notFound("secret", ref)
		}
	}
	s, err := t.secret(id)
	if err == nil && s.OwnerKind != modelOwned {
		return nil, errf(Permission, "permission denied")
	}
	return s, err
}

// GrantUserSecret lets applications read a secret of the model, or no longer. Juju 3.6: each application is tried, and
// what failed is one error.
func (m *Model) GrantUserSecret(ref string, apps []string, grant bool) error {
	return m.update(func(t *txn) error {
		s, err := t.userSecret(ref)
		if err != nil {
			return err
		}
		var failed []string
		for _, app := range apps {
			s.Grants = slices.DeleteFunc(s.Grants, func(g grantDoc) bool { return g.Subject == app })
			t.touch(app)
			if !grant {
				continue
			}
			if why := t.mayBeGranted(app); why != "" {
				failed = append(failed, fmt.Sprintf("cannot change access to \"secret:%s\" for %q: %s", s.ID, app, why))
				continue
			}
			s.Grants = append(s.Grants, grantDoc{Subject: app, Relation: noRelation})
		}
		if len(failed) > 0 {
			return errf(Invalid, "failed to grant/revoke secret: %s", strings.Join(failed, ", "))
		}
		return t.putSecret(s)
	})
}

// mayBeGranted says why an application cannot be granted a secret.
func (t *txn) mayBeGranted(app string) string {
	a, err := t.app(app)
	switch {
	case err != nil:
		return "invalid subject reference: " + err.Error()
	case a.Life != Alive:
		return fmt.Sprintf("cannot grant dying \"application-%s\" access to secret", app)
	}
	return ""
}

// RemoveUserSecret removes a secret of the model, or (revision not 0) one revision of it.
func (m *Model) RemoveUserSecret(ref string, revision int) error {
	return m.update(func(t *txn) error {
		s, err := t.userSecret(ref)
		if err != nil {
			return err
		}
		return t.secretRemove(s, revision)
	})
}

// prune removes the revisions of a user secret that nobody tracks, if the operator wants that.
func (s *secretDoc) prune() {
	if s.OwnerKind != modelOwned || !s.AutoPrune {
		return
	}
	for _, r := range s.obsolete() {
		delete(s.Revisions, r)
	}
}
