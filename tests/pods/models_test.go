// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package pods

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// TestModels has the charm with its backend in one model and the client in another: the client gets, through an offer, an
// address that answers in its own namespace and outside of the cluster, and credentials in secrets, and loses them with
// the relation.
func TestModels(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "models", asRoot())
	c.deploy(t, deployBackend())
	c.deploy(t, deployBridge(1))
	_, err := c.Integrate(t.Context(), bridge+":backend-database", backend+":database")
	require.NoError(t, err)
	out, err := c.jujulet("config", bridge, "expose-external=loadbalancer")
	require.NoError(t, err, out)
	for _, args := range [][]string{
		{"offer", bridge + ":database", "mysql"},
		{"add-model", "apps"},
		{"consume", "admin/dev.mysql", "db"},
	} {
		out, err := c.jujulet(args...)
		require.NoError(t, err, out)
	}
	apps := &cluster{Client: c.In("apps"), who: c.who, state: c.state, foot: c.foot}
	apps.deploy(t, deployClient(clientA, databaseA))
	out, err = c.jujulet("integrate", "-m", "apps", clientA+":database", "db")
	require.NoError(t, err, out)

	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	var bag map[string]string
	require.NoError(t, apps.Wait(ctx, func(ctx context.Context) (bool, error) {
		s, err := apps.Status(ctx)
		bag = remoteBag(s)
		return err == nil && bag["endpoints"] != "" && s.Applications[clientA].Status.Status == "active", err
	}))
	require.Contains(t, bag["secret-user"], "secret://", "the reader is told whose secret it is")
	require.True(t, strings.HasPrefix(bag["endpoints"], "10.64.140."), "of the load balancer: %s", bag["endpoints"])
	out, err = c.jujulet("run", "-m", "apps", clientA+"/0", "query", "sql=SELECT 40+2")
	require.NoError(t, err, out)
	require.Contains(t, out, "42")

	dev := c.In("dev")
	s, err := dev.Status(t.Context())
	require.NoError(t, err)
	require.Len(t, s.Offers["mysql"].Connections, 1)
	out, err = c.jujulet("status", "-m", "apps", "--relations")
	require.NoError(t, err, out)
	require.Contains(t, out, "admin/dev.mysql")

	// The client's model goes, and with it the user on the backend and the proxy.
	out, err = c.jujulet("destroy-model", "apps", "--no-prompt")
	require.NoError(t, err, out)
	require.NoError(t, dev.Wait(ctx, func(ctx context.Context) (bool, error) {
		s, err := dev.Status(ctx)
		return err == nil && len(s.Offers["mysql"].Connections) == 0, err
	}))
	models, err := c.Models(t.Context())
	require.NoError(t, err)
	require.Len(t, models.Models, 1)
	_, err = c.In("apps").Status(t.Context())
	require.Equal(t, control.KindNotFound, control.KindOf(err))
}

// remoteBag is the databag of the offered application as the client's model has it.
func remoteBag(s model.Status) map[string]string {
	for _, r := range s.Relations {
		if r.Cross {
			return r.Bags["db"]
		}
	}
	return nil
}
