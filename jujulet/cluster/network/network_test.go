// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package network_test

import (
	"bufio"
	"bytes"
	"context"
	"log/slog"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cluster/network"
	"github.com/drawbridge-k8s/drawbridge/jujulet/pod"
)

// cluster is the one network of this process, with a server pod on each node, a client pod and the outside host.
type cluster struct {
	api     *fakeAPI
	net     *network.Network
	pods    *pod.Manager
	servers []*pod.Pod
	client  *pod.Pod
	outside *pod.Pod
}

// newCluster makes the cluster and takes it apart at the end of the test.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{api: newFakeAPI()}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	var err error
	c.net, err = network.New(network.Options{API: c.api, Logger: log})
	require.NoError(t, err)
	dir, err := os.MkdirTemp("/run", "nettest-")
	require.NoError(t, err)
	c.pods, err = pod.NewManager(pod.Options{
		Dir: dir, Logger: log,
		Attach: func(pid int, s pod.Spec) error { return c.net.Attach(pid, s.IP) },
		Detach: func(s pod.Spec) { c.net.Detach(s.IP) },
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.net.Run(ctx) }()
	t.Cleanup(func() {
		require.NoError(t, c.pods.Close())
		cancel()
		require.NoError(t, <-done)
		require.NoError(t, c.net.Close())
		require.NoError(t, os.Remove(dir))
	})
	for i, name := range []string{"db-0", "db-1"} {
		p := c.pod(t, name, []string{"10.1.0.20", "10.1.0.21"}[i], network.DefaultPlan().DNS)
		serve(t, p, name)
		c.servers = append(c.servers, p)
	}
	c.client = c.pod(t, "client-0", "10.1.0.30", network.DefaultPlan().DNS)
	c.outside = c.pod(t, "outside", "192.168.100.2", network.DefaultPlan().OutsideGateway)
	return c
}

// pod starts a pod.
func (c *cluster) pod(t *testing.T, name, ip string, server netip.Addr) *pod.Pod {
	t.Helper()
	p, err := c.pods.Start(t.Context(), pod.Spec{
		Name: name, Namespace: "dev", IP: netip.MustParseAddr(ip), Resolv: pod.ClusterResolv("dev", "cluster.local", server),
		Containers: []pod.Container{{Name: pod.CharmContainer}},
	})
	require.NoError(t, err)
	return p
}

// serve has a pod answer each connection to port 3306 with its own name and who is calling.
func serve(t *testing.T, p *pod.Pod, name string) {
	t.Helper()
	script := `import socket, sys, threading
s = socket.create_server(("0.0.0.0", 3306), backlog=64)
def one(c, a):
    c.sendall(("` + name + ` " + a[0] + "\n").encode())
    while True:
        d = c.recv(4096)
        if not d: break
        c.sendall(d)
    c.close()
while True:
    c, a = s.accept()
    threading.Thread(target=one, args=(c, a), daemon=True).start()
`
	_, err := p.Exec(t.Context(), pod.CharmContainer, pod.Command{Args: []string{"python3", "-c", script}, Detach: true})
	require.NoError(t, err)
}

// dial connects from a pod and returns the greeting, or the name of the error.
func dial(t *testing.T, p *pod.Pod, host string, port int) string {
	t.Helper()
	script := `import socket, sys, errno
try:
    c = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=1.5)
    print(c.makefile().readline().strip())
except socket.gaierror as e: print("no such name")
except TimeoutError: print("timeout")
except OSError as e: print(errno.errorcode.get(e.errno, str(e)))
`
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	var out bytes.Buffer
	args := []string{"python3", "-c", script, host, strconv.Itoa(port)}
	_, err := p.Exec(ctx, pod.CharmContainer, pod.Command{Args: args, Stdout: &out, Stderr: &out})
	require.NoError(t, err)
	return strings.TrimSpace(out.String())
}

// until polls until a connection gives what is wanted.
func until(t *testing.T, p *pod.Pod, host string, port int, want string) {
	t.Helper()
	var got string
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		if got = dial(t, p, host, port); strings.HasPrefix(got, want) {
			return
		}
	}
	t.Fatalf("%s:%d from %s: got %q, want %q", host, port, p.Name(), got, want)
}

// database is a Service in front of the servers.
func database(kind corev1.ServiceType) corev1.Service {
	s := corev1.Service{}
	s.Name = "db"
	s.Spec.Type, s.Spec.ClusterIP = kind, "10.152.183.77"
	s.Spec.Ports = []corev1.ServicePort{{Name: "sql", Port: 6446, Protocol: corev1.ProtocolTCP}}
	if kind != corev1.ServiceTypeClusterIP {
		s.Spec.Ports[0].NodePort = 30446
	}
	return s
}

func TestNetwork_Slice(t *testing.T) {
	c := newCluster(t)
	require.Equal(t, "EHOSTUNREACH", dial(t, c.client, "10.152.183.77", 6446))
	c.api.put(database(corev1.ServiceTypeLoadBalancer))
	until(t, c.client, "10.152.183.77", 6446, "ECONNREFUSED")
	c.api.endpoints("db", 3306, endpoint{"10.1.0.20", "db-0", "node-0", true}, endpoint{"10.1.0.21", "db-1", "node-1", true})
	until(t, c.client, "db.dev.svc.cluster.local.", 6446, "db-")
	until(t, c.client, "db", 6446, "db-")
	until(t, c.outside, "10.64.140.43", 6446, "db-")
	until(t, c.outside, "10.10.0.11", 30446, "db-")
	require.Equal(t, "EHOSTUNREACH", dial(t, c.outside, "10.152.183.77", 6446))
	require.Equal(t, "EHOSTUNREACH", dial(t, c.outside, "10.1.0.20", 3306))
	for _, away := range []string{"192.0.2.1", "192.168.100.2", "10.152.183.99"} {
		require.Equal(t, "EHOSTUNREACH", dial(t, c.client, away, 80))
	}
	for range 10 {
		require.Equal(t, "ECONNREFUSED", dial(t, c.client, "10.64.140.99", 6446))
	}
	require.Equal(t, "ECONNREFUSED", dial(t, c.outside, "10.64.140.99", 6446))

	// An external address of a node is reached from outside, for as long as it is one.
	require.Equal(t, "EHOSTUNREACH", dial(t, c.outside, "203.0.113.7", 30446))
	c.api.external("node-1", "203.0.113.7")
	until(t, c.outside, "203.0.113.7", 30446, "db-")
	c.api.external("node-1", "")
	until(t, c.outside, "203.0.113.7", 30446, "EHOSTUNREACH")
	until(t, c.outside, "10.10.0.11", 30446, "db-")
}

// A pod is reached again as soon as it is made again under its address, also by those that knew the old one; and what was
// connected to the old one learns of its end.
func TestNetwork_PodIsMadeAgain(t *testing.T) {
	c := newCluster(t)
	until(t, c.client, "10.1.0.20", 3306, "db-0 10.1.0.30")
	hold := `import socket
c = socket.create_connection(("10.1.0.20", 3306))
c.recv(100)
print("connected", flush=True)
c.settimeout(10)
try:
    print("silence" if c.recv(1) else "end")
except TimeoutError: print("silence")
except OSError as e: print("end")
`
	read, write, err := os.Pipe()
	require.NoError(t, err)
	defer read.Close()
	process, err := c.client.Spawn(t.Context(), pod.CharmContainer, pod.Command{Args: []string{"python3", "-c", hold}, Stdout: write})
	require.NoError(t, err)
	require.NoError(t, write.Close())
	lines := bufio.NewScanner(read)
	require.True(t, lines.Scan())
	c.servers[0].Kill()
	require.True(t, lines.Scan())
	require.Equal(t, "end", lines.Text())
	_, err = process.Wait(t.Context())
	require.NoError(t, err)
	p := c.pod(t, "db-0", "10.1.0.20", network.DefaultPlan().DNS)
	serve(t, p, "again")
	began := time.Now()
	until(t, c.client, "10.1.0.20", 3306, "again")
	require.Less(t, time.Since(began), 3*time.Second)
}

// The outside host sees the load balancer only: its addresses, from where it may, and its names.
func TestNetwork_Outside(t *testing.T) {
	c := newCluster(t)
	require.NoError(t, c.net.LB().SetSettings(network.LBSettings{Kind: network.LBHostname, DNSDelay: 200 * time.Millisecond}))
	c.api.endpoints("db", 3306, endpoint{"10.1.0.20", "db-0", "node-0", true})
	c.api.put(database(corev1.ServiceTypeLoadBalancer))
	var name string
	require.Eventually(t, func() bool {
		s := c.api.service("db")
		for _, in := range s.Status.LoadBalancer.Ingress {
			name = in.Hostname
		}
		return name != ""
	}, 5*time.Second, time.Millisecond)
	until(t, c.outside, name, 6446, "db-0")
	until(t, c.client, name, 6446, "db-0")
	require.Equal(t, "no such name", dial(t, c.outside, "db.dev.svc.cluster.local.", 6446))

	c.api.edit("db", func(s *corev1.Service) { s.Spec.LoadBalancerSourceRanges = []string{"192.168.100.0/24"} })
	until(t, c.client, name, 6446, "timeout")
	require.Equal(t, "db-0 10.1.0.1", dial(t, c.outside, name, 6446))
	c.api.edit("db", func(s *corev1.Service) { s.Spec.LoadBalancerSourceRanges = []string{"10.1.0.0/16"} })
	until(t, c.outside, name, 6446, "timeout")
	require.Equal(t, "db-0 10.1.0.1", dial(t, c.client, name, 6446))
}
