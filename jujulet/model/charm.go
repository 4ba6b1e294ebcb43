// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"regexp"
	"strconv"
	"strings"
)

var (
	validName      = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]*[a-z][a-z0-9]*)*$`)
	validEndpoint  = regexp.MustCompile(`^[a-z][a-z0-9]*(?:[_-][a-z0-9]+)*$`)
	validAction    = regexp.MustCompile(`^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$`)
	validContainer = regexp.MustCompile(`^[a-z](?:[a-z0-9-]*[a-z0-9])?$`)
)

// ReadCharm reads, validates and repacks a charm: a .charm zip, or a folder with
// the same content. What Juju 3.6 refuses is refused in its words.
func ReadCharm(name string) (*Charm, error) {
	files, err := loadCharmFiles(name)
	if err != nil {
		return nil, err
	}
	if err := checkCharmFiles(files); err != nil {
		return nil, err
	}
	c, err := parseCharm(files)
	if err != nil {
		return nil, err
	}
	if !hasHandler(files) {
		return nil, errf(Invalid, "invalid charm %q: has no hooks nor dispatch file", c.Meta.Name)
	}
	if c.archive, err = repack(files); err != nil {
		return nil, err
	}
	c.Hash, c.Size = sha256Hex(c.archive), int64(len(c.archive))
	return c, nil
}

func hasHandler(files []charmFile) bool {
	for _, f := range files {
		if strings.HasPrefix(f.name, "hooks/") || strings.Contains(f.name, "dispatch") {
			return true
		}
	}
	return false
}

func parseCharm(files []charmFile) (*Charm, error) {
	content := map[string][]byte{}
	for _, f := range files {
		if f.mode.IsRegular() {
			content[f.name] = f.data
		}
	}
	raw, ok := content["metadata.yaml"]
	if !ok {
		return nil, errf(Invalid, "invalid charm: archive file \"metadata.yaml\" not found")
	}
	c := &Charm{}
	var err error
	if c.Meta, err = parseMeta(raw); err != nil {
		return nil, err
	}
	if raw, ok := content["manifest.yaml"]; ok {
		if c.Bases, err = parseManifest(raw); err != nil {
			return nil, err
		}
	}
	if err := checkFormat(c); err != nil {
		return nil, err
	}
	if raw, ok := content["config.yaml"]; ok {
		if c.Config, err = parseConfig(raw); err != nil {
			return nil, err
		}
	}
	if raw, ok := content["actions.yaml"]; ok {
		if c.Actions, err = parseActions(raw); err != nil {
			return nil, err
		}
	}
	// Juju 3.6: what is not a number is no revision.
	c.Revision, _ = strconv.Atoi(strings.TrimSpace(string(content["revision"])))
	c.Revision = max(c.Revision, 0)
	return c, nil
}

// checkFormat applies the rules that need metadata and manifest together.
func checkFormat(c *Charm) error {
	if len(c.Bases) > 0 {
		return nil
	}
	switch {
	case len(c.Meta.Containers) > 0:
		return errf(Invalid, "containers without a manifest.yaml not valid")
	case len(c.Meta.Assumes) > 0:
		return errf(Invalid, "assumes in metadata v1 not valid")
	}
	return nil
}
