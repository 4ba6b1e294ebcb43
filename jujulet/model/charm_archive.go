// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
)

// charmFile is one file, or symbolic link, of a charm.
type charmFile struct {
	name string
	mode fs.FileMode
	data []byte // content, or the target of a link
}

// loadCharmFiles reads a folder or a zip into memory, paths sorted.
func loadCharmFiles(name string) ([]charmFile, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("cannot read charm: %w", err)
	}
	var files []charmFile
	if info.IsDir() {
		files, err = loadFolder(name)
	} else {
		files, err = loadZip(name)
	}
	if err != nil {
		return nil, err
	}
	sort.Slice(files, func(i, j int) bool { return files[i].name < files[j].name })
	return unwrapTop(files), nil
}

func loadZip(name string) ([]charmFile, error) {
	r, err := zip.OpenReader(name)
	if err != nil {
		return nil, errf(Invalid, "invalid charm or bundle provided at %q", name)
	}
	defer r.Close()
	var files []charmFile
	for _, f := range r.File {
		if f.FileInfo().IsDir() {
			continue
		}
		data, err := readZipFile(f)
		if err != nil {
			return nil, fmt.Errorf("cannot read %q of charm: %w", f.Name, err)
		}
		files = append(files, charmFile{name: path.Clean(f.Name), mode: f.Mode(), data: data})
	}
	return files, nil
}

func readZipFile(f *zip.File) ([]byte, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	// A hint only: the size in the file's header is what its maker says.
	var content bytes.Buffer
	content.Grow(int(min(f.UncompressedSize64+bytes.MinRead, maxSizeHint)))
	if _, err := content.ReadFrom(r); err != nil {
		return nil, err
	}
	return content.Bytes(), nil
}

// maxSizeHint bounds what is reserved for a file before it is read.
const maxSizeHint = 64 << 20

func loadFolder(root string) ([]charmFile, error) {
	var files []charmFile
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		f := charmFile{name: filepath.ToSlash(rel), mode: info.Mode()}
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(p)
			if err != nil {
				return err
			}
			f.data = []byte(target)
		case info.Mode().IsRegular():
			if f.data, err = os.ReadFile(p); err != nil {
				return err
			}
		}
		files = append(files, f)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read charm folder %q: %w", root, err)
	}
	return files, nil
}

// unwrapTop takes away the only top-level folder of an archive without
// metadata.yaml at its root.
func unwrapTop(files []charmFile) []charmFile {
	top := ""
	for _, f := range files {
		first, _, nested := strings.Cut(f.name, "/")
		if !nested || (top != "" && first != top) {
			return files
		}
		top = first
	}
	out := make([]charmFile, len(files))
	for i, f := range files {
		f.name = strings.TrimPrefix(f.name, top+"/")
		out[i] = f
	}
	return out
}

// checkCharmFiles refuses what Juju's repackaging refuses.
func checkCharmFiles(files []charmFile) error {
	for _, f := range files {
		if path.IsAbs(f.name) || f.name == ".." || strings.HasPrefix(f.name, "../") {
			return errf(Invalid, "invalid charm: path %q is outside of the charm", f.name)
		}
		switch {
		case f.mode&fs.ModeSymlink != 0:
			target := string(f.data)
			to := path.Join(path.Dir(f.name), target)
			if path.IsAbs(target) {
				return errf(Invalid, "symlink %q is absolute: %q", f.name, target)
			}
			if to == ".." || strings.HasPrefix(to, "../") {
				return errf(Invalid, "symlink %q links out of charm: %q", f.name, target)
			}
		case !f.mode.IsRegular():
			return errf(Invalid, "file is a special file: %q", f.name)
		}
	}
	return nil
}

// repack writes the archive that units receive. Juju 3.6: modes become 0755 or
// 0644 by the owner's exec bit; version control folders, a top-level build
// folder and what .jujuignore names are dropped. The result depends on the
// content only.
func repack(files []charmFile) ([]byte, error) {
	ignore := newIgnore(files)
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	for _, f := range files {
		if ignore.match(f.name) {
			continue
		}
		h := &zip.FileHeader{Name: f.name, Method: zip.Store}
		switch {
		case f.mode&fs.ModeSymlink != 0:
			h.SetMode(fs.ModeSymlink | 0o777)
		case f.mode&0o100 != 0:
			h.SetMode(0o755)
		default:
			h.SetMode(0o644)
		}
		out, err := w.CreateHeader(h)
		if err != nil {
			return nil, fmt.Errorf("cannot repack charm: %w", err)
		}
		if _, err := out.Write(f.data); err != nil {
			return nil, fmt.Errorf("cannot repack charm: %w", err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("cannot repack charm: %w", err)
	}
	return buf.Bytes(), nil
}

// Unpack writes a repacked archive into the folder dir, which must not exist: a
// temporary folder beside it is renamed at the end, so that dir is whole or absent.
func Unpack(archive []byte, dir string) error {
	r, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		return fmt.Errorf("cannot unpack charm: %w", err)
	}
	temp, err := os.MkdirTemp(filepath.Dir(dir), ".charm-")
	if err != nil {
		return fmt.Errorf("cannot unpack charm: %w", err)
	}
	defer os.RemoveAll(temp)
	if err := os.Chmod(temp, 0o755); err != nil {
		return fmt.Errorf("cannot unpack charm: %w", err)
	}
	for _, f := range r.File {
		if err := unpackFile(f, filepath.Join(temp, filepath.FromSlash(f.Name))); err != nil {
			return fmt.Errorf("cannot unpack %q of charm: %w", f.Name, err)
		}
	}
	if err := os.Rename(temp, dir); err != nil {
		return fmt.Errorf("cannot unpack charm: %w", err)
	}
	return nil
}

func unpackFile(f *zip.File, name string) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	data, err := readZipFile(f)
	if err != nil {
		return err
	}
	if f.Mode()&fs.ModeSymlink != 0 {
		return os.Symlink(string(data), name)
	}
	if err := os.WriteFile(name, data, f.Mode().Perm()); err != nil {
		return err
	}
	return os.Chmod(name, f.Mode().Perm())
}
