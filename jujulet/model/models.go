// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.etcd.io/bbolt"
)

// bucketModels holds a bucket for each model, by its name.
const bucketModels = "juju-models"

// Store is an open database with the models of one controller. Its methods may
// be called concurrently.
type Store struct {
	db      *bbolt.DB
	options Options

	changing sync.Mutex // one AddModel or RemoveModel at a time

	mu     sync.Mutex // never held while a transaction is waited for: those look models up
	models map[string]*Model
}

// OpenStore opens or makes the database file at path, mode 0600, with the models
// that are in it. Options are those of every model; the name does not count.
func OpenStore(path string, o Options) (*Store, error) {
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
	s := &Store{db: db, options: o, models: map[string]*Model{}}
	if err := db.Update(s.load); err != nil {
		db.Close()
		return nil, err
	}
	return s, nil
}

// load makes handles for the models that are stored.
func (s *Store) load(tx *bbolt.Tx) error {
	if tx.Bucket([]byte(bucketMeta)) != nil {
		return fmt.Errorf("cannot open model: an earlier version of jujulet made this state, with one model only; \"jujulet down --destroy\" removes it")
	}
	all, err := tx.CreateBucketIfNotExists([]byte(bucketModels))
	if err != nil {
		return fmt.Errorf("cannot make models: %w", err)
	}
	return all.ForEachBucket(func(name []byte) error {
		m := s.handle()
		for _, b := range buckets { // those of an earlier version are fewer
			if _, err := all.Bucket(name).CreateBucketIfNotExists([]byte(b)); err != nil {
				return fmt.Errorf("cannot open model: %w", err)
			}
		}
		if err := m.read(all.Bucket(name)); err != nil {
			return err
		}
		s.models[string(name)] = m
		return nil
	})
}

// handle makes a handle that knows no model yet.
func (s *Store) handle() *Model {
	return &Model{
		store: s, options: s.options, logs: newLogRing(s.options.LogLines),
		changes: map[string]*topic{}, base: rand.Uint64() >> 16, closed: make(chan struct{}),
	}
}

// read reads the model's document.
func (m *Model) read(root *bbolt.Bucket) error {
	d := &modelDoc{}
	if err := json.Unmarshal(root.Bucket([]byte(bucketMeta)).Get([]byte(modelKey)), d); err != nil {
		return fmt.Errorf("cannot read model: %w", err)
	}
	if d.Schema > schemaVersion {
		return fmt.Errorf("cannot open model: its schema %d is newer than %d", d.Schema, schemaVersion)
	}
	m.info = d.Info
	if text, ok := d.Config[keyLogging].(string); ok {
		m.levels, _ = parseLogging(text) // checked when it was set
	}
	return nil
}

// DB is the database, for those who keep their own buckets in it: the embedded
// cluster does. Bucket names of the models start with "juju-".
func (s *Store) DB() *bbolt.DB { return s.db }

// Models returns the models by name.
func (s *Store) Models() []*Model {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*Model, 0, len(s.models))
	for _, name := range sortedKeys(s.models) {
		out = append(out, s.models[name])
	}
	return out
}

// Model returns a model by its name.
func (s *Store) Model(name string) (*Model, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.models[name]; m != nil {
		return m, nil
	}
	return nil, notFound("model", name)
}

// modelName is what Juju takes for the name of a model; Kubernetes takes a
// namespace of 63 characters.
var modelName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// IsModelName says whether a model may have this name.
func IsModelName(name string) bool { return modelName.MatchString(name) }

// AddModel makes a model with a configuration.
func (s *Store) AddModel(name string, config map[string]string) (*Model, error) {
	if !IsModelName(name) {
		return nil, errf(Invalid, "%q is not a valid name: model names may only contain lowercase letters, digits and hyphens", name)
	}
	s.changing.Lock()
	defer s.changing.Unlock()
	if _, err := s.Model(name); err == nil {
		return nil, errf(Exists, "model %q already exists", name)
	}
	m := s.handle()
	o := s.options
	m.info = Info{
		Name: name, UUID: uuid.NewString(), Controller: o.Controller, CloudRegion: o.CloudRegion,
		Version: JujuVersion, Domain: o.Domain, KubernetesVersion: o.KubernetesVersion,
		APIAddresses: o.APIAddresses,
	}
	values, err := modelConfigValues(config)
	if err != nil {
		return nil, err
	}
	if text, ok := values[keyLogging].(string); ok {
		m.levels, _ = parseLogging(text)
	}
	raw, err := json.Marshal(modelDoc{Schema: schemaVersion, Info: m.info, Life: Alive, Created: m.now(), Config: values})
	if err != nil {
		return nil, fmt.Errorf("cannot make model: %w", err)
	}
	err = s.db.Update(func(tx *bbolt.Tx) error {
		root, err := tx.Bucket([]byte(bucketModels)).CreateBucket([]byte(name))
		if err != nil {
			return err
		}
		for _, b := range buckets {
			if _, err := root.CreateBucket([]byte(b)); err != nil {
				return err
			}
		}
		return root.Bucket([]byte(bucketMeta)).Put([]byte(modelKey), raw)
	})
	if err != nil {
		return nil, fmt.Errorf("cannot make model: %w", storeError(err))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.models[name] = m
	return m, nil
}

// RemoveModel forgets a model with all that is in it, and ends its watches.
func (s *Store) RemoveModel(name string) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	m, err := s.Model(name)
	if err != nil {
		return err
	}
	err = s.db.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte(bucketModels)).DeleteBucket([]byte(name))
	})
	if err != nil {
		return fmt.Errorf("cannot remove model: %w", storeError(err))
	}
	s.mu.Lock()
	delete(s.models, name)
	s.mu.Unlock()
	m.end()
	return nil
}

// Close ends every watch and closes the database. Later calls fail.
func (s *Store) Close() error {
	for _, m := range s.Models() {
		m.end()
	}
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("cannot close model: %w", err)
	}
	return nil
}

// end ends the watches of a model.
func (m *Model) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-m.closed:
	default:
		close(m.closed)
	}
}

// errRemoved is what calls on a model return after its removal.
var errRemoved = errors.New("cannot use model: it was removed")
