// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package pods

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// The clients of the shared cluster. As a pattern of LIKE or GRANT, the first one's database would match the second's.
const (
	clientA, databaseA = "client-a", "a_b"
	clientB, databaseB = "client-b", "axb"
)

// TestCluster is what shares one cluster: two units of the charm, one backend, two clients.
func TestCluster(t *testing.T) {
	began := time.Now()
	c := newCluster(t, "shared", asRoot())
	lease := beginLease(t, c)
	c.deploy(t, deployBackend())
	c.deploy(t, deployBridge(2))
	for _, r := range []control.DeployRequest{deployClient(clientA, databaseA), deployClient(clientB, databaseB)} {
		c.deploy(t, r)
	}
	for _, ends := range [][2]string{
		{bridge + ":backend-database", backend + ":database"},
		{clientA + ":database", bridge + ":database"},
		{clientB + ":database", bridge + ":database"},
	} {
		_, err := c.Integrate(t.Context(), ends[0], ends[1])
		require.NoError(t, err)
	}
	c.awaitSettled(t, "in-cluster", backend, bridge, clientA, clientB)
	t.Logf("settled after %.1f s", time.Since(began).Seconds())
	info, err := c.Info(t.Context())
	require.NoError(t, err)
	c.foot.collect(info.PID)

	t.Run("isolation", func(t *testing.T) { testIsolation(t, c) })
	t.Run("switch", func(t *testing.T) { testSwitch(t, c) })
	t.Run("switch without watch", func(t *testing.T) { testSwitchWithoutWatch(t, c) })
	t.Run("kill agent", func(t *testing.T) { testKillAgent(t, c) })
	t.Run("kill hook", func(t *testing.T) { testKillHook(t, c) })
	t.Run("kill pod", func(t *testing.T) { testKillPod(t, c) })
	t.Run("lease", func(t *testing.T) { lease.finish(t) })
}

// relations returns the ids of the clients' relations.
func (c *cluster) relations(t *testing.T) map[string]int {
	t.Helper()
	status, err := c.Status(t.Context())
	require.NoError(t, err)
	ids := map[string]int{}
	for _, r := range status.Relations {
		for _, end := range r.Ends {
			if (end.App == clientA || end.App == clientB) && end.Name == "database" {
				ids[end.App] = r.ID
			}
		}
	}
	require.Len(t, ids, 2)
	return ids
}

// bag returns the databag that the charm has for a client.
func bag(s model.Status, client string) map[string]string {
	for _, r := range s.Relations {
		for _, end := range r.Ends {
			if end.App == client && end.Name == "database" {
				return r.Bags[bridge]
			}
		}
	}
	return nil
}
