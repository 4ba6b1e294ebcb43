// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package charm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/database"
	"github.com/drawbridge-k8s/drawbridge/database/databasetest"
	"github.com/drawbridge-k8s/drawbridge/k8sservice"
	"github.com/drawbridge-k8s/drawbridge/probe"
)

// watched is a watch in this process, with hooks that give it orders and a Pebble that takes its notices.
type watched struct {
	t       *testing.T
	dir     string
	order   probe.Order
	notices chan time.Time
	end     func() error // returns what the watch did
}

// startWatch starts one that sees no cluster: the address set is the order's.
func startWatch(t *testing.T, server *databasetest.Server, backend string, set k8sservice.AddressSet, change func(*Options)) *watched {
	t.Helper()
	w := &watched{t: t, dir: t.TempDir(), notices: make(chan time.Time, 100)}
	answers := true
	w.order = probe.Order{
		Build: "b", App: "db", Service: "db-service", Pending: true,
		Seen:    probe.Seen{Addresses: set, Answers: map[string]bool{}, Backend: &answers},
		Backend: []string{backend}, Login: probe.Login{Username: server.Root.Username, Password: server.Root.Password},
	}
	o := Options{Build: "b", Root: w.dir, PebbleSocket: func(string) string { return w.pebble() }}
	if change != nil {
		change(&o)
	}
	text, err := json.Marshal(w.order)
	require.NoError(t, err)
	listener, err := net.Listen("unix", w.pebble())
	require.NoError(t, err)
	pebble := &http.Server{Handler: http.HandlerFunc(w.notice)}
	go pebble.Serve(listener) //nolint:errcheck // ends with the test
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Watch(ctx, o, w.dir, func(string) string { return "" }, bytes.NewReader(text)) }()
	w.end = sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() {
		require.NoError(t, w.end())
		pebble.Close()
	})
	require.Eventually(t, func() bool { return w.hook() == nil }, 10*time.Second, 10*time.Millisecond)
	return w
}

func (w *watched) pebble() string { return filepath.Join(w.dir, "pebble.socket") }

func (w *watched) notice(rw http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost && r.URL.Path == "/v1/notices" {
		w.notices <- time.Now()
	}
	rw.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(rw, `{"type": "sync", "status-code": 200, "status": "OK", "result": {"id": "1"}}`)
}

// hook gives the watch an order that is not the last one.
func (w *watched) hook() error {
	w.order.WakeAt = w.order.WakeAt.Add(time.Hour)
	if w.order.WakeAt.Before(time.Now()) {
		w.order.WakeAt = time.Now().Add(time.Hour)
	}
	_, err := probe.EnsureWatch(w.t.Context(), w.dir, w.order, func(context.Context, string, *os.File) error {
		return errors.New("it should have been there")
	})
	return err
}

// A server stalls while hooks keep the watch busy, and comes back: the watch has not locked its host out. Sessions that are
// given up when their time is over would have.
func TestWatch_StalledServer(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change  func(*Options)
		blocked bool
	}{
		"the watch's own sessions": {nil, false},
		"sessions that are given up": {func(o *Options) {
			o.Session = func(c database.Credentials) probe.Session { return c.Session }
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := databasetest.StartWithHosts(t, databasetest.GatewayHosts, "--skip-name-resolve=0", "--max-connect-errors=5")
			address := s.Gateway(t)
			w := startWatch(t, s, address, k8sservice.AddressSet{}, test.change)
			s.Pause(t)
			for i := range 30 { // each makes it try anew
				if i%5 == 4 {
					w.order.Login.Password = database.NewPassword() // the backend is slow to take it
				}
				require.Eventually(t, func() bool { return w.hook() == nil }, 10*time.Second, 10*time.Millisecond)
				time.Sleep(400 * time.Millisecond) // it leaves a new order alone for 250 ms
			}
			s.Resume(t)
			as := func() bool {
				err := s.Root.Session(t.Context(), address)
				return (err == nil) != test.blocked && (database.Code(err) == database.CodeHostBlocked) == test.blocked
			}
			// Seldom: a login of ours that succeeds sets the server's count of errors back.
			require.Eventually(t, as, 20*time.Second, 2*time.Second)
			require.NoError(t, w.end()) // what is still under way ends as well
			for range 5 {
				require.True(t, as())
			}
		})
	}
}

// The charm is woken within a second of the moment at which an address that dropped every packet begins to answer.
func TestWatch_AddressThatDropsPackets(t *testing.T) {
	t.Parallel()
	s := databasetest.Start(t)
	address, answer := databasetest.Silent(t, func(conn net.Conn) { s.Forward(t, conn) })
	w := startWatch(t, s, s.Address, k8sservice.AddressSet{ReadWrite: []string{address}}, nil)
	select {
	case <-w.notices:
		t.Fatal("nothing answers yet")
	case <-time.After(1700 * time.Millisecond): // the kernel's next packet is 1.5 s away
	}
	begin := time.Now()
	answer()
	select {
	case at := <-w.notices:
		require.Less(t, at.Sub(begin), time.Second)
	case <-time.After(10 * time.Second):
		t.Fatal("not woken")
	}
}
