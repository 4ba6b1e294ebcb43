// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package image

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// Names by which a layer removes what lower ones made. OCI image specification: layer.md, whiteouts.
const (
	whiteoutPrefix = ".wh."
	whiteoutMeta   = ".wh..wh."
	whiteoutOpaque = ".wh..wh..opq"
)

// resolve returns where the folder dir lies in the root, and makes what is missing of it. Links are followed as they will
// be when the root is "/", but not those of the same layer.
func (u *unpacker) resolve(dir string) (string, error) {
	if at, ok := u.parents[dir]; ok {
		return at, nil
	}
	rest := splitPath(dir)
	at := "."
	for links := 0; len(rest) > 0; {
		next := rest[0]
		rest = rest[1:]
		if next == ".." {
			if at == "." {
				return "", errors.New("lies behind a link that leaves the root")
			}
			at = path.Dir(at)
			continue
		}
		if strings.HasPrefix(next, whiteoutPrefix) {
			return "", fmt.Errorf("lies in a folder with the reserved name %q", next)
		}
		step := path.Join(at, next)
		target, err := u.step(step)
		if err != nil {
			return "", err
		}
		if target == "" {
			at = step
			continue
		}
		if links++; links > maxLinks {
			return "", errors.New("lies behind too many links")
		}
		if path.IsAbs(target) {
			at = "."
		}
		rest = append(splitPath(target), rest...)
	}
	u.parents[dir] = at
	return at, nil
}

// step makes sure that there is a folder at a place, and returns the target if it is a link instead.
func (u *unpacker) step(at string) (target string, err error) {
	info, err := u.root.Lstat(at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := u.root.Mkdir(at, 0o755); err != nil {
			return "", cannot("make the folder above", err)
		}
		delete(u.attrs, at)
		u.mark(at)
		return "", nil
	case err != nil:
		return "", cannot("look at the folder above", err)
	case info.IsDir():
		return "", nil
	case info.Mode().Type() != fs.ModeSymlink:
		return "", fmt.Errorf("lies below %q, which is not a folder", at)
	case u.links[at]:
		return "", fmt.Errorf("lies behind %q, a link that the same layer made", at)
	}
	if target, err = u.root.Readlink(at); err != nil {
		return "", cannot("read the link above", err)
	}
	return target, nil
}

// splitPath returns the parts of a path without empty ones and ".".
func splitPath(name string) []string {
	var parts []string
	for part := range strings.SplitSeq(name, "/") {
		if part != "" && part != "." {
			parts = append(parts, part)
		}
	}
	return parts
}

// mark notes that the present layer made something, and with it the folders above.
func (u *unpacker) mark(at string) {
	for at != "." && !u.made[at] {
		u.made[at] = true
		at = path.Dir(at)
	}
}

// remove removes what a lower layer made.
func (u *unpacker) remove(at string) error {
	clear(u.parents)
	if err := u.root.RemoveAll(at); err != nil {
		return cannot("remove what is in its place", err)
	}
	return nil
}

// whiteout applies a whiteout in the folder dir.
func (u *unpacker) whiteout(dir, base string) error {
	if base == whiteoutOpaque {
		return u.removeChildren(dir)
	}
	if strings.HasPrefix(base, whiteoutMeta) {
		return nil // notes of a storage driver to itself
	}
	name := strings.TrimPrefix(base, whiteoutPrefix)
	if name == "" || name == "." || name == ".." {
		return errors.New("removes nothing that can be")
	}
	return u.removeLower(path.Join(dir, name))
}

// removeLower removes what lower layers made at a place, and below it.
func (u *unpacker) removeLower(at string) error {
	info, err := u.root.Lstat(at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return cannot("look at what it removes", err)
	case !u.made[at]:
		return u.remove(at)
	case info.IsDir():
		return u.removeChildren(at)
	}
	return nil
}

// removeChildren removes what lower layers made in a folder.
func (u *unpacker) removeChildren(dir string) error {
	folder, err := u.root.Open(dir)
	if err != nil {
		return cannot("open the folder that it empties", err)
	}
	names, err := folder.Readdirnames(-1)
	folder.Close()
	if err != nil {
		return cannot("read the folder that it empties", err)
	}
	for _, name := range names {
		if err := u.removeLower(path.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}
