// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// SecretView is a secret as `juju secrets` and `show-secret` print it.
type SecretView struct {
	ID          string               `json:"id"`
	OwnerKind   string               `json:"owner-kind"` // application, unit or model
	Owner       string               `json:"owner"`      // name of an application or unit, or "<model>"
	Label       string               `json:"label,omitempty"`
	Name        string               `json:"name,omitempty"` // of a user secret, instead of a label
	Description string               `json:"description,omitempty"`
	Rotate      string               `json:"rotate,omitempty"`
	NextRotate  time.Time            `json:"next-rotate"`
	Latest      int                  `json:"latest"`
	Created     time.Time            `json:"created"`
	Updated     time.Time            `json:"updated"`
	Revisions   []SecretRevisionView `json:"revisions"` // oldest first
	Access      []SecretAccess       `json:"access,omitempty"`
}

// SecretRevisionView is one revision of a [SecretView].
type SecretRevisionView struct {
	Revision int               `json:"revision"`
	Created  time.Time         `json:"created"`
	Expire   time.Time         `json:"expire"`
	Content  map[string]string `json:"content"` // base64 values
}

// Secrets lists all secrets of the model with their contents, by id. Reading here makes nobody an observer.
func (m *Model) Secrets() ([]SecretView, error) {
	var out []SecretView
	err := m.view(func(t *txn) error {
		return t.eachSecret(func(s *secretDoc) error {
			out = append(out, t.viewSecret(s))
			return nil
		})
	})
	return out, err
}

func (t *txn) viewSecret(s *secretDoc) SecretView {
	v := SecretView{
		ID: s.ID, OwnerKind: s.OwnerKind, Owner: s.Owner, Label: s.Label, Description: s.Description, Rotate: s.Rotate,
		NextRotate: s.NextRotate, Latest: s.Latest, Created: s.Created, Updated: s.Updated,
	}
	if s.OwnerKind == modelOwned {
		v.Name, v.Label = s.Label, ""
	}
	for _, r := range s.revisions() {
		doc := s.Revisions[r]
		v.Revisions = append(v.Revisions, SecretRevisionView{Revision: r, Created: doc.Created, Expire: doc.Expire, Content: doc.Content})
	}
	for _, g := range s.Grants {
		v.Access = append(v.Access, SecretAccess{Target: subjectTag(g.Subject), Scope: t.grantScope(g.Relation), Role: "view"})
	}
	slices.SortFunc(v.Access, func(a, b SecretAccess) int { return cmp.Compare(a.Target, b.Target) })
	return v
}

// revisions lists the numbers of a secret's revisions, oldest first.
func (s *secretDoc) revisions() []int {
	out := make([]int, 0, len(s.Revisions))
	for r := range s.Revisions {
		out = append(out, r)
	}
	slices.Sort(out)
	return out
}

// subjectTag is the tag of an application or unit that may read a secret.
func subjectTag(subject string) string {
	if strings.Contains(subject, "/") {
		return Tag(subject)
	}
	return "application-" + subject
}

// grantScope is the tag of what carries a grant: a relation, or the model.
func (t *txn) grantScope(relation int) string {
	if relation == noRelation {
		return "model-" + t.m.info.UUID
	}
	key := strings.ReplaceAll(t.relationScope(relation), ":", ".")
	return "relation-" + strings.Replace(key, " ", "#", 1)
}
