// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package network

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// dialTimeout bounds the connection to one endpoint, and userTimeout how long an endpoint may leave data unacknowledged.
const (
	dialTimeout = 2 * time.Second
	userTimeout = 20 * time.Second
)

// proxy accepts connections to the addresses of Services and passes them on.
type proxy struct {
	links *links
	log   *slog.Logger

	mu    sync.Mutex
	ports map[netip.AddrPort]*openPort
	conns map[*session]struct{}
	busy  sync.WaitGroup
}

// openPort is one listening socket.
type openPort struct {
	listener *net.TCPListener
	backends atomic.Pointer[[]netip.AddrPort]
	sources  []netip.Prefix
	turn     atomic.Uint64
}

// session is one connection and its continuation.
type session struct {
	at     netip.Addr // the address of ours that the client used
	client *net.TCPConn
	cancel context.CancelFunc
}

// newProxy returns a proxy without ports.
func newProxy(l *links, log *slog.Logger) *proxy {
	return &proxy{links: l, log: log, ports: map[netip.AddrPort]*openPort{}, conns: map[*session]struct{}{}}
}

// set opens and closes ports and addresses, so that exactly the given ones are there. Connections stay, unless the
// address that they were made to goes.
func (p *proxy) set(wanted []listener, addresses []netip.Addr) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	keep := map[netip.Addr]bool{}
	for _, a := range addresses {
		keep[a] = true
	}
	byPort := map[netip.AddrPort]listener{}
	for _, l := range wanted {
		byPort[l.at] = l
	}
	for at, open := range p.ports {
		if _, ok := byPort[at]; !ok {
			open.listener.Close()
			delete(p.ports, at)
		}
	}
	var errs []error
	for _, a := range p.links.localAddresses() {
		if !keep[a] {
			p.drop(a)
			errs = append(errs, p.links.removeLocal(a))
		}
	}
	for _, a := range addresses {
		errs = append(errs, p.links.addLocal(a))
	}
	for at, l := range byPort {
		errs = append(errs, p.open(at, l))
	}
	return errors.Join(errs...)
}

// drop closes the connections to an address that goes, while what closes them can still be sent.
func (p *proxy) drop(a netip.Addr) {
	for s := range p.conns {
		if s.at == a {
			s.cancel()
			s.client.Close()
		}
	}
}

// open opens a port or changes an open one.
func (p *proxy) open(at netip.AddrPort, l listener) error {
	if open := p.ports[at]; open != nil {
		open.backends.Store(&l.backends)
		if slices.Equal(open.sources, l.sources) {
			return nil
		}
		open.sources = l.sources
		raw, err := open.listener.SyscallConn()
		if err != nil {
			return fmt.Errorf("cannot change %s: %w", at, err)
		}
		return filterSources(raw, l.sources)
	}
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error { return filterSources(raw, l.sources) }}
	config.SetMultipathTCP(false)
	ln, err := config.Listen(context.Background(), "tcp4", at.String())
	if err != nil {
		return fmt.Errorf("cannot listen on %s: %w", at, err)
	}
	open := &openPort{listener: ln.(*net.TCPListener), sources: l.sources}
	open.backends.Store(&l.backends)
	p.ports[at] = open
	p.busy.Go(func() { p.accept(open) })
	return nil
}

// filterSources has the kernel drop, without an answer, packets to a socket from elsewhere than the given networks. That
// is what kube-proxy does with loadBalancerSourceRanges.
func filterSources(raw syscall.RawConn, sources []netip.Prefix) error {
	var set error
	err := raw.Control(func(fd uintptr) {
		if len(sources) == 0 {
			if set = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_DETACH_FILTER, 0); errors.Is(set, unix.ENOENT) {
				set = nil
			}
			return
		}
		program := make([]unix.SockFilter, 0, 3*len(sources)+2)
		for _, i := range sourceFilter(sources) {
			program = append(program, unix.SockFilter{Code: i.Op, Jt: i.Jt, Jf: i.Jf, K: i.K})
		}
		set = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{
			Len: uint16(len(program)), Filter: &program[0],
		})
	})
	if err := errors.Join(err, set); err != nil {
		return fmt.Errorf("cannot restrict sources: %w", err)
	}
	return nil
}

// sourceFilter is a program that passes packets from the given networks only.
func sourceFilter(sources []netip.Prefix) []bpf.RawInstruction {
	const (
		networkHeader = 0xfff00000 // SKF_NET_OFF: offsets count from the IP header
		sourceAddress = 12
		everything    = 0xffffffff
	)
	var program []bpf.RawInstruction
	for _, p := range sources {
		a := p.Masked().Addr().As4()
		network := uint32(a[0])<<24 | uint32(a[1])<<16 | uint32(a[2])<<8 | uint32(a[3])
		mask := ^uint32(0) << (32 - p.Bits())
		program = append(program,
			bpf.RawInstruction{Op: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: networkHeader + sourceAddress},
			bpf.RawInstruction{Op: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: mask},
			bpf.RawInstruction{Op: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: network, Jf: 1},
			bpf.RawInstruction{Op: unix.BPF_RET | unix.BPF_K, K: everything},
		)
	}
	return append(program, bpf.RawInstruction{Op: unix.BPF_RET | unix.BPF_K, K: 0})
}

// accept takes connections until the listener is closed.
func (p *proxy) accept(open *openPort) {
	for {
		client, err := open.listener.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			p.log.Warn("cannot accept a connection", "address", open.listener.Addr().String(), "error", err)
			time.Sleep(10 * time.Millisecond) // out of files, most likely
			continue
		}
		at, _ := netip.ParseAddrPort(client.LocalAddr().String())
		ctx, cancel := context.WithCancel(context.Background())
		s := &session{at: at.Addr(), client: client, cancel: cancel}
		p.mu.Lock()
		if p.ports[at] != open {
			// Closed since it was accepted: whoever closed the port, and perhaps took its address away, has not seen it.
			p.mu.Unlock()
			cancel()
			reset(client)
			continue
		}
		p.conns[s] = struct{}{}
		p.mu.Unlock()
		p.busy.Go(func() {
			p.serve(ctx, s, open)
			cancel()
			p.mu.Lock()
			delete(p.conns, s)
			p.mu.Unlock()
		})
	}
}

// serve passes one connection on to an endpoint. The next in turn is tried first, the others after it.
func (p *proxy) serve(ctx context.Context, s *session, open *openPort) {
	backends := *open.backends.Load()
	first := int(open.turn.Add(1))
	dialer := net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second, Control: limitSilence}
	dialer.SetMultipathTCP(false)
	for i := range backends {
		c, err := dialer.DialContext(ctx, "tcp4", backends[(first+i)%len(backends)].String())
		if err != nil {
			continue
		}
		stop := context.AfterFunc(ctx, func() { c.Close() })
		join(s.client, c.(*net.TCPConn))
		stop()
		return
	}
	reset(s.client)
}

// limitSilence gives up a connection of which the other end has gone without a word.
func limitSilence(_, _ string, raw syscall.RawConn) error {
	var set error
	err := raw.Control(func(fd uintptr) {
		set = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(userTimeout.Milliseconds()))
	})
	return errors.Join(err, set)
}

// join copies both ways until both sides have ended. An end is passed on as an end, a reset as a reset.
func join(a, b *net.TCPConn) {
	var wait sync.WaitGroup
	one := func(to, from *net.TCPConn) {
		if _, err := io.Copy(to, from); err != nil { // a splice in the kernel
			reset(to)
			reset(from)
			return
		}
		if to.CloseWrite() != nil {
			reset(from)
		}
	}
	wait.Go(func() { one(a, b) })
	wait.Go(func() { one(b, a) })
	wait.Wait()
	a.Close()
	b.Close()
}

// reset closes a connection so that the other side sees an error.
func reset(c *net.TCPConn) {
	_ = c.SetLinger(0)
	c.Close()
}

// close ends all ports and connections.
func (p *proxy) close() {
	p.mu.Lock()
	for at, open := range p.ports {
		open.listener.Close()
		delete(p.ports, at)
	}
	for s := range p.conns {
		s.cancel()
		s.client.Close()
	}
	p.mu.Unlock()
	p.busy.Wait()
}
