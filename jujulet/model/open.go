// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"
	"go.etcd.io/bbolt"
)

// schemaVersion numbers the form of the database; a newer one is refused.
const schemaVersion = 1

func (o Options) withDefaults(path string) Options {
	set := func(s *string, d string) {
		if *s == "" {
			*s = d
		}
	}
	set(&o.Name, "dev")
	set(&o.Controller, "jujulet")
	set(&o.CloudRegion, "jujulet/localhost")
	set(&o.CharmDir, filepath.Join(filepath.Dir(path), "charms"))
	set(&o.LogLevel, "INFO")
	set(&o.Domain, "cluster.local")
	set(&o.KubernetesVersion, "1.35.0")
	set(&o.APIAddresses, "10.1.0.1:17070")
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	if o.LogLines == 0 {
		o.LogLines = 10000
	}
	return o
}

// Open opens or makes the model in the database file at path, mode 0600. The
// names in Options count when the model is made; later they are those stored.
func Open(path string, o Options) (*Model, error) {
	o = o.withDefaults(path)
	if err := os.MkdirAll(o.CharmDir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot open model: %w", err)
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{
		Timeout: 5 * time.Second, NoSync: o.NoSync, FreelistType: bbolt.FreelistMapType,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot open model %q: %w", path, err)
	}
	m := &Model{
		db: db, options: o, logs: newLogRing(o.LogLines),
		changes: map[string]*topic{}, base: rand.Uint64() >> 16, closed: make(chan struct{}),
	}
	if err := m.init(); err != nil {
		db.Close()
		return nil, err
	}
	return m, nil
}

// init makes the buckets and the model's document, or reads it.
func (m *Model) init() error {
	return m.db.Update(func(tx *bbolt.Tx) error {
		for _, b := range buckets {
			if _, err := tx.CreateBucketIfNotExists([]byte(b)); err != nil {
				return fmt.Errorf("cannot make model: %w", err)
			}
		}
		raw := tx.Bucket([]byte(bucketMeta)).Get([]byte(modelKey))
		d := &modelDoc{}
		if raw != nil {
			if err := json.Unmarshal(raw, d); err != nil {
				return fmt.Errorf("cannot read model: %w", err)
			}
			if d.Schema > schemaVersion {
				return fmt.Errorf("cannot open model: its schema %d is newer than %d", d.Schema, schemaVersion)
			}
			m.info = d.Info
			return nil
		}
		o := m.options
		m.info = Info{
			Name: o.Name, UUID: uuid.NewString(), Controller: o.Controller, CloudRegion: o.CloudRegion,
			Version: JujuVersion, Domain: o.Domain, KubernetesVersion: o.KubernetesVersion,
			APIAddresses: o.APIAddresses,
		}
		*d = modelDoc{Schema: schemaVersion, Info: m.info, Created: m.now()}
		raw, err := json.Marshal(d)
		if err != nil {
			return fmt.Errorf("cannot make model: %w", err)
		}
		return tx.Bucket([]byte(bucketMeta)).Put([]byte(modelKey), raw)
	})
}

// Close ends every watch and closes the database. Later calls fail.
func (m *Model) Close() error {
	m.mu.Lock()
	select {
	case <-m.closed:
		m.mu.Unlock()
		return nil
	default:
		close(m.closed)
	}
	m.mu.Unlock()
	if err := m.db.Close(); err != nil {
		return fmt.Errorf("cannot close model: %w", err)
	}
	return nil
}
