// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package pod

import "strings"

// ResolveIn is resolveIn.
func ResolveIn(root, path string) (string, error) { return resolveIn(root, path) }

// ParseMounts returns "path type" of each mount.
func ParseMounts(text string) ([]string, error) {
	mounts, err := parseMounts(strings.NewReader(text))
	var all []string
	for _, m := range mounts {
		all = append(all, m.path+" "+m.fsType)
	}
	return all, err
}
