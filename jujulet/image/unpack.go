// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package image

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// unpacker puts layers, one upon the other, into a root.
//
// The rules, beyond what os.Root enforces:
//
//   - a name is relative and without ".."; a link, too, names what is in the root: a symbolic link may be absolute, as
//     the root will be "/" to those who follow it, but must not climb above it;
//   - files, folders, symbolic and hard links exist; devices, pipes and all else do not;
//   - within a layer nothing is listed twice but folders, and nothing lies behind a link of the same layer. A link to a
//     folder that a lower layer made is followed, as container runtimes do;
//   - what is there from a lower layer is removed before something else takes its name, so nothing is ever
//     written through a link or into another name's file;
//   - whiteouts remove what lower layers made, and only that;
//   - extended attributes are not taken over.
type unpacker struct {
	root   *os.Root
	limits Limits
	owners bool // give files their owners and setuid bits

	bytes   int64
	entries int
	dropped int               // setuid and setgid bits left out
	attrs   map[string]attr   // of folders, set at the end
	made    map[string]bool   // by this layer, with the folders above
	links   map[string]bool   // symbolic links by this layer
	parents map[string]string // folders already resolved; emptied when it could change
}

// attr is what a folder gets when nothing more is put into it.
type attr struct {
	mode     fs.FileMode
	uid, gid int
	time     time.Time
}

// tarOverhead is what the headers of a layer may take beside its content, in bytes.
const tarOverhead = 4 << 30

// maxLinks bounds the links on the way to an entry.
const maxLinks = 40

func newUnpacker(root *os.Root, limits Limits, owners bool) *unpacker {
	return &unpacker{root: root, limits: limits, owners: owners, attrs: map[string]attr{}}
}

// notes says what was left out.
func (u *unpacker) notes() []string {
	if u.dropped == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d setuid and setgid bits are left out: an ordinary user's pods have one user only", u.dropped)}
}

// layer unpacks one layer's tar.
func (u *unpacker) layer(ctx context.Context, r io.Reader) error {
	u.made, u.links, u.parents = map[string]bool{}, map[string]bool{}, map[string]string{}
	reader := tar.NewReader(r)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot read: %w", err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := u.entry(header, reader); err != nil {
			return fmt.Errorf("entry %q %w", header.Name, err)
		}
	}
}

// entry unpacks one entry. Its errors continue a sentence that begins with the entry's name.
func (u *unpacker) entry(header *tar.Header, content io.Reader) error {
	if header.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	if u.entries++; u.entries > u.limits.Entries {
		return fmt.Errorf("is one too many: the limit is %d entries", u.limits.Entries)
	}
	name, err := entryName(header.Name)
	if err != nil {
		return err
	}
	if name == "." {
		if header.Typeflag != tar.TypeDir {
			return errors.New("is the root, and not a folder")
		}
		return u.folder(header, ".")
	}
	dir, base := path.Split(name)
	if dir, err = u.resolve(path.Clean(dir)); err != nil {
		return err
	}
	if strings.HasPrefix(base, whiteoutPrefix) {
		return u.whiteout(dir, base)
	}
	return u.make(header, path.Join(dir, base), content)
}

// make makes what the entry describes at the place that was found for it.
func (u *unpacker) make(header *tar.Header, at string, content io.Reader) error {
	info, err := u.root.Lstat(at)
	exists := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return cannot("look at", err)
	}
	if exists && header.Typeflag == tar.TypeDir && info.IsDir() {
		return u.folder(header, at)
	}
	if u.made[at] {
		return errors.New("is there twice in one layer")
	}
	if exists {
		if err := u.remove(at); err != nil {
			return err
		}
	}
	switch header.Typeflag {
	case tar.TypeDir:
		if err := u.root.Mkdir(at, 0o755); err != nil {
			return cannot("make folder", err)
		}
		return u.folder(header, at)
	case tar.TypeReg, tar.TypeGNUSparse:
		err = u.file(header, at, content)
	case tar.TypeSymlink:
		err = u.symlink(header, at)
	case tar.TypeLink:
		err = u.hardlink(header, at)
	default:
		return fmt.Errorf("is %s", kindOf(header.Typeflag))
	}
	if err == nil {
		u.mark(at)
	}
	return err
}

// file writes a regular file.
func (u *unpacker) file(header *tar.Header, at string, content io.Reader) (err error) {
	if header.Size > u.limits.Bytes-u.bytes {
		return fmt.Errorf("exceeds the limit of %d bytes for an image", u.limits.Bytes)
	}
	u.bytes += header.Size
	a, err := u.attr(header)
	if err != nil {
		return err
	}
	file, err := u.root.OpenFile(at, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return cannot("make file", err)
	}
	_, err = io.Copy(file, content)
	if err == nil && u.owners {
		err = file.Chown(a.uid, a.gid) // before the mode: it clears setuid bits
	}
	if err == nil {
		err = file.Chmod(a.mode)
	}
	if e := file.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = u.root.Chtimes(at, a.time, a.time)
	}
	if err != nil {
		return cannot("write", err)
	}
	return nil
}

// symlink makes a symbolic link that stays in the root.
func (u *unpacker) symlink(header *tar.Header, at string) error {
	target := header.Linkname
	if target == "" || strings.ContainsRune(target, 0) {
		return fmt.Errorf("is a link to %q", target)
	}
	if climbs(at, target) {
		return fmt.Errorf("is a link to %q, which leaves the root", target)
	}
	a, err := u.attr(header)
	if err != nil {
		return err
	}
	if err := u.root.Symlink(target, at); err != nil {
		return cannot("make link", err)
	}
	u.links[at] = true
	clear(u.parents)
	if u.owners {
		if err := u.root.Lchown(at, a.uid, a.gid); err != nil {
			return cannot("give away link", err)
		}
	}
	return nil
}

// climbs tells whether the target of a link at a place has more ".." than there are folders.
func climbs(at, target string) bool {
	depth := strings.Count(at, "/") // folders between the root and the link
	if path.IsAbs(target) {
		depth = 0
	}
	for _, part := range splitPath(target) {
		if part != ".." {
			depth++
		} else if depth--; depth < 0 {
			return true
		}
	}
	return false
}

// hardlink makes another name for a file.
func (u *unpacker) hardlink(header *tar.Header, at string) error {
	target, err := entryName(header.Linkname)
	if err != nil {
		return fmt.Errorf("is a hard link to %q, which %w", header.Linkname, err)
	}
	dir, base := path.Split(target)
	if dir, err = u.resolve(path.Clean(dir)); err != nil {
		return fmt.Errorf("is a hard link to %q, which %w", header.Linkname, err)
	}
	from := path.Join(dir, base)
	info, err := u.root.Lstat(from)
	if err != nil {
		return fmt.Errorf("is a hard link to %q, which is not there", header.Linkname)
	}
	if !info.Mode().IsRegular() && info.Mode().Type() != fs.ModeSymlink {
		return fmt.Errorf("is a hard link to %q, which is not a file", header.Linkname)
	}
	if err := u.root.Link(from, at); err != nil {
		return cannot("make hard link", err)
	}
	if info.Mode().Type() == fs.ModeSymlink {
		u.links[at] = true
		clear(u.parents)
	}
	return nil
}

// folder notes what a folder, which is there, gets in the end.
func (u *unpacker) folder(header *tar.Header, at string) error {
	a, err := u.attr(header)
	if err != nil {
		return err
	}
	u.attrs[at] = a
	u.mark(at)
	return nil
}

// attr reads owner, permissions and time of an entry.
func (u *unpacker) attr(header *tar.Header) (attr, error) {
	a := attr{mode: header.FileInfo().Mode(), uid: header.Uid, gid: header.Gid, time: header.ModTime}
	a.mode &= fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky
	const maxID = 1<<32 - 2 // the largest one means "as it is"
	if a.uid < 0 || a.gid < 0 || a.uid > maxID || a.gid > maxID {
		return a, fmt.Errorf("belongs to user %d and group %d, which cannot be", a.uid, a.gid)
	}
	if year := a.time.Year(); year < 1970 || year > 2200 {
		a.time = time.Unix(0, 0)
	}
	if u.owners {
		return a, nil
	}
	if special := a.mode & (fs.ModeSetuid | fs.ModeSetgid); special != 0 && header.Typeflag == tar.TypeReg {
		u.dropped++
	}
	a.mode = a.mode&^(fs.ModeSetuid|fs.ModeSetgid) | 0o600 // whoever unpacks must be able to remove, and the pod to read
	if header.Typeflag == tar.TypeDir {
		a.mode |= 0o700
	}
	return a, nil
}

// finish gives folders what they were to get: the deepest first, since what happens in a folder changes its time.
func (u *unpacker) finish() error {
	names := make([]string, 0, len(u.attrs))
	for name := range u.attrs {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(b, a) })
	for _, name := range names {
		a := u.attrs[name]
		if info, err := u.root.Lstat(name); err != nil || !info.IsDir() {
			continue // a later layer removed it
		}
		var err error
		if u.owners {
			err = u.root.Chown(name, a.uid, a.gid)
		}
		if err == nil {
			err = u.root.Chmod(name, a.mode)
		}
		if err == nil {
			err = u.root.Chtimes(name, a.time, a.time)
		}
		if err != nil {
			return fmt.Errorf("folder %q %w", name, cannot("finish", err))
		}
	}
	return nil
}

// cannot words what the system said so that it continues a sentence that begins with a name.
func cannot(what string, err error) error {
	var pathError *fs.PathError
	var linkError *os.LinkError
	switch {
	case errors.As(err, &pathError):
		err = pathError.Err
	case errors.As(err, &linkError):
		err = linkError.Err
	}
	return fmt.Errorf("cannot be unpacked: cannot %s: %w", what, err)
}
