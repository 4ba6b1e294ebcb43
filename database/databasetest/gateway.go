// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package databasetest

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"
)

// GatewayIP is where a server sees the connections of a Gateway come from: on
// 127.0.0.1 itself a server counts no errors. GatewayHosts names it.
const (
	GatewayIP    = "127.0.0.9"
	GatewayHosts = GatewayIP + " gateway.test\n"
)

// Gateway returns an address whose connections are forwarded to the server
// until the test ends.
func (s *Server) Gateway(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go accept(listener, func(client net.Conn) { s.Forward(t, client) })
	return listener.Addr().String()
}

// Forward connects client with the server until either hangs up, and returns
// at once.
func (s *Server) Forward(t testing.TB, client net.Conn) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(GatewayIP)}}
	server, err := dialer.Dial("tcp", s.Address)
	if err != nil {
		client.Close()
		return
	}
	var copies sync.WaitGroup
	forward := func(to, from net.Conn) {
		io.Copy(to, from) //nolint:errcheck // either side may hang up
		to.Close()
	}
	copies.Go(func() { forward(server, client) })
	copies.Go(func() { forward(client, server) })
	t.Cleanup(func() {
		client.Close()
		server.Close()
		copies.Wait()
	})
}

// Silent returns an address that drops every packet until answer is called;
// from then on each handles the connections, one after the other. The ones
// that filled the queue until then are not among them.
func Silent(t testing.TB, each func(net.Conn)) (address string, answer func()) {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), "listener")
	defer file.Close()
	err = errors.Join(syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), syscall.Listen(fd, 0))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.FileListener(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	address = listener.Addr().String()
	// A listener whose queue is full drops what asks for a connection.
	fill := map[string]bool{}
	for {
		conn, err := net.DialTimeout("tcp", address, 200*time.Millisecond)
		if err != nil {
			break
		}
		t.Cleanup(func() { conn.Close() })
		fill[conn.LocalAddr().String()] = true
	}
	return address, func() {
		go accept(listener, func(conn net.Conn) {
			if fill[conn.RemoteAddr().String()] {
				conn.Close()
				return
			}
			each(conn)
		})
	}
}

// accept calls each with every connection until l is closed.
func accept(l net.Listener, each func(net.Conn)) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		each(conn)
	}
}
