// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// pack writes a file or folder as a tar archive in which it has a name of its own. Links and devices in it are left out.
func pack(source, name string, w io.Writer) error {
	archive := tar.NewWriter(w)
	err := filepath.WalkDir(source, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Stat(file)
		if file != source {
			info, err = entry.Info()
		}
		if err != nil || !info.IsDir() && !info.Mode().IsRegular() {
			return err
		}
		header, err := tar.FileInfoHeader(info, "")
		if err != nil {
			return err
		}
		below, err := filepath.Rel(source, file)
		if err != nil {
			return err
		}
		header.Name = path.Join(name, filepath.ToSlash(below))
		header.Uid, header.Gid, header.Uname, header.Gname = 0, 0, "", ""
		if err := archive.WriteHeader(header); err != nil || info.IsDir() {
			return err
		}
		return copyFrom(archive, file)
	})
	if err != nil {
		return err
	}
	return archive.Close()
}

func copyFrom(w io.Writer, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}

// unpack reads an archive of one file or folder and puts that at target. The archive comes out of a container and may
// say anything: nothing is written but at and below target, and no link or device is made.
func unpack(r io.Reader, name, target string, a *app) error {
	archive, entries := tar.NewReader(r), 0
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			if entries == 0 {
				return errors.New("nothing came")
			}
			return nil
		}
		if err != nil {
			return err
		}
		entries++
		below, ok := strings.CutPrefix(path.Clean(header.Name), name)
		if !ok || below != "" && below[0] != '/' || !filepath.IsLocal(path.Join(".", below)) {
			return fmt.Errorf("the archive has %q, which was not asked for", header.Name)
		}
		if header.Typeflag != tar.TypeReg && header.Typeflag != tar.TypeDir {
			a.infof("WARNING %q is neither a file nor a folder: left out", header.Name)
			continue
		}
		if err := unpackEntry(archive, header, target, strings.TrimPrefix(below, "/")); err != nil {
			return err
		}
	}
}

// unpackEntry makes one file or folder of an archive; the folder that the copy stands in is never left, not through a link either.
func unpackEntry(r io.Reader, header *tar.Header, target, below string) error {
	root, err := os.OpenRoot(filepath.Dir(target))
	if err != nil {
		return err
	}
	defer root.Close()
	file := filepath.Join(filepath.Base(target), filepath.FromSlash(below))
	mode := header.FileInfo().Mode().Perm()
	if header.Typeflag == tar.TypeDir {
		if err := root.Mkdir(file, mode|0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		return nil
	}
	f, err := root.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	if _, err := io.Copy(f, r); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
