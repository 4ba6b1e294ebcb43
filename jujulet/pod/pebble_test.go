// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package pod_test

import (
	"net"
	"os"
	"testing"
	"time"

	"github.com/canonical/pebble/client"
	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/jujulet/pod"
)

func TestPod_PebbleAnswers(t *testing.T) {
	pebble := os.Getenv("JUJULET_PEBBLE")
	if pebble == "" {
		t.Skip("skipped: JUJULET_PEBBLE does not name a Pebble daemon")
	}
	m := newManager(t, func(o *pod.Options) { o.Pebble = pebble })
	began := time.Now()
	p := start(t, m, pod.Spec{Containers: []pod.Container{
		{Name: pod.CharmContainer}, {Name: "work", Workload: true}, {Name: "beta", Workload: true},
	}})
	t.Logf("pod of three containers started in %v", time.Since(began))
	socket := p.PebbleSocket("work")
	eventually(t, "Pebble's socket can be dialled", func() bool {
		c, err := net.Dial("unix", socket)
		if err != nil {
			return false
		}
		return c.Close() == nil
	})
	t.Logf("Pebble's socket answered after %v", time.Since(began))
	c, err := client.New(&client.Config{Socket: socket})
	require.NoError(t, err)
	info, err := c.SysInfo()
	require.NoError(t, err)
	require.NotEmpty(t, info.BootID)

	require.Equal(t, 38813, p.HealthPort("beta"))
	require.Equal(t, 38814, p.HealthPort("work"))
	require.Zero(t, p.HealthPort(pod.CharmContainer))
	out, exit := sh(t, p, pod.CharmContainer, "ls /charm/containers; test -S /charm/containers/work/pebble.socket")
	require.Zero(t, exit)
	require.Equal(t, "beta\nwork", out)
	out, exit = sh(t, p, "work", "/charm/bin/pebble version --client; echo $JUJU_CONTAINER_NAME $PEBBLE; ls -d /var/lib/juju/agents 2>/dev/null")
	require.NotZero(t, exit)
	require.Contains(t, out, "work /charm/container/pebble")
	_, exit = sh(t, p, "work", "echo x > /charm/bin/pebble")
	require.NotZero(t, exit, "Pebble's binary must be read-only")
}
