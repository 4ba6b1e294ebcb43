// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// keepArchive keeps the charm's archive, before any document names it.
func (m *Model) keepArchive(c *Charm) error {
	name := m.archivePath(c.Hash)
	if _, err := os.Stat(name); err == nil {
		return nil
	}
	if c.archive == nil {
		return fmt.Errorf("cannot keep charm %q: it has no content", c.Meta.Name)
	}
	return m.keep(name, c.archive)
}

// keep writes a file of the charm folder, durably.
func (m *Model) keep(name string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".new-")
	if err != nil {
		return fmt.Errorf("cannot keep charm: %w", err)
	}
	defer os.Remove(f.Name())
	_, err = f.Write(content)
	if err == nil && !m.options.NoSync {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return fmt.Errorf("cannot keep charm: %w", err)
	}
	return nil
}

// keepFiles reads the file resources that were given and keeps their content; it
// returns the hash of each.
func (m *Model) keepFiles(c *Charm, given map[string]string) (map[string]string, error) {
	out := map[string]string{}
	for _, name := range sortedKeys(given) {
		if c.Meta.Resources[name].Type != "file" {
			continue
		}
		raw, err := os.ReadFile(given[name])
		if err != nil {
			return nil, errf(Invalid, "resource %q: %v", name, err)
		}
		out[name] = sha256Hex(raw)
		if err := m.keep(m.resourcePath(out[name]), raw); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (m *Model) resourcePath(hash string) string {
	return filepath.Join(m.options.CharmDir, hash+".resource")
}

// Resource returns the content of a file resource of the unit's application.
func (m *Model) Resource(_ context.Context, unit, name string) ([]byte, error) {
	hash := ""
	err := m.viewUnit(unit, func(_ *txn, _ *unitDoc, a *appDoc) error {
		hash = a.Files[name]
		return nil
	})
	if err != nil {
		return nil, err
	}
	if hash == "" {
		return nil, notFound("resource", name)
	}
	raw, err := os.ReadFile(m.resourcePath(hash))
	if err != nil {
		return nil, fmt.Errorf("cannot read resource %q: %w", name, err)
	}
	return raw, nil
}

func (m *Model) archivePath(hash string) string {
	return filepath.Join(m.options.CharmDir, hash+".charm")
}

// Archive returns the repacked archive of a charm.
func (m *Model) Archive(hash string) ([]byte, error) {
	if strings.ContainsAny(hash, "/.") {
		return nil, errf(Invalid, "invalid charm hash %q", hash)
	}
	raw, err := os.ReadFile(m.archivePath(hash))
	if err != nil {
		return nil, fmt.Errorf("cannot read charm: %w", err)
	}
	return raw, nil
}
