// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// metaDoc is metadata.yaml as written; unknown keys are tolerated.
type metaDoc struct {
	Name        string                 `yaml:"name"`
	Summary     string                 `yaml:"summary"`
	Description string                 `yaml:"description"`
	Peers       map[string]endpointDoc `yaml:"peers"`
	Provides    map[string]endpointDoc `yaml:"provides"`
	Requires    map[string]endpointDoc `yaml:"requires"`
	Containers  map[string]struct {
		Resource string `yaml:"resource"`
		Mounts   []struct {
			Storage  string `yaml:"storage"`
			Location string `yaml:"location"`
		} `yaml:"mounts"`
		UID *int `yaml:"uid"`
		GID *int `yaml:"gid"`
	} `yaml:"containers"`
	Resources map[string]struct {
		Type        string `yaml:"type"`
		Filename    string `yaml:"filename"`
		Description string `yaml:"description"`
	} `yaml:"resources"`
	Storage     map[string]storageMeta `yaml:"storage"`
	Assumes     []any                  `yaml:"assumes"`
	CharmUser   string                 `yaml:"charm-user"`
	Series      any                    `yaml:"series"`
	MinJuju     any                    `yaml:"min-juju-version"`
	Deployment  any                    `yaml:"deployment"`
	Subordinate bool                   `yaml:"subordinate"`
}

// endpointDoc is an interface's name or a map.
type endpointDoc struct {
	Interface string `yaml:"interface"`
	Limit     int    `yaml:"limit"`
	Optional  bool   `yaml:"optional"`
	Scope     string `yaml:"scope"`
}

// UnmarshalYAML accepts the short form.
func (e *endpointDoc) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		e.Interface = n.Value
		return nil
	}
	type plain endpointDoc
	return n.Decode((*plain)(e))
}

func parseMeta(raw []byte) (Meta, error) {
	if err := metaShape(raw); err != nil {
		return Meta{}, err
	}
	var d metaDoc
	if err := yaml.Unmarshal(raw, &d); err != nil {
		return Meta{}, errf(Invalid, "metadata: %v", err)
	}
	if !validName.MatchString(d.Name) {
		return Meta{}, errf(Invalid, "invalid charm name %q", d.Name)
	}
	m := Meta{
		Name: d.Name, Summary: d.Summary, Description: d.Description,
		Assumes: d.Assumes, CharmUser: d.CharmUser,
	}
	steps := []func(*Meta, *metaDoc) error{
		metaFormat, metaEndpoints, metaResources, metaStorage, metaContainers, metaAssumes,
	}
	for _, step := range steps {
		if err := step(&m, &d); err != nil {
			return Meta{}, err
		}
	}
	return m, nil
}

func metaFormat(m *Meta, d *metaDoc) error {
	if d.Subordinate {
		return errf(Invalid, "charm %q: subordinate charms are not supported here", d.Name)
	}
	if !slices.Contains([]string{"", "root", "sudoer", "non-root"}, d.CharmUser) {
		return errf(Invalid, "parsing charm-user: invalid charm-user %q expected one of root, sudoer or non-root", d.CharmUser)
	}
	first := present("deployment", d.Deployment != nil, "min-juju-version", d.MinJuju != nil, "series", d.Series != nil)
	second := present("assumes", len(d.Assumes) > 0, "charm-user", d.CharmUser != "", "containers", len(d.Containers) > 0)
	if first != "" && second != "" {
		return errf(Invalid, "ambiguous metadata: keys %s cannot be used with %s", first, second)
	}
	return nil
}

// present lists the names of keys that are there, quoted.
func present(namesAndTruth ...any) string {
	var out []string
	for i := 0; i < len(namesAndTruth); i += 2 {
		if namesAndTruth[i+1].(bool) {
			out = append(out, strconv.Quote(namesAndTruth[i].(string)))
		}
	}
	return strings.Join(out, ", ")
}

func metaEndpoints(m *Meta, d *metaDoc) error {
	m.Endpoints = map[string]Endpoint{}
	for _, group := range []struct {
		role Role
		docs map[string]endpointDoc
	}{{Provider, d.Provides}, {Requirer, d.Requires}, {Peer, d.Peers}} {
		for _, name := range sortedKeys(group.docs) {
			doc := group.docs[name]
			if err := checkEndpoint(m, name, group.role, doc); err != nil {
				return err
			}
			scope := doc.Scope
			if scope == "" {
				scope = "global"
			}
			m.Endpoints[name] = Endpoint{
				Name: name, Role: group.role, Interface: doc.Interface,
				Limit: doc.Limit, Optional: doc.Optional, Scope: scope,
			}
		}
	}
	return nil
}

func checkEndpoint(m *Meta, name string, role Role, doc endpointDoc) error {
	own := strings.HasPrefix(m.Name, "juju-")
	reserved := func(s string) bool { return s == "juju" || strings.HasPrefix(s, "juju-") }
	switch {
	case !validEndpoint.MatchString(name):
		return errf(Invalid, "charm %q has an invalid endpoint name %q", m.Name, name)
	case reserved(name) && !own:
		return errf(Invalid, "charm %q using a reserved relation name: %q", m.Name, name)
	case role != Requirer && reserved(doc.Interface) && !own:
		return errf(Invalid, "charm %q relation %q using a reserved interface: %q", m.Name, name, doc.Interface)
	}
	if _, twice := m.Endpoints[name]; twice {
		return errf(Invalid, "charm %q using a duplicated relation name: %q", m.Name, name)
	}
	return nil
}

func metaResources(m *Meta, d *metaDoc) error {
	m.Resources = map[string]Resource{}
	for _, name := range sortedKeys(d.Resources) {
		r := d.Resources[name]
		if r.Type == "" {
			r.Type = "file"
		}
		switch {
		case r.Type != "file" && r.Type != "oci-image":
			return errf(Invalid, "unsupported resource type %q", r.Type)
		case r.Type == "file" && r.Filename == "":
			return errf(Invalid, "resource missing filename")
		case strings.Contains(r.Filename, "/"):
			return errf(Invalid, "filename cannot contain \"/\" (got %q)", r.Filename)
		}
		m.Resources[name] = Resource{Name: name, Type: r.Type, Filename: r.Filename, Description: r.Description}
	}
	return nil
}

func metaContainers(m *Meta, d *metaDoc) error {
	m.Containers = map[string]Container{}
	for _, name := range sortedKeys(d.Containers) {
		doc := d.Containers[name]
		if !validContainer.MatchString(name) || name == "charm" || name == "charm-init" {
			return errf(Invalid, "container %q: name is not valid", name)
		}
		c := Container{Name: name, Resource: doc.Resource, UID: doc.UID, GID: doc.GID}
		if doc.Resource != "" {
			r, ok := m.Resources[doc.Resource]
			if !ok {
				return errf(Invalid, "parsing containers: referenced resource %q not found", doc.Resource)
			}
			if r.Type != "oci-image" {
				return errf(Invalid, "parsing containers: referenced resource %q is not a oci-image", doc.Resource)
			}
		}
		for kind, id := range map[string]*int{"uid": doc.UID, "gid": doc.GID} {
			if id != nil && *id >= 1000 && *id <= 9999 {
				return errf(Invalid, "parsing containers: container %q has invalid %s %d: %s cannot be in reserved range 1000-9999", name, kind, *id, kind)
			}
		}
		for _, mount := range doc.Mounts {
			switch {
			case mount.Storage == "":
				return errf(Invalid, "parsing containers: container %q: storage must be specifed on mount", name)
			case mount.Location == "":
				return errf(Invalid, "parsing containers: container %q: location must be specifed on mount", name)
			}
			if _, ok := m.Storage[mount.Storage]; !ok {
				return errf(Invalid, "parsing containers: container %q: storage %q not valid", name, mount.Storage)
			}
			c.Mounts = append(c.Mounts, Mount{Storage: mount.Storage, Location: mount.Location})
		}
		m.Containers[name] = c
	}
	return nil
}

// metaAssumes checks the form; Deploy checks what it asks for.
func metaAssumes(m *Meta, d *metaDoc) error {
	_, err := assumesUnmet(d.Assumes)
	return err
}

func parseManifest(raw []byte) ([]Base, error) {
	var d struct {
		Bases []struct {
			Name          string   `yaml:"name"`
			Channel       string   `yaml:"channel"`
			Architectures []string `yaml:"architectures"`
		} `yaml:"bases"`
	}
	if err := yaml.Unmarshal(raw, &d); err != nil {
		return nil, badManifest("%v", err)
	}
	if d.Bases == nil {
		return nil, badManifest("coerce: expected list, got nothing")
	}
	known := []string{"ubuntu", "centos", "windows", "osx", "opensuse", "genericlinux"}
	archs := []string{"amd64", "arm64", "ppc64el", "s390x", "riscv64"}
	var bases []Base
	for _, b := range d.Bases {
		if !slices.Contains(known, b.Name) {
			return nil, badManifest("os %q not valid", b.Name)
		}
		if b.Channel == "" {
			return nil, badManifest("channel not valid")
		}
		for _, a := range b.Architectures {
			if !slices.Contains(archs, a) {
				return nil, badManifest("architecture %q not valid", a)
			}
		}
		channel := b.Channel
		if !strings.Contains(channel, "/") {
			channel += "/stable"
		}
		bases = append(bases, Base{Name: b.Name, Channel: channel, Architectures: b.Architectures})
	}
	return bases, nil
}

func badManifest(format string, args ...any) error {
	return errf(Invalid, "parsing \"manifest.yaml\" file: manifest: "+format, args...)
}
