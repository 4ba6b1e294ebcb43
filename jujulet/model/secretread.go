// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"context"
	"errors"
	"fmt"

	bolterrors "go.etcd.io/bbolt/errors"
)

// SecretRead is what secret-get asks for.
type SecretRead struct {
	ID    string `json:"id,omitempty"` // bare
	Label string `json:"label,omitempty"`
	// Refresh moves the unit's tracked revision to the latest, at once; Peek
	// returns the latest and moves nothing.
	Refresh bool `json:"refresh,omitempty"`
	Peek    bool `json:"peek,omitempty"`
}

// ReadSecret returns the content of a secret as the unit tracks it. The first
// read starts tracking the latest revision; ID with Label sets the unit's label.
func (m *Model) ReadSecret(_ context.Context, unit string, q SecretRead) (SecretValue, error) {
	var v SecretValue
	read := func(t *txn) (err error) {
		v, err = t.readSecret(unit, q)
		return err
	}
	// Most reads move no tracker and need no write.
	err := m.view(read)
	if errors.Is(err, bolterrors.ErrTxNotWritable) {
		err = m.update(read)
	}
	return v, err
}

func (t *txn) readSecret(unit string, q SecretRead) (SecretValue, error) {
	u, err := t.unit(unit)
	if err != nil {
		return SecretValue{}, err
	}
	s, err := t.findSecret(u, q)
	if KindOf(err) == NotFound {
		v, found, abroad := t.findAbroad(u, q)
		if abroad != nil {
			return SecretValue{}, abroad
		}
		if found != nil {
			return v.t.readFound(v.unit, found, q)
		}
	}
	if err != nil {
		return SecretValue{}, err
	}
	return t.readFound(u, s, q)
}

// readFound reads a secret as a unit that has found it.
func (t *txn) readFound(u *unitDoc, s *secretDoc, q SecretRead) (SecretValue, error) {
	if !s.mayRead(u) {
		return SecretValue{}, errf(Permission, "permission denied")
	}
	revision, err := t.track(u, s, q)
	if err != nil {
		return SecretValue{}, err
	}
	r, ok := s.Revisions[revision]
	if !ok {
		return SecretValue{}, errf(NotFound, "secret revision %d not found", revision)
	}
	return SecretValue{ID: s.ID, Revision: revision, Latest: s.Latest, Content: r.Content}, nil
}

// track moves the unit's tracker as asked, and returns the revision to read.
func (t *txn) track(u *unitDoc, s *secretDoc, q SecretRead) (int, error) {
	c, known := s.Consumers[u.Name]
	old := c
	if !known || q.Refresh {
		c.Revision = s.Latest
	}
	if q.ID != "" && q.Label != "" && q.Label != c.Label && !(s.owns(u) && q.Label == s.Label) {
		if err := t.checkConsumerLabel(u, s, q.Label); err != nil {
			return 0, err
		}
		c.Label = q.Label
	}
	if !known || c != old {
		if s.Consumers == nil {
			s.Consumers = map[string]consumerDoc{}
		}
		s.Consumers[u.Name] = c
		if err := t.putSecret(s); err != nil {
			return 0, err
		}
	}
	if q.Peek {
		return s.Latest, nil
	}
	return c.Revision, nil
}

func (t *txn) checkConsumerLabel(u *unitDoc, s *secretDoc, label string) error {
	if id := t.labelled(consumerLabel(u.Name, label)); id != "" && id != s.ID {
		return errf(Exists, "secret with label %q already exists", label)
	}
	return nil
}

// findSecret finds a secret by id, else by the owner's or the unit's label.
func (t *txn) findSecret(u *unitDoc, q SecretRead) (*secretDoc, error) {
	if q.ID != "" {
		return t.secret(q.ID)
	}
	for _, key := range []string{
		ownerLabel(u.App, q.Label), ownerLabel(u.Name, q.Label), consumerLabel(u.Name, q.Label),
	} {
		if id := t.labelled(key); id != "" {
			return t.secret(id)
		}
	}
	return nil, errf(NotFound, "secret with label %q not found", q.Label)
}

// ManagedSecrets returns what the unit may manage: its own secrets and, while it
// leads, those of its application, by id.
func (m *Model) ManagedSecrets(_ context.Context, unit string) ([]SecretMeta, error) {
	var out []SecretMeta
	err := m.viewUnit(unit, func(t *txn, u *unitDoc, a *appDoc) error {
		managed, err := t.managed(u, a)
		for _, s := range managed {
			out = append(out, t.secretInfo(s))
		}
		return err
	})
	return out, err
}

func (t *txn) secretInfo(s *secretDoc) SecretMeta {
	i := SecretMeta{
		ID: s.ID, Owner: s.OwnerKind, Label: s.Label, Description: s.Description, Rotate: s.Rotate, Latest: s.Latest,
	}
	if e := s.Revisions[s.Latest].Expire; !e.IsZero() {
		i.Expire = &e
	}
	if !s.NextRotate.IsZero() {
		next := s.NextRotate
		i.NextRotate = &next
	}
	for _, g := range s.Grants {
		i.Access = append(i.Access, SecretAccess{
			Target: g.Subject, Scope: t.relationScope(g.Relation), Role: "view",
		})
	}
	return i
}

func (t *txn) relationScope(id int) string {
	r, err := t.relation(id)
	if err != nil {
		return fmt.Sprintf("relation-%d", id)
	}
	return r.String()
}
