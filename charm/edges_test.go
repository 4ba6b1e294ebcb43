// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package charm

import (
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
