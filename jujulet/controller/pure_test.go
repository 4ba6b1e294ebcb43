// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package controller

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
	corev1 "k8s.io/api/core/v1"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

func TestStateFolder(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	env := map[string]string{"HOME": home}
	getenv := func(name string) string { return env[name] }
	path, err := StateFolder("", getenv)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(home, ".local/share/jujulet"), path)
	path, err = StateFolder("relative", getenv)
	require.NoError(t, err)
	require.True(t, filepath.IsAbs(path))
	_, err = StateFolder("", func(string) string { return "" })
	require.ErrorContains(t, err, "--state")
	require.NotEqual(t, RuntimeFolder("/a"), RuntimeFolder("/b"))
	require.LessOrEqual(t, len(control.SocketPath(RuntimeFolder("/a"))), 107, "socket paths must stay short")
}

func TestHookProcesses(t *testing.T) {
	t.Parallel()
	hook := []string{"JUJU_MODEL_NAME=dev", "JUJU_UNIT_NAME=foo/0", "JUJU_CONTEXT_ID=foo/0-start-0123"}
	all := []process{
		{pid: 1},
		{pid: 10, parent: 1, args: []string{"/charm/bin/jujulet", AgentCommand, "--model=dev", "--unit=foo/0"}},
		{pid: 11, parent: 1, args: []string{"/charm/bin/jujulet", AgentCommand, "--model=dev", "--unit=foo/1"}},
		{pid: 20, parent: 10, env: hook},
		{pid: 21, parent: 20, env: hook},
		{pid: 22, parent: 1, env: []string{"JUJU_UNIT_NAME=foo/0"}}, // a watch that dropped its context
		{pid: 30, parent: 11, env: []string{"JUJU_UNIT_NAME=foo/1", "JUJU_CONTEXT_ID=foo/1-start-0123"}},
	}
	require.Equal(t, []int{20}, hookProcesses(all, "dev", "foo/0"))
	require.Equal(t, []int{10}, agentProcesses(all, "dev", "foo/0"))
	require.Empty(t, hookProcesses(all, "dev", "foo/2"))
	require.Empty(t, hookProcesses(all, "other", "foo/0"), "a unit of another model has the name")
	require.Empty(t, agentProcesses(all, "other", "foo/0"))
	require.Equal(t, 7, parentOf([]byte("12 (a) b) S 7 12 12 0")))
}

func TestChanges(t *testing.T) {
	t.Parallel()
	var c changes
	first := c.wait(t.Context(), 0)
	require.NotZero(t, first)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	require.Equal(t, first, c.wait(ctx, first), "nothing happened")
	done := make(chan uint64, 1)
	go func() { done <- c.wait(t.Context(), first) }()
	c.bump()
	require.Greater(t, <-done, first)
}

func TestLogFilter(t *testing.T) {
	t.Parallel()
	line := model.LogLine{Entity: "unit-my-app-0", Level: "INFO", Module: "unit.my-app/0.juju-log"}
	for _, c := range []struct {
		name    string
		request control.LogRequest
		want    bool
	}{
		{"everything", control.LogRequest{}, true},
		{"level below", control.LogRequest{Level: "debug"}, true},
		{"level above", control.LogRequest{Level: "WARNING"}, false},
		{"unit", control.LogRequest{Include: []string{"my-app/0"}}, true},
		{"tag", control.LogRequest{Include: []string{"unit-my-app-0"}}, true},
		{"application", control.LogRequest{Include: []string{"my-app"}}, true},
		{"longer application", control.LogRequest{Include: []string{"my"}}, false},
		{"wildcard", control.LogRequest{Include: []string{"unit-my*"}}, true},
		{"excluded", control.LogRequest{Exclude: []string{"my-app/0"}}, false},
		{"module", control.LogRequest{Modules: []string{"unit"}}, true},
		{"other module", control.LogRequest{Modules: []string{"juju"}}, false},
	} {
		keep, err := logFilter(c.request)
		require.NoError(t, err, c.name)
		require.Equal(t, c.want, keep(line), c.name)
	}
	_, err := logFilter(control.LogRequest{Level: "loud"})
	require.Equal(t, control.KindInvalid, control.KindOf(err))
}

func TestPool(t *testing.T) {
	t.Parallel()
	pool, err := parsePool("10.64.140.43-10.64.140.45, 10.64.140.50")
	require.NoError(t, err)
	require.Len(t, pool, 4)
	require.Equal(t, "10.64.140.43-10.64.140.45,10.64.140.50", formatPool(pool))
	for _, bad := range []string{"", "10.64.140.45-10.64.140.43", "x", "10.0.0.0-10.1.0.0", "::1"} {
		_, err := parsePool(bad)
		require.Error(t, err, bad)
	}
	none, err := parsePool("none")
	require.NoError(t, err)
	require.NotNil(t, none, "nil would be the default")
	require.Empty(t, none)
	require.Equal(t, "none", formatPool(none))
	one, err := parsePool("10.64.140.43")
	require.NoError(t, err)
	require.Equal(t, []netip.Addr{netip.MustParseAddr("10.64.140.43")}, one)
}

func TestPodStatus(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	state := podState{ip: "10.1.0.12", hostIP: "10.10.0.10", since: start, containers: []containerState{
		{name: "charm", running: true, started: true, ready: true}, {name: "web", running: true},
	}}
	condition := func(s corev1.PodStatus, kind corev1.PodConditionType) corev1.PodCondition {
		for _, c := range s.Conditions {
			if c.Type == kind {
				return c
			}
		}
		return corev1.PodCondition{}
	}
	first := state.status(corev1.PodStatus{}, start)
	require.Equal(t, corev1.PodRunning, first.Phase)
	require.Equal(t, corev1.ConditionFalse, condition(first, corev1.PodReady).Status)
	again := state.status(first, start.Add(time.Minute))
	require.Equal(t, start, condition(again, corev1.PodReady).LastTransitionTime.Time, "unchanged: the time stays")
	state.containers[1].ready = true
	ready := state.status(again, start.Add(2*time.Minute))
	require.Equal(t, corev1.ConditionTrue, condition(ready, corev1.PodReady).Status)
	require.Equal(t, start.Add(2*time.Minute), condition(ready, corev1.PodReady).LastTransitionTime.Time)
	require.Equal(t, start, condition(ready, corev1.PodScheduled).LastTransitionTime.Time)
}

// TestHealth is the life of a container: not started, started but not ready,
// ready, and unready after a single failure.
func TestHealth(t *testing.T) {
	t.Parallel()
	var alive, ready atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ok := alive.Load()
		if r.URL.Query().Get("level") == "ready" {
			ok = ready.Load()
		}
		if !ok {
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	defer server.Close()
	address := server.Listener.Addr().(interface{ AddrPort() netip.AddrPort }).AddrPort()
	h := newHealth()
	h.second = time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	news := make(chan string, 10)
	var repeated atomic.Int64
	last := ""
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.watch(ctx, address.Addr().String(), int(address.Port()), func(started, ready bool) {
			now := strconv.FormatBool(started) + " " + strconv.FormatBool(ready)
			if now == last {
				repeated.Add(1) // to those who have forgotten it: the container may be another one
				return
			}
			last = now
			news <- now
		})
	}()
	next := func() string {
		select {
		case n := <-news:
			return n
		case <-time.After(5 * time.Second):
			return "nothing"
		}
	}
	alive.Store(true)
	require.Equal(t, "true false", next())
	ready.Store(true)
	require.Equal(t, "true true", next())
	before := repeated.Load()
	require.Eventually(t, func() bool { return repeated.Load() > before }, 5*time.Second, time.Millisecond)
	ready.Store(false)
	require.Equal(t, "true false", next())
	cancel()
	<-done
	require.Empty(t, news)
}

func TestKeysSurviveReopening(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys.db")
	read := func() (string, []byte, uint64) {
		db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second})
		require.NoError(t, err)
		defer db.Close()
		keys := keyStore{db}
		token, err := keys.token("foo")
		require.NoError(t, err)
		ca, cert, err := keys.authority(apiNames("cluster.local"), "10.152.183.1")
		require.NoError(t, err)
		require.Len(t, cert.Certificate, 1)
		n, err := keys.count("pods")
		require.NoError(t, err)
		return token, ca, n
	}
	token1, ca1, n1 := read()
	token2, ca2, n2 := read()
	require.Equal(t, token1, token2)
	require.Equal(t, ca1, ca2)
	require.Equal(t, n1+1, n2)
}

func TestModelLog(t *testing.T) {
	t.Parallel()
	var lines []model.LogLine
	log := slog.New(modelLog{next: slog.DiscardHandler, add: func(l model.LogLine) { lines = append(lines, l) }})
	log.Info("lost: the handler below discards it")
	log = slog.New(modelLog{next: slog.NewTextHandler(io.Discard, nil), add: func(l model.LogLine) { lines = append(lines, l) }})
	log.With("unit", "foo/0").Warn("pod ended", "exit", 1)
	log.Debug("not for debug-log")
	log.Info("what an agent said", "from", "agent")
	require.Len(t, lines, 1)
	require.Equal(t, "pod ended unit=foo/0 exit=1", lines[0].Message)
	require.Equal(t, "WARNING", lines[0].Level)
	require.Equal(t, "controller-0", lines[0].Entity)
}
