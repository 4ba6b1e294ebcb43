// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// writeCharm writes files into a new folder; those named dispatch or hooks/* are
// executable.
func writeCharm(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		p := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(p), 0o755))
		mode := os.FileMode(0o640)
		if filepath.Base(name) == "dispatch" {
			mode = 0o750
		}
		require.NoError(t, os.WriteFile(p, []byte(text), mode))
	}
	return dir
}

const head = "name: foo\nsummary: s\ndescription: d\n"
const manifest = "bases:\n- {name: ubuntu, channel: '22.04', architectures: [amd64]}\n"

func TestReadCharm_Refusals(t *testing.T) {
	t.Parallel()
	container := "containers:\n  web: {resource: img}\nresources:\n  img: {type: oci-image}\n"
	cases := []struct {
		name, meta, config, actions, manifest, want string
	}{
		{name: "no summary", meta: "name: foo\ndescription: d\n", want: "metadata: summary: expected string, got nothing"},
		{name: "bad name", meta: "name: Foo\nsummary: s\ndescription: d\n", want: `invalid charm name "Foo"`},
		{name: "container without manifest", meta: head + container, want: "containers without a manifest.yaml not valid"},
		{name: "reserved endpoint", meta: head + "requires:\n  juju-x: {interface: i}\n", want: "reserved relation name"},
		{name: "reserved interface", meta: head + "provides:\n  x: {interface: juju-y}\n", want: "reserved interface"},
		{name: "duplicate endpoint", meta: head + "provides: {x: i}\nrequires: {x: i}\n", want: "duplicated relation name"},
		{name: "missing resource", meta: head + "containers:\n  web: {resource: nope}\n", manifest: manifest, want: `referenced resource "nope" not found`},
		{name: "wrong resource", meta: head + "containers:\n  web: {resource: r}\nresources:\n  r: {type: file, filename: f}\n", manifest: manifest, want: "not a oci-image"},
		{name: "reserved uid", meta: head + "containers:\n  web: {uid: 1000}\n", manifest: manifest, want: "reserved range 1000-9999"},
		{name: "v1 and v2", meta: head + container + "series: [jammy]\n", manifest: manifest, want: "ambiguous metadata"},
		{name: "bad base", meta: head, manifest: "bases:\n- {name: beos, channel: '5'}\n", want: `os "beos" not valid`},
		{name: "no channel", meta: head, manifest: "bases:\n- {name: ubuntu}\n", want: "channel not valid"},
		{name: "empty config", meta: head, config: "# nothing\n", want: "empty configuration"},
		{name: "bad default", meta: head, config: "options:\n  a: {type: int, default: x}\n", want: `option "a" expected int, got "x"`},
		{name: "bad type", meta: head, config: "options:\n  a: {type: list}\n", want: "unknown type"},
		{name: "bad action", meta: head, actions: "Act: {}\n", want: "bad action name Act"},
		{name: "reserved action", meta: head, actions: "juju-x: {}\n", want: `the "juju-" prefix is reserved`},
		{name: "ref", meta: head, actions: "a:\n  params:\n    x: {$ref: 'http://x'}\n", want: "$ref"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{"metadata.yaml": c.meta, "dispatch": "#!/bin/sh\n"}
			for name, text := range map[string]string{"config.yaml": c.config, "actions.yaml": c.actions, "manifest.yaml": c.manifest} {
				if text != "" {
					files[name] = text
				}
			}
			_, err := ReadCharm(writeCharm(t, files))
			require.ErrorContains(t, err, c.want)
		})
	}
	_, err := ReadCharm(writeCharm(t, map[string]string{"metadata.yaml": head, "src/x": ""}))
	require.ErrorContains(t, err, `invalid charm "foo": has no hooks nor dispatch file`)
	_, err = ReadCharm(filepath.Join(t.TempDir(), "none"))
	require.Error(t, err)
}

func TestReadCharm_Parses(t *testing.T) {
	t.Parallel()
	c, err := ReadCharm(writeCharm(t, map[string]string{
		"metadata.yaml": head + `display-name: tolerated
peers: {mates: m}
provides:
  db: {interface: pg, limit: 2, optional: true}
containers:
  web: {resource: img, uid: 584792, mounts: [{storage: data, location: /data}]}
resources:
  img: {type: oci-image, upstream-source: x}
  conf: {filename: c.txt}
storage:
  data: {type: filesystem}
assumes: [k8s-api, juju >= 3.4, {any-of: [juju < 2, juju >= 3]}]
`,
		"manifest.yaml": manifest,
		"config.yaml": `options:
  s: {default: x}
  none: {type: string}
  i: {type: int, default: 3}
  f: {type: float, default: 2}
  b: {type: boolean, default: yes}
`,
		"actions.yaml": "act:\n  description: d\n  params:\n    n: {type: integer, default: 4}\n  required: [q]\n",
		"dispatch":     "#!/bin/sh\n",
	}))
	require.NoError(t, err)
	require.Equal(t, Endpoint{Name: "db", Role: Provider, Interface: "pg", Limit: 2, Optional: true, Scope: "global"}, c.Meta.Endpoints["db"])
	require.Equal(t, Peer, c.Meta.Endpoints["mates"].Role)
	require.Equal(t, "file", c.Meta.Resources["conf"].Type)
	require.Equal(t, "22.04/stable", c.Bases[0].Channel)
	require.Equal(t, map[string]Option{
		"s": {Type: "string", Default: "x"}, "none": {Type: "string"}, "i": {Type: "int", Default: 3.0},
		"f": {Type: "float", Default: 2.0}, "b": {Type: "boolean", Default: true},
	}, c.Config)
	params, err := c.Actions["act"].ActionParams(map[string]any{"q": "x", "extra": true})
	require.NoError(t, err)
	require.Equal(t, map[string]any{"q": "x", "extra": true, "n": 4}, params)
	_, err = c.Actions["act"].ActionParams(map[string]any{"n": "text"})
	require.ErrorContains(t, err, "validation failed")
	unmet, err := assumesUnmet([]any{"juju >= 4"})
	require.NoError(t, err)
	require.Equal(t, "juju >= 4", unmet)
}

func TestReadCharm_Repack(t *testing.T) {
	t.Run("trap-35 the charm is packed again", trap35)
}

func trap35(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"metadata.yaml": head, "dispatch": "#!/bin/sh\n", ".jujuignore": "*.tmp\n!keep.tmp\n/top\ndocs/**/x\n# comment\n",
		"build/out": "", "sub/build/out": "", "a.tmp": "", "keep.tmp": "", "top": "", "sub/top": "",
		"docs/x": "", "docs/a/b/x": "", "docs/y": "", ".git/config": "", "revision": "1", "sub/version": "1",
	}
	dir := writeCharm(t, files)
	require.NoError(t, os.Symlink("dispatch", filepath.Join(dir, "link")))
	c, err := ReadCharm(dir)
	require.NoError(t, err)
	r, err := zip.NewReader(bytes.NewReader(c.archive), int64(len(c.archive)))
	require.NoError(t, err)
	got := map[string]string{}
	for _, f := range r.File {
		got[f.Name] = f.Mode().String()
	}
	require.Equal(t, map[string]string{
		"metadata.yaml": "-rw-r--r--", "dispatch": "-rwxr-xr-x", "sub/build/out": "-rw-r--r--", "keep.tmp": "-rw-r--r--",
		"sub/top": "-rw-r--r--", "docs/y": "-rw-r--r--", "sub/version": "-rw-r--r--", "link": "Lrwxrwxrwx",
	}, got)
	again, err := ReadCharm(dir)
	require.NoError(t, err)
	require.Equal(t, c.Hash, again.Hash, "the same content gives the same archive")

	// A zip with a single folder at its top is unwrapped to the same charm.
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	for _, f := range r.File {
		h := &zip.FileHeader{Name: "foo-1/" + f.Name, Method: zip.Deflate}
		h.SetMode(f.Mode())
		out, err := w.CreateHeader(h)
		require.NoError(t, err)
		data, err := readZipFile(f)
		require.NoError(t, err)
		_, err = out.Write(data)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	name := filepath.Join(t.TempDir(), "foo.charm")
	require.NoError(t, os.WriteFile(name, buf.Bytes(), 0o600))
	zipped, err := ReadCharm(name)
	require.NoError(t, err)
	require.Equal(t, c.Hash, zipped.Hash)

	to := filepath.Join(t.TempDir(), "charm")
	require.NoError(t, Unpack(c.archive, to))
	target, err := os.Readlink(filepath.Join(to, "link"))
	require.NoError(t, err)
	require.Equal(t, "dispatch", target)

	require.NoError(t, os.Symlink("../out", filepath.Join(dir, "escape")))
	_, err = ReadCharm(dir)
	require.ErrorContains(t, err, "links out of charm")
}
