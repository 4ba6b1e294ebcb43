// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package conformance

import (
	"archive/zip"
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/juju/charm/v12"
	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

const (
	metaHead = "name: foo\nsummary: s\ndescription: d\n"
	okBase   = "bases:\n- {name: ubuntu, channel: '22.04', architectures: [amd64]}\n"
	oneBox   = "containers:\n  web: {resource: img}\nresources:\n  img: {type: oci-image}\n"
)

// charmCase is a charm that Juju's library and ours are to judge alike.
type charmCase struct {
	name                            string
	meta, manifest, config, actions string
	// want is Juju's refusal, "" where it takes the charm.
	want string
	// ours is our refusal where it has other words, with the reason in why.
	ours, why string
}

func (c charmCase) files() map[string]string {
	files := map[string]string{"dispatch": "#!/bin/sh\n"}
	for name, text := range map[string]string{
		"metadata.yaml": c.meta, "manifest.yaml": c.manifest, "config.yaml": c.config, "actions.yaml": c.actions,
	} {
		if text != "" {
			files[name] = text
		}
	}
	return files
}

// juju reads the charm with Juju's library, as its client and controller do.
func (c charmCase) juju(t *testing.T) error {
	t.Helper()
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	for name, text := range c.files() {
		h := &zip.FileHeader{Name: name, Method: zip.Deflate}
		h.SetMode(0o755)
		f, err := w.CreateHeader(h)
		require.NoError(t, err)
		_, err = f.Write([]byte(text))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	ch, err := charm.ReadCharmArchiveBytes(buf.Bytes())
	if err != nil {
		return err
	}
	return charm.CheckMeta(ch)
}

// jujulet reads it with ours.
func (c charmCase) jujulet(t *testing.T) error {
	t.Helper()
	dir := t.TempDir()
	for name, text := range c.files() {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755))
	}
	_, err := model.ReadCharm(dir)
	return err
}

func TestCharms_SameRefusals(t *testing.T) {
	refused := 0
	table := charmCases()
	for _, c := range table {
		t.Run(c.name, func(t *testing.T) {
			juju, ours := c.juju(t), c.jujulet(t)
			require.Equal(t, c.want, message(juju), "Juju")
			want := c.want
			if c.ours != "" {
				want = c.ours
				require.NotEmpty(t, c.why)
			}
			require.Equal(t, want, message(ours), "jujulet")
		})
		if c.want != "" {
			refused++
		}
	}
	fmt.Printf("%d charms read by Juju's library and ours, %d of them refused\n", len(table), refused)
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return strings.TrimSpace(err.Error())
}

func charmCases() []charmCase {
	option := func(text string) string { return "options:\n  a: {" + text + "}\n" }
	return []charmCase{
		{name: "plain", meta: metaHead},
		{name: "unknown keys", meta: metaHead + "display-name: x\nlinks: {a: [b]}\n", manifest: okBase + "charmcraft-version: 1\n"},
		{name: "one container", meta: metaHead + oneBox, manifest: okBase},
		{name: "config", meta: metaHead, config: option("type: string") + "  b: {default: 1.5, type: float}\n  c: {type: secret}\n"},
		{name: "actions", meta: metaHead, actions: "act:\n  description: d\n  params:\n    a: {type: string}\n  required: [a]\n"},
		{name: "endpoints", meta: metaHead + "provides: {db: pg}\nrequires: {up: {interface: x, limit: 1, optional: true, scope: global}}\npeers: {mates: m}\n"},

		{name: "no YAML", meta: "name: foo\n\tsummary: s\n", want: "yaml: line 2: found a tab character that violates indentation"},
		{name: "no YAML in the third line", meta: "name: foo\nsummary: s\ndescription: [\n", want: "yaml: line 3: did not find expected node content"},
		{name: "a list", meta: "- a\n", want: "yaml: unmarshal errors:\n  line 1: cannot unmarshal !!seq into map[interface {}]interface {}"},
		{name: "empty", meta: "# nothing\n",
			ours: `metadata: name: expected string, got nothing`, why: "Juju takes it and has no name to deploy it under"},
		{name: "no name", meta: "summary: s\ndescription: d\n", want: "metadata: name: expected string, got nothing"},
		{name: "no summary", meta: "name: foo\ndescription: d\n", want: "metadata: summary: expected string, got nothing"},
		{name: "no description", meta: "name: foo\nsummary: d\n", want: "metadata: description: expected string, got nothing"},
		{name: "empty summary", meta: "name: foo\nsummary: ''\ndescription: d\n"},
		{name: "number as name", meta: "name: 3\nsummary: s\ndescription: d\n", want: "metadata: name: expected string, got int(3)"},
		{name: "number as summary", meta: "name: foo\nsummary: 3\ndescription: d\n", want: "metadata: summary: expected string, got int(3)"},
		{name: "bad name", meta: "name: Foo\nsummary: s\ndescription: d\n",
			ours: `invalid charm name "Foo"`, why: "Juju refuses the name later, in the charm's URL"},
		{name: "name with a digit part", meta: "name: foo-1\nsummary: s\ndescription: d\n",
			ours: `invalid charm name "foo-1"`, why: "Juju refuses the name later, in the charm's URL"},
		{name: "endpoints as a list", meta: metaHead + "provides: [a]\n", want: `metadata: provides: expected map, got []interface {}([]interface {}{"a"})`},
		{name: "endpoint without interface", meta: metaHead + "provides: {db: {limit: 1}}\n", want: "metadata: provides.db.interface: expected string, got nothing"},
		{name: "endpoint with a bad scope", meta: metaHead + "provides: {db: {interface: x, scope: planet}}\n", want: `metadata: provides.db.scope: unexpected value "planet"`},
		{name: "endpoint with a bad limit", meta: metaHead + "provides: {db: {interface: x, limit: many}}\n", want: `metadata: provides.db.limit: unexpected value "many"`},
		{name: "endpoint with a bad name", meta: metaHead + "provides: {Db: x}\n",
			ours: `charm "foo" has an invalid endpoint name "Db"`, why: "Juju refuses it later, when an endpoint is named"},
		{name: "endpoint twice", meta: metaHead + "provides: {x: i}\nrequires: {x: i}\n", want: `charm "foo" using a duplicated relation name: "x"`},
		{name: "reserved endpoint", meta: metaHead + "requires: {juju-x: i}\n", want: `charm "foo" using a reserved relation name: "juju-x"`},
		{name: "reserved interface", meta: metaHead + "provides: {x: juju-y}\n", want: `charm "foo" relation "x" using a reserved interface: "juju-y"`},
		{name: "required reserved interface", meta: metaHead + "requires: {x: juju-info}\n"},
		{name: "container without manifest", meta: metaHead + oneBox, want: "containers without a manifest.yaml not valid"},
		{name: "assumes without manifest", meta: metaHead + "assumes: [juju]\n", want: "assumes in metadata v1 not valid"},
		{name: "charm-user without manifest", meta: metaHead + "charm-user: root\n"},
		{name: "bad charm-user", meta: metaHead + "charm-user: king\n", manifest: okBase, want: `parsing charm-user: invalid charm-user "king" expected one of root, sudoer or non-root`},
		{name: "missing resource", meta: metaHead + "containers:\n  web: {resource: nope}\n", manifest: okBase, want: `parsing containers: referenced resource "nope" not found`},
		{name: "wrong resource", meta: metaHead + "containers:\n  web: {resource: r}\nresources:\n  r: {type: file, filename: f}\n", manifest: okBase, want: `parsing containers: referenced resource "r" is not a oci-image`},
		{name: "reserved uid", meta: metaHead + "containers:\n  web: {uid: 1000}\n", manifest: okBase, want: `parsing containers: container "web" has invalid uid 1000: uid cannot be in reserved range 1000-9999`},
		{name: "reserved gid", meta: metaHead + "containers:\n  web: {gid: 9999}\n", manifest: okBase, want: `parsing containers: container "web" has invalid gid 9999: gid cannot be in reserved range 1000-9999`},
		{name: "mount without storage", meta: metaHead + "containers:\n  web: {mounts: [{location: /x}]}\n", manifest: okBase, want: `parsing containers: container "web": storage must be specifed on mount`},
		{name: "mount without location", meta: metaHead + "containers:\n  web: {mounts: [{storage: data}]}\nstorage:\n  data: {type: filesystem}\n", manifest: okBase, want: `parsing containers: container "web": location must be specifed on mount`},
		{name: "mount of unknown storage", meta: metaHead + "containers:\n  web: {mounts: [{storage: x, location: /x}]}\n", manifest: okBase, want: `parsing containers: container "web": storage "x" not valid`},
		{name: "storage of a bad type", meta: metaHead + "storage:\n  data: {type: tape}\n", want: `metadata: storage.data.type: unexpected value "tape"`},
		{name: "storage without type", meta: metaHead + "storage:\n  data: {}\n", want: "metadata: storage.data.type: unexpected value <nil>"},
		{name: "storage range", meta: metaHead + "storage:\n  data: {type: filesystem, multiple: {range: few}}\n", want: `metadata: storage.data.multiple.range: value "few" does not match 'm', 'm-n', or 'm+'`},
		{name: "resource of a bad type", meta: metaHead + "resources:\n  r: {type: tape}\n", want: `unsupported resource type "tape"`},
		{name: "file without name", meta: metaHead + "resources:\n  r: {type: file}\n", want: "resource missing filename"},
		{name: "file with a path", meta: metaHead + "resources:\n  r: {type: file, filename: a/b}\n", want: `filename cannot contain "/" (got "a/b")`},
		{name: "v1 and v2", meta: metaHead + oneBox + "series: [jammy]\n", manifest: okBase, want: `ambiguous metadata: keys "series" cannot be used with "containers"`},
		{name: "assumes of nothing known", meta: metaHead + "assumes: [{some-of: [x]}]\n", manifest: okBase, want: `parsing expression 1 in top level "assumes" block: malformed composite expression; expected an "any-of" or "all-of" block`},
		{name: "assumes with a bad operator", meta: metaHead + "assumes: ['juju = 3']\n", manifest: okBase, want: `parsing expression 1 in top level "assumes" block: malformed feature expression "juju = 3"`},
		{name: "assumes with a bad version", meta: metaHead + "assumes: ['juju >= three']\n", manifest: okBase, want: `parsing expression 1 in top level "assumes" block: malformed feature expression "juju >= three": invalid version "three"`},
		{name: "bad system", meta: metaHead, manifest: "bases:\n- {name: beos, channel: '5'}\n", want: `parsing "manifest.yaml" file: manifest: os "beos" not valid`},
		{name: "no channel", meta: metaHead, manifest: "bases:\n- {name: ubuntu}\n", want: `parsing "manifest.yaml" file: manifest: channel not valid`},
		{name: "bad architecture", meta: metaHead, manifest: "bases:\n- {name: ubuntu, channel: '22.04', architectures: [pdp11]}\n", want: `parsing "manifest.yaml" file: manifest: architecture "pdp11" not valid`},
		{name: "manifest that is no YAML", meta: metaHead, manifest: "bases: [\n", want: `parsing "manifest.yaml" file: manifest: yaml: line 1: did not find expected node content`},
		{name: "manifest without bases", meta: metaHead + oneBox, manifest: "analysis: {}\n", want: `parsing "manifest.yaml" file: manifest: coerce: expected list, got nothing`},

		{name: "config that is no YAML", meta: metaHead, config: "options: [\n", want: "yaml: line 1: did not find expected node content"},
		{name: "empty config", meta: metaHead, config: "# nothing\n", want: "invalid config: empty configuration"},
		{name: "config without options", meta: metaHead, config: "other: {}\n", want: "invalid config: empty configuration"},
		{name: "config as a list", meta: metaHead, config: "options: [a]\n", want: "yaml: unmarshal errors:\n  line 1: cannot unmarshal !!seq into map[string]charm.Option"},
		{name: "empty options", meta: metaHead, config: "options: {}\n"},
		{name: "unknown type", meta: metaHead, config: option("type: list"), want: `invalid config: option "a" has unknown type "list"`},
		{name: "text as int", meta: metaHead, config: option("type: int, default: x"), want: `invalid config default: option "a" expected int, got "x"`},
		{name: "float as int", meta: metaHead, config: option("type: int, default: 1.5"), want: `invalid config default: option "a" expected int, got 1.5`},
		{name: "text as boolean", meta: metaHead, config: option("type: boolean, default: maybe"), want: `invalid config default: option "a" expected boolean, got "maybe"`},
		{name: "number as string", meta: metaHead, config: option("type: string, default: 5"), want: `invalid config default: option "a" expected string, got 5`},
		{name: "int as float", meta: metaHead, config: option("type: float, default: 5")},
		{name: "text as float", meta: metaHead, config: option("type: float, default: x"), want: `invalid config default: option "a" expected float, got "x"`},
		{name: "list as default", meta: metaHead, config: option("type: string, default: [x]"), want: `invalid config default: option "a" expected string, got []interface {}{"x"}`},
		{name: "null as default", meta: metaHead, config: option("type: int, default: null")},
		{name: "empty text as int", meta: metaHead, config: option("type: int, default: ''"), want: `invalid config default: option "a" expected int, got ""`},

		{name: "actions that are no YAML", meta: metaHead, actions: "act: [\n", want: "yaml: line 1: did not find expected node content"},
		{name: "actions as a list", meta: metaHead, actions: "- act\n", want: "yaml: unmarshal errors:\n  line 1: cannot unmarshal !!seq into map[string]map[string]interface {}"},
		{name: "empty actions", meta: metaHead, actions: "# nothing\n"},
		{name: "empty action", meta: metaHead, actions: "act:\n"},
		{name: "bad action name", meta: metaHead, actions: "Act: {}\n", want: "bad action name Act"},
		{name: "reserved action", meta: metaHead, actions: "juju-x: {}\n", want: `cannot use action name juju-x: the "juju-" prefix is reserved`},
		{name: "the action juju", meta: metaHead, actions: "juju: {}\n", want: `cannot use action name juju: "juju" is a reserved name`},
		{name: "description is no text", meta: metaHead, actions: "act: {description: [x]}\n", want: `value for schema key "description" must be a string`},
		{name: "params as a list", meta: metaHead, actions: "act: {params: [x]}\n", want: "params failed to parse as a map"},
		{name: "unknown parameter type", meta: metaHead, actions: "act: {params: {a: {type: thing}}}\n", want: "invalid params schema for action schema act: thing is not a valid type"},
		{name: "required is no list", meta: metaHead, actions: "act: {params: {a: {type: string}}, required: a}\n", want: `value for schema key "required" must be a YAML list`},
		{name: "parallel is no boolean", meta: metaHead, actions: "act: {parallel: maybe}\n", want: `value for schema key "parallel" must be a bool`},
		{name: "execution-group is no text", meta: metaHead, actions: "act: {execution-group: 3}\n", want: `value for schema key "execution-group" must be a string`},
		{name: "a reference", meta: metaHead, actions: "act: {params: {a: {$ref: 'http://x'}}}\n", want: `schema key "$ref" not compatible with this version of juju`},
		{name: "empty text as float", meta: metaHead, config: option("type: float, default: ''"), want: `invalid config default: option "a" expected float, got ""`},
		{name: "empty text as boolean", meta: metaHead, config: option("type: boolean, default: ''"), want: `invalid config default: option "a" expected boolean, got ""`},
		{name: "no options at all", meta: metaHead, config: "options:\n"},
		{name: "an endpoint that YAML reads as true", meta: metaHead + "provides: {y: i}\n", want: "metadata: provides: expected string, got bool(true)"},
		{name: "assumes something unknown", meta: metaHead + "assumes: [quantum]\n", manifest: okBase},
		{name: "assumes any of", meta: metaHead + "assumes: [{any-of: [juju >= 3.6, {all-of: [k8s-api]}]}, juju < 4]\n", manifest: okBase},
		{name: "assumes any of text", meta: metaHead + "assumes: [{any-of: juju}]\n", manifest: okBase, want: `parsing expression 1 in top level "assumes" block: malformed "any-of" expression; expected a list of sub-expressions`},
		{name: "assumes any of rubbish", meta: metaHead + "assumes: [juju, {any-of: ['!']}]\n", manifest: okBase, want: `parsing expression 2 in top level "assumes" block: parsing "any-of" expression: malformed feature expression "!"`},
		{name: "reference deep inside", meta: metaHead, actions: "act: {params: {a: {type: object, properties: {b: {$ref: x}}}}}\n", want: `schema key "$ref" not compatible with this version of juju`},
		{name: "title is no text", meta: metaHead, actions: "act: {title: [x]}\n", want: `value for schema key "title" must be a string`},
		{name: "two keys of v1, two of v2", meta: metaHead + oneBox + "series: [jammy]\nmin-juju-version: 2.9.0\ncharm-user: root\n", manifest: okBase, want: `ambiguous metadata: keys "min-juju-version", "series" cannot be used with "charm-user", "containers"`},
		{name: "secret as default", meta: metaHead, config: option("type: secret, default: secret:9m4e2mr0ui3e8a215n4g")},
		{name: "text as secret", meta: metaHead, config: option("type: secret, default: hello"), want: `invalid config default: option "a" expected secret, got "hello"`},
		{name: "a schema", meta: metaHead, actions: "act: {params: {a: {type: object}}, $schema: 'http://x'}\n"},
	}
}

// Juju's library reads the charms that we pack, and finds in them what is written in
// their sources; so does ours.
func TestCharms_Packed(t *testing.T) {
	out := t.TempDir()
	for _, c := range []struct {
		args       []string
		name       string
		containers []string
		endpoints  int
	}{
		{[]string{".", "./cmd/drawbridge"}, "drawbridge-k8s", []string{"gateway"}, 3},
		{[]string{"examples/mariadb-k8s", "./examples/mariadb-k8s"}, "mariadb-k8s", []string{"mariadb"}, 1},
		{[]string{"examples/client-k8s", "./examples/client-k8s"}, "client-k8s", []string{"app"}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "go", append([]string{"run", "./tools/packcharm", "-out", out}, c.args...)...)
			cmd.Dir = filepath.Join("..", "..")
			text, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", text)
			found, err := filepath.Glob(filepath.Join(out, c.name+"_*.charm"))
			require.NoError(t, err)
			require.Len(t, found, 1)
			comparePacked(t, found[0], c.name, c.containers, c.endpoints)
		})
	}
}

func comparePacked(t *testing.T, file, name string, containers []string, endpoints int) {
	t.Helper()
	juju, err := charm.ReadCharmArchive(file)
	require.NoError(t, err)
	require.NoError(t, charm.CheckMeta(juju))
	ours, err := model.ReadCharm(file)
	require.NoError(t, err)
	meta := juju.Meta()
	require.Equal(t, name, meta.Name)
	require.Equal(t, meta.Name, ours.Meta.Name)
	require.Equal(t, containers, slices.Sorted(maps.Keys(meta.Containers)))
	require.Equal(t, slices.Sorted(maps.Keys(meta.Containers)), slices.Sorted(maps.Keys(ours.Meta.Containers)))
	require.GreaterOrEqual(t, len(meta.CombinedRelations()), endpoints)
	for endpoint, r := range meta.CombinedRelations() {
		if endpoint == "juju-info" {
			continue
		}
		require.Equal(t, r.Interface, ours.Meta.Endpoints[endpoint].Interface, endpoint)
		require.Equal(t, string(r.Role), string(ours.Meta.Endpoints[endpoint].Role), endpoint)
	}
	for option, o := range juju.Config().Options {
		require.Equal(t, o.Type, ours.Config[option].Type, option)
	}
	require.Len(t, ours.Config, len(juju.Config().Options))
	require.Equal(t, slices.Sorted(maps.Keys(juju.Actions().ActionSpecs)), slices.Sorted(maps.Keys(ours.Actions)))
	require.NotEmpty(t, juju.Manifest().Bases)
	require.Len(t, ours.Bases, len(juju.Manifest().Bases))
	require.Equal(t, juju.Manifest().Bases[0].Name, ours.Bases[0].Name)
}
