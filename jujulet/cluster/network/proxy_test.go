// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package network_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cluster/network"
)

// Addresses of the tests without pods: the servers listen on the bridge, the clients are this process.
const gateway, clusterIP = "10.1.0.1", "10.152.183.77"

// bare makes a network without pods.
func bare(t *testing.T, lb network.LBSettings) (*fakeAPI, *network.Network) {
	t.Helper()
	api := newFakeAPI()
	n, err := network.New(network.Options{API: api, LB: lb, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
		require.NoError(t, n.Close())
	})
	return api, n
}

// server answers connections at the bridge with its name and then echoes. It returns its port.
func server(t *testing.T, name string) int32 {
	t.Helper()
	var ln net.Listener
	require.Eventually(t, func() bool {
		var err error
		ln, err = net.Listen("tcp4", gateway+":0")
		return err == nil
	}, 5*time.Second, time.Millisecond)
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			wait.Go(func() {
				defer c.Close()
				_, _ = fmt.Fprintln(c, name)
				_, _ = io.Copy(c, c)
			})
		}
	})
	t.Cleanup(func() { ln.Close(); wait.Wait() })
	return int32(ln.Addr().(*net.TCPAddr).Port)
}

// connect returns what a server says first, or the reason why there is none.
func connect(address string) string {
	c, err := net.DialTimeout("tcp4", address, 500*time.Millisecond)
	var timeout net.Error
	switch {
	case errors.Is(err, unix.ECONNREFUSED):
		return "refused"
	case errors.Is(err, unix.EHOSTUNREACH), errors.Is(err, unix.ENETUNREACH):
		return "unreachable"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	case err != nil:
		return err.Error()
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(2 * time.Second))
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(line)
}

// becomes polls until connections to an address give what is wanted.
func becomes(t *testing.T, address, want string) {
	t.Helper()
	got := ""
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if got = connect(address); got == want {
			return
		}
	}
	t.Fatalf("%s: got %q, want %q", address, got, want)
}

func TestProxy_AddressesAndPorts(t *testing.T) {
	api, _ := bare(t, network.LBSettings{})
	port := server(t, "one")
	at := clusterIP + ":6446"
	becomes(t, at, "unreachable")
	api.put(database(corev1.ServiceTypeNodePort))
	becomes(t, at, "refused")
	becomes(t, "10.10.0.10:30446", "refused")
	api.endpoints("db", port, endpoint{gateway, "db-0", "node-0", false})
	require.Equal(t, "refused", connect(at), "the endpoint is not ready")
	api.endpoints("db", port, endpoint{gateway, "db-0", "node-0", true})
	becomes(t, at, "one")
	becomes(t, "10.10.0.10:30446", "one")
	becomes(t, "10.10.0.11:30446", "one")
	require.Equal(t, "refused", connect(clusterIP+":6447"))

	api.edit("db", func(s *corev1.Service) { s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal })
	becomes(t, "10.10.0.11:30446", "refused")
	require.Equal(t, "one", connect("10.10.0.10:30446"))
	require.Equal(t, "one", connect(at))

	api.edit("db", func(s *corev1.Service) {
		s.Spec.Type, s.Spec.ExternalTrafficPolicy = corev1.ServiceTypeClusterIP, ""
		s.Spec.Ports[0].NodePort = 0
	})
	becomes(t, "10.10.0.10:30446", "refused")
	require.Equal(t, "one", connect(at))
	api.remove("db")
	becomes(t, at, "unreachable")
}

func TestProxy_TakesEndpointsInTurn(t *testing.T) {
	api, _ := bare(t, network.LBSettings{})
	one, two := server(t, "one"), server(t, "two")
	s := database(corev1.ServiceTypeClusterIP)
	s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "other", Port: 6447})
	api.put(s)
	api.endpoints("db", one, endpoint{gateway, "db-0", "node-0", true}, endpoint{"10.10.0.10", "db-1", "node-1", true})
	becomes(t, clusterIP+":6446", "one")
	for range 6 { // the second endpoint has nobody listening: the other one is taken then
		require.Equal(t, "one", connect(clusterIP+":6446"))
	}
	require.Equal(t, "refused", connect(clusterIP+":6447"), "no endpoint has that port")
	api.endpoints("db", two, endpoint{gateway, "db-0", "node-0", true})
	becomes(t, clusterIP+":6446", "two")
}

// A connection stays while endpoints and ports come and go, and carries data and ends both ways.
func TestProxy_KeepsConnections(t *testing.T) {
	api, _ := bare(t, network.LBSettings{})
	one, two := server(t, "one"), server(t, "two")
	api.put(database(corev1.ServiceTypeClusterIP))
	api.endpoints("db", one, endpoint{gateway, "db-0", "node-0", true})
	becomes(t, clusterIP+":6446", "one")
	c, err := net.Dial("tcp4", clusterIP+":6446")
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.SetDeadline(time.Now().Add(10*time.Second)))
	r := bufio.NewReader(c)
	say := func(text string) {
		t.Helper()
		_, err := fmt.Fprintln(c, text)
		require.NoError(t, err)
		got, err := r.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, text+"\n", got)
	}
	_, err = r.ReadString('\n')
	require.NoError(t, err)
	say("hello")
	api.endpoints("db", two, endpoint{gateway, "db-0", "node-0", true})
	becomes(t, clusterIP+":6446", "two")
	say("still there")
	api.endpoints("db", one)
	becomes(t, clusterIP+":6446", "refused")
	big := strings.Repeat("x", 1<<20)
	go fmt.Fprintln(c, big)
	got, err := r.ReadString('\n')
	require.NoError(t, err)
	require.Len(t, got, len(big)+1)
	require.NoError(t, c.(*net.TCPConn).CloseWrite())
	_, err = r.ReadByte()
	require.ErrorIs(t, err, io.EOF, "the end is passed on, and back")

	c2, err := net.Dial("tcp4", clusterIP+":6446")
	require.ErrorIs(t, err, unix.ECONNREFUSED)
	require.Nil(t, c2)
}

// The connections to an address end when it goes.
func TestProxy_ConnectionsEndWithTheirAddress(t *testing.T) {
	api, n := bare(t, network.LBSettings{})
	port := server(t, "one")
	api.put(database(corev1.ServiceTypeLoadBalancer))
	api.endpoints("db", port, endpoint{gateway, "db-0", "node-0", true})
	becomes(t, first+":6446", "one")
	c, err := net.Dial("tcp4", first+":6446")
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.SetDeadline(time.Now().Add(10*time.Second)))
	r := bufio.NewReader(c)
	_, err = r.ReadString('\n')
	require.NoError(t, err)
	_, err = n.LB().Move("dev", "db", network.MoveOptions{})
	require.NoError(t, err)
	becomes(t, first+":6446", "refused")
	becomes(t, second+":6446", "one")
	_, err = r.ReadByte()
	require.Error(t, err)
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	var timeout net.Error
	require.False(t, errors.As(err, &timeout) && timeout.Timeout(), "got %v", err)
}

func TestProxy_SourceRanges(t *testing.T) {
	api, _ := bare(t, network.LBSettings{})
	port := server(t, "one")
	s := database(corev1.ServiceTypeLoadBalancer)
	s.Spec.LoadBalancerSourceRanges = []string{"192.168.0.0/16", "172.16.0.0/12"}
	api.put(s)
	api.endpoints("db", port, endpoint{gateway, "db-0", "node-0", true})
	becomes(t, clusterIP+":6446", "one")
	// This process reaches an address of its own from that same address.
	for _, test := range []struct {
		ranges []string
		want   string
	}{
		{[]string{"192.168.0.0/16", "172.16.0.0/12"}, "timeout"},
		{[]string{"192.168.0.0/16", "10.64.0.0/16"}, "one"},
		{[]string{"10.64.140.43/32"}, "one"},
		{[]string{"10.64.140.44/32"}, "timeout"},
		{[]string{"0.0.0.0/0"}, "one"},
		{[]string{"fd00::/8"}, "timeout"},
		{nil, "one"},
	} {
		api.edit("db", func(s *corev1.Service) { s.Spec.LoadBalancerSourceRanges = test.ranges })
		becomes(t, first+":6446", test.want)
		require.Equal(t, "one", connect(clusterIP+":6446"), "only the load balancer's address is restricted")
		require.Equal(t, "one", connect("10.10.0.10:30446"))
	}
}

func TestNetwork_AnswerDelay(t *testing.T) {
	const assign, answer = 300 * time.Millisecond, time.Second
	api, n := bare(t, network.LBSettings{AssignDelay: assign, AnswerDelay: answer})
	port := server(t, "one")
	api.endpoints("db", port, endpoint{gateway, "db-0", "node-0", true})
	began := time.Now()
	api.put(database(corev1.ServiceTypeLoadBalancer))
	require.Eventually(t, func() bool {
		s := api.service("db")
		return len(s.Status.LoadBalancer.Ingress) == 1
	}, 5*time.Second, time.Millisecond)
	require.GreaterOrEqual(t, time.Since(began), assign)
	for range 20 { // each at once
		got := connect(first + ":6446")
		if time.Since(began) >= assign+answer {
			break
		}
		require.Equal(t, "refused", got)
	}
	becomes(t, first+":6446", "one")
	require.GreaterOrEqual(t, time.Since(began), assign+answer)
	all := n.LB().Assignments()
	require.Len(t, all, 1)
	require.True(t, all[0].Answers)
}

func TestNetwork_PodAddresses(t *testing.T) {
	_, n := bare(t, network.LBSettings{})
	a, err := n.AllocatePodIP(netip.Addr{})
	require.NoError(t, err)
	require.Equal(t, "10.1.0.2", a.String())
	b, err := n.AllocatePodIP(a)
	require.NoError(t, err)
	require.NotEqual(t, a, b)
	n.ReleasePodIP(a)
	again, err := n.AllocatePodIP(a)
	require.NoError(t, err)
	require.Equal(t, a, again)
	require.ErrorContains(t, n.AttachPod(1, netip.MustParseAddr("10.2.0.1")), "is not in the pod network")
}

// A connection that was accepted just before its port was closed is not passed on: nobody would ever close it, and
// when its address has gone, no word of its end can arrive.
func TestProxy_AcceptedTooLate(t *testing.T) {
	bare(t, network.LBSettings{})
	port := server(t, "one")
	err := network.AcceptLate(netip.AddrPortFrom(netip.MustParseAddr(gateway), uint16(port)))
	require.ErrorIs(t, err, unix.ECONNRESET)
}
