// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package agent_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

const storageMeta = "storage:\n  data: {type: filesystem, location: /srv/data}\npeers:\n  mates: {interface: m}\n"

const storageScript = `
case "$hook" in
data-storage-*) say "$JUJU_STORAGE_ID $JUJU_STORAGE_KIND $JUJU_STORAGE_LOCATION $(storage-get location)"
	[ ! -e "$DIR/fail" ];;
install) say "list $(storage-list)";;
esac`

func TestAgent_Storage(t *testing.T) {
	w := newWorld(t)
	w.deploy(charm{name: "foo", meta: storageMeta, script: storageScript}, 2)
	w.settle("foo/0")
	require.Equal(t, []string{
		"install", "mates-relation-created [,foo]", "leader-elected", "data-storage-attached", "config-changed", "start",
	}, w.trace("foo/0"))
	require.Equal(t, []string{"list data/0", "data/0 filesystem /srv/data /srv/data"}, w.said("foo/0"))
	w.settle("foo/1")
	w.settleAll("foo/0", "foo/1")
	w.trace("foo/0")
	w.trace("foo/1")

	// Another pod has the same storage: no hook tells of it again.
	w.newPod("foo/0")
	w.settle("foo/0")
	require.Equal(t, []string{"upgrade-charm", "config-changed", "start"}, w.trace("foo/0"))

	// A dying unit hears of its storage before its relations end.
	require.NoError(t, w.model.Scale("foo", 1))
	w.settleAll("foo/0", "foo/1")
	require.Equal(t, []string{
		"data-storage-detaching", "mates-relation-departed [foo/0,foo] departing=foo/1", "stop", "remove",
	}, w.trace("foo/1"))
	require.NoError(t, w.model.UnitGone("foo/1"))

	// The unit that comes back is told of what the one before had.
	require.NoError(t, w.model.Scale("foo", 2))
	w.newPod("foo/1")
	w.said("foo/1")
	w.settle("foo/1")
	require.Contains(t, w.trace("foo/1"), "data-storage-attached")
	require.Equal(t, []string{"list data/1", "data/1 filesystem /srv/data /srv/data"}, w.said("foo/1"))
}

// TestAgent_StorageFails: the hook is retried, and its error is told without the
// name of the storage (trap 34).
func TestAgent_StorageFails(t *testing.T) {
	w := newWorld(t)
	w.deploy(charm{name: "foo", meta: storageMeta, script: storageScript}, 1)
	w.touch("fail")
	w.settle("foo/0")
	require.Equal(t, `hook failed: "storage-attached"`, w.unit("foo/0").Workload.Message)
	require.NoError(t, w.model.Fire("foo/0", "data-storage-detaching", map[string]string{"storage": "data/0"}))
	w.untouch("fail")
	require.NoError(t, w.model.Resolve("foo/0", model.ResolveRetry))
	w.settle("foo/0")
	trace := w.trace("foo/0")
	require.Equal(t, []string{"data-storage-attached", "data-storage-attached"}, trace[3:5])
	require.Contains(t, trace, "data-storage-detaching")
	require.Equal(t, "start", trace[len(trace)-1])
	s, err := w.model.Status()
	require.NoError(t, err)
	require.Equal(t, "foo/0", s.Storage[0].Unit, "a fired hook detaches nothing")
}

// TestAgent_Outdated: an agent in a pod that is to be replaced goes on with its old
// charm; one that begins there waits for the end.
func TestAgent_Outdated(t *testing.T) {
	w := newWorld(t)
	foo := charm{name: "foo", meta: "peers:\n  mates: {interface: m}\n", config: "options:\n  s: {type: string, default: x}\n", script: `say "$hook $(config-get s)"`}
	w.deploy(foo, 1)
	require.NoError(t, w.model.SetPodStatus("foo/0", model.PodStatus{Address: "10.1.0.2", UID: "1", CharmVersion: 1}))
	w.settle("foo/0")
	w.said("foo/0")
	foo.meta += "  rivals: {interface: r}\n"
	_, err := w.model.Refresh(model.RefreshArgs{App: "foo", Charm: w.read(foo), Config: map[string]string{"s": "new"}})
	require.NoError(t, err)
	w.agent("foo/0").Tick()
	w.settle("foo/0")
	require.Equal(t, []string{"update-status x"}, w.said("foo/0"), "no upgrade, and the options as they were")
	w.bounce("foo/0")
	w.agent("foo/0").Tick()
	require.Empty(t, w.settle("foo/0"), "an agent that begins now only waits")
	w.agent("foo/0").Shutdown()
	require.Equal(t, []string{"stopped"}, w.settle("foo/0"))
	w.newPod("foo/0")
	require.NoError(t, w.model.SetPodStatus("foo/0", model.PodStatus{Address: "10.1.0.3", UID: "2", CharmVersion: 2}))
	w.settle("foo/0")
	require.Equal(t, []string{"upgrade-charm new", "config-changed new", "start new", "rivals-relation-created new"}, w.said("foo/0"))
}

// TestAgent_RefreshInError: the hook that has failed runs again with the new charm,
// and upgrade-charm does not.
func TestAgent_RefreshInError(t *testing.T) {
	w := newWorld(t)
	foo := charm{name: "foo", script: `[ "$hook" != config-changed ] || exit 1`}
	w.deploy(foo, 1)
	w.settle("foo/0")
	w.trace("foo/0")
	foo.script = "true"
	_, err := w.model.Refresh(model.RefreshArgs{App: "foo", Charm: w.read(foo)})
	require.NoError(t, err)
	w.agent("foo/0").Shutdown()
	require.Equal(t, []string{"stopped"}, w.settle("foo/0"), "no stop hook in error")
	w.newPod("foo/0")
	w.settle("foo/0")
	require.Equal(t, "error", w.unit("foo/0").Workload.Status)
	require.NoError(t, w.model.Resolve("foo/0", model.ResolveRetry))
	w.settle("foo/0")
	require.Equal(t, []string{"config-changed", "start"}, w.trace("foo/0"))
}
