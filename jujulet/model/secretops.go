// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"maps"
	"slices"
	"strings"
)

// secretOp applies one buffered secret operation of a unit.
func (t *txn) secretOp(u *unitDoc, op SecretOp) error {
	if op.Op == "add" {
		return t.secretAdd(u, op)
	}
	s, err := t.secret(op.ID)
	if KindOf(err) == NotFound && op.Op == "track" {
		v, found, abroad := t.findAbroad(u, SecretRead{ID: op.ID})
		if abroad != nil || found != nil {
			if abroad == nil {
				abroad = v.t.trackLatest(v.unit, found)
			}
			return abroad
		}
	}
	if err != nil {
		return err
	}
	if op.Op == "track" {
		return t.trackLatest(u, s)
	}
	ok, err := t.mayManage(s, u)
	if err != nil {
		return err
	}
	if !ok {
		return errf(Permission, "permission denied")
	}
	switch op.Op {
	case "set":
		return t.secretSet(s, op)
	case "remove":
		return t.secretRemove(s, op.Revision)
	case "grant":
		return t.secretGrant(u, s, op)
	case "revoke":
		return t.secretRevoke(s, op)
	}
	return errf(Invalid, "internal error: unknown secret operation %q", op.Op)
}

// trackLatest moves a unit that reads a secret to the latest revision.
func (t *txn) trackLatest(u *unitDoc, s *secretDoc) error {
	c, ok := s.Consumers[u.Name]
	if !ok {
		return nil
	}
	c.Revision = s.Latest
	s.Consumers[u.Name] = c
	return t.putSecret(s)
}

func (t *txn) secretAdd(u *unitDoc, op SecretOp) error {
	s := &secretDoc{
		ID: op.ID, OwnerKind: "application", Owner: u.App, App: u.App, Latest: 1,
		Revisions: map[int]revisionDoc{}, Consumers: map[string]consumerDoc{}, Created: t.now, Updated: t.now,
	}
	if op.Owner == "unit" {
		s.OwnerKind, s.Owner = "unit", u.Name
	} else if err := t.checkLeader(u); err != nil {
		return err
	}
	if old, err := get[secretDoc](t, bucketSecrets, op.ID); err != nil || old != nil {
		if err != nil {
			return err
		}
		return errf(Exists, "secret %q already exists", op.ID)
	}
	r := revisionDoc{Content: op.Content, Created: t.now}
	if op.Expire != nil {
		r.Expire, r.Retry = *op.Expire, *op.Expire
	}
	s.Revisions[1] = r
	if err := t.secretMeta(s, op); err != nil {
		return err
	}
	return t.putSecret(s)
}

// secretMeta applies label, description and rotation.
func (t *txn) secretMeta(s *secretDoc, op SecretOp) error {
	if op.Label != nil && *op.Label != s.Label {
		if err := t.checkLabel(s, *op.Label); err != nil {
			return err
		}
		s.Label = *op.Label
	}
	if op.Description != nil {
		s.Description = *op.Description
	}
	if op.Rotate != nil && *op.Rotate != s.Rotate {
		s.Rotate = *op.Rotate
		s.NextRotate = rotateNext(s.Rotate, t.now)
	}
	return nil
}

// checkLabel keeps labels unique for each owner.
func (t *txn) checkLabel(s *secretDoc, label string) error {
	if label == "" {
		return nil
	}
	if id := t.labelled(ownerLabel(s.Owner, label)); id != "" && id != s.ID {
		return errf(Exists, "secret with label %q already exists", label)
	}
	return nil
}

func (t *txn) secretSet(s *secretDoc, op SecretOp) error {
	if err := t.secretMeta(s, op); err != nil {
		return err
	}
	s.Updated = t.now
	if len(op.Content) > 0 && !maps.Equal(op.Content, s.Revisions[s.Latest].Content) {
		s.Latest++
		s.Revisions[s.Latest] = revisionDoc{Content: op.Content, Created: t.now}
		if s.Rotate != "" {
			s.NextRotate = rotateNext(s.Rotate, t.now)
		}
	}
	if op.Expire != nil {
		r := s.Revisions[s.Latest]
		r.Expire, r.Retry = *op.Expire, *op.Expire
		s.Revisions[s.Latest] = r
	}
	return t.putSecret(s)
}

// secretRemove removes one revision, or (0) the whole secret; so does removing
// the last revision.
func (t *txn) secretRemove(s *secretDoc, revision int) error {
	if revision != 0 {
		if _, ok := s.Revisions[revision]; !ok {
			return errf(NotFound, "secret revision %d not found", revision)
		}
		delete(s.Revisions, revision)
		if len(s.Revisions) > 0 {
			if revision == s.Latest {
				s.Latest = slices.Max(slices.Collect(maps.Keys(s.Revisions)))
			}
			return t.putSecret(s)
		}
	}
	return t.deleteSecret(s.ID)
}

func (t *txn) secretGrant(u *unitDoc, s *secretDoc, op SecretOp) error {
	if op.Relation == nil {
		return errf(Invalid, "missing relation id")
	}
	r, err := t.relation(*op.Relation)
	if err != nil {
		return err
	}
	if _, ok := r.end(u.App); !ok {
		return errf(Permission, "permission denied")
	}
	if r.Life != Alive {
		return errf(Invalid, "cannot grant access to secret in scope of relation %q which is not alive", r)
	}
	subject := op.Subject
	if subject == "" {
		subject = r.remote(u.App).App
	}
	app, _, isUnit := strings.Cut(subject, "/")
	if app != r.remote(u.App).App {
		return errf(Permission, "permission denied")
	}
	if err := t.checkGrantAbroad(r, isUnit); err != nil {
		return err
	}
	for _, g := range s.Grants {
		if g.Subject == subject {
			return nil
		}
		other, _, _ := strings.Cut(g.Subject, "/")
		if !isUnit && other == subject && g.Relation == r.ID {
			return errf(Invalid, "cannot grant access to secret: unit %q already has access", g.Subject)
		}
	}
	s.Grants = append(s.Grants, grantDoc{Subject: subject, Relation: r.ID})
	return t.putSecret(s)
}

func (t *txn) secretRevoke(s *secretDoc, op SecretOp) error {
	s.Grants = slices.DeleteFunc(s.Grants, func(g grantDoc) bool {
		if op.Relation != nil && g.Relation != *op.Relation {
			return false
		}
		return op.Subject == "" || g.Subject == op.Subject
	})
	return t.putSecret(s)
}
