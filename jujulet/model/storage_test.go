// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// charmOf writes and reads a charm with more metadata.
func charmOf(t *testing.T, name, meta string) (*Charm, error) {
	t.Helper()
	return ReadCharm(writeCharm(t, map[string]string{
		"metadata.yaml": fmt.Sprintf("name: %s\nsummary: s\ndescription: d\n%s", name, meta),
		"config.yaml":   "options:\n  s: {type: string, default: x}\n", "dispatch": "#!/bin/sh\n",
	}))
}

func TestStorage_Metadata(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{type: tape}":                `metadata: storage.data.type: unexpected value "tape"`,
		"{}":                          `metadata: storage.data.type: unexpected value <nil>`,
		"{type: block, location: /x}": `charm "foo" storage "data": location may not be specified for "type: block"`,
		"{type: filesystem, multiple: {range: x}}":                    `metadata: storage.data.multiple.range: value "x" does not match 'm', 'm-n', or 'm+'`,
		"{type: filesystem, multiple: {range: 0}}":                    `metadata: storage.data.multiple.range: invalid count 0`,
		"{type: filesystem, multiple: {range: 0-0}}":                  `charm "foo" storage "data": invalid maximum count 0`,
		"{type: filesystem, minimum-size: 3X}":                        `metadata: invalid multiplier suffix "X", expected one of MGTPEZY`,
		"{type: filesystem, properties: [fast]}":                      `metadata: storage.data.properties[0]: unexpected value "fast"`,
		"{type: filesystem, multiple: {range: 9999999999999999999-}}": `metadata: storage.data.multiple.range: value "9999999999999999999-" is out of range`,
	} {
		_, err := charmOf(t, "foo", "storage:\n  data: "+text+"\n")
		require.EqualError(t, err, want, text)
	}
	c, err := charmOf(t, "foo", `storage:
  a: {type: filesystem, location: /srv/a, read-only: true, minimum-size: 1.5G, description: A., properties: [transient]}
  b: {type: filesystem, multiple: {range: 0-3}, location: /srv/b}
  c: {type: filesystem, multiple: {range: 2+}}
  d: {type: filesystem, multiple: {range: 2}}
`)
	require.NoError(t, err)
	require.Equal(t, Storage{
		Name: "a", Type: "filesystem", Description: "A.", Location: "/srv/a", ReadOnly: true, CountMin: 1, CountMax: 1,
		MinimumSize: 1536, Properties: []string{"transient"},
	}, c.Meta.Storage["a"])
	counts := map[string][2]int{}
	points := map[string]string{}
	for name, s := range c.Meta.Storage {
		counts[name], points[name] = [2]int{s.CountMin, s.CountMax}, s.mountPoint()
	}
	require.Equal(t, map[string][2]int{"a": {1, 1}, "b": {0, 3}, "c": {2, Unbounded}, "d": {2, 2}}, counts)
	require.Equal(t, map[string]string{
		"a": "/srv/a", "b": "/srv/b/b/0", "c": "/var/lib/juju/storage/c/0", "d": "/var/lib/juju/storage/d/0",
	}, points)
}

func TestStorage_Specs(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]StorageSpec{
		"10G": {Size: 10240, Count: 1}, "kubernetes,2,512M": {Pool: "kubernetes", Size: 512, Count: 2}, "3": {Count: 3},
		"0.5G,kubernetes": {Pool: "kubernetes", Size: 512, Count: 1},
	} {
		got, err := ParseStorageSpec(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for text, want := range map[string]string{
		"":      "storage constraints require at least one field to be specified",
		"0":     `cannot parse count: count must be greater than zero, got "0"`,
		"-1":    `cannot parse count: count must be greater than zero, got "-1"`,
		"a,b":   `pool name is already set to "a", new value "b" not valid`,
		"1,2":   "storage instance count is already set to 1, new value 2 not valid",
		"1G,2G": "storage size is already set to 1024, new value 2048 not valid",
		"1$":    `unrecognized storage constraint "1$" not valid`,
	} {
		_, err := ParseStorageSpec(text)
		require.EqualError(t, err, want, text)
	}
	_, err := ParseStorageSpecs([]string{"data"}, true)
	require.EqualError(t, err, `expected "name=constraints" where "constraints" must be specified, got "data"`)
	_, err = ParseStorageSpecs([]string{"data=1", "data=2"}, true)
	require.EqualError(t, err, `storage "data" specified more than once`)
	for size, want := range map[uint64]string{0: "", 1: "1.0 MiB", 20: "20 MiB", 1023: "1023 MiB", 1024: "1.0 GiB", 10240: "10 GiB", 1536: "1.5 GiB"} {
		require.Equal(t, want, HumanStorageSize(size))
	}
}

func TestStorage_DeployRefusals(t *testing.T) {
	f := newModel(t)
	for _, c := range []struct {
		meta, want string
		given      map[string]StorageSpec
	}{
		{"{type: block}", `block storage "data" is not supported for container charms`, nil},
		{"{type: filesystem, shared: true}", `no constraints specified for shared charm storage "data"`, nil},
		{"{type: filesystem, shared: true}", `charm "foo" store "data": shared storage support not implemented`, map[string]StorageSpec{"data": {Count: 1}}},
		{"{type: filesystem}", `charm "foo" has no store called "other"`, map[string]StorageSpec{"other": {Count: 1}}},
		{"{type: filesystem}", `charm "foo" store "data": storage is singular, 2 specified`, map[string]StorageSpec{"data": {Count: 2}}},
		{"{type: filesystem, multiple: {range: 0-1}}", `charm "foo" store "data": at most 1 instances supported, 2 specified`, map[string]StorageSpec{"data": {Count: 2}}},
		{"{type: filesystem, multiple: {range: 2-}}", `charm "foo" store "data": 2 instances required, 1 specified`, map[string]StorageSpec{"data": {Count: 1}}},
		{"{type: filesystem, multiple: {range: 2-}}", `charm "foo" store "data": duplicated storage name "data": 2 instances of one storage are not supported for container charms`, nil},
		{"{type: filesystem, minimum-size: 1G}", `charm "foo" store "data": minimum storage size is 1.0 GB, 512 MB specified`, map[string]StorageSpec{"data": {Size: 512, Count: 1}}},
		{"{type: filesystem}", `pool "ebs" not found`, map[string]StorageSpec{"data": {Pool: "ebs", Count: 1}}},
		{"{type: filesystem}", `storage pool "tmpfs" is not supported here`, map[string]StorageSpec{"data": {Pool: "tmpfs", Count: 1}}},
		{"{type: filesystem, location: /var/lib/juju/storage/x}", `invalid location "/var/lib/juju/storage/x": must not fall within "/var/lib/juju/storage"`, nil},
		{"{type: filesystem, location: /}", `storage "data": invalid location "/": must be an absolute path other than "/"`, nil},
		{"{type: filesystem, location: /x/../proc/1}", `storage "data": invalid location "/x/../proc/1": must not fall within "/proc"`, nil},
	} {
		charm, err := charmOf(t, "foo", "storage:\n  data: "+c.meta+"\n")
		require.NoError(t, err)
		require.EqualError(t, f.Deploy(DeployArgs{Charm: charm, Units: 1, Storage: c.given}), c.want, c.meta)
	}
}

// attached lists the instances by what they are attached to.
func (f *fixture) attached() map[string]string {
	f.t.Helper()
	s, err := f.Status()
	require.NoError(f.t, err)
	out := map[string]string{}
	for _, i := range s.Storage {
		out[i.ID] = i.Unit
	}
	return out
}

func TestStorage_Life(t *testing.T) {
	f := newModel(t)
	charm, err := charmOf(t, "foo", "storage:\n  data: {type: filesystem}\n  logs: {type: filesystem}\n  opt: {type: filesystem, multiple: {range: 0-1}}\n")
	require.NoError(t, err)
	require.NoError(t, f.Deploy(DeployArgs{Charm: charm, Units: 2}))
	require.Equal(t, map[string]string{"data/0": "foo/0", "logs/1": "foo/0", "data/2": "foo/1", "logs/3": "foo/1"}, f.attached())
	s, err := f.Snapshot(t.Context(), "foo/1")
	require.NoError(t, err)
	require.Equal(t, []string{"data/2", "logs/3"}, s.Storage)
	info, err := f.ContextInfo(t.Context(), "foo/1")
	require.NoError(t, err)
	require.Equal(t, StorageView{Kind: "filesystem", Location: "/var/lib/juju/storage/data/0"}, info.Storage["data/2"])
	require.EqualError(t, f.RemoveStorage("data/0"), "storage is attached")

	// A unit that goes leaves its storage, and the next of its number has it again.
	gone := func() {
		require.NoError(t, f.MarkDead(t.Context(), "foo/1"))
		require.NoError(t, f.UnitGone("foo/1"))
	}
	require.NoError(t, f.Scale("foo", 1))
	_, err = f.CommitHook(t.Context(), "foo/1", HookCommit{DetachStorage: "data/2"})
	require.NoError(t, err)
	require.Equal(t, "", f.attached()["data/2"])
	gone()
	require.Equal(t, map[string]string{"data/0": "foo/0", "logs/1": "foo/0", "data/2": "", "logs/3": ""}, f.attached())
	require.NoError(t, f.Scale("foo", 3))
	require.Equal(t, map[string]string{
		"data/0": "foo/0", "logs/1": "foo/0", "data/2": "foo/1", "logs/3": "foo/1", "data/4": "foo/2", "logs/5": "foo/2",
	}, f.attached())

	// Destroyed storage stays until the pod is gone.
	require.NoError(t, f.RemoveApplicationWith("foo", RemoveArgs{DestroyStorage: true}))
	require.Len(t, f.attached(), 6)
	for i := range 3 {
		require.NoError(t, f.RemoveUnitNow(fmt.Sprintf("foo/%d", i)))
		require.Len(t, f.attached(), 4-2*i)
	}

	// An application of the same name does not get what another one left.
	require.NoError(t, f.Deploy(DeployArgs{Charm: charm, Units: 1}))
	require.NoError(t, f.RemoveApplication("foo"))
	require.NoError(t, f.RemoveUnitNow("foo/0"))
	require.NoError(t, f.Deploy(DeployArgs{Charm: charm, Units: 1, Storage: map[string]StorageSpec{"opt": {Count: 1}}}))
	require.Equal(t, map[string]string{"data/6": "", "logs/7": "", "data/8": "foo/0", "logs/9": "foo/0", "opt/10": "foo/0"}, f.attached())
	require.NoError(t, f.RemoveStorage("data/6"))
	require.ElementsMatch(t, []string{"logs/7", "data/8", "logs/9", "opt/10"}, slices.Collect(maps.Keys(f.attached())))
}

func TestRefresh_Rules(t *testing.T) {
	f := newModel(t)
	f.deploy("foo", "provides:\n  db: {interface: i}\npeers:\n  old: {interface: mates}\n", 1)
	f.deploy("bar", "requires:\n  db: {interface: i}\n", 1)
	_, err := f.Integrate("foo", "bar")
	require.NoError(t, err)
	refresh := func(meta string, a RefreshArgs) (int, error) {
		c, err := charmOf(t, "foo", meta)
		require.NoError(t, err)
		a.App, a.Charm = "foo", c
		return f.Refresh(a)
	}
	other, err := charmOf(t, "other", "")
	require.NoError(t, err)
	_, err = f.Refresh(RefreshArgs{App: "foo", Charm: other})
	require.EqualError(t, err, `cannot refresh "foo" to "other"`)
	_, err = refresh("", RefreshArgs{})
	require.EqualError(t, err, `updating charm config: cannot upgrade application "foo" to charm "local:foo-1": would break relation "bar:db foo:db"`)
	_, err = refresh("provides:\n  db: {interface: i}\nstorage:\n  data: {type: filesystem}\n", RefreshArgs{})
	require.ErrorContains(t, err, "Juju on containers does not support updating storage on a statefulset.")
	_, err = refresh("provides:\n  db: {interface: i}\n", RefreshArgs{Config: map[string]string{"z": "1"}})
	require.EqualError(t, err, `unknown option "z"`)

	// A refusal takes no number. Options that the new charm has not are gone, peer relations follow the charm.
	require.NoError(t, f.SetConfig("foo", map[string]string{"s": "kept", "i": "7"}))
	trust := true
	revision, err := refresh("provides:\n  db: {interface: i}\npeers:\n  new: {interface: mates}\n", RefreshArgs{Trust: &trust})
	require.NoError(t, err)
	require.Equal(t, 1, revision)
	s, err := f.Status()
	require.NoError(t, err)
	app := s.Applications["foo"]
	require.Equal(t, "local:foo-1", app.Charm)
	require.Equal(t, 2, app.CharmVersion)
	require.True(t, app.Trust)
	require.Len(t, app.Config, 1)
	require.Equal(t, "kept", app.Config[0].Value)
	var peers []string
	for _, r := range s.Relations {
		if len(r.Ends) == 1 {
			peers = append(peers, r.Ends[0].String())
		}
	}
	require.Equal(t, []string{"foo:new"}, peers)
	// Another application of the charm has the next number.
	c, err := charmOf(t, "foo", "")
	require.NoError(t, err)
	require.NoError(t, f.Deploy(DeployArgs{App: "third", Charm: c}))
	s, err = f.Status()
	require.NoError(t, err)
	require.Equal(t, "local:foo-2", s.Applications["third"].Charm)
}

// TestRefresh_Outdated: a unit in a pod of before goes on with the charm and the
// settings that it has.
func TestRefresh_Outdated(t *testing.T) {
	f := newModel(t)
	f.deploy("foo", "", 1)
	old, err := f.CharmOf("foo")
	require.NoError(t, err)
	require.NoError(t, f.SetPodStatus("foo/0", PodStatus{Address: "10.1.0.9", UID: "1", CharmVersion: 1}))
	require.NoError(t, f.Save(t.Context(), "foo/0", Save{State: &UnitState{Charm: old.Hash, Kind: OpContinue, Installed: true}}))
	require.NoError(t, f.SetConfig("foo", map[string]string{"i": "7"}))
	before, err := f.Snapshot(t.Context(), "foo/0")
	require.NoError(t, err)
	require.False(t, before.Outdated)
	c, err := charmOf(t, "foo", "")
	require.NoError(t, err)
	_, err = f.Refresh(RefreshArgs{App: "foo", Charm: c, Config: map[string]string{"s": "new"}})
	require.NoError(t, err)
	during, err := f.Snapshot(t.Context(), "foo/0")
	require.NoError(t, err)
	require.True(t, during.Outdated)
	require.Equal(t, old.Hash, during.Charm)
	require.Equal(t, before.ConfigHash, during.ConfigHash, "no config-changed in the old pod")
	config, err := f.Config(t.Context(), "foo/0")
	require.NoError(t, err)
	require.EqualValues(t, 7, config["i"])
	require.Equal(t, "x", config["s"])
	require.NoError(t, f.SetPodStatus("foo/0", PodStatus{Address: "10.1.0.10", UID: "2", CharmVersion: 2}))
	after, err := f.Snapshot(t.Context(), "foo/0")
	require.NoError(t, err)
	require.False(t, after.Outdated)
	require.Equal(t, c.Hash, after.Charm)
	config, err = f.Config(t.Context(), "foo/0")
	require.NoError(t, err)
	require.Equal(t, map[string]any{"s": "new"}, config)
}
