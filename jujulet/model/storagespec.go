// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"fmt"
	"maps"
	"math"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// StoragePool is the only pool: Juju's default on Kubernetes.
const StoragePool = "kubernetes"

// defaultStorageSize is the size of storage for which neither the charm nor the
// operator gives one, in MiB.
const defaultStorageSize = 1024

// StorageSpec is a storage directive: `--storage data=kubernetes,1,10G`.
type StorageSpec struct {
	Pool string `json:"pool,omitempty"`
	// Size is in MiB; 0 means not given.
	Size uint64 `json:"size,omitempty"`
	// Count is the number of instances of each unit; 0 means not given.
	Count uint64 `json:"count,omitempty"`
}

var (
	specPool  = regexp.MustCompile(`^[a-zA-Z]+[-?a-zA-Z0-9]*$`)
	specCount = regexp.MustCompile(`^-?[0-9]+$`)
	specSize  = regexp.MustCompile(`^-?[0-9]+(?:\.[0-9]+)?[MGTPEZY](?:i?B)?$`)
)

// ParseStorageSpec reads a storage directive: pool, count and size in any order,
// separated by commas. Juju 3.6: its rules and texts.
func ParseStorageSpec(text string) (StorageSpec, error) {
	var s StorageSpec
	for field := range strings.SplitSeq(text, ",") {
		if err := s.field(field); err != nil {
			return StorageSpec{}, err
		}
	}
	if s == (StorageSpec{}) {
		return s, errf(Invalid, "storage constraints require at least one field to be specified")
	}
	if s.Count == 0 {
		s.Count = 1
	}
	return s, nil
}

func (s *StorageSpec) field(field string) error {
	switch {
	case field == "":
	case specPool.MatchString(field):
		if s.Pool != "" {
			return errf(Invalid, "pool name is already set to %q, new value %q not valid", s.Pool, field)
		}
		s.Pool = field
	case specCount.MatchString(field):
		count, err := strconv.ParseUint(field, 10, 64)
		if err != nil || count == 0 {
			return errf(Invalid, "cannot parse count: count must be greater than zero, got %q", field)
		}
		if s.Count != 0 {
			return errf(Invalid, "storage instance count is already set to %d, new value %d not valid", s.Count, count)
		}
		s.Count = count
	case specSize.MatchString(field):
		size, err := parseSize(field)
		if err != nil {
			return errf(Invalid, "cannot parse size: %v", err)
		}
		if s.Size != 0 {
			return errf(Invalid, "storage size is already set to %d, new value %d not valid", s.Size, size)
		}
		s.Size = size
	default:
		return errf(Invalid, "unrecognized storage constraint %q not valid", field)
	}
	return nil
}

// ParseStorageSpecs reads "name=directive" arguments, or "name" alone for one
// instance unless a directive must be there.
func ParseStorageSpecs(args []string, must bool) (map[string]StorageSpec, error) {
	out := map[string]StorageSpec{}
	for _, arg := range args {
		name, text, given := strings.Cut(arg, "=")
		if name == "" || strings.Contains(text, "=") {
			return nil, errf(Invalid, "expected \"name=constraints\" or \"name\", got %q", arg)
		}
		if must && !given {
			return nil, errf(Invalid, "expected \"name=constraints\" where \"constraints\" must be specified, got %q", arg)
		}
		if _, twice := out[name]; twice {
			return nil, errf(Invalid, "storage %q specified more than once", name)
		}
		if !given {
			text = "1"
		}
		spec, err := ParseStorageSpec(text)
		if err != nil {
			return nil, errf(Invalid, "cannot parse constraints for storage %q: %v", name, err)
		}
		out[name] = spec
	}
	return out, nil
}

// completeSpecs adds the defaults to what was given, and refuses what Juju 3.6
// refuses when an application is added, and what it accepts on Kubernetes and
// then cannot make.
func completeSpecs(meta Meta, given map[string]StorageSpec) (map[string]StorageSpec, error) {
	specs := maps.Clone(given)
	if specs == nil {
		specs = map[string]StorageSpec{}
	}
	for _, name := range sortedKeys(specs) {
		if _, ok := meta.Storage[name]; !ok {
			return nil, errf(Invalid, "charm %q has no store called %q", meta.Name, name)
		}
	}
	for _, name := range sortedKeys(meta.Storage) {
		declared := meta.Storage[name]
		spec, ok := specs[name]
		if declared.Type == "block" {
			return nil, errf(Invalid, "block storage %q is not supported for container charms", name)
		}
		if declared.Shared && !ok {
			return nil, errf(Invalid, "no constraints specified for shared charm storage %q", name)
		}
		if spec.Pool == "" {
			spec.Pool = StoragePool
		}
		if spec.Size == 0 {
			spec.Size = declared.MinimumSize
		}
		if spec.Size == 0 {
			spec.Size = defaultStorageSize
		}
		if spec.Count == 0 {
			spec.Count = uint64(declared.CountMin)
		}
		if err := checkSpec(meta.Name, declared, spec); err != nil {
			return nil, err
		}
		specs[name] = spec
	}
	return specs, checkMounts(meta)
}

func checkSpec(charm string, s Storage, spec StorageSpec) error {
	where := fmt.Sprintf("charm %q store %q: ", charm, s.Name)
	switch {
	case s.Shared:
		return errf(Invalid, "%sshared storage support not implemented", where)
	case s.CountMin == 1 && s.CountMax == 1 && spec.Count != 1:
		return errf(Invalid, "%sstorage is singular, %d specified", where, spec.Count)
	case spec.Count < uint64(s.CountMin):
		return errf(Invalid, "%s%d instances required, %d specified", where, s.CountMin, spec.Count)
	case s.CountMax != Unbounded && spec.Count > uint64(s.CountMax):
		return errf(Invalid, "%sat most %d instances supported, %d specified", where, s.CountMax, spec.Count)
	case spec.Size < s.MinimumSize:
		return errf(Invalid, "%sminimum storage size is %s, %s specified", where,
			humanSize(float64(s.MinimumSize)*1e6, 1000, "B kB MB GB TB PB EB"), humanSize(float64(spec.Size)*1e6, 1000, "B kB MB GB TB PB EB"))
	case spec.Pool == "rootfs" || spec.Pool == "tmpfs":
		return errf(Invalid, "storage pool %q is not supported here", spec.Pool)
	case spec.Pool != StoragePool:
		return errf(NotFound, "pool %q not found", spec.Pool)
	case spec.Count > 1:
		// Juju 3.6 on Kubernetes accepts it, and the application never gets a pod.
		return errf(Invalid, "%sduplicated storage name %q: %d instances of one storage are not supported for container charms",
			where, s.Name, spec.Count)
	}
	return nil
}

// checkMounts refuses locations at which no pod could mount anything.
func checkMounts(meta Meta) error {
	for _, name := range sortedKeys(meta.Storage) {
		s := meta.Storage[name]
		if s.Location == "" {
			continue
		}
		if strings.HasPrefix(s.Location, storageRoot) {
			return errf(Invalid, "invalid location %q: must not fall within %q", s.Location, storageRoot)
		}
		if err := checkLocation(s.Location); err != nil {
			return errf(Invalid, "storage %q: %v", name, err)
		}
	}
	for _, name := range sortedKeys(meta.Containers) {
		seen := map[string]bool{}
		for _, m := range meta.Containers[name].Mounts {
			if err := checkLocation(m.Location); err != nil {
				return errf(Invalid, "container %q: %v", name, err)
			}
			if at := path.Clean(m.Location); seen[at] {
				return errf(Invalid, "container %q: mount path %q must be unique", name, m.Location)
			} else {
				seen[at] = true
			}
		}
	}
	return nil
}

// ownFolders are what a pod's containers have of their own.
var ownFolders = []string{"/proc", "/sys", "/dev", "/charm"}

func checkLocation(location string) error {
	if !path.IsAbs(location) || path.Clean(location) == "/" {
		return errf(Invalid, "invalid location %q: must be an absolute path other than \"/\"", location)
	}
	for _, own := range ownFolders {
		if at := path.Clean(location); at == own || strings.HasPrefix(at, own+"/") {
			return errf(Invalid, "invalid location %q: must not fall within %q", location, own)
		}
	}
	return nil
}

// HumanStorageSize prints a size in MiB as juju does: "1.0 GiB", "" for 0.
func HumanStorageSize(mib uint64) string {
	if mib == 0 {
		return ""
	}
	return humanSize(float64(mib)*(1<<20), 1024, "B KiB MiB GiB TiB PiB EiB")
}

// humanSize prints one digit behind the point below 10, none above.
func humanSize(bytes, base float64, units string) string {
	names := strings.Fields(units)
	i := 0
	for ; bytes >= base && i < len(names)-1; i++ {
		bytes /= base
	}
	value := math.Floor(bytes*10+0.5) / 10
	if value < 10 && i > 0 {
		return fmt.Sprintf("%.1f %s", value, names[i])
	}
	return fmt.Sprintf("%.0f %s", value, names[i])
}
