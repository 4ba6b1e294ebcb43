// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package workload_test

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/canonical/pebble/client"
	"github.com/go-sql-driver/mysql"
	"github.com/miekg/dns"
	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/database"
	"github.com/drawbridge-k8s/drawbridge/database/databasetest"
	"github.com/drawbridge-k8s/drawbridge/workload"
	"github.com/drawbridge-k8s/drawbridge/workload/workloadtest"
)

// rig is one gateway on ports of its own.
type rig struct {
	*workload.Workload
	pebble *workloadtest.Pebble
	g      workload.Gateway
}

func newRig(t testing.TB, o workloadtest.Options) *rig {
	t.Helper()
	haproxy(t)
	pebble := workloadtest.StartPebble(t, o)
	return &rig{
		Workload: workload.New(workload.Options{Socket: pebble.Socket, IPv6: func() bool { return false }}),
		pebble:   pebble,
		g: workload.Gateway{
			Folder: filepath.Join(pebble.Folder(), "etc"),
			Ports:  workload.Ports{ReadWrite: freePort(t), ReadOnly: freePort(t), Health: freePort(t), Admin: freePort(t)},
		},
	}
}

func freePort(t testing.TB) int {
	t.Helper()
	_, port, err := net.SplitHostPort(databasetest.FreeAddress(t))
	require.NoError(t, err)
	number, err := strconv.Atoi(port)
	require.NoError(t, err)
	return number
}

func (r *rig) ensure(t testing.TB) workload.Report {
	t.Helper()
	report, err := r.Ensure(t.Context(), r.g)
	require.NoError(t, err)
	return report
}

// up ensures, and expects that the gateway runs without a problem.
func (r *rig) up(t testing.TB) (changed bool) {
	t.Helper()
	report := r.ensure(t)
	require.Empty(t, report.Problem)
	require.True(t, report.Up)
	require.Regexp(t, `^[2-9]\.[0-9]+`, report.Version)
	return report.Changed
}

func (r *rig) client(t *testing.T) *client.Client {
	t.Helper()
	c, err := client.New(&client.Config{Socket: r.pebble.Socket})
	require.NoError(t, err)
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// changes are all that Pebble was asked to do, execs included.
func (r *rig) changes(t *testing.T) int {
	t.Helper()
	all, err := r.client(t).Changes(&client.ChangesOptions{Selector: client.ChangesAll})
	require.NoError(t, err)
	n := 0
	for _, change := range all {
		if change.Kind != "perform-check" && change.Kind != "recover-check" {
			n++
		}
	}
	return n
}

func (r *rig) address(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// Tests of Ensure that need a database share two.
func TestEnsure(t *testing.T) {
	t.Parallel()
	server, second := databasetest.Start(t), databasetest.Start(t)
	for name, test := range map[string]func(t *testing.T, server, second *databasetest.Server){
		"starts once and then only reads":         testStartsOnceAndThenOnlyReads,
		"a reload is hitless":                     testReloadIsHitless,
		"a refused configuration changes nothing": testRefusedConfigurationChangesNothing,
		"loads what was only written":             testLoadsWhatWasOnlyWritten,
		"after crash, stop and replacement":       testAfterCrashStopAndReplacement,
		"names":                                   testNames,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, server, second)
		})
	}
}

func testStartsOnceAndThenOnlyReads(t *testing.T, server, _ *databasetest.Server) {
	r := newRig(t, workloadtest.Options{})
	r.g.ReadWrite = []string{server.Address}
	require.True(t, r.up(t))
	require.NoError(t, server.Root.Session(t.Context(), r.address(r.g.Ports.ReadWrite)))
	require.NoError(t, server.Root.Session(t.Context(), r.address(r.g.Ports.ReadOnly)))

	before := r.changes(t)
	for range 3 {
		require.False(t, r.up(t))
	}
	require.Equal(t, before, r.changes(t))
	healthy, err := r.client(t).Health(&client.HealthOptions{Level: client.ReadyLevel})
	require.NoError(t, err)
	require.True(t, healthy)
	entries, err := os.ReadDir(r.g.Folder)
	require.NoError(t, err)
	require.Len(t, entries, 1, "no file is left but the configuration")
}

// A reload right after the start does not kill the master, and loses neither
// an open session nor a new one.
func testReloadIsHitless(t *testing.T, server, second *databasetest.Server) {
	r := newRig(t, workloadtest.Options{})
	r.g.ReadWrite = []string{server.Address}
	require.True(t, r.up(t))

	load := startLoad(t, server.Root, r.address(r.g.Ports.ReadWrite))
	for i := range 4 {
		r.g.ReadOnly = nil
		if i%2 == 0 {
			r.g.ReadOnly = []string{second.Address}
		}
		require.True(t, r.up(t))
		require.False(t, r.up(t))
	}
	load.stop(t)
	r.g.ReadOnly = []string{second.Address}
	r.up(t)
	require.NoError(t, second.Root.Session(t.Context(), r.address(r.g.Ports.ReadOnly)))
}

// load is sessions that stay open, and new ones all the time.
type load struct {
	end     context.CancelFunc
	work    sync.WaitGroup
	queries atomic.Int64
	logins  atomic.Int64
	failed  chan error
}

func startLoad(t *testing.T, c database.Credentials, address string) *load {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{end: cancel, failed: make(chan error, 1000)}
	config := mysql.NewConfig()
	config.Net, config.Addr, config.User, config.Passwd, config.Logger = "tcp", address, c.Username, c.Password, &mysql.NopLogger{}
	connector, err := mysql.NewConnector(config)
	require.NoError(t, err)
	for range 10 {
		db := sql.OpenDB(connector)
		t.Cleanup(func() { db.Close() })
		conn, err := db.Conn(t.Context())
		require.NoError(t, err)
		var first int
		require.NoError(t, conn.QueryRowContext(t.Context(), "SELECT CONNECTION_ID()").Scan(&first))
		l.repeat(ctx, func() error {
			var id int
			err := conn.QueryRowContext(context.WithoutCancel(ctx), "SELECT CONNECTION_ID()").Scan(&id)
			if err == nil && id != first {
				err = fmt.Errorf("session %d became %d", first, id)
			}
			l.queries.Add(1)
			return err
		})
	}
	for range 2 {
		l.repeat(ctx, func() error { l.logins.Add(1); return c.Session(context.WithoutCancel(ctx), address) })
	}
	return l
}

func (l *load) repeat(ctx context.Context, fn func() error) {
	l.work.Go(func() {
		for ctx.Err() == nil {
			if err := fn(); err != nil {
				l.failed <- err
				return
			}
			select {
			case <-time.After(2 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	})
}

func (l *load) stop(t *testing.T) {
	t.Helper()
	l.end()
	l.work.Wait()
	close(l.failed)
	for err := range l.failed {
		t.Errorf("lost in %d queries and %d logins: %v", l.queries.Load(), l.logins.Load(), err)
	}
	t.Logf("%d queries, %d logins", l.queries.Load(), l.logins.Load())
	require.NotZero(t, l.logins.Load())
}

func testRefusedConfigurationChangesNothing(t *testing.T, server, _ *databasetest.Server) {
	r := newRig(t, workloadtest.Options{})
	r.g.ReadWrite = []string{server.Address}
	good := r.g
	r.up(t)
	for range 2 {
		r.g.Ports.ReadOnly = 70000
		report := r.ensure(t)
		require.True(t, report.Up)
		require.False(t, report.Changed)
		require.Contains(t, report.Problem, "HAProxy refuses its configuration")
		require.Contains(t, report.Problem, "70000")
	}
	require.NoError(t, server.Root.Session(t.Context(), r.address(r.g.Ports.ReadWrite)))
	r.g.ReadWrite = []string{"host name:3306"}
	require.Contains(t, r.ensure(t).Problem, "it is not host:port")
	r.g = good
	require.False(t, r.up(t))
}

// A hook that was killed after writing the file leaves the rest to the next.
func testLoadsWhatWasOnlyWritten(t *testing.T, server, _ *databasetest.Server) {
	r := newRig(t, workloadtest.Options{})
	r.up(t)
	_, err := net.Dial("tcp", r.address(r.g.Ports.ReadWrite))
	require.Error(t, err, "without a backend nothing listens")
	r.g.ReadWrite = []string{server.Address}
	require.NoError(t, os.WriteFile(filepath.Join(r.g.Folder, "haproxy.cfg"), []byte(r.g.Config()), 0o644))
	require.True(t, r.up(t))
	require.NoError(t, server.Root.Session(t.Context(), r.address(r.g.Ports.ReadWrite)))
	require.False(t, r.up(t))
}

func TestEnsure_PortTaken(t *testing.T) {
	t.Parallel()
	r := newRig(t, workloadtest.Options{})
	r.g.ReadWrite = []string{"127.0.0.1:3306"}
	taken, err := net.Listen("tcp", fmt.Sprintf(":%d", r.g.Ports.ReadWrite))
	require.NoError(t, err)
	report := r.ensure(t)
	require.False(t, report.Up)
	require.Contains(t, report.Problem, "HAProxy does not start")
	require.Contains(t, report.Problem, "cannot bind socket")
	require.NoError(t, taken.Close())
	require.True(t, r.up(t))

	good := r.g
	r.g.Ports.ReadOnly = freePort(t)
	taken, err = net.Listen("tcp", r.address(r.g.Ports.ReadOnly))
	require.NoError(t, err)
	report = r.ensure(t)
	require.True(t, report.Up)
	require.Contains(t, report.Problem, "HAProxy runs on with its old configuration")
	require.NoError(t, taken.Close())
	r.up(t) // by a new reload, or by the first one, which HAProxy tries for a while
	r.g = good
	require.True(t, r.up(t))
}

func testAfterCrashStopAndReplacement(t *testing.T, server, _ *databasetest.Server) {
	r := newRig(t, workloadtest.Options{})
	r.g.ReadWrite = []string{server.Address}
	r.up(t)
	answers := func() bool { return server.Root.Session(t.Context(), r.address(r.g.Ports.ReadWrite)) == nil }

	require.NoError(t, r.client(t).SendSignal(&client.SendSignalOptions{Signal: "SIGKILL", Services: []string{"haproxy"}}))
	require.Eventually(t, func() bool {
		report, err := r.Ensure(t.Context(), r.g) // fails while Pebble has not noticed
		return err == nil && report.Up && report.Problem == "" && answers()
	}, 20*time.Second, 50*time.Millisecond)

	require.NoError(t, r.Stop(t.Context()))
	require.False(t, answers())
	require.NoError(t, r.Stop(t.Context()), "twice")
	require.True(t, r.up(t))
	require.True(t, answers())

	r.pebble.Replace()
	require.True(t, r.up(t))
	require.True(t, answers())
	require.False(t, r.up(t))
}

func TestEnsure_NotReady(t *testing.T) {
	t.Parallel()
	gone := workload.New(workload.Options{Socket: filepath.Join(t.TempDir(), "no.socket")})
	begun := time.Now()
	_, err := gone.Ensure(t.Context(), workload.Gateway{})
	require.True(t, workload.NotReady(err), "%v", err)
	require.NoError(t, gone.Stop(t.Context()))
	require.Less(t, time.Since(begun), time.Second)

	// One that accepts and never answers is bounded all the same.
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", path)
	require.NoError(t, err)
	defer listener.Close()
	silent := workload.New(workload.Options{Socket: path, Timeout: 200 * time.Millisecond})
	_, err = silent.Ensure(t.Context(), workload.Gateway{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.False(t, workload.NotReady(err))
	require.Less(t, time.Since(begun), 2*time.Second)
}

func TestEnsure_NoHAProxyInTheImage(t *testing.T) {
	t.Parallel()
	r := newRig(t, workloadtest.Options{Env: []string{"PATH=/nonexistent"}})
	report := r.ensure(t)
	require.False(t, report.Up)
	require.Contains(t, report.Problem, "HAProxy does not run in the container")
}

// Names of the backend may come, move and lose their DNS server.
func testNames(t *testing.T, server, second *databasetest.Server) {
	_, port, err := net.SplitHostPort(server.Address)
	require.NoError(t, err)
	names := startDNS(t)
	r := newRig(t, workloadtest.Options{ResolvConf: "nameserver " + names.ip + "\n"})
	r.g.ReadWrite = []string{"primary.test.:" + port}
	begun := time.Now()
	require.True(t, r.up(t))
	require.Less(t, time.Since(begun), 5*time.Second, "a name without an address does not hold the start up")
	address := r.address(r.g.Ports.ReadWrite)
	require.Error(t, server.Root.Session(t.Context(), address))

	names.set("127.0.0.1")
	answers := func() bool { return server.Root.Session(t.Context(), address) == nil }
	require.Eventually(t, answers, 10*time.Second, 10*time.Millisecond)

	// The DNS server dies: nothing changes, not even at a reload.
	names.close(t)
	load := startLoad(t, server.Root, address)
	r.g.ReadOnly = []string{second.Address}
	begun = time.Now()
	require.True(t, r.up(t))
	require.Less(t, time.Since(begun), 5*time.Second, "nothing waits for the DNS server")
	time.Sleep(time.Second) // longer than the time a name is valid
	load.stop(t)
	state, err := os.ReadFile(filepath.Join(r.g.Folder, "servers.state"))
	require.NoError(t, err)
	require.Contains(t, string(state), "primary.test")
}

// dnsServer knows one name.
type dnsServer struct {
	ip     string
	mu     sync.Mutex
	target string
	server *dns.Server
}

func startDNS(t *testing.T) *dnsServer {
	t.Helper()
	for i := range 200 {
		ip := fmt.Sprintf("127.77.%d.%d", i, 1+os.Getpid()%250)
		conn, err := net.ListenPacket("udp", ip+":53")
		if err != nil {
			continue
		}
		s := &dnsServer{ip: ip}
		s.server = &dns.Server{PacketConn: conn, Handler: dns.HandlerFunc(s.answer)}
		done := make(chan struct{})
		go func() { defer close(done); s.server.ActivateAndServe() }() //nolint:errcheck // closed below
		t.Cleanup(func() { conn.Close(); <-done })
		return s
	}
	t.Fatal("cannot listen on port 53 of a loopback address: that needs root")
	return nil
}

func (s *dnsServer) set(target string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.target = target
}

func (s *dnsServer) close(t *testing.T) {
	t.Helper()
	require.NoError(t, s.server.PacketConn.Close())
}

func (s *dnsServer) answer(w dns.ResponseWriter, q *dns.Msg) {
	s.mu.Lock()
	defer s.mu.Unlock()
	reply := new(dns.Msg)
	reply.SetReply(q)
	switch {
	case !strings.EqualFold(q.Question[0].Name, "primary.test.") || s.target == "":
		reply.Rcode = dns.RcodeNameError
	case q.Question[0].Qtype == dns.TypeA:
		record, _ := dns.NewRR(fmt.Sprintf("primary.test. 1 IN A %s", s.target))
		reply.Answer = append(reply.Answer, record)
	}
	w.WriteMsg(reply) //nolint:errcheck // the client asks again
}
