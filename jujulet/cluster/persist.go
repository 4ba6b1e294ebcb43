// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cluster

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"

	"go.etcd.io/bbolt"
)

// The buckets in the database.
var (
	bucketObjects  = []byte("cluster-objects")  // "<Kind>/<namespace>/<name>" -> JSON of the object
	bucketAccounts = []byte("cluster-accounts") // "<namespace>/<name>" -> JSON of the account
	bucketMeta     = []byte("cluster-meta")
	keyVersion     = []byte("version")
)

// versionBlock is how many versions are reserved on disk at a time, so that changes of objects that are
// not persisted cost no disk write, and no version is ever given twice.
const versionBlock = 1000

// disk writes through to bbolt. Only the holder of the store's lock uses it.
type disk struct {
	db *bbolt.DB
	// reserved is the last version that may be given out without telling the disk.
	reserved int64
}

// openDisk makes the buckets and tells the version to go on from.
func openDisk(db *bbolt.DB) (*disk, int64, error) {
	d := &disk{db: db}
	var version int64
	err := db.Update(func(tx *bbolt.Tx) error {
		for _, name := range [][]byte{bucketObjects, bucketAccounts, bucketMeta} {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		if v := tx.Bucket(bucketMeta).Get(keyVersion); len(v) == 8 {
			version = int64(binary.BigEndian.Uint64(v))
		}
		return nil
	})
	if err != nil {
		return nil, 0, fmt.Errorf("cannot open the cluster store: %w", err)
	}
	d.reserved = version
	return d, version, nil
}

// load gives every stored object to add.
func (d *disk) load(byKind map[Kind]*kind, add func(*kind, Object)) error {
	return d.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketObjects).ForEach(func(key, data []byte) error {
			name, _, _ := strings.Cut(string(key), "/")
			k := byKind[Kind(name)]
			if k == nil {
				return fmt.Errorf("cannot read stored object %q: unknown kind", key)
			}
			obj := k.empty()
			if err := json.Unmarshal(data, obj); err != nil {
				return fmt.Errorf("cannot read stored object %q: %w", key, err)
			}
			obj.GetObjectKind().SetGroupVersionKind(k.gvk)
			add(k, obj)
			return nil
		})
	})
}

// write makes one change durable before it is seen.
func (d *disk) write(k *kind, typ EventType, obj Object, version int64) error {
	if !k.persisted && version <= d.reserved {
		return nil
	}
	reserved := d.reserved
	if version > reserved {
		reserved = version + versionBlock
	}
	err := d.db.Update(func(tx *bbolt.Tx) error {
		var v [8]byte
		binary.BigEndian.PutUint64(v[:], uint64(reserved))
		if err := tx.Bucket(bucketMeta).Put(keyVersion, v[:]); err != nil {
			return err
		}
		if !k.persisted {
			return nil
		}
		key := []byte(string(k.Kind) + "/" + keyOf(obj))
		if typ == Deleted {
			return tx.Bucket(bucketObjects).Delete(key)
		}
		data, err := json.Marshal(obj)
		if err != nil {
			return err
		}
		return tx.Bucket(bucketObjects).Put(key, data)
	})
	if err == nil {
		d.reserved = reserved
	}
	return err
}

// saveAccount stores a, or removes the account when a is nil.
func (d *disk) saveAccount(key string, a *account) error {
	return d.db.Update(func(tx *bbolt.Tx) error {
		if a == nil {
			return tx.Bucket(bucketAccounts).Delete([]byte(key))
		}
		data, err := json.Marshal(a)
		if err != nil {
			return err
		}
		return tx.Bucket(bucketAccounts).Put([]byte(key), data)
	})
}

func (d *disk) loadAccounts(add func(*account)) error {
	return d.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketAccounts).ForEach(func(key, data []byte) error {
			a := &account{}
			if err := json.Unmarshal(data, a); err != nil {
				return fmt.Errorf("cannot read stored account %q: %w", key, err)
			}
			add(a)
			return nil
		})
	})
}
