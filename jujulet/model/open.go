// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"io"
	"log/slog"
	"path/filepath"
	"time"
)

// schemaVersion numbers the form of the database; a newer one is refused.
const schemaVersion = 2

func (o Options) withDefaults(path string) Options {
	set := func(s *string, d string) {
		if *s == "" {
			*s = d
		}
	}
	set(&o.Name, "dev")
	set(&o.Controller, "jujulet")
	set(&o.CloudRegion, DefaultCloudRegion)
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

// Open opens or makes the database file at path, and in it the model that Options
// name: for those who need no more than one. Closing the model closes the file.
func Open(path string, o Options) (*Model, error) {
	s, err := OpenStore(path, o)
	if err != nil {
		return nil, err
	}
	m, err := s.Model(s.options.Name)
	if err != nil {
		m, err = s.AddModel(s.options.Name, nil)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return m, nil
}

// Close closes the model's store, with all models in it. Later calls fail.
func (m *Model) Close() error { return m.store.Close() }
