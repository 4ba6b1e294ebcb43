// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"slices"
	"time"
)

// secretDoc is a secret as stored.
type secretDoc struct {
	ID          string                 `json:"id"`
	OwnerKind   string                 `json:"owner-kind"` // application, unit or model
	Owner       string                 `json:"owner"`
	App         string                 `json:"app"` // of the owner
	Label       string                 `json:"label,omitempty"`
	Description string                 `json:"description,omitempty"`
	Rotate      string                 `json:"rotate,omitempty"`
	NextRotate  time.Time              `json:"next-rotate"`
	Latest      int                    `json:"latest"`
	Revisions   map[int]revisionDoc    `json:"revisions"`
	Grants      []grantDoc             `json:"grants,omitempty"`
	Consumers   map[string]consumerDoc `json:"consumers,omitempty"` // by unit
	AutoPrune   bool                   `json:"auto-prune,omitempty"`
	Created     time.Time              `json:"created"`
	Updated     time.Time              `json:"updated"`
}

type revisionDoc struct {
	Content map[string]string `json:"content"` // base64 values
	Expire  time.Time         `json:"expire"`
	// Retry is when secret-expired fires next.
	Retry   time.Time `json:"retry"`
	Created time.Time `json:"created"`
}

type grantDoc struct {
	Subject  string `json:"subject"`  // application or unit
	Relation int    `json:"relation"` // noRelation for a user secret
}

type consumerDoc struct {
	Label    string `json:"label,omitempty"`
	Revision int    `json:"revision"`
}

// secretRetry is the pause before an expired or rotating secret asks again.
const secretRetry = 5 * time.Minute

func (t *txn) secret(id string) (*secretDoc, error) {
	s, err := get[secretDoc](t, bucketSecrets, id)
	if err == nil && s == nil {
		err = notFound("secret", id)
	}
	return s, err
}

func (t *txn) eachSecret(f func(s *secretDoc) error) error {
	return each(t, bucketSecrets, "", func(_ string, s *secretDoc) error { return f(s) })
}

// owns says whether the secret belongs to the unit or to its application.
func (s *secretDoc) owns(u *unitDoc) bool {
	return s.Owner == u.Name || s.Owner == u.App
}

// mayManage says whether the unit may change the secret: its own, or the
// application's while it leads.
func (t *txn) mayManage(s *secretDoc, u *unitDoc) (bool, error) {
	if s.Owner == u.Name {
		return true, nil
	}
	if s.Owner != u.App {
		return false, nil
	}
	a, err := t.app(u.App)
	if err != nil {
		return false, err
	}
	return a.leader(t.now) == u.Name, nil
}

// mayRead says whether the unit may read the secret.
func (s *secretDoc) mayRead(u *unitDoc) bool {
	if s.owns(u) {
		return true
	}
	return slices.ContainsFunc(s.Grants, func(g grantDoc) bool { return g.Subject == u.App || g.Subject == u.Name })
}

// obsolete lists the revisions that nobody tracks and that are not the latest.
func (s *secretDoc) obsolete() []int {
	used := map[int]bool{s.Latest: true}
	for _, c := range s.Consumers {
		used[c.Revision] = true
	}
	var out []int
	for r := range s.Revisions {
		if !used[r] {
			out = append(out, r)
		}
	}
	slices.Sort(out)
	return out
}

// secretSnapshot fills in what concerns the unit's secrets.
func (t *txn) secretSnapshot(snap *Snapshot, u *unitDoc, a *appDoc) error {
	for _, id := range t.secretsBy(readerKey(u.Name, "")) {
		s, err := t.secret(id)
		if err != nil {
			return err
		}
		if !s.mayRead(u) {
			continue
		}
		if snap.Secrets == nil {
			snap.Secrets = map[string]SecretSnapshot{}
		}
		label := s.Consumers[u.Name].Label
		if s.owns(u) && label == "" {
			label = s.Label
		}
		snap.Secrets[s.ID] = SecretSnapshot{Latest: s.Latest, Label: label}
	}
	if err := t.secretsAbroad(snap, u); err != nil {
		return err
	}
	managed, err := t.managed(u, a)
	if err != nil {
		return err
	}
	for _, s := range managed {
		t.ownerEvents(snap, s)
	}
	return nil
}

// managed returns the secrets that the unit may manage: its own and, while it
// leads, those of its application.
func (t *txn) managed(u *unitDoc, a *appDoc) ([]*secretDoc, error) {
	ids := t.secretsBy(ownerKey(u.Name, ""))
	if a.leader(t.now) == u.Name {
		ids = append(ids, t.secretsBy(ownerKey(u.App, ""))...)
	}
	out := make([]*secretDoc, 0, len(ids))
	for _, id := range ids {
		s, err := t.secret(id)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// ownerEvents fills in what the owner of a secret is told.
func (t *txn) ownerEvents(snap *Snapshot, s *secretDoc) {
	for _, r := range s.obsolete() {
		snap.Obsolete = append(snap.Obsolete, SecretRevision{ID: s.ID, Revision: r, Label: s.Label})
	}
	for _, r := range s.revisions() {
		due := s.Revisions[r].Retry
		switch {
		case due.IsZero():
		case due.After(t.now):
			snap.WakeAt = earlier(snap.WakeAt, due)
		default:
			snap.Expired = append(snap.Expired, SecretRevision{ID: s.ID, Revision: r, Label: s.Label})
		}
	}
	switch {
	case s.NextRotate.IsZero():
	case s.NextRotate.After(t.now):
		snap.WakeAt = earlier(snap.WakeAt, s.NextRotate)
	default:
		snap.Rotate = append(snap.Rotate, SecretRevision{ID: s.ID, Label: s.Label})
	}
}

// secretFired moves the next firing of secret-expired or secret-rotate away.
func (t *txn) secretFired(kind string, f SecretRevision) error {
	s, err := t.secret(f.ID)
	if KindOf(err) == NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	switch kind {
	case "secret-expired":
		r, ok := s.Revisions[f.Revision]
		if !ok {
			return nil
		}
		r.Retry = t.now.Add(secretRetry)
		s.Revisions[f.Revision] = r
	case "secret-rotate":
		if !s.NextRotate.IsZero() && !s.NextRotate.After(t.now) {
			s.NextRotate = t.now.Add(secretRetry)
		}
	}
	return t.putSecret(s)
}

// rotateNext is the next moment of a policy of secret-add --rotate; zero for none.
func rotateNext(policy string, from time.Time) time.Time {
	switch policy {
	case "hourly":
		return from.Add(time.Hour)
	case "daily":
		return from.AddDate(0, 0, 1)
	case "weekly":
		return from.AddDate(0, 0, 7)
	case "monthly":
		return from.AddDate(0, 1, 0)
	case "quarterly":
		return from.AddDate(0, 3, 0)
	case "yearly":
		return from.AddDate(1, 0, 0)
	}
	return time.Time{}
}

// dropGrants takes away the grants that match, in all secrets.
func (t *txn) dropGrants(match func(grantDoc) bool) error {
	var changed []*secretDoc
	err := t.eachSecret(func(s *secretDoc) error {
		n := len(s.Grants)
		s.Grants = slices.DeleteFunc(s.Grants, match)
		if len(s.Grants) != n {
			changed = append(changed, s)
		}
		return nil
	})
	for _, s := range changed {
		if err == nil {
			err = t.putSecret(s)
		}
	}
	return err
}

// dropUnitSecrets forgets a unit as owner and as reader.
func (t *txn) dropUnitSecrets(unit string) error {
	var changed []*secretDoc
	var gone []string
	err := t.eachSecret(func(s *secretDoc) error {
		if s.Owner == unit {
			gone = append(gone, s.ID)
		} else if _, ok := s.Consumers[unit]; ok {
			delete(s.Consumers, unit)
			changed = append(changed, s)
		}
		return nil
	})
	for _, s := range changed {
		if err == nil {
			err = t.putSecret(s)
		}
	}
	for _, id := range gone {
		if err == nil {
			err = t.deleteSecret(id)
		}
	}
	return err
}

func (t *txn) dropAppSecrets(app string) error {
	var gone []string
	err := t.eachSecret(func(s *secretDoc) error {
		if s.App == app {
			gone = append(gone, s.ID)
		}
		return nil
	})
	for _, id := range gone {
		if err == nil {
			err = t.deleteSecret(id)
		}
	}
	return err
}
