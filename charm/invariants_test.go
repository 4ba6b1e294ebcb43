// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package charm

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/database"
)

// The invariants of the exposure, each as cases that run twice: the second time nothing is written.

// I1: an address enters a client's databag only if it answers in that same hook, or stands in another client's already.
func TestI1_OnlyWhatAnswersIsPublished(t *testing.T) {
	t.Parallel()
	t.Run("an address that never answers", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.juju.config["expose-external"] = "loadbalancer"
		w.settle()
		w.kube.ingress("172.17.3.3")
		w.settle()
		require.NotContains(t, fmt.Sprint(w.bag("database:7")), "172.17.3.3")
		w.kube.live.Status.LoadBalancer.Ingress[0].IP = ""
		w.kube.live.Status.LoadBalancer.Ingress[0].Hostname = "lb.example.com"
		w.answer("lb.example.com:6446", "lb.example.com:6447")
		w.settle()
		require.Equal(t, "lb.example.com:6446", w.bag("database:7")["endpoints"])
		require.Equal(t, "loadbalancer lb.example.com, answers", w.juju.message)
		w.quiet("update-status")
	})
	t.Run("a new client while one of two addresses is silent", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.juju.config["expose-external"] = "loadbalancer"
		w.settle()
		w.kube.ingress("10.64.140.43", "10.64.140.44")
		w.answer(lbReadWrite, lbReadOnly, "10.64.140.44:6446", "10.64.140.44:6447")
		w.settle()
		w.silence("10.64.140.44:6446")
		joined := w.client("database:8", "second")
		w.settle()
		require.Equal(t, "10.64.140.43:6446,10.64.140.44:6446", joined.ownApp["endpoints"], "it stands in another client's")
		w.juju.relation("database:7").broken = true
		joined.broken = true
		w.settle()
		third := w.client("database:9", "third")
		w.settle()
		require.Equal(t, lbReadWrite, third.ownApp["endpoints"], "it stands nowhere and does not answer")
		w.quiet("update-status")
	})
	t.Run("a value that is missing is never text", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.juju.config["expose-external"] = "loadbalancer"
		w.settle()
		w.kube.ingress("")
		w.answer(":6446", ":6447")
		w.settle()
		require.Empty(t, w.bag("database:7"))
		w.quiet("update-status")
	})
}

// I2: while the flag is up no client's endpoints change, except by withdrawal.
func TestI2_PendingMovesNoClient(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.settle()
	served := fmt.Sprint(w.bag("database:7"))
	w.juju.config["expose-external"] = "loadbalancer"
	w.settle()
	joined := w.client("database:8", "second")
	for _, step := range []func(){
		func() {}, func() { w.kube.ingress("10.64.140.43") }, func() { w.answer(lbReadWrite) },
		func() { w.now = w.now.Add(time.Hour) }, func() { w.kube.ingress("10.64.140.44") }, func() { w.kube.ingress() },
	} {
		step()
		w.settle()
		require.Equal(t, "true", w.peer()["service-pending"])
		require.Equal(t, served, fmt.Sprint(w.bag("database:7")))
		require.Empty(t, joined.ownApp)
		w.quiet("update-status")
	}
	backend := w.juju.relation("backend-database:4")
	backend.broken = true
	require.Zero(t, w.relationHook(backend, "broken", ""))
	require.NotContains(t, w.bag("database:7"), "endpoints", "withdrawal is the exception")
	w.quiet("update-status")
}

// I3: credentials and endpoints reach a client in one flush.
func TestI3_CredentialsAndEndpointsTogether(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.client("database:8", "plain").remoteApp = map[string]string{"database": "other"}
	check := func() {
		t.Helper()
		for _, id := range []string{"database:7", "database:8"} {
			bag := w.bag(id)
			credentials := bag["secret-user"] != "" || bag["username"] != "" && bag["password"] != ""
			require.Equal(t, credentials, bag["endpoints"] != "", "%s: %v", id, bag)
		}
	}
	for _, write := range []struct{ hook string }{{"install"}, {"config-changed"}, {"start"}, {"update-status"}} {
		require.Zero(t, w.hook(write.hook))
		check()
		for _, line := range w.juju.writes {
			if strings.Contains(line, "secret-user") {
				require.Contains(t, line, `"endpoints"`, "one relation-set")
			}
		}
	}
	w.sql.err = errors.New("cannot make a user: the server is in read-only mode")
	w.client("database:9", "late")
	require.Zero(t, w.hook("update-status"))
	require.Empty(t, w.bag("database:9"))
	require.Contains(t, w.juju.message, "database:9: cannot make its user")
	require.Equal(t, w.now.Add(30*time.Second), w.watch.order.WakeAt)
	require.Zero(t, w.hook("update-status"))
	require.Empty(t, w.juju.writes)
	w.sql.err = nil
	w.settle()
	require.NotEmpty(t, w.bag("database:9")["endpoints"])
	w.quiet("update-status")
}

// I4: once an address answers and a leader hook is delivered, that hook lowers the flag.
func TestI4_AnyHookLowersTheFlag(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"install", "start", "config-changed", "upgrade-charm", "leader-elected", "update-status",
		"gateway-pebble-ready", "gateway-pebble-custom-notice", "secret-changed", "database-relation-joined",
		"drawbridge-peers-relation-changed", "backend-database-relation-changed", "database-relation-broken"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.juju.config["expose-external"] = "loadbalancer"
			w.settle()
			w.kube.ingress("10.64.140.43")
			w.settle()
			require.Equal(t, "true", w.peer()["service-pending"])
			w.answer(lbReadWrite, lbReadOnly)
			extra := []string{}
			switch {
			case strings.HasSuffix(name, "broken"):
				extra = []string{"JUJU_RELATION_ID", "database:99"}
			case strings.HasPrefix(name, "drawbridge"):
				extra = []string{"JUJU_RELATION_ID", "drawbridge-peers:0"}
			case strings.HasPrefix(name, "backend"):
				extra = []string{"JUJU_RELATION_ID", "backend-database:4"}
			case strings.HasPrefix(name, "database"):
				extra = []string{"JUJU_RELATION_ID", "database:7"}
			}
			require.Zero(t, w.hook(name, extra...))
			require.NotContains(t, w.peer(), "service-pending")
			require.Equal(t, lbReadWrite, w.bag("database:7")["endpoints"])
			w.settle()
			w.quiet("update-status")
		})
	}
}

// I5: at 25 s nothing new is started, what is complete is kept, and a deadline of now continues it.
func TestI5_WhatIsCompleteIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 5 {
		w.client(fmt.Sprintf("database:%d", 10+i), fmt.Sprintf("app%d", i))
	}
	start := w.now
	w.sql.each = func() { w.now = w.now.Add(6 * time.Second) }
	require.Zero(t, w.hook("config-changed"))
	served := func() (n int) {
		for _, r := range w.juju.relations {
			if r.endpoint == endpointClients && r.ownApp["endpoints"] != "" {
				n++
			}
		}
		return n
	}
	require.Equal(t, 3, served(), "each takes 12 s here")
	require.Equal(t, start, w.watch.order.WakeAt)
	require.Equal(t, "4", w.peer()["backend"])
	w.sql.each = nil
	w.settle()
	require.Equal(t, 6, served())
	require.True(t, w.watch.order.WakeAt.IsZero())
	w.quiet("update-status")
}

func TestI5_WithdrawalGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 5 {
		w.client(fmt.Sprintf("database:%d", 10+i), fmt.Sprintf("app%d", i))
	}
	w.settle()
	backend := w.juju.relation("backend-database:4")
	backend.broken = true
	w.juju.each = func(tool string) {
		if tool == "secret-remove" {
			w.now = w.now.Add(12 * time.Second)
		}
	}
	start := w.now
	require.Zero(t, w.relationHook(backend, "broken", ""))
	require.Equal(t, start, w.watch.order.WakeAt)
	require.Equal(t, "4", w.peer()["backend"], "some client still holds credentials")
	w.juju.each = nil
	w.settle()
	require.NotContains(t, w.peer(), "backend")
	for _, r := range w.juju.relations {
		if r.endpoint == endpointClients {
			require.NotContains(t, r.ownApp, "secret-user")
		}
	}
	require.Empty(t, w.juju.state["exposure"])
	w.quiet("update-status")
}

// end is the state in which a world ends, as far as it is written.
func (w *world) end() string {
	var text strings.Builder
	for _, r := range w.juju.relations {
		if r.broken {
			continue
		}
		bag := maps.Clone(r.ownApp)
		if uri := bag["secret-user"]; uri != "" {
			secret := w.juju.secrets[strings.TrimPrefix(uri, "secret:")]
			require.NotNil(w.t, secret)
			require.Equal(w.t, w.sql.users[secret.content["username"]], secret.content["password"], "the secret's password works")
			bag["secret-user"] = "a secret for " + secret.content["username"]
		}
		fmt.Fprintln(&text, r.id, bag)
	}
	owned := 0
	for _, secret := range w.juju.secrets {
		if secret.ours {
			owned++
		}
	}
	fmt.Fprintln(&text, w.juju.status, w.juju.message, owned, len(w.sql.users), w.kube.live.Spec.Type, w.kube.uid)
	return text.String()
}

// I6: a hook killed at any write converges to the same end state when it is run again.
func TestI6_KilledAnywhereConverges(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		before func(*world)
		hook   func(*world) int
	}{
		"first publication": {func(w *world) {}, func(w *world) int { return w.hook("config-changed") }},
		"switch to a load balancer that answers": {func(w *world) {
			w.settle()
			w.juju.config["expose-external"] = "loadbalancer"
			require.Zero(w.t, w.hook("config-changed"))
			w.kube.ingress("10.64.140.43")
			w.answer(lbReadWrite, lbReadOnly)
		}, func(w *world) int { return w.hook("gateway-pebble-custom-notice", "JUJU_WORKLOAD_NAME", "gateway") }},
		"a client joins": {func(w *world) { w.settle(); w.client("database:8", "second") },
			func(w *world) int { return w.relationHook(w.juju.relation("database:8"), "changed", "second/0") }},
		"a client goes": {func(w *world) { w.settle(); w.juju.relation("database:7").broken = true },
			func(w *world) int { return w.relationHook(w.juju.relation("database:7"), "broken", "") }},
		"the backend goes": {func(w *world) { w.settle(); w.juju.relation("backend-database:4").broken = true },
			func(w *world) int { return w.relationHook(w.juju.relation("backend-database:4"), "broken", "") }},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reference := newWorld(t)
			c.before(reference)
			require.Zero(t, c.hook(reference))
			writes := len(reference.juju.writes)
			require.NotZero(t, writes)
			reference.settle()
			for at := 1; at <= writes; at++ {
				w := newWorld(t)
				c.before(w)
				w.juju.killAt = at
				c.hook(w)
				w.juju.killAt = 0
				require.Zero(t, c.hook(w))
				w.settle()
				require.Equal(t, reference.end(), w.end(), "killed at write %d of %d", at, writes)
				w.quiet("update-status")
			}
		})
	}
}

// I7: a unit that is not leader, and one that is dying, writes no application databag, Service, secret or SQL.
func TestI7_OthersWriteNothing(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*world){
		"not leader": func(w *world) { w.juju.leader = false },
		"dying":      func(w *world) { w.juju.units[w.juju.unit] = "dying" },
		"dying, with all relations broken": func(w *world) {
			w.juju.units[w.juju.unit] = "dying"
			for _, r := range w.juju.relations[1:] {
				r.broken = true
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, settled := range []bool{false, true} {
				w := newWorld(t)
				if settled {
					w.settle()
					w.juju.config["expose-external"] = "loadbalancer"
				}
				change(w)
				before := fmt.Sprint(w.peer(), w.bag("database:7"), w.bag("backend-database:4"))
				for _, hook := range []string{"config-changed", "start", "update-status", "gateway-pebble-ready"} {
					require.Zero(t, w.hook(hook))
					require.Zero(t, w.kube.writes)
					require.Empty(t, w.sql.statements)
					for _, line := range w.juju.writes {
						require.NotContains(t, line, "--app")
						require.NotContains(t, line, "secret-")
					}
				}
				require.Zero(t, w.relationHook(w.juju.relation("database:7"), "broken", ""))
				require.Zero(t, w.relationHook(w.juju.relation("backend-database:4"), "broken", ""))
				require.Equal(t, before, fmt.Sprint(w.peer(), w.bag("database:7"), w.bag("backend-database:4")))
				require.Nil(t, w.watch.order, "no watch runs here")
				require.Equal(t, "node-0", w.juju.relation("drawbridge-peers:0").ownUnit["node"])
			}
		})
	}
}

func TestI7_LeadershipLostDeletesTheState(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.juju.config["expose-external"] = "loadbalancer"
	w.settle()
	require.Contains(t, w.juju.state["exposure"], "deferred")
	w.juju.leader = false
	require.Zero(t, w.hook("update-status"))
	require.Empty(t, w.juju.state)
	w.quiet("update-status")
}

// I8: no credential in a log, a status, an argument, or a plain key of a client that asked for secrets.
func TestI8_NoCredentialShows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var seen strings.Builder
	look := func(names ...string) {
		for _, name := range names {
			require.Zero(t, w.hook(name))
			fmt.Fprintln(&seen, w.juju.calls, w.juju.logs, w.juju.status, w.juju.message, w.juju.results, w.juju.state, w.peer(), w.bag("database:7"))
		}
	}
	look("config-changed", "update-status", "actions/explain", "actions/get-endpoints", "actions/reconcile")
	w.sql.err = errors.New("cannot make a user: refused")
	w.client("database:8", "second")
	look("update-status")
	w.silence(clusterHost + ":6446")
	look("update-status", "actions/explain")
	require.NotContains(t, seen.String(), "backend-pw")
	require.NotEmpty(t, w.sql.users)
	for user, password := range w.sql.users {
		require.NotContains(t, seen.String(), password, user)
	}
}

// I9: a hook that finds nothing changed writes nothing, whatever its name.
func TestI9_SettledHooksWriteAndLogNothing(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"false", "nodeport", "loadbalancer"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.juju.config["expose-external"] = mode
			w.answer("10.10.0.10:31446", "10.10.0.10:31447", lbReadWrite, lbReadOnly)
			w.settle()
			if mode == "loadbalancer" {
				w.kube.ingress("10.64.140.43")
				w.settle()
			}
			for range 3 {
				for _, name := range []string{"install", "start", "config-changed", "upgrade-charm", "leader-elected", "update-status",
					"gateway-pebble-ready", "gateway-pebble-custom-notice", "secret-changed"} {
					w.now = w.now.Add(7 * time.Minute)
					w.quiet(name)
					require.Empty(t, w.juju.logs)
				}
			}
		})
	}
}

func TestI9_EveryOtherAnswerForTenMinutes(t *testing.T) {
	t.Parallel()
	for _, second := range []bool{false, true} {
		t.Run(fmt.Sprintf("another address answers all the time: %v", second), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.juju.config["expose-external"] = "loadbalancer"
			w.settle()
			addresses := []string{"10.64.140.43"}
			if second {
				addresses = append(addresses, "10.64.140.44")
				w.answer("10.64.140.44:6446", "10.64.140.44:6447")
			}
			w.kube.ingress(addresses...)
			w.answer(lbReadWrite, lbReadOnly)
			w.settle()
			databagWrites := 0
			for range 120 {
				w.now = w.now.Add(5 * time.Second)
				if w.answers[lbReadWrite] {
					w.silence(lbReadWrite)
				} else {
					w.answer(lbReadWrite)
				}
				require.Zero(t, w.hook("gateway-pebble-custom-notice", "JUJU_WORKLOAD_NAME", "gateway"))
				for _, line := range w.juju.writes {
					if strings.HasPrefix(line, "relation-set") {
						databagWrites++
					}
				}
			}
			require.LessOrEqual(t, databagWrites, 2)
		})
	}
}

func TestI9_FiveHundredPendingHooks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.juju.config["expose-external"] = "loadbalancer"
	w.settle()
	size := len(w.juju.state["exposure"])
	for range 500 {
		w.now = w.now.Add(time.Second)
		w.quiet("gateway-pebble-custom-notice", "JUJU_WORKLOAD_NAME", "gateway")
		require.Len(t, w.juju.logs, 1, "what is deferred is logged, once a hook")
	}
	require.Len(t, w.juju.state["exposure"], size)
}

// The budgets of calls in a settled hook.
func TestBudget_Calls(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"false", "nodeport", "loadbalancer"} {
		for _, clients := range []int{0, 1, 5} {
			t.Run(fmt.Sprintf("%s, %d clients", mode, clients), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.juju.relations = w.juju.relations[:2]
				w.juju.relation("backend-database:4").remoteApp["secret-tls"] = "secret:tls"
				w.juju.secrets["tls"] = &fakeSecret{content: map[string]string{"tls": "True"}}
				for i := range clients {
					w.client(fmt.Sprintf("database:%d", 10+i), fmt.Sprintf("app%d", i))
				}
				w.juju.config["expose-external"] = mode
				w.answer("10.10.0.10:31446", "10.10.0.10:31447", lbReadWrite, lbReadOnly)
				w.settle()
				if mode == "loadbalancer" {
					w.kube.ingress("10.64.140.43")
					w.settle()
				}
				for _, r := range w.juju.relations {
					w.mirror(r)
				}
				w.quiet("update-status")
				budget := 16 + 3*clients
				requests := 1
				switch mode {
				case "false":
					budget += clients
				case "nodeport":
					requests = 2 + 1
				}
				require.LessOrEqual(t, len(w.juju.calls)+len(w.juju.logs), budget, w.juju.calls)
				require.Equal(t, requests, w.kube.requests)
				for _, call := range w.juju.calls {
					if strings.HasPrefix(call, "secret-") {
						require.True(t, strings.Contains(call, "secret:backend4") || strings.Contains(call, "secret:tls"), call)
					}
				}
				if clients > 0 {
					client := w.juju.relation("database:10")
					require.Zero(t, w.relationHook(client, "changed", "app0/0"))
					require.LessOrEqual(t, len(w.juju.calls), budget+1, "and the mirror that the hook is about")
				}
				w.juju.leader = false
				w.settle()
				w.quiet("update-status")
				require.LessOrEqual(t, len(w.juju.calls), 12, w.juju.calls)
				require.Zero(t, w.kube.requests)
				require.Equal(t, "active", w.juju.status)
			})
		}
	}
}

// Users and databases are named as the design says.
func TestNames(t *testing.T) {
	t.Parallel()
	require.Equal(t, "relation-4-7", database.UserName("relation-4", 7))
	require.LessOrEqual(t, len(database.UserName(strings.Repeat("x", 32), 123456)), 32)
}
