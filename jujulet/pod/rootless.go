// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package pod

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
)

// rootlessSetup is what a container in a user namespace is told beside all else.
type rootlessSetup struct {
	// Skeleton is the folder of the skeleton.
	Skeleton string `json:"skeleton"`
}

// newRootless prepares the folder of the pods for containers in a user namespace; it returns nil where there is none.
func newRootless(dir string, hide []string, log *slog.Logger) (*rootlessSetup, error) {
	rootless, err := inUserNamespace()
	if err != nil || !rootless {
		return nil, err
	}
	log.Info("without root: this user is user 0 of all pods, which have no other")
	r := &rootlessSetup{Skeleton: filepath.Join(dir, "skeleton")}
	whole, err := makeSkeleton(r.Skeleton, func(path string) bool {
		return slices.ContainsFunc(hide, func(h string) bool { return under(path, h) })
	})
	if err != nil {
		return nil, err
	}
	if !whole {
		log.Warn("folders of this machine cannot be removed in pods: that needs Linux 6.6 or newer, or root")
	}
	return r, nil
}

// rootlessFolder shows a folder of the host in a user namespace: as one overlay, or piece by piece if anything is mounted below
// it.
func (b *rootBuilder) rootlessFolder(source, target string, mounts []mountPoint) error {
	for _, m := range mounts {
		if m.path == source && slices.Contains(pseudoTypes, m.fsType) {
			return nil
		}
	}
	if !b.holdsMount(source, mounts) {
		err := b.overlay(source, target)
		if err != nil && slices.ContainsFunc(mounts, func(m mountPoint) bool { return m.path == source }) {
			err = bind(source, target, true)
		}
		if err != nil {
			return err
		}
		return nil
	}
	entries, err := os.ReadDir(source)
	if errors.Is(err, os.ErrPermission) {
		return nil // empty, as folders are that this user may not read
	}
	if err != nil {
		b.warnings = append(b.warnings, fmt.Sprintf("%s is empty in pods: %v", source, err))
		return nil
	}
	for _, e := range entries {
		if err := b.entry(filepath.Join(source, e.Name()), e, mounts); err != nil {
			b.warnings = append(b.warnings, fmt.Sprintf("%s is not visible in pods: %v", filepath.Join(source, e.Name()), err))
		}
	}
	return nil
}

// holdsMount tells whether anything but what is hidden is mounted below path. In a user namespace such a folder cannot be one
// overlay: it would show what the mounts, which are locked there, cover.
func (b *rootBuilder) holdsMount(path string, mounts []mountPoint) bool {
	return slices.ContainsFunc(mounts, func(m mountPoint) bool {
		return m.path != path && under(m.path, path) && !b.hidden(m.path) && !b.below(m.path)
	})
}

// isFolder tells whether path is a folder.
func isFolder(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}
