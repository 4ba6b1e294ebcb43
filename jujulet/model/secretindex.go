// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import "strings"

// putSecret stores a secret and wakes its owner and readers.
func (t *txn) putSecret(s *secretDoc) error {
	if err := t.unindex(s.ID); err != nil {
		return err
	}
	s.prune()
	t.wakeReaders(s)
	for _, k := range s.indexKeys() {
		if err := t.bucket(bucketIndex).Put([]byte(k), []byte(s.ID)); err != nil {
			return err
		}
	}
	return put(t, bucketSecrets, s.ID, s)
}

// deleteSecret removes a secret with its index.
func (t *txn) deleteSecret(id string) error {
	if err := t.unindex(id); err != nil {
		return err
	}
	return del(t, bucketSecrets, id)
}

func (t *txn) wakeReaders(s *secretDoc) {
	t.touch(s.App)
	for unit := range s.Consumers {
		app, _, _ := strings.Cut(unit, "/")
		t.touchReader(app)
	}
}

func ownerLabel(owner, label string) string   { return "o\x00" + owner + "\x00" + label }
func consumerLabel(unit, label string) string { return "c\x00" + unit + "\x00" + label }

func ownerKey(owner, id string) string { return "w\x00" + owner + "\x00" + id }
func readerKey(unit, id string) string { return "r\x00" + unit + "\x00" + id }

// indexKeys are the secret's keys in the index.
func (s *secretDoc) indexKeys() []string {
	out := []string{ownerKey(s.Owner, s.ID)}
	if s.Label != "" {
		out = append(out, ownerLabel(s.Owner, s.Label))
	}
	for unit, c := range s.Consumers {
		out = append(out, readerKey(unit, s.ID))
		if c.Label != "" {
			out = append(out, consumerLabel(unit, c.Label))
		}
	}
	return out
}

// unindex takes the stored form of a secret out of the index, and wakes its readers.
func (t *txn) unindex(id string) error {
	old, err := get[secretDoc](t, bucketSecrets, id)
	if err != nil || old == nil {
		return err
	}
	t.wakeReaders(old)
	for _, k := range old.indexKeys() {
		if err := del(t, bucketIndex, k); err != nil {
			return err
		}
	}
	return nil
}

// secretsBy lists the ids under ownerKey or readerKey without an id.
func (t *txn) secretsBy(prefix string) []string { return keys(t, bucketIndex, prefix) }

// labelled returns the id of the secret under an index key, "" if there is none.
func (t *txn) labelled(key string) string {
	return string(t.bucket(bucketIndex).Get([]byte(key)))
}
