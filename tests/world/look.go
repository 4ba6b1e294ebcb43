// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package world

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// Leader returns the unit that leads the gateway.
func (w *World) Leader() string {
	w.T.Helper()
	return w.status().Applications[Gateway].Leader
}

func (w *World) status() model.Status {
	w.T.Helper()
	status, err := w.Model.Status()
	require.NoError(w.T, err)
	return status
}

// Status returns what a unit says: "active text".
func (w *World) Status(unit string) string {
	w.T.Helper()
	app, _, _ := strings.Cut(unit, "/")
	value := w.status().Applications[app].Units[unit].Workload
	return strings.TrimSpace(value.Status + " " + value.Message)
}

// Peer returns the gateway's peer application databag.
func (w *World) Peer() map[string]string {
	w.T.Helper()
	return w.bag(Gateway, "drawbridge-peers", "", Gateway)
}

// Published returns what the gateway has published to a client application.
func (w *World) Published(client string) map[string]string {
	w.T.Helper()
	return w.bag(Gateway, "database", client, Gateway)
}

// Endpoints is the client's `endpoints`.
func (w *World) Endpoints() string {
	w.T.Helper()
	return w.Published(Client)["endpoints"]
}

// bag finds the databag of owner in the relation of app's endpoint, with remote
// on its other side ("" for peers).
func (w *World) bag(app, endpoint, remote, owner string) map[string]string {
	w.T.Helper()
	for _, r := range w.status().Relations {
		mine, other := false, remote == ""
		for _, end := range r.Ends {
			mine = mine || end.App == app && end.Name == endpoint
			other = other || end.App == remote
		}
		if mine && other {
			return r.Bags[owner]
		}
	}
	return nil
}

// Mark is a moment in the world, for Changes.
type Mark struct {
	journal uint64
	objects int64
}

// Mark remembers how far the journal and the API are.
func (w *World) Mark() Mark {
	w.T.Helper()
	entries, err := w.Model.Journal(0, 0)
	require.NoError(w.T, err)
	mark := Mark{objects: w.Cluster.Version()}
	if len(entries) > 0 {
		mark.journal = entries[len(entries)-1].Seq
	}
	return mark
}

// Changes lists what hooks have written since: "unit hook: endpoint owner key".
// A secret counts, and so does a write to the API.
func (w *World) Changes(since Mark) []string {
	w.T.Helper()
	entries, err := w.Model.Journal(since.journal, 0)
	require.NoError(w.T, err)
	var changes []string
	for _, e := range entries {
		for _, write := range e.Writes {
			changes = append(changes, e.Unit+" "+e.Hook+": "+write.Endpoint+" "+write.Bag+" "+write.Key)
		}
		for _, secret := range e.Secrets {
			changes = append(changes, e.Unit+" "+e.Hook+": secret "+secret)
		}
	}
	if w.Cluster.Version() != since.objects {
		changes = append(changes, "the Kubernetes API was written")
	}
	return changes
}

// Quiet runs rounds of update-status and requires that they write nothing.
func (w *World) Quiet(rounds int) {
	w.T.Helper()
	mark := w.Mark()
	for range rounds {
		w.Round()
	}
	require.Empty(w.T, w.Changes(mark), "a round that finds nothing changed writes nothing")
}

// NodePorts lists host:port for every node and port of the live Service.
func (w *World) NodePorts() []string {
	w.T.Helper()
	var all []string
	for _, name := range slices.Sorted(maps.Keys(nodeAddresses)) {
		for _, port := range w.Live().Spec.Ports {
			all = append(all, fmt.Sprintf("%s:%d", nodeAddresses[name], port.NodePort))
		}
	}
	return all
}

// NodeEndpoints is what a client should get for a port of the Service on these
// nodes, in order of the addresses.
func (w *World) NodeEndpoints(port string, nodes ...string) string {
	w.T.Helper()
	var endpoints []string
	for _, p := range w.Live().Spec.Ports {
		for _, node := range nodes {
			if p.Name == port {
				endpoints = append(endpoints, fmt.Sprintf("%s:%d", nodeAddresses[node], p.NodePort))
			}
		}
	}
	slices.Sort(endpoints)
	return strings.Join(endpoints, ",")
}

// ValuesOf lists every value that hooks of the gateway have written to databags
// of these keys, ever, in order.
func (w *World) ValuesOf(keys ...string) []string {
	w.T.Helper()
	entries, err := w.Model.Journal(0, 0)
	require.NoError(w.T, err)
	var values []string
	for _, e := range entries {
		for _, write := range e.Writes {
			wanted := len(keys) == 0 || slices.Contains(keys, write.Key)
			if wanted && !write.Deleted && strings.HasPrefix(e.Unit, Gateway+"/") && write.Value != "" {
				values = append(values, write.Value)
			}
		}
	}
	return values
}

// Values lists every value that hooks of the gateway have written to databags.
func (w *World) Values() []string {
	w.T.Helper()
	return w.ValuesOf()
}
