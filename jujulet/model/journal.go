// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"encoding/json"
	"fmt"
)

// journalLength bounds the journal; the oldest entries go.
const journalLength = 100000

// writeJournal adds an entry with the next number and the time of the commit.
func (t *txn) writeJournal(e *JournalEntry) error {
	b := t.bucket(bucketJournal)
	seq, err := b.NextSequence()
	if err != nil {
		return err
	}
	e.Seq, e.Time = seq, t.m.now()
	if seq > journalLength {
		if err := b.Delete([]byte(idKey(seq - journalLength))); err != nil {
			return err
		}
	}
	return put(t, bucketJournal, idKey(seq), e)
}

// Journal returns the commits with a sequence number above since, oldest first,
// at most limit (0 = all).
func (m *Model) Journal(since uint64, limit int) ([]JournalEntry, error) {
	var out []JournalEntry
	err := m.view(func(t *txn) error {
		c := t.bucket(bucketJournal).Cursor()
		for k, raw := c.Seek([]byte(idKey(since + 1))); k != nil; k, raw = c.Next() {
			var e JournalEntry
			if err := json.Unmarshal(raw, &e); err != nil {
				return fmt.Errorf("cannot read journal: %w", err)
			}
			out = append(out, e)
			if limit > 0 && len(out) == limit {
				break
			}
		}
		return nil
	})
	return out, err
}
