// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package scenario

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/connections"
	"github.com/drawbridge-k8s/drawbridge/tests/world"
)

// A thin slice: an option, a document in every workload, a change that is followed, and what is told.
func TestConnections_Slice(t *testing.T) {
	t.Parallel()
	w := world.New(t, world.Options{})
	w.Standard(3)
	w.ConfigMap("model-prediction", "model", "version", "3", "path", "/models/p")
	w.Config(connections.OptConfigMaps, "model-prediction")
	w.Settle()
	for _, unit := range []string{"drawbridge-k8s/0", "drawbridge-k8s/1", "drawbridge-k8s/2"} {
		require.Equal(t, "3", w.Document(unit).Connections.ConfigMaps["model"]["model-prediction"].Data["version"], unit)
	}
	w.Quiet(3)
	w.ConfigMap("model-prediction", "model", "version", "4", "path", "/models/p")
	w.ConfigMapChanged(w.Leader())
	for _, unit := range []string{"drawbridge-k8s/0", "drawbridge-k8s/1", "drawbridge-k8s/2"} {
		require.Equal(t, "4", w.Document(unit).Connections.ConfigMaps["model"]["model-prediction"].Data["version"], unit)
	}
	require.Contains(t, w.Status(w.Leader()), "active in-cluster")
	require.Contains(t, w.Told(world.Gateway), "ConfigMap/model-prediction Normal ConnectionPropagating: connected to application {drawbridge-k8s}; updating it")
	require.Contains(t, w.Told(world.Gateway), "StatefulSet/drawbridge-k8s Normal ConnectionChanged: connected configmap {model-prediction} has changed; updating configmeta")
	w.Quiet(3)
}
