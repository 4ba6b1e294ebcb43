// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package pod_test

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/canonical/pebble/client"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/drawbridge-k8s/drawbridge/jujulet/pod"
	"github.com/drawbridge-k8s/drawbridge/jujulet/pod/podtest"
)

// pebbleDaemon returns the path of a Pebble daemon: what JUJULET_PEBBLE names, which TestMain sets to what "make build" has
// built.
func pebbleDaemon(t *testing.T) string {
	t.Helper()
	path := os.Getenv("JUJULET_PEBBLE")
	if _, err := os.Stat(path); err != nil {
		t.Skipf("skipped: no Pebble daemon; run make build, or name one in JUJULET_PEBBLE (%v)", err)
	}
	return path
}

func TestPod_PebbleAnswers(t *testing.T) {
	pebble := pebbleDaemon(t)
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

// Real programs run in a workload container as they would on a machine: as services of Pebble, with a change of user,
// listening in the pod's network, on a file system that is gone with the container.
func TestPod_RunsHAProxyAndMariaDB(t *testing.T) {
	pebble := pebbleDaemon(t)
	for _, program := range []string{"haproxy", "mariadbd", "mariadb-install-db"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("skipped: %s is not installed (apt-get install haproxy mariadb-server-core)", program)
		}
	}
	attach := func(pid int, _ pod.Spec) error { return loopbackUp(pid) }
	m := newManager(t, func(o *pod.Options) { o.Pebble, o.Attach = pebble, attach })
	p := start(t, m, pod.Spec{Containers: []pod.Container{{Name: pod.CharmContainer}, {Name: "work", Workload: true}}})
	eventually(t, "Pebble's socket can be dialled", func() bool {
		c, err := net.Dial("unix", p.PebbleSocket("work"))
		if err != nil {
			return false
		}
		return c.Close() == nil
	})
	c, err := client.New(&client.Config{Socket: p.PebbleSocket("work")})
	require.NoError(t, err)
	database, gateway, owners := "mysql", "haproxy", "mysql\nmysql\nhaproxy root"
	if podtest.Ordinary() { // there is no other user
		database, gateway, owners = "root", "root", "root\nroot\nroot"
	}
	push := func(path, text string) {
		require.NoError(t, c.Push(&client.PushOptions{Path: path, Source: strings.NewReader(text), MakeDirs: true}))
	}
	push("/etc/haproxy/haproxy.cfg", `global
    user `+gateway+`
    group `+gateway+`
defaults
    mode tcp
    timeout connect 5s
    timeout client 1m
    timeout server 1m
listen front
    bind 127.0.0.1:6446
    server db 127.0.0.1:3306
`)
	push("/run.sh", `set -e
id `+database+` >/dev/null 2>&1 || useradd -r `+database+`
mariadb-install-db --no-defaults --datadir=/var/lib/db --user=`+database+` --skip-test-db --auth-root-authentication-method=normal >/dev/null
exec mariadbd --no-defaults --datadir=/var/lib/db --user=`+database+` --socket=/var/lib/db/db.sock --bind-address=127.0.0.1 --port=3306 --innodb-buffer-pool-size=8M
`)
	err = c.AddLayer(&client.AddLayerOptions{Combine: true, Label: "test", LayerData: []byte(`services:
  db: {override: replace, command: sh /run.sh, startup: enabled}
  gateway: {override: replace, command: haproxy -W -db -f /etc/haproxy/haproxy.cfg, startup: enabled}
`)})
	require.NoError(t, err)
	change, err := c.Replan(&client.ServiceOptions{})
	require.NoError(t, err)
	_, err = c.WaitChange(change, &client.WaitChangeOptions{Timeout: 20 * time.Second})
	require.NoError(t, err)
	var out string
	eventually(t, "MariaDB answers through HAProxy, from another container of the pod", func() bool {
		var exit int
		out, exit = sh(t, p, pod.CharmContainer, "mariadb --no-defaults -h127.0.0.1 -P6446 -uroot -N -e 'select 6*7' 2>&1")
		return exit == 0
	})
	require.Equal(t, "42", out)
	out, _ = sh(t, p, "work", "stat -c %U /var/lib/db/mysql; ps -C mariadbd -o user= | sort -u; ps -C haproxy -o user= | sort -u | tr '\\n' ' '")
	require.Equal(t, owners, out)
}

// loopbackUp brings up the loopback device of a process's network namespace.
func loopbackUp(pid int) error {
	ns, err := netns.GetFromPid(pid)
	if err != nil {
		return err
	}
	defer ns.Close()
	h, err := netlink.NewHandleAt(ns)
	if err != nil {
		return err
	}
	defer h.Close()
	lo, err := h.LinkByName("lo")
	if err != nil {
		return err
	}
	return h.LinkSetUp(lo)
}
