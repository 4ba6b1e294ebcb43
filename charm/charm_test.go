// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package charm

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFalse_FirstHooks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.Zero(t, w.hook("config-changed"))
	require.Equal(t, clusterHost+":6446", w.bag("database:7")["endpoints"])
	require.Equal(t, clusterHost+":6447", w.bag("database:7")["read-only-endpoints"])
	require.Equal(t, "active", w.juju.status, w.juju.message)
	w.settle()
	t.Log(w.juju.message, w.juju.calls, w.juju.state, w.peer())
}

func TestLoadBalancer_Switch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.settle()
	w.juju.config["expose-external"] = "loadbalancer"
	require.Zero(t, w.hook("config-changed"))
	t.Log(w.juju.status, w.juju.message, w.peer(), w.juju.state)
	require.Equal(t, "maintenance", w.juju.status)
	w.settle()
	t.Log(w.juju.status, w.juju.message)
	w.kube.ingress("10.64.140.43")
	w.settle()
	t.Log(w.juju.status, w.juju.message)
	w.answer("10.64.140.43:6446", "10.64.140.43:6447")
	w.settle()
	t.Log(w.juju.status, w.juju.message, w.peer(), w.juju.state)
	require.Equal(t, "10.64.140.43:6446", w.bag("database:7")["endpoints"])
	require.Equal(t, "active", w.juju.status)
}
