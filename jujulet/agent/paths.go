// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/drawbridge-k8s/drawbridge/jujulet/hooktools"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// paths are Juju's folders of one unit.
type paths struct {
	base      string // /var/lib/juju/agents/unit-foo-0
	charm     string
	resources string
	tools     string
	socket    string
	mark      string // holds the hash of the charm on disk
}

func newPaths(root, unit string) paths {
	tag := model.Tag(unit)
	base := root + "/var/lib/juju/agents/" + tag
	return paths{
		base: base, charm: base + "/charm", resources: base + "/resources",
		tools: root + "/var/lib/juju/tools/" + tag, socket: base + "/agent.socket",
		mark: base + "/.juju-charm",
	}
}

// prepare makes the folders and the links of the hook tools.
func (p paths) prepare(program string) error {
	for _, dir := range []string{p.base, p.tools} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("cannot prepare agent: %w", err)
		}
	}
	if program == "-" {
		return nil
	}
	for _, name := range hooktools.Names() {
		link := filepath.Join(p.tools, name)
		if have, err := os.Readlink(link); err == nil && have == program {
			continue
		}
		os.Remove(link)
		if err := os.Symlink(program, link); err != nil {
			return fmt.Errorf("cannot link hook tool: %w", err)
		}
	}
	return nil
}

// deployed returns the hash of the charm on disk, "" if there is none, as in a
// fresh pod.
func (p paths) deployed() (string, error) {
	raw, err := os.ReadFile(p.mark)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("cannot read charm folder: %w", err)
	}
	return strings.TrimSpace(string(raw)), nil
}

// unpack puts the charm on disk. What a charm keeps beside its files stays:
// .unit-state.db. The mark comes last.
func (p paths) unpack(a *model.CharmArchive) error {
	next := p.base + "/charm.new"
	old := p.base + "/charm.old"
	for _, dir := range []string{next, old} {
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("cannot unpack charm: %w", err)
		}
	}
	if err := model.Unpack(a.Data, next); err != nil {
		return err
	}
	const db = "/.unit-state.db"
	if err := os.Rename(p.charm+db, next+db); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot unpack charm: %w", err)
	}
	if err := os.Rename(p.charm, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot unpack charm: %w", err)
	}
	if err := os.Rename(next, p.charm); err != nil {
		return fmt.Errorf("cannot unpack charm: %w", err)
	}
	if err := os.WriteFile(p.mark, []byte(a.Hash+"\n"), 0o644); err != nil {
		return fmt.Errorf("cannot unpack charm: %w", err)
	}
	return os.RemoveAll(old)
}
