// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// The buckets. Keys are names, or big-endian numbers for what has an order.
const (
	bucketMeta       = "juju-meta"
	bucketCharms     = "juju-charms"     // hash -> Charm
	bucketApps       = "juju-apps"       // name -> appDoc
	bucketUnits      = "juju-units"      // name -> unitDoc
	bucketAgents     = "juju-agents"     // unit -> UnitState
	bucketState      = "juju-state"      // unit -> map of state-set
	bucketRelations  = "juju-relations"  // id -> relationDoc
	bucketByApp      = "juju-by-app"     // app NUL id -> nothing
	bucketSettings   = "juju-settings"   // id owner -> version, map
	bucketSecrets    = "juju-secrets"    // id -> secretDoc
	bucketIndex      = "juju-secret-by"  // labels, readers and owners -> secret id
	bucketStorage    = "juju-storage"    // id -> storageDoc
	bucketActions    = "juju-actions"    // id -> Action
	bucketOperations = "juju-operations" // id -> Operation
	bucketPending    = "juju-pending"    // unit NUL id -> nothing: actions to run
	bucketJournal    = "juju-journal"    // seq -> JournalEntry
	bucketHistory    = "juju-history"    // entity NUL kind -> []StatusValue
	bucketOffers     = "juju-offers"     // name -> offerDoc
	bucketRemotes    = "juju-remotes"    // name -> remoteDoc
)

var buckets = []string{
	bucketMeta, bucketCharms, bucketApps, bucketUnits, bucketAgents, bucketState,
	bucketRelations, bucketByApp, bucketSettings, bucketSecrets, bucketIndex,
	bucketStorage, bucketActions, bucketOperations, bucketPending, bucketJournal, bucketHistory, bucketOffers, bucketRemotes,
}

// txn is one transaction, with the applications that it touches.
type txn struct {
	m       *Model
	tx      *bbolt.Tx
	root    *bbolt.Bucket // the model's
	now     time.Time
	touched map[string]bool
	all     map[string]*txn // those of the same transaction, by model
}

// begin begins the model's part of a transaction.
func (m *Model) begin(tx *bbolt.Tx) (*txn, error) {
	root, err := m.root(tx)
	if err != nil {
		return nil, err
	}
	t := &txn{m: m, tx: tx, root: root, now: m.now(), touched: map[string]bool{}}
	t.all = map[string]*txn{m.info.Name: t}
	return t, nil
}

// bucket returns one of the model's buckets.
func (t *txn) bucket(name string) *bbolt.Bucket { return t.root.Bucket([]byte(name)) }

// touch makes the agents of an application look again after the commit.
func (t *txn) touch(apps ...string) {
	for _, a := range apps {
		t.touched[a] = true
	}
}

// update runs f in a transaction and wakes the observers after its commit.
func (m *Model) update(f func(t *txn) error) error {
	var t *txn
	err := m.store.db.Update(func(tx *bbolt.Tx) (err error) {
		if t, err = m.begin(tx); err != nil {
			return err
		}
		return f(t)
	})
	if err != nil {
		return storeError(err)
	}
	for _, part := range t.all {
		if part == t || len(part.touched) > 0 {
			part.m.notify(part.touched)
		}
	}
	return nil
}

// view runs f on a consistent state.
func (m *Model) view(f func(t *txn) error) error {
	return storeError(m.store.db.View(func(tx *bbolt.Tx) error {
		t, err := m.begin(tx)
		if err != nil {
			return err
		}
		return f(t)
	}))
}

// root returns the model's own bucket. Another model may have its name by now.
func (m *Model) root(tx *bbolt.Tx) (*bbolt.Bucket, error) {
	root := tx.Bucket([]byte(bucketModels)).Bucket([]byte(m.info.Name))
	select {
	case <-m.closed:
		return nil, errRemoved
	default:
	}
	if root == nil {
		return nil, errRemoved
	}
	return root, nil
}

func storeError(err error) error {
	if err == bolterrors.ErrDatabaseNotOpen {
		return fmt.Errorf("cannot use model: it is closed")
	}
	return err
}

// get reads one document; nil if there is none.
func get[T any](t *txn, bucket, key string) (*T, error) {
	raw := t.bucket(bucket).Get([]byte(key))
	if raw == nil {
		return nil, nil
	}
	v := new(T)
	if err := json.Unmarshal(raw, v); err != nil {
		return nil, fmt.Errorf("cannot read %s %q: %w", bucket, key, err)
	}
	return v, nil
}

func put(t *txn, bucket, key string, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("cannot write %s %q: %w", bucket, key, err)
	}
	return t.bucket(bucket).Put([]byte(key), raw)
}

func del(t *txn, bucket, key string) error {
	return t.bucket(bucket).Delete([]byte(key))
}

// each reads the documents whose keys start with prefix, in key order.
func each[T any](t *txn, bucket, prefix string, f func(key string, v *T) error) error {
	c := t.bucket(bucket).Cursor()
	for k, raw := c.Seek([]byte(prefix)); k != nil && hasPrefix(k, prefix); k, raw = c.Next() {
		v := new(T)
		if err := json.Unmarshal(raw, v); err != nil {
			return fmt.Errorf("cannot read %s %q: %w", bucket, k, err)
		}
		if err := f(string(k), v); err != nil {
			return err
		}
	}
	return nil
}

// keys lists the keys that start with prefix, without it.
func keys(t *txn, bucket, prefix string) []string {
	var out []string
	c := t.bucket(bucket).Cursor()
	for k, _ := c.Seek([]byte(prefix)); k != nil && hasPrefix(k, prefix); k, _ = c.Next() {
		out = append(out, string(k[len(prefix):]))
	}
	return out
}

// delPrefix deletes every key that starts with prefix.
func delPrefix(t *txn, bucket, prefix string) error {
	for _, k := range keys(t, bucket, prefix) {
		if err := del(t, bucket, prefix+k); err != nil {
			return err
		}
	}
	return nil
}

func hasPrefix(k []byte, prefix string) bool {
	return len(k) >= len(prefix) && string(k[:len(prefix)]) == prefix
}

// idKey is the key of a number: big-endian, so that keys have its order.
func idKey(id uint64) string {
	return string(binary.BigEndian.AppendUint64(nil, id))
}

func keyID(key string) uint64 {
	if len(key) < 8 {
		return 0
	}
	return binary.BigEndian.Uint64([]byte(key))
}

// modelDoc is the model's own document.
type modelDoc struct {
	Schema  int       `json:"schema"`
	Info    Info      `json:"info"`
	Life    Life      `json:"life"`
	Created time.Time `json:"created"`
	// Config is what users have set of the model's configuration.
	Config map[string]any `json:"config,omitempty"`
	// Destroy says how a dying model goes.
	Destroy       DestroyModelArgs `json:"destroy,omitzero"`
	NextRelation  int              `json:"next-relation"`
	NextOperation int              `json:"next-operation"`
	NextFire      uint64           `json:"next-fire"`
	NextStorage   int              `json:"next-storage,omitempty"`
	// CharmRevs are the revisions of the next local charms, by name.
	CharmRevs map[string]int `json:"charm-revs,omitempty"`
}

const modelKey = "model"

// model reads the model's document.
func (t *txn) model() (*modelDoc, error) {
	d, err := get[modelDoc](t, bucketMeta, modelKey)
	if err == nil && d == nil {
		err = fmt.Errorf("internal error: no model document")
	}
	return d, err
}

func (t *txn) putModel(d *modelDoc) error { return put(t, bucketMeta, modelKey, d) }
