// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package pod

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// In a user namespace the host's files belong to ids that are not mapped: nobody in it may write to them, and an overlay
// cannot copy them. A folder of an overlay has the owner that its topmost layer gives it. So a layer between the host's
// folders and what a container writes, the skeleton, has the folders again, as the pods' own; and of /etc the files too, as
// those are what programs change in place. It is made once and shared by all containers.

// Bounds of the skeleton. What is deeper, or more, cannot be written to.
const (
	maxSkeletonFolders = 1000    // in each top folder, shallow ones first
	maxSkeletonFile    = 1 << 20 // bytes of a file in /etc
)

// skeletonDepths are how deep the skeleton goes below some folders; elsewhere it has what is in the folder itself.
var skeletonDepths = map[string]int{"/etc": 8, "/var": 4, "/opt": 4, "/srv": 4, "/usr": 1, "/usr/local": 2}

// opaqueAttribute makes a folder of a layer hide those of the same name in the layers below.
const opaqueAttribute = "user.overlay.opaque"

// makeSkeleton makes the skeleton of the host's folders in a new folder. Folders that this user may not read are empty in it,
// and hide the host's; it returns false if the kernel cannot do that (Linux before 6.6).
func makeSkeleton(folder string, hidden func(string) bool) (bool, error) {
	if err := mkdir(folder, 0o755); err != nil {
		return false, err
	}
	s := &skeleton{folder: folder, hidden: hidden}
	s.opaque = unix.Setxattr(folder, opaqueAttribute, []byte("x"), 0) == nil
	if s.opaque {
		if err := unix.Removexattr(folder, opaqueAttribute); err != nil {
			return false, fmt.Errorf("cannot make skeleton: %w", err)
		}
	}
	entries, err := os.ReadDir("/")
	if err != nil {
		return false, fmt.Errorf("cannot read root folder: %w", err)
	}
	for _, e := range entries {
		if _, fresh := freshFolders[e.Name()]; fresh || !e.IsDir() || e.Name() == "lost+found" {
			continue
		}
		if err := s.tree("/" + e.Name()); err != nil {
			return false, err
		}
	}
	return s.opaque, nil
}

// depthOf returns how deep the skeleton goes below a folder, where it would go so deep if nothing is said of it.
func depthOf(path string, usual int) int {
	if depth, ok := skeletonDepths[path]; ok {
		return depth
	}
	return usual
}

// skeleton is the layer while it is made.
type skeleton struct {
	folder string
	hidden func(string) bool
	opaque bool
}

// tree copies the folders from top downwards.
func (s *skeleton) tree(top string) error {
	type level struct {
		path  string
		depth int // that is left
	}
	made := 0
	for todo := []level{{path: top, depth: depthOf(top, 1)}}; len(todo) > 0 && made < maxSkeletonFolders; todo = todo[1:] {
		at := todo[0]
		info, err := os.Lstat(at.path)
		if err != nil || !info.IsDir() || s.hidden(at.path) {
			continue
		}
		copied := filepath.Join(s.folder, at.path)
		if err := mkdir(copied, info.Mode()); err != nil {
			return err
		}
		made++
		entries, err := os.ReadDir(at.path)
		if err != nil && s.opaque {
			err = unix.Setxattr(copied, opaqueAttribute, []byte("y"), 0)
			if err != nil {
				return fmt.Errorf("cannot make skeleton of %s: %w", at.path, err)
			}
		}
		for _, e := range entries {
			path := filepath.Join(at.path, e.Name())
			switch {
			case e.IsDir() && at.depth > 0:
				todo = append(todo, level{path, depthOf(path, at.depth-1)})
			case e.Type().IsRegular() && under(path, "/etc"):
				if err := s.file(path, e); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// file copies one file, if this user may read it.
func (s *skeleton) file(path string, e os.DirEntry) error {
	info, err := e.Info()
	if err != nil || info.Size() > maxSkeletonFile {
		return nil // it has gone, or is seen as it is on the host
	}
	from, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer from.Close()
	to, err := os.OpenFile(filepath.Join(s.folder, path), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("cannot copy %s: %w", path, err)
	}
	_, err = io.Copy(to, io.LimitReader(from, maxSkeletonFile))
	if err := errors.Join(err, to.Chmod(info.Mode().Perm()), to.Close()); err != nil {
		return fmt.Errorf("cannot copy %s: %w", path, err)
	}
	return nil
}

// isOpaque tells whether a folder of the skeleton hides the machine's.
func isOpaque(path string) bool {
	var value [1]byte
	n, err := unix.Getxattr(path, opaqueAttribute, value[:])
	return err == nil && n == 1 && value[0] == 'y'
}
