// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package pod

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"golang.org/x/sys/unix"
)

// HostRoot is the Container.Root that stands for the host's own files; so does the empty text.
const HostRoot = "host"

// freshFolders are the top folders that no container takes from the host. The charm of a user must not
// read what the user keeps in them.
var freshFolders = map[string]os.FileMode{
	"proc": 0o555, "sys": 0o555, "dev": 0o755, "run": 0o755, "tmp": 0o777 | os.ModeSticky, "root": 0o700, "home": 0o755,
	"charm": 0o755,
}

// mountedFolders are the top folders on which something is mounted before the root is entered.
var mountedFolders = []string{"proc", "sys", "dev"}

// rootBuilder makes the root file system of a container below target, which is a tmpfs of the
// container, with the upper layers of its overlays below upper.
type rootBuilder struct {
	target, upper string
	hide          []string
	rootless      *rootlessSetup
	layers        int
	warnings      []string
}

// host composes the root of the host's own folders: links are made again, every folder is an overlay of
// its own, what is mounted below a folder is put in its place as another overlay.
//
// One overlay of "/" would show none of the file systems mounted below it, and cannot be made in a user
// namespace. Where to go deeper is read from the mounts; an overlay's EINVAL does not tell.
func (b *rootBuilder) host() error {
	b.hide = append(slices.Clone(b.hide), "/var/lib/juju") // a machine may be one of a real Juju
	mounts, err := readMounts()
	if err != nil {
		return err
	}
	entries, err := os.ReadDir("/")
	if err != nil {
		return fmt.Errorf("cannot read root folder: %w", err)
	}
	for name, mode := range freshFolders {
		if err := mkdir(filepath.Join(b.target, name), mode); err != nil {
			return err
		}
	}
	for _, e := range entries {
		if _, fresh := freshFolders[e.Name()]; fresh || e.Name() == "lost+found" {
			continue
		}
		if err := b.entry("/"+e.Name(), e, mounts); err != nil {
			return err
		}
	}
	if b.rootless == nil {
		b.submounts(mounts)
	}
	return b.cover()
}

// entry puts one entry of a host's folder, mostly "/", into the root.
func (b *rootBuilder) entry(source string, e os.DirEntry, mounts []mountPoint) error {
	target := filepath.Join(b.target, source)
	switch {
	case e.Type()&os.ModeSymlink != 0:
		to, err := os.Readlink(source)
		if err != nil {
			return fmt.Errorf("cannot read link %s: %w", source, err)
		}
		if err := os.Symlink(to, target); err != nil {
			return fmt.Errorf("cannot make link %s: %w", source, err)
		}
		return nil
	case e.IsDir():
		if b.hidden(source) {
			return mkdir(target, 0o755)
		}
		info, err := e.Info()
		if err != nil {
			return fmt.Errorf("cannot read folder %s: %w", source, err)
		}
		if err := mkdir(target, info.Mode()); err != nil {
			return err
		}
		if b.rootless != nil {
			return b.rootlessFolder(source, target, mounts)
		}
		return b.overlay(source, target)
	case e.Type().IsRegular():
		return bind(source, target, true)
	}
	return nil
}

// submounts overlays what is mounted below the composed folders. One that cannot be overlaid is bound read-only,
// or left out with a warning.
func (b *rootBuilder) submounts(mounts []mountPoint) {
	sort.SliceStable(mounts, func(i, j int) bool { return len(mounts[i].path) < len(mounts[j].path) })
	for _, m := range mounts {
		top, rest, _ := strings.Cut(strings.TrimPrefix(m.path, "/"), "/")
		if _, fresh := freshFolders[top]; fresh || rest == "" || slices.Contains(pseudoTypes, m.fsType) {
			continue
		}
		if b.hidden(m.path) || b.below(m.path) {
			continue
		}
		target := filepath.Join(b.target, m.path)
		info, err := os.Lstat(m.path)
		if err != nil {
			continue
		}
		if info.IsDir() {
			err = b.overlay(m.path, target)
		}
		if err != nil || !info.IsDir() {
			err = bind(m.path, target, true)
		}
		if err != nil {
			b.warnings = append(b.warnings, fmt.Sprintf("%s is not visible in pods: %v", m.path, err))
		}
	}
}

// below tells whether path lies in our own working folders.
func (b *rootBuilder) below(path string) bool {
	return under(path, b.target) || under(path, b.upper)
}

// hidden tells whether path is, or lies in, a hidden folder.
func (b *rootBuilder) hidden(path string) bool {
	return slices.ContainsFunc(b.hide, func(h string) bool { return under(path, h) })
}

// cover puts an empty read-only folder over each hidden folder that shows in the root.
func (b *rootBuilder) cover() error {
	for _, h := range b.hide {
		target := filepath.Join(b.target, h)
		info, err := os.Lstat(target)
		if err != nil || !info.IsDir() {
			continue
		}
		if err := unix.Mount("tmpfs", target, "tmpfs", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, "mode=555,size=4k"); err != nil {
			return fmt.Errorf("cannot hide %s: %w", h, err)
		}
	}
	return nil
}

// folder makes the root of a root file system folder.
func (b *rootBuilder) folder(lower string) error {
	info, err := os.Stat(lower)
	if err != nil {
		return fmt.Errorf("cannot use root file system: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("cannot use root file system: %s is not a folder", lower)
	}
	if err := b.overlay(lower, b.target); err != nil {
		return err
	}
	for name, mode := range freshFolders {
		target := filepath.Join(b.target, name)
		if info, err := os.Lstat(target); err == nil {
			// A link would take what is mounted here out of the root.
			if slices.Contains(mountedFolders, name) && !info.IsDir() {
				return fmt.Errorf("cannot use root file system: /%s is not a folder", name)
			}
			continue
		}
		if err := mkdir(target, mode); err != nil {
			return err
		}
	}
	return nil
}

// overlay mounts lower at target with an upper layer of its own.
func (b *rootBuilder) overlay(lower, target string) error {
	b.layers++
	upper := filepath.Join(b.upper, fmt.Sprintf("%d", b.layers), "upper")
	work := filepath.Join(b.upper, fmt.Sprintf("%d", b.layers), "work")
	info, err := os.Stat(lower)
	if err != nil {
		return fmt.Errorf("cannot overlay %s: %w", lower, err)
	}
	if err := errors.Join(mkdir(upper, info.Mode()), mkdir(work, 0o755)); err != nil {
		return err
	}
	escape := strings.NewReplacer(`\`, `\\`, `:`, `\:`, `,`, `\,`)
	layers := escape.Replace(lower)
	options := ",upperdir=" + escape.Replace(upper) + ",workdir=" + escape.Replace(work)
	if b.rootless != nil {
		options += ",userxattr"
		switch skeleton := filepath.Join(b.rootless.Skeleton, lower); {
		case isOpaque(skeleton): // the kernel does not ask that of the root of a layer
			layers = escape.Replace(skeleton)
		case isFolder(skeleton):
			layers = escape.Replace(skeleton) + ":" + layers
		}
	}
	options = "lowerdir=" + layers + options
	if err := unix.Mount("overlay", target, "overlay", unix.MS_NODEV, options); err != nil {
		return fmt.Errorf("cannot overlay %s: %w", lower, err)
	}
	return nil
}

// mkdir makes a folder, and those above it, with exactly the permissions of mode.
func mkdir(path string, mode os.FileMode) error {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return fmt.Errorf("cannot make folder: %w", err)
	}
	if err := os.Chmod(path, mode&(os.ModePerm|os.ModeSticky|os.ModeSetgid)); err != nil {
		return fmt.Errorf("cannot make folder: %w", err)
	}
	return nil
}

// bind makes source, a file or a folder with what is mounted below it, visible at target, which it creates.
func bind(source, target string, readOnly bool) error {
	info, err := os.Stat(source)
	if err != nil {
		return fmt.Errorf("cannot mount: %w", err)
	}
	if err := mountTarget(target, info.IsDir()); err != nil {
		return err
	}
	if err := unix.Mount(source, target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("cannot mount %s at %s: %w", source, target, err)
	}
	if !readOnly {
		return nil
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(target, &fs); err != nil {
		return fmt.Errorf("cannot make %s read-only: %w", target, err)
	}
	keep := uintptr(fs.Flags) & (unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC)
	if err := unix.Mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|keep, ""); err != nil {
		return fmt.Errorf("cannot make %s read-only: %w", target, err)
	}
	return nil
}

// mountTarget creates the folder or the empty file to mount on.
func mountTarget(target string, folder bool) error {
	if folder {
		if err := os.MkdirAll(target, 0o755); err != nil {
			return fmt.Errorf("cannot make folder: %w", err)
		}
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return fmt.Errorf("cannot make folder: %w", err)
	}
	f, err := os.OpenFile(target, os.O_CREATE|os.O_RDONLY, 0o644)
	if err != nil {
		return fmt.Errorf("cannot make file: %w", err)
	}
	return f.Close()
}
