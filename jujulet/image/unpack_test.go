// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// entry is a tar entry of a test: a regular file with its content unless it says something else.
type entry struct {
	name, content, link string
	kind                byte
	mode                int64
	uid                 int
}

func file(name, content string) entry {
	return entry{name: name, content: content, kind: tar.TypeReg, mode: 0o644}
}
func folder(name string) entry { return entry{name: name, kind: tar.TypeDir, mode: 0o755} }
func symlink(name, target string) entry {
	return entry{name: name, link: target, kind: tar.TypeSymlink, mode: 0o777}
}
func hardlink(name, target string) entry   { return entry{name: name, link: target, kind: tar.TypeLink} }
func special(name string, kind byte) entry { return entry{name: name, kind: kind, mode: 0o644} }

// tarOf writes entries as a tar.
func tarOf(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range entries {
		require.NoError(t, w.WriteHeader(&tar.Header{
			Name: e.name, Linkname: e.link, Typeflag: e.kind, Mode: e.mode, Size: int64(len(e.content)), Uid: e.uid,
			ModTime: time.Unix(1_700_000_000, 0),
		}))
		_, err := w.Write([]byte(e.content))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

// target is a folder to unpack into. Beside it lies a file that nobody may touch.
type target struct {
	dir, outside string
}

func newTarget(t testing.TB) target {
	t.Helper()
	base := t.TempDir()
	tg := target{filepath.Join(base, "root"), filepath.Join(base, "outside")}
	require.NoError(t, os.Mkdir(tg.dir, 0o755))
	require.NoError(t, os.WriteFile(tg.outside, []byte("untouched"), 0o600))
	return tg
}

// untouched fails the test if anything outside the root changed.
func (tg target) untouched(t testing.TB) {
	t.Helper()
	data, err := os.ReadFile(tg.outside)
	require.NoError(t, err)
	require.Equal(t, "untouched", string(data))
	info, err := os.Stat(tg.outside)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode())
	require.EqualValues(t, 1, info.Sys().(*syscall.Stat_t).Nlink)
	entries, err := os.ReadDir(filepath.Dir(tg.dir))
	require.NoError(t, err)
	require.Len(t, entries, 2)
}

// unpackAll unpacks layers into the target.
func (tg target) unpackAll(t testing.TB, limits Limits, owners bool, layers ...[]byte) error {
	t.Helper()
	root, err := os.OpenRoot(tg.dir)
	require.NoError(t, err)
	defer root.Close()
	u := newUnpacker(root, limits, owners)
	for _, l := range layers {
		if err := u.layer(t.Context(), bytes.NewReader(l)); err != nil {
			return err
		}
	}
	return u.finish()
}

// tree lists what is in a folder: folders end with "/", links show their targets, files their content.
func tree(t testing.TB, dir string) []string {
	t.Helper()
	var out []string
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		switch {
		case e.IsDir():
			name += "/"
		case e.Type() == fs.ModeSymlink:
			to, err := os.Readlink(path)
			if err != nil {
				return err
			}
			name += " -> " + to
		default:
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			name += "=" + string(data)
		}
		out = append(out, name)
		return nil
	}))
	return out
}

// hostile are layers that try to leave their root, or to deceive, and what they are told.
var hostile = []struct {
	name   string
	layers [][]entry
	want   string
}{
	{"absolute path", [][]entry{{file("/etc/passwd", "x")}}, `entry "/etc/passwd" has an absolute path`},
	{"dots", [][]entry{{file("../outside", "x")}}, `entry "../outside" has a path with ".."`},
	{"dots within", [][]entry{{file("a/../../outside", "x")}}, `entry "a/../../outside" has a path with ".."`},
	{"link above the root", [][]entry{{symlink("a", "../outside")}}, `entry "a" is a link to "../outside", which leaves the root`},
	{"link above the root, deep", [][]entry{{symlink("a/b/c", "x/../../../../outside")}}, `entry "a/b/c" is a link to "x/../../../../outside", which leaves the root`},
	{"absolute link above the root", [][]entry{{symlink("a", "/../outside")}}, `entry "a" is a link to "/../outside", which leaves the root`},
	{"empty link", [][]entry{{symlink("a", "")}}, `entry "a" is a link to ""`},
	{"hard link outside", [][]entry{{hardlink("a", "../outside")}}, `entry "a" is a hard link to "../outside", which has a path with ".."`},
	{"absolute hard link", [][]entry{{hardlink("a", "/etc/passwd")}}, `entry "a" is a hard link to "/etc/passwd", which has an absolute path`},
	{"hard link to nothing", [][]entry{{hardlink("a", "b")}}, `entry "a" is a hard link to "b", which is not there`},
	{"hard link to a folder", [][]entry{{folder("b"), hardlink("a", "b")}}, `entry "a" is a hard link to "b", which is not a file`},
	{"hard link through a link", [][]entry{{symlink("up", "/"), hardlink("a", "up/etc/passwd")}},
		`entry "a" is a hard link to "up/etc/passwd", which lies behind "up", a link that the same layer made`},
	{"through a link of its own", [][]entry{{symlink("etc", "/var"), file("etc/passwd", "x")}},
		`entry "etc/passwd" lies behind "etc", a link that the same layer made`},
	{"file replaced by a link and written through", [][]entry{{file("a", "x"), symlink("a", "/b"), file("a", "y")}},
		`entry "a" is there twice in one layer`},
	{"link replaced by a file", [][]entry{{symlink("a", "/b"), file("a", "y")}}, `entry "a" is there twice in one layer`},
	{"folder replaced by a link", [][]entry{{file("d/x", "x"), symlink("d", "/b")}}, `entry "d" is there twice in one layer`},
	{"twice", [][]entry{{file("a", "x"), file("./a", "y")}}, `entry "./a" is there twice in one layer`},
	{"below a file", [][]entry{{file("a", "x"), file("a/b", "y")}}, `entry "a/b" lies below "a", which is not a folder`},
	{"links in a circle", [][]entry{{symlink("a", "b"), symlink("b", "a")}, {file("a/x", "x")}}, `entry "a/x" lies behind too many links`},
	{"character device", [][]entry{{special("dev/mem", tar.TypeChar)}}, `entry "dev/mem" is a device`},
	{"block device", [][]entry{{special("dev/sda", tar.TypeBlock)}}, `entry "dev/sda" is a device`},
	{"pipe", [][]entry{{special("p", tar.TypeFifo)}}, `entry "p" is a named pipe`},
	{"whiteout of what is above", [][]entry{{file("d/x", "x")}, {file("d/.wh...", "")}}, `entry "d/.wh..." removes nothing that can be`},
	{"whiteout of nothing", [][]entry{{file(".wh.", "")}}, `entry ".wh." removes nothing that can be`},
	{"whiteout of itself", [][]entry{{file(".wh..", "")}}, `entry ".wh.." removes nothing that can be`},
	{"in a whiteout", [][]entry{{file(".wh.a/b", "")}}, `entry ".wh.a/b" lies in a folder with the reserved name ".wh.a"`},
	{"root is a file", [][]entry{{file(".", "x")}}, `entry "." is the root, and not a folder`},
}

func layersOf(t testing.TB, all [][]entry) [][]byte {
	t.Helper()
	var out [][]byte
	for _, l := range all {
		out = append(out, tarOf(t, l...))
	}
	return out
}

func TestUnpack_RefusesHostileLayers(t *testing.T) {
	t.Parallel()
	for _, c := range hostile {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tg := newTarget(t)
			err := tg.unpackAll(t, DefaultLimits, false, layersOf(t, c.layers)...)
			require.EqualError(t, err, c.want)
			tg.untouched(t)
		})
	}
}

func TestUnpack_Layers(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name   string
		layers [][]entry
		want   []string
	}{
		{"what tar can", [][]entry{{folder("./"), folder("./d/"), file("./d/a", "1"), hardlink("b", "d/a"), symlink("c", "/d/a"), symlink("d/up", "../b")}},
			[]string{"b=1", "c -> /d/a", "d/", "d/a=1", "d/up -> ../b"}},
		{"folders that nobody listed", [][]entry{{file("x/y/z", "1")}}, []string{"x/", "x/y/", "x/y/z=1"}},
		{"a folder twice", [][]entry{{folder("d"), file("d/a", "1"), folder("d")}}, []string{"d/", "d/a=1"}},
		{"upper wins", [][]entry{{file("a", "old"), file("b", "b")}, {file("a", "new")}}, []string{"a=new", "b=b"}},
		{"a file takes a folder's place", [][]entry{{file("a/b", "1")}, {file("a", "2")}}, []string{"a=2"}},
		{"a folder takes a link's place", [][]entry{{folder("v"), symlink("l", "v")}, {folder("l"), file("l/x", "1")}}, []string{"l/", "l/x=1", "v/"}},
		{"a file takes a link's place", [][]entry{{file("b", "safe"), symlink("a", "b")}, {file("a", "new")}}, []string{"a=new", "b=safe"}},
		{"the other name stays", [][]entry{{file("a", "old"), hardlink("b", "a")}, {file("a", "new")}}, []string{"a=new", "b=old"}},
		{"through a link of a lower layer", [][]entry{{folder("run"), symlink("var/run", "/run"), symlink("lib", "usr/lib"), folder("usr/lib")}, {file("var/run/x", "1"), file("lib/y", "2")}},
			[]string{"lib -> usr/lib", "run/", "run/x=1", "usr/", "usr/lib/", "usr/lib/y=2", "var/", "var/run -> /run"}},
		{"whiteouts", [][]entry{{file("d/a", "1"), file("d/b", "2"), file("e/x", "3")}, {file("d/.wh.a", ""), file(".wh.e", ""), file(".wh.none", "")}},
			[]string{"d/", "d/b=2"}},
		{"a whiteout spares its own layer", [][]entry{{file("d/a", "1")}, {file("d/a", "2"), file("d/.wh.a", "")}}, []string{"d/", "d/a=2"}},
		{"a folder removed and made again", [][]entry{{file("d/a", "1"), file("d/s/x", "2")}, {file("d/s/y", "3"), file(".wh.d", "")}},
			[]string{"d/", "d/s/", "d/s/y=3"}},
		{"opaque", [][]entry{{file("d/a", "1"), file("d/s/x", "2")}, {folder("d"), file("d/.wh..wh..opq", ""), file("d/b", "3")}},
			[]string{"d/", "d/b=3"}},
		{"opaque, last", [][]entry{{file("d/a", "1"), file("d/s/x", "2")}, {file("d/b", "3"), file("d/s/y", "4"), file("d/.wh..wh..opq", "")}},
			[]string{"d/", "d/b=3", "d/s/", "d/s/y=4"}},
		{"opaque root", [][]entry{{file("a", "1")}, {file("b", "2"), file(".wh..wh..opq", "")}}, []string{"b=2"}},
		{"notes of a driver", [][]entry{{file("a", "1")}, {file(".wh..wh.aufs", "")}}, []string{"a=1"}},
		{"names that are no text", [][]entry{{file("d/\xff", "1")}, {file("d/.wh.\xff", "")}}, []string{"d/"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tg := newTarget(t)
			require.NoError(t, tg.unpackAll(t, DefaultLimits, false, layersOf(t, c.layers)...))
			require.Equal(t, c.want, tree(t, tg.dir))
			tg.untouched(t)
		})
	}
}

func TestUnpack_Limits(t *testing.T) {
	t.Parallel()
	tg := newTarget(t)
	layer := tarOf(t, file("a", "12345"), file("b", "12345"))
	require.EqualError(t, tg.unpackAll(t, Limits{Bytes: 9, Entries: 10}, false, layer), `entry "b" exceeds the limit of 9 bytes for an image`)
	tg = newTarget(t)
	require.EqualError(t, tg.unpackAll(t, Limits{Bytes: 100, Entries: 3}, false, layer, layer), `entry "b" is one too many: the limit is 3 entries`)
	tg = newTarget(t)
	require.NoError(t, tg.unpackAll(t, Limits{Bytes: 10, Entries: 2}, false, layer))
}

// A sparse file of a terabyte takes a few hundred bytes in an archive.
func TestUnpack_RefusesSparseBomb(t *testing.T) {
	t.Parallel()
	layer := sparseLayer("1099511627776")
	tg := newTarget(t)
	err := tg.unpackAll(t, DefaultLimits, false, layer)
	require.EqualError(t, err, `entry "bomb" exceeds the limit of 21474836480 bytes for an image`)
}

// sparseLayer is a tar with one sparse file, of which no byte is there.
func sparseLayer(size string) []byte {
	records := make([]byte, 512)
	used := 0
	for _, r := range []string{"GNU.sparse.major=1", "GNU.sparse.minor=0", "GNU.sparse.name=bomb", "GNU.sparse.realsize=" + size} {
		used += copy(records[used:], fmt.Sprintf("%d %s\n", len(r)+4, r))
	}
	list := make([]byte, 512)
	copy(list, "1\n"+size+"\n0\n")
	return slices.Concat(rawHeader("pax", 'x', used), records, rawHeader("bomb", '0', 512), list, make([]byte, 1024))
}

func rawHeader(name string, kind byte, size int) []byte {
	h := make([]byte, 512)
	copy(h, name)
	copy(h[100:], "0000644\x00")
	copy(h[108:], "0000000\x000000000\x00")
	const octal = "01234567"
	digits := []byte("00000000000\x00")
	for i, n := 10, size; n > 0; i, n = i-1, n/8 {
		digits[i] = octal[n%8]
	}
	copy(h[124:], digits)
	copy(h[136:], "00000000000\x00")
	h[156] = kind
	copy(h[257:], "ustar\x0000")
	copy(h[148:], "        ")
	sum := 0
	for _, b := range h {
		sum += int(b)
	}
	checksum := []byte("000000\x00 ")
	for i, n := 5, sum; n > 0; i, n = i-1, n/8 {
		checksum[i] = octal[n%8]
	}
	copy(h[148:], checksum)
	return h
}

func TestUnpack_Attributes(t *testing.T) {
	t.Parallel()
	entries := []entry{
		{name: "d", kind: tar.TypeDir, mode: 0o555, uid: 33},
		{name: "d/su", kind: tar.TypeReg, mode: 0o4755, uid: 44},
		{name: "d/secret", kind: tar.TypeReg, mode: 0},
	}
	mode := func(tg target, name string) fs.FileMode {
		info, err := os.Stat(filepath.Join(tg.dir, name))
		require.NoError(t, err)
		require.Equal(t, time.Unix(1_700_000_000, 0).UTC(), info.ModTime().UTC(), name)
		return info.Mode()
	}
	tg := newTarget(t)
	require.NoError(t, tg.unpackAll(t, DefaultLimits, false, tarOf(t, entries...)))
	require.Equal(t, fs.ModeDir|0o755, mode(tg, "d"))
	require.Equal(t, fs.FileMode(0o755), mode(tg, "d/su"))
	require.Equal(t, fs.FileMode(0o600), mode(tg, "d/secret"))
	if os.Geteuid() != 0 {
		t.Log("not root: owners are not tested")
		return
	}
	tg = newTarget(t)
	require.NoError(t, tg.unpackAll(t, DefaultLimits, true, tarOf(t, entries...)))
	require.Equal(t, fs.ModeDir|0o555, mode(tg, "d"))
	require.Equal(t, fs.ModeSetuid|0o755, mode(tg, "d/su"))
	require.Equal(t, fs.FileMode(0), mode(tg, "d/secret"))
	info, err := os.Stat(filepath.Join(tg.dir, "d/su"))
	require.NoError(t, err)
	require.EqualValues(t, 44, info.Sys().(*syscall.Stat_t).Uid)
}

// Whatever a layer holds, nothing outside of the root changes.
func FuzzUnpack(f *testing.F) {
	for _, c := range hostile {
		layers := layersOf(f, c.layers)
		f.Add(layers[0], layers[len(layers)-1])
	}
	f.Add(tarOf(f, folder("d"), file("d/a", "1"), symlink("l", "d")), tarOf(f, file("l/b", "2"), file("d/.wh.a", ""), file("d/.wh..wh..opq", "")))
	f.Add(sparseLayer("10"), []byte{})
	f.Fuzz(func(t *testing.T, lower, upper []byte) {
		tg := newTarget(t)
		err := tg.unpackAll(t, Limits{Bytes: 1 << 20, Entries: 1000}, false, lower, upper)
		tg.untouched(t)
		if err != nil && strings.Contains(err.Error(), "\x00") {
			t.Fatalf("error with a zero byte: %q", err)
		}
		var escapes *os.PathError
		if errors.As(err, &escapes) {
			t.Fatalf("os.Root had to step in: %v", err)
		}
		for _, line := range tree(t, tg.dir) {
			if _, to, ok := strings.Cut(line, " -> "); ok && climbs(strings.TrimSuffix(line, " -> "+to), to) {
				t.Fatalf("link that climbs: %s", line)
			}
		}
	})
}
