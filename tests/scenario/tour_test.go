// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

// Package scenario holds the stories that cross rooms: the charm's real code on
// the runner's real model and API, in process (see package world).
package scenario

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/tests/world"
)

const (
	lbFirst  = "10.64.140.43"
	lbSecond = "10.64.140.44"
)

// ports gives the two endpoints of a host.
func ports(host string) []string { return []string{host + ":6446", host + ":6447"} }

// TestTour is the tour of `make run` without pods: each switch waits for its
// answer, and nothing is written once it is settled.
func TestTour(t *testing.T) {
	t.Parallel()
	w := world.New(t, world.Options{})
	w.Standard(3)
	require.Equal(t, world.InModel+":6446", w.Endpoints())
	require.Contains(t, w.Status(w.Leader()), "active ")
	w.Quiet(3)

	w.Config("expose-external", "loadbalancer")
	w.Settle()
	require.Equal(t, world.InModel+":6446", w.Endpoints(), "the client keeps its address while the switch is pending")
	require.Equal(t, "true", w.Peer()["service-pending"])
	w.Ingress(lbFirst)
	w.Notice(w.Leader())
	require.Equal(t, world.InModel+":6446", w.Endpoints(), "an address that does not answer is not published")
	require.Contains(t, w.Status(w.Leader()), "waiting ")
	w.Quiet(3)
	w.Answer(ports(lbFirst)...)
	w.Notice(w.Leader())
	require.Equal(t, lbFirst+":6446", w.Endpoints())
	require.Empty(t, w.Peer()["service-pending"])
	w.Quiet(3)

	w.Config("expose-external", "nodeport")
	w.Settle()
	require.Equal(t, lbFirst+":6446", w.Endpoints())
	w.Answer(w.NodePorts()...)
	w.Notice(w.Leader())
	require.Equal(t, w.NodeEndpoints("mysql-rw", "node-0", "node-1", "node-2"), w.Endpoints())
	w.Quiet(3)

	w.Config("expose-external", "loadbalancer")
	w.Silence(ports(lbFirst)...)
	w.Settle()
	w.KillPod(w.Leader())
	w.Settle()
	w.Ingress(lbFirst)
	w.Answer(ports(lbFirst)...)
	w.Settle()
	w.Notice(w.Leader())
	require.Equal(t, lbFirst+":6446", w.Endpoints())

	w.Ingress(lbSecond)
	w.Silence(ports(lbFirst)...)
	w.Notice(w.Leader())
	require.Equal(t, lbFirst+":6446", w.Endpoints())
	w.Answer(ports(lbSecond)...)
	w.Notice(w.Leader())
	require.Equal(t, lbSecond+":6446", w.Endpoints())

	w.Config("expose-external", "false")
	w.Settle()
	require.Equal(t, world.InModel+":6446", w.Endpoints())
	w.Quiet(3)
}
