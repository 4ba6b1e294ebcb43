// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"math"
	"path"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"gopkg.in/yaml.v3"
)

// Unbounded is the CountMax of storage that may have any number of instances.
const Unbounded = -1

// Storage is one declared storage.
type Storage struct {
	Name        string `json:"name"`
	Type        string `json:"type"` // filesystem or block
	Description string `json:"description,omitempty"`
	Location    string `json:"location,omitempty"`
	Shared      bool   `json:"shared,omitempty"`
	ReadOnly    bool   `json:"read-only,omitempty"`
	// CountMin and CountMax bound the instances of one unit: 1 and 1 unless
	// "multiple" says otherwise.
	CountMin int `json:"count-min"`
	CountMax int `json:"count-max"`
	// MinimumSize is in MiB; 0 if there is none.
	MinimumSize uint64   `json:"minimum-size,omitempty"`
	Properties  []string `json:"properties,omitempty"`
}

// storageRoot is where Juju mounts storage whose location is not given.
const storageRoot = "/var/lib/juju/storage"

// mountPoint is where the charm container sees an instance. Juju 3.6 on
// Kubernetes: the template of the pods is one for all units, so that the number
// in the path is the instance's number within the unit, which is 0, and not that
// of its id.
func (s Storage) mountPoint() string {
	if s.Location != "" && s.CountMax == 1 {
		return s.Location
	}
	root := storageRoot
	if s.Location != "" {
		root = s.Location
	}
	return path.Join(root, s.Name, "0")
}

// storageMeta is one entry of "storage" in metadata.yaml, as written.
type storageMeta struct {
	Type        string `yaml:"type"`
	Description string `yaml:"description"`
	Location    string `yaml:"location"`
	Shared      bool   `yaml:"shared"`
	ReadOnly    bool   `yaml:"read-only"`
	Multiple    *struct {
		Range yaml.Node `yaml:"range"`
	} `yaml:"multiple"`
	MinimumSize string   `yaml:"minimum-size"`
	Properties  []string `yaml:"properties"`
}

func metaStorage(m *Meta, d *metaDoc) error {
	m.Storage = map[string]Storage{}
	for _, name := range sortedKeys(d.Storage) {
		s, err := parseStorage(m.Name, name, d.Storage[name])
		if err != nil {
			return err
		}
		m.Storage[name] = s
	}
	return nil
}

func parseStorage(charm, name string, d storageMeta) (Storage, error) {
	s := Storage{
		Name: name, Type: d.Type, Description: d.Description, Location: d.Location, Shared: d.Shared,
		ReadOnly: d.ReadOnly, CountMin: 1, CountMax: 1, Properties: d.Properties,
	}
	where := "metadata: storage." + name
	switch {
	case d.Type == "":
		return s, errf(Invalid, "%s.type: unexpected value <nil>", where)
	case d.Type != "filesystem" && d.Type != "block":
		return s, errf(Invalid, "%s.type: unexpected value %q", where, d.Type)
	case d.Location != "" && d.Type != "filesystem":
		return s, errf(Invalid, "charm %q storage %q: location may not be specified for \"type: %s\"", charm, name, d.Type)
	case !validName.MatchString(name):
		return s, errf(Invalid, "charm %q has an invalid storage name %q", charm, name)
	}
	for _, p := range d.Properties {
		if p != "transient" {
			return s, errf(Invalid, "%s.properties[0]: unexpected value %q", where, p)
		}
	}
	if d.Multiple != nil {
		if err := s.parseRange(where+".multiple.range", d.Multiple.Range); err != nil {
			return s, err
		}
	}
	if s.CountMax == 0 {
		return s, errf(Invalid, "charm %q storage %q: invalid maximum count 0", charm, name)
	}
	if d.MinimumSize != "" {
		size, err := parseSize(d.MinimumSize)
		if err != nil {
			return s, errf(Invalid, "metadata: %v", err)
		}
		s.MinimumSize = size
	}
	return s, nil
}

var storageRange = regexp.MustCompile(`^([0-9]+)(?:([-+])|-([0-9]+))$`)

// parseRange reads "m", "m-n", "m-" or "m+".
func (s *Storage) parseRange(where string, n yaml.Node) error {
	if n.Kind == 0 {
		return errf(Invalid, "%s: unexpected value <nil>", where)
	}
	if count, err := strconv.Atoi(n.Value); err == nil && n.Tag == "!!int" {
		if count <= 0 {
			return errf(Invalid, "%s: invalid count %d", where, count)
		}
		s.CountMin, s.CountMax = count, count
		return nil
	}
	match := storageRange.FindStringSubmatch(n.Value)
	if match == nil {
		return errf(Invalid, "%s: value %q does not match 'm', 'm-n', or 'm+'", where, n.Value)
	}
	var err1, err2 error
	s.CountMin, err1 = strconv.Atoi(match[1])
	s.CountMax = Unbounded
	if match[3] != "" {
		s.CountMax, err2 = strconv.Atoi(match[3])
	}
	if err1 != nil || err2 != nil {
		return errf(Invalid, "%s: value %q is out of range", where, n.Value)
	}
	return nil
}

// sizeSuffixes are the multipliers of sizes: powers of 1024, M first.
const sizeSuffixes = "MGTPEZY"

// parseSize reads a size such as "1G", "512M" or "1.5GiB" in MiB, rounded up; M
// is meant where nothing is said.
func parseSize(text string) (uint64, error) {
	number, multiplier := text, 1.0
	i := strings.IndexFunc(text, func(r rune) bool { return r != '.' && !unicode.IsDigit(r) })
	if i > 0 {
		suffix := text[i:]
		base := strings.TrimSuffix(strings.TrimSuffix(suffix, "B"), "i")
		power := strings.Index(sizeSuffixes, base)
		if len(base) != 1 || power < 0 || suffix == base+"i" {
			return 0, errf(Invalid, "invalid multiplier suffix %q, expected one of %s", suffix, sizeSuffixes)
		}
		number, multiplier = text[:i], math.Pow(1024, float64(power))
	}
	value, err := strconv.ParseFloat(number, 64)
	if err != nil || value < 0 {
		return 0, errf(Invalid, "expected a non-negative number, got %q", number)
	}
	value = math.Ceil(value * multiplier)
	if value >= math.MaxInt64 {
		return 0, errf(Invalid, "size %q is out of range", text)
	}
	return uint64(value), nil
}
