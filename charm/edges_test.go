// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package charm

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/database"
)

// A deferral ends when the exposure settles, not when a backend that is incomplete keeps it from being looked at.
func TestDeferral_OutlastsAnIncompleteBackend(t *testing.T) {
	t.Parallel()
	w := balanced(t)
	w.silence(lbReadWrite)
	require.Zero(t, w.hook("config-changed"))
	deferred := parseState(w.juju.state["exposure"]).Deferred
	require.Equal(t, "config-changed", deferred.Hook)
	w.now = w.now.Add(time.Minute)
	w.silence(backendAddress)
	require.Zero(t, w.hook("update-status"))
	require.Equal(t, deferred, parseState(w.juju.state["exposure"]).Deferred)
	w.answer(backendAddress)
	w.now = w.now.Add(time.Minute)
	require.Zero(t, w.hook("update-status"))
	require.Equal(t, deferred, parseState(w.juju.state["exposure"]).Deferred)
	w.answer(lbReadWrite)
	require.Zero(t, w.hook("update-status"))
	require.Nil(t, parseState(w.juju.state["exposure"]).Deferred)
}

// A backend that has blocked a gateway says so on one port of one address; waiting does not lift it.
func TestGatewayBlocked_IsNamedAndBlocks(t *testing.T) {
	t.Parallel()
	w := balanced(t)
	w.silence(lbReadWrite, lbReadOnly)
	w.codes = map[string]uint16{lbReadOnly: database.CodeHostBlocked}
	require.Zero(t, w.hook("update-status"))
	require.Equal(t, "blocked", w.juju.status)
	require.Contains(t, w.juju.message, "error 1129")
	require.Contains(t, w.juju.message, "FLUSH HOSTS")
	require.Equal(t, lbReadWrite, w.bag("database:7")["endpoints"])
	w.quiet("update-status")
}

// At 25 s no other user is dropped; the rest is remembered and continued.
func TestI5_DroppingGoesOn(t *testing.T) {
	t.Parallel()
	for name, newTerm := range map[string]bool{"made by this leader": false, "found by a new one": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for i := range 6 {
				w.client(fmt.Sprintf("database:%d", 10+i), fmt.Sprintf("app%d", i))
			}
			w.settle()
			require.Len(t, w.sql.users, 7)
			w.juju.relations = w.juju.relations[:3] // the others end while nobody looks
			if newTerm {
				w.juju.state = map[string]string{}
				w.peer()["leader"] = "drawbridge-k8s/1"
			}
			start := w.now
			w.sql.each = func() { w.now = w.now.Add(6 * time.Second) }
			require.Zero(t, w.hook("update-status"))
			require.Len(t, w.sql.users, 2, "each takes 6 s here")
			require.Equal(t, start, w.watch.order.WakeAt)
			w.sql.each = nil
			w.settle()
			require.Len(t, w.sql.users, 1)
			require.Len(t, w.juju.secrets, 2, "the backend's and the client's")
			w.quiet("update-status")
		})
	}
}

// What Kubernetes refuses is no reason to ask the backend for its users in every hook.
func TestSweep_EndsThoughKubernetesRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.settle()
	w.juju.config["expose-external"] = "nodeport"
	w.kube.errs["Apply"] = forbidden("patch", "services")
	w.peer()["leader"] = "drawbridge-k8s/1"
	require.Zero(t, w.hook("leader-elected"))
	require.False(t, parseState(w.juju.state["exposure"]).Sweep)
}

// However many endpoints the backend has, the direct session takes the time of two probes at most.
func TestDirect_AsksTheOtherEndpointsTogether(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	others := "b:3306,c:3306,d:3306,e:3306"
	w.juju.relation("backend-database:4").remoteApp["endpoints"] = backendAddress + "," + others
	w.reasons[backendAddress] = errors.New("connection refused")
	w.answer("d:3306")
	w.settle()
	require.Equal(t, "active", w.juju.status)
	w.probes, w.checks = nil, 0
	w.quiet("update-status")
	require.Equal(t, []string{backendAddress, "b:3306", "c:3306", "d:3306", "e:3306"}, w.probes[:5])
	require.Equal(t, 3, w.checks, "the first endpoint, the others, the addresses")
}

// Hooks give up no more logins on a server that is stalled for hours: once one was not answered in time, what the watch
// knows to hang is left to it.
func TestStalledBackend_IsLeftToTheWatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.settle()
	require.Zero(t, w.watch.asked, "a settled hook does not ask")
	w.reasons[backendAddress] = context.DeadlineExceeded
	require.Zero(t, w.hook("update-status"))
	state, message := w.juju.state["exposure"], w.juju.message
	require.Contains(t, message, "timed out")

	w.sessions = 0
	w.quiet("update-status")
	require.Equal(t, 1, w.sessions, "the watch does not say yet that it hangs, or there is none")
	w.watch.hanging = []string{"other:3306", backendAddress}
	w.sessions = 0
	for range 100 {
		w.now = w.now.Add(time.Minute)
		w.quiet("gateway-pebble-custom-notice", "JUJU_WORKLOAD_NAME", "gateway")
	}
	require.Zero(t, w.sessions)
	require.Equal(t, state, w.juju.state["exposure"], "nothing changes from hook to hook")
	require.Equal(t, message, w.juju.message)
	require.Equal(t, clusterHost+":6446", w.bag("database:7")["endpoints"])

	delete(w.reasons, backendAddress)
	w.watch.hanging = nil
	require.Zero(t, w.hook("gateway-pebble-custom-notice", "JUJU_WORKLOAD_NAME", "gateway"))
	require.Equal(t, "active", w.juju.status)
	w.settle()
	asked := w.watch.asked
	w.quiet("update-status")
	require.Equal(t, asked, w.watch.asked)
}

func TestStop_EndsInTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	begin := time.Now()
	require.Zero(t, w.hook("stop"))
	require.Equal(t, 1, w.gate.stopped)
	require.Less(t, w.gate.deadline.Sub(begin), 8*time.Second)
	require.Positive(t, w.gate.deadline.Sub(begin))
}

// Plain credentials are withdrawn and given anew as secrets are: not before every mirror has let go of the old ones.
func TestBackendReplaced_PlainCredentialsWaitForTheMirrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client := w.juju.relation("database:7")
	client.remoteApp = map[string]string{"database": "orders"}
	client.units = append(client.units, "client-k8s/1")
	w.settle()
	first := w.bag("database:7")["password"]
	require.NotEmpty(t, first)
	w.mirror(client)
	w.backend("backend-database:10") // and 4 is there still
	w.settle()
	require.Equal(t, map[string]string{"data": client.ownApp["data"]}, client.ownApp)
	require.Contains(t, w.juju.message, "once client-k8s has noticed")
	client.remoteUnits["client-k8s/0"] = map[string]string{"data": "{}"}
	require.Zero(t, w.relationHook(client, "changed", "client-k8s/0"))
	require.NotContains(t, client.ownApp, "password", "the other unit has not noticed")
	client.remoteUnits["client-k8s/1"] = map[string]string{"data": "{}"}
	require.Zero(t, w.relationHook(client, "changed", "client-k8s/1"))
	require.Equal(t, "relation-10-7", client.ownApp["username"])
	require.NotEqual(t, first, client.ownApp["password"])
	require.Equal(t, clusterHost+":6446", client.ownApp["endpoints"])
	w.quiet("update-status")
	w.backend("backend-database:9")
	w.quiet("update-status")
	require.Equal(t, "10", w.peer()["backend"], "the highest id, as a number")
}

// Keys of a later revision are left alone, and so is its schema.
func TestPeer_UnknownKeysStay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.peer()["schema"], w.peer()["of-a-later-revision"] = "2", "x"
	w.settle()
	backend := w.juju.relation("backend-database:4")
	backend.broken = true
	require.Zero(t, w.relationHook(backend, "broken", ""))
	require.Equal(t, "x", w.peer()["of-a-later-revision"])
	require.Equal(t, "2", w.peer()["schema"])
}
