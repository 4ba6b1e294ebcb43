// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package controller_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// storeCharm writes a charm with storage that its container has, too; more is
// added to its metadata.
func storeCharm(t *testing.T, more string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"manifest.yaml": "bases:\n- {name: ubuntu, channel: 22.04/stable, architectures: [amd64]}\n",
		"config.yaml":   "options:\n  greeting: {type: string, default: hello, description: What is said.}\n",
		"metadata.yaml": `name: store
summary: s
description: d
containers:
  web: {resource: web-image, mounts: [{storage: data, location: /srv/data}]}
resources:
  web-image: {type: oci-image}
storage:
  data: {type: filesystem, minimum-size: 10M}
  spare: {type: filesystem, multiple: {range: 0-1}}
peers:
  friends: {interface: friends}
` + more,
		"dispatch": `#!/bin/sh
set -e
case "$JUJU_DISPATCH_PATH" in
hooks/data-storage-attached)
	test "$(storage-get location)" = "$JUJU_STORAGE_LOCATION"
	test "$(storage-list)" = "$JUJU_STORAGE_ID"
	echo "$JUJU_STORAGE_ID $JUJU_STORAGE_KIND $JUJU_UNIT_NAME" >> "$JUJU_STORAGE_LOCATION/attached"
	;;
hooks/config-changed) status-set active "$(config-get greeting)" ;;
esac
`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755))
	}
	return dir
}

// hooks lists what units have run since an entry of the journal.
func (c *cluster) hooks(t *testing.T, since uint64) (hooks []string, last uint64) {
	t.Helper()
	last = since
	require.NoError(t, c.Journal(t.Context(), control.JournalRequest{Since: since}, func(e model.JournalEntry) error {
		hooks, last = append(hooks, e.Unit+" "+e.Hook), e.Seq
		return nil
	}))
	return hooks, last
}

// of keeps the hooks of one unit.
func of(unit string, hooks []string) []string {
	var out []string
	for _, h := range hooks {
		if hook, own := strings.CutPrefix(h, unit+" "); own && hook != "web-pebble-ready" {
			out = append(out, hook)
		}
	}
	return out
}

func TestStorageAndRefresh(t *testing.T) {
	c := newCluster(t)
	ctx := t.Context()
	_, err := c.Deploy(ctx, control.DeployRequest{
		Charm: storeCharm(t, ""), Units: 2, Resources: map[string]string{"web-image": "host"}, Storage: []string{"data=20M"},
	})
	require.NoError(t, err)
	both := func(message string) func(model.Status) bool {
		return func(s model.Status) bool { return settled(s, "store/0", message) && settled(s, "store/1", message) }
	}
	c.await(t, "deployed", both("hello"))
	for _, step := range []struct {
		name string
		run  func(*testing.T, *cluster)
	}{
		{"attached", testAttached},
		{"kill pod", testStorageKept},
		{"refresh", func(t *testing.T, c *cluster) { testRefresh(t, c, both) }},
		{"attach-resource", func(t *testing.T, c *cluster) { testAttachResource(t, c, both) }},
		{"scale", func(t *testing.T, c *cluster) { testStorageScale(t, c, both) }},
		{"destroy", testDestroyStorage},
	} {
		t.Run(step.name, func(t *testing.T) { step.run(t, c) })
	}
}

func testAttached(t *testing.T, c *cluster) {
	hooks, _ := c.hooks(t, 0)
	for _, unit := range []string{"store/0", "store/1"} {
		run := of(unit, hooks)
		require.Equal(t, []string{"install", "friends-relation-created"}, run[:2])
		require.Equal(t, []string{"data-storage-attached", "config-changed", "start"}, run[3:6], "after leadership, before config-changed")
		out, code := c.run(t, unit, "web", "cat", "/srv/data/attached")
		require.Zero(t, code, out)
		require.Contains(t, out, "filesystem "+unit)
		require.Equal(t, 1, strings.Count(out, "\n"))
	}
	s, err := c.Status(t.Context())
	require.NoError(t, err)
	require.Len(t, s.Storage, 2)
	require.Equal(t, "attached", s.Storage[0].Status.Status)
	require.Equal(t, uint64(20), s.Storage[0].Size)
	require.Equal(t, "/var/lib/juju/storage/data/0", s.Storage[1].Location)
	info, err := os.Stat(filepath.Join(c.state, "storage"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm(), "nobody else may look")
}

// testStorageKept: what was written is there in the next pod, and no storage hook
// runs again.
func testStorageKept(t *testing.T, c *cluster) {
	old := c.pod(t, "store/0")
	_, last := c.hooks(t, 0)
	require.NoError(t, c.Kill(t.Context(), control.KillPod, "store/0"))
	c.await(t, "made again", func(s model.Status) bool {
		u := s.Applications["store"].Units["store/0"]
		return u.Pod.UID != "" && u.Pod.UID != old.UID && u.Idle && settled(s, "store/0", "hello")
	})
	out, code := c.run(t, "store/0", "charm", "cat", "/var/lib/juju/storage/data/0/attached")
	require.Zero(t, code, out)
	require.Contains(t, out, "store/0")
	hooks, _ := c.hooks(t, last)
	run := of("store/0", hooks)
	require.Equal(t, []string{"upgrade-charm", "config-changed", "start"}, run[:3])
	require.NotContains(t, run, "data-storage-attached")
}

// replaced checks that the pods were replaced one after the other, store/1 first,
// and what ran in them.
func replaced(t *testing.T, hooks []string, more ...string) {
	t.Helper()
	want := append([]string{"stop", "upgrade-charm", "config-changed", "start"}, more...)
	first, second := of("store/1", hooks), of("store/0", hooks)
	require.Subset(t, first, want)
	require.Equal(t, want[:4], first[:4], "store/1")
	require.Equal(t, want[:4], second[:4], "store/0")
	at := func(hook string) int {
		for i, h := range hooks {
			if h == hook {
				return i
			}
		}
		return -1
	}
	require.Less(t, at("store/1 stop"), at("store/0 stop"), "the highest ordinal first")
}

func testRefresh(t *testing.T, c *cluster, both func(string) func(model.Status) bool) {
	ctx := t.Context()
	_, err := c.Refresh(ctx, control.RefreshRequest{Application: "store", Charm: trivial})
	require.ErrorContains(t, err, `cannot refresh "store" to "trivial"`)
	changed := storeCharm(t, "")
	raw, err := os.ReadFile(filepath.Join(changed, "metadata.yaml"))
	require.NoError(t, err)
	other := strings.Replace(string(raw), "minimum-size: 10M", "minimum-size: 11M", 1)
	require.NoError(t, os.WriteFile(filepath.Join(changed, "metadata.yaml"), []byte(other), 0o644))
	_, err = c.Refresh(ctx, control.RefreshRequest{Application: "store", Charm: changed})
	require.ErrorContains(t, err, "Juju on containers does not support updating storage on a statefulset.")

	before, err := c.Status(ctx)
	require.NoError(t, err)
	_, last := c.hooks(t, 0)
	result, err := c.Refresh(ctx, control.RefreshRequest{
		Application: "store", Charm: storeCharm(t, "  rivals: {interface: rivals}\n"), Config: map[string]string{"greeting": "again"},
	})
	require.NoError(t, err)
	require.Equal(t, 1, result.Revision)
	after := c.await(t, "refreshed", func(s model.Status) bool {
		for name, u := range s.Applications["store"].Units {
			if u.Pod.UID == before.Applications["store"].Units[name].Pod.UID || !u.Idle {
				return false
			}
		}
		return both("again")(s)
	})
	require.Equal(t, "local:store-1", after.Applications["store"].Charm)
	hooks, _ := c.hooks(t, last)
	replaced(t, hooks, "rivals-relation-created")
	require.NotContains(t, strings.Join(hooks, "\n"), "storage-attached")
	out, code := c.run(t, "store/1", "web", "cat", "/srv/data/attached")
	require.Zero(t, code, out)
}

// testAttachResource: other resources are other pods, of the same revision.
func testAttachResource(t *testing.T, c *cluster, both func(string) func(model.Status) bool) {
	ctx := t.Context()
	before, err := c.Status(ctx)
	require.NoError(t, err)
	_, last := c.hooks(t, 0)
	require.NoError(t, c.AttachResource(ctx, control.ResourceRequest{
		Application: "store", Resources: map[string]string{"web-image": "host"},
	}))
	after := c.await(t, "replaced", func(s model.Status) bool {
		for name, u := range s.Applications["store"].Units {
			if u.Pod.UID == before.Applications["store"].Units[name].Pod.UID || !u.Idle {
				return false
			}
		}
		return both("again")(s)
	})
	require.Equal(t, "local:store-1", after.Applications["store"].Charm)
	hooks, _ := c.hooks(t, last)
	replaced(t, hooks)
}

// testStorageScale: the unit that comes back finds what the one of its number had.
func testStorageScale(t *testing.T, c *cluster, both func(string) func(model.Status) bool) {
	ctx := t.Context()
	_, last := c.hooks(t, 0)
	require.NoError(t, c.Scale(ctx, "store", 1))
	s := c.await(t, "scaled down", func(s model.Status) bool { return len(s.Applications["store"].Units) == 1 })
	hooks, _ := c.hooks(t, last)
	require.Equal(t, "data-storage-detaching", of("store/1", hooks)[0], "before the relations end")
	require.Len(t, s.Storage, 2)
	left := s.Storage[1]
	if left.Unit != "" {
		left = s.Storage[0]
	}
	require.Equal(t, "detached", left.Status.Status)
	err := c.RemoveStorage(ctx, "data/99")
	require.ErrorContains(t, err, "not found")
	require.NoError(t, c.Scale(ctx, "store", 2))
	s = c.await(t, "scaled up", both("again"))
	require.Len(t, s.Storage, 2)
	out, code := c.run(t, "store/1", "web", "cat", "/srv/data/attached")
	require.Zero(t, code, out)
	require.Equal(t, strings.Repeat(left.ID+" filesystem store/1\n", 2), out, "the same instance, attached twice")
}

func testDestroyStorage(t *testing.T, c *cluster) {
	ctx := t.Context()
	folders := func() int {
		volumes, err := filepath.Glob(filepath.Join(c.state, "storage", "*", "pvc-*"))
		require.NoError(t, err)
		return len(volumes)
	}
	require.Equal(t, 2, folders())
	require.NoError(t, c.Scale(ctx, "store", 1))
	c.await(t, "scaled down", func(s model.Status) bool { return len(s.Applications["store"].Units) == 1 })
	require.NoError(t, c.RemoveApplication(ctx, control.RemoveRequest{Application: "store"}))
	s := c.await(t, "removed", func(s model.Status) bool { return len(s.Applications) == 0 })
	require.Len(t, s.Storage, 2)
	require.Equal(t, 2, folders())
	require.NoError(t, c.RemoveStorage(ctx, s.Storage[0].ID))
	require.Eventually(t, func() bool { return folders() == 1 }, 10*time.Second, 20*time.Millisecond)
	_, err := c.Deploy(ctx, control.DeployRequest{Charm: storeCharm(t, ""), Units: 1, Resources: map[string]string{"web-image": "host"}})
	require.NoError(t, err)
	s = c.await(t, "deployed anew", func(s model.Status) bool { return settled(s, "store/0", "hello") })
	require.Len(t, s.Storage, 2, "an application of the same name gets storage of its own")
	require.Equal(t, "local:store-2", s.Applications["store"].Charm)
	require.NoError(t, c.RemoveApplication(ctx, control.RemoveRequest{Application: "store", DestroyStorage: true}))
	s = c.await(t, "destroyed", func(s model.Status) bool { return len(s.Applications) == 0 })
	require.Len(t, s.Storage, 1)
	require.Eventually(t, func() bool { return folders() == 1 }, 10*time.Second, 20*time.Millisecond)
}
