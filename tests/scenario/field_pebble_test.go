// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package scenario

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
	"github.com/drawbridge-k8s/drawbridge/tests/world"
)

// The tests of this file are cases of Pebble, of its notices and of containers
// that are not there.

func TestField_142_143_NoticesAreHints(t *testing.T) {
	t.Parallel()
	w := published(t, 1)
	mark, status := w.Mark(), w.Status(w.Leader())
	for _, args := range []map[string]string{
		{"notice-id": "1", "notice-key": "drawbridge-k8s.charm/exposure"},
		{"notice-id": "999999", "notice-key": "drawbridge-k8s.charm/exposure"}, // its change is gone
		{"notice-id": "2", "notice-key": "example.com/of-somebody-else"},
		{"notice-id": "", "notice-key": ""},
		{"notice-id": "x\ny", "notice-key": "\x00\x1b[31m"},
	} {
		require.NoError(t, w.Model.Fire(w.Leader(), "gateway-pebble-custom-notice", args))
		noneFailed(t, w.Settle())
	}
	require.Empty(t, w.Changes(mark))
	require.Equal(t, status, w.Status(w.Leader()))
}

// everyHook are the hooks that a unit can be made to run at any time.
var everyHook = []string{
	"install", "leader-elected", "config-changed", "start", "upgrade-charm", "update-status", "leader-settings-changed",
	"database-relation-created", "database-relation-changed", "backend-database-relation-created",
	"backend-database-relation-changed", "drawbridge-peers-relation-created", "drawbridge-peers-relation-changed",
	"gateway-pebble-ready", "gateway-pebble-custom-notice", "gateway-pebble-check-failed", "gateway-pebble-check-recovered",
}

func TestField_145_148_NoPebbleAndAnEmptyDisk(t *testing.T) {
	t.Parallel()
	w := world.New(t, world.Options{Pebble: true})
	w.Standard(1)
	unit := w.Leader()
	_, err := os.Stat(filepath.Dir(w.PebbleSocket(unit)))
	require.ErrorIs(t, err, os.ErrNotExist, "not even the folder is there")
	for _, hook := range everyHook {
		noneFailed(t, w.Hook(unit, hook))
		require.Equal(t, "maintenance waiting for the gateway container", w.Status(unit), hook)
	}
	w.Scale(0)
	noneFailed(t, w.Settle())
}

func TestField_146_PebbleGoesInTheMiddle(t *testing.T) {
	t.Parallel()
	w := world.New(t, world.Options{Pebble: true})
	w.Standard(1)
	unit := w.Leader()
	socket := w.PebbleSocket(unit)
	require.NoError(t, os.MkdirAll(filepath.Dir(socket), 0o755))
	listener, err := net.Listen("unix", socket)
	require.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	answered := make(chan bool, 100)
	go func() {
		for first := true; ; first = false {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			if first {
				buffer := make([]byte, 4096)
				_, _ = conn.Read(buffer)
				_, _ = conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: 83\r\n\r\n" +
					`{"type":"sync","status-code":200,"status":"OK","result":{"version":"v1.7.0","x":1}}`))
				answered <- true
			}
			conn.Close()
		}
	}()
	for range 3 {
		noneFailed(t, w.Round())
	}
	require.NotEmpty(t, answered, "it was asked")
	status := w.Status(unit)
	require.True(t, strings.HasPrefix(status, "maintenance ") || strings.HasPrefix(status, "waiting "), status)
	require.Equal(t, world.InModel+":6446", w.Endpoints(), "Kubernetes and the clients are another matter")
}

func TestField_149_ContainerDownWhileTheServiceChanges(t *testing.T) {
	t.Parallel()
	w := world.New(t, world.Options{})
	w.Standard(1)
	unit := w.Leader()
	w.WorkloadOf(unit).Down = true
	w.Config("expose-external", "loadbalancer")
	noneFailed(t, w.Settle())
	require.Equal(t, corev1.ServiceTypeLoadBalancer, w.Live().Spec.Type, "the Service does not wait for the container")
	require.Equal(t, "true", w.Peer()["service-pending"])
	w.Ingress(lbFirst) // nothing answers there without the gateway
	w.Notice(unit)
	require.Equal(t, world.InModel+":6446", w.Endpoints())
	require.Contains(t, w.Status(unit), "maintenance ")
	w.WorkloadOf(unit).Down = false
	w.Answer(ports(lbFirst)...)
	w.Ready(unit, "gateway")
	require.Equal(t, lbFirst+":6446", w.Endpoints())
	require.Contains(t, w.Status(unit), "active ")
}

// TestField_49_FirstHooksTellTheTruth lets no update-status run.
func TestField_49_FirstHooksTellTheTruth(t *testing.T) {
	t.Parallel()
	w := world.New(t, world.Options{})
	w.Deploy(world.Gateway, world.Gateway, 1, nil)
	w.Settle()
	w.Ready(world.Gateway+"/0", "gateway")
	alone := w.Status(world.Gateway + "/0")
	require.True(t, strings.HasPrefix(alone, "blocked "), alone)
	require.Contains(t, alone, "backend-database")
	w.Round()
	require.Equal(t, alone, w.Status(world.Gateway+"/0"), "it was final")
	w.Deploy(world.Backend, world.Backend, 1, nil)
	w.Integrate(world.Gateway+":backend-database", world.Backend+":database")
	for _, ran := range w.Settle() {
		require.NotContains(t, ran, "update-status")
	}
	settled := w.Status(world.Gateway + "/0")
	require.Contains(t, settled, "active ")
	w.Round()
	require.Equal(t, settled, w.Status(world.Gateway+"/0"))
}

func TestField_50_SkippedHook(t *testing.T) {
	t.Parallel()
	w := published(t, 1)
	unit := w.Leader()
	fail := true
	w.Dispatch = func(_, hook string, _ func() int) (int, bool) { return 1, fail && hook == "config-changed" }
	w.Config("expose-external", "nodeport")
	require.Contains(t, w.Settle(), unit+" failed config-changed")
	require.NoError(t, w.Model.Resolve(unit, model.ResolveSkip))
	fail = false
	w.Settle()
	w.Round()
	require.Equal(t, corev1.ServiceTypeNodePort, w.Live().Spec.Type, "the next hook compares, whatever was skipped")
	require.NotContains(t, w.Status(unit), "active ")
	w.Answer(w.NodePorts()...)
	w.Notice(unit)
	require.Contains(t, w.Status(unit), "active ")
}
