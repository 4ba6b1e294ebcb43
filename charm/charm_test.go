// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package charm

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

const (
	lbReadWrite = "10.64.140.43:6446"
	lbReadOnly  = "10.64.140.43:6447"
)

// balanced is a world settled in loadbalancer mode on 10.64.140.43.
func balanced(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.juju.config["expose-external"] = "loadbalancer"
	w.settle()
	w.kube.ingress("10.64.140.43")
	w.answer(lbReadWrite, lbReadOnly)
	w.settle()
	require.Equal(t, lbReadWrite, w.bag("database:7")["endpoints"])
	return w
}

func TestFalse_ServesAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.Zero(t, w.hook("config-changed"))
	bag := w.bag("database:7")
	require.Equal(t, clusterHost+":6446", bag["endpoints"])
	require.Equal(t, clusterHost+":6447", bag["read-only-endpoints"])
	require.Equal(t, "orders", bag["database"])
	require.Equal(t, "10.11", bag["version"])
	secret := w.juju.secrets[strings.TrimPrefix(bag["secret-user"], "secret:")]
	require.True(t, secret.granted["database:7"])
	require.Equal(t, "relation-4-7", secret.content["username"])
	require.Equal(t, w.sql.users["relation-4-7"], secret.content["password"])
	require.Len(t, secret.content, 2, "never with endpoints in it")
	require.True(t, w.sql.databases["orders"])
	require.Equal(t, "active", w.juju.status)
	require.Contains(t, w.juju.message, "in-cluster "+strings.TrimSuffix(clusterHost, ".")+", answers")
	require.NotContains(t, w.peer(), "service-pending", "a Service that answers in the hook that applied it never raises the flag")
	require.Equal(t, "4", w.peer()["backend"])
	w.quiet("update-status")
}

func TestFalse_PlainCredentials(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.juju.relation("database:7").remoteApp = map[string]string{"database": "orders"}
	w.settle()
	bag := w.bag("database:7")
	require.Equal(t, "relation-4-7", bag["username"])
	require.Equal(t, w.sql.users["relation-4-7"], bag["password"])
	require.NotContains(t, bag, "secret-user")
	require.Equal(t, clusterHost+":6446", bag["endpoints"])
	w.quiet("update-status")
}

func TestBackend_TLSIsPassedOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	backend := w.juju.relation("backend-database:4")
	backend.remoteApp["secret-tls"] = "secret:tls"
	w.juju.secrets["tls"] = &fakeSecret{content: map[string]string{"tls": "True", "tls-ca": "PEM"}}
	plain := w.client("database:8", "old-client")
	plain.remoteApp = map[string]string{"database": "old"}
	w.settle()
	uri := strings.TrimPrefix(w.bag("database:7")["secret-tls"], "secret:")
	require.Equal(t, map[string]string{"tls": "True", "tls-ca": "PEM"}, w.juju.secrets[uri].content)
	require.True(t, w.juju.secrets[uri].granted["database:7"])
	require.Equal(t, "True", w.bag("database:8")["tls"])
	require.Equal(t, "PEM", w.bag("database:8")["tls-ca"])
	w.quiet("update-status")
}

func TestLoadBalancer_WalksItsStates(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.settle()
	before := fmt.Sprint(w.bag("database:7"))
	w.juju.config["expose-external"] = "loadbalancer"

	require.Zero(t, w.hook("config-changed"))
	require.Equal(t, "maintenance", w.juju.status)
	require.Equal(t, "requested a LoadBalancer Service; waiting for its address", w.juju.message)
	require.Equal(t, "true", w.peer()["service-pending"])
	require.Equal(t, "2026-11-30T12:00:00Z", w.peer()["service-pending-since"])

	w.now = w.now.Add(time.Second)
	require.Zero(t, w.hook("drawbridge-peers-relation-changed", "JUJU_RELATION_ID", "drawbridge-peers:0"))
	require.Equal(t, "waiting", w.juju.status)
	require.Contains(t, w.juju.message, "no address yet for the LoadBalancer Service")
	require.Contains(t, w.juju.message, "2026-11-30 12:00:00Z")
	require.Contains(t, strings.Join(w.juju.logs, "\n"), "deferred-by=config-changed")

	w.kube.ingress("10.64.140.43")
	require.Zero(t, w.hook("gateway-pebble-custom-notice", "JUJU_WORKLOAD_NAME", "gateway"))
	require.Equal(t, "waiting", w.juju.status)
	require.Contains(t, w.juju.message, "10.64.140.43 does not answer yet")
	require.Equal(t, before, fmt.Sprint(w.bag("database:7")), "the databag does not move while pending")
	require.True(t, w.watch.order.Pending)
	require.Equal(t, w.now.Truncate(time.Second).Add(15*time.Minute-time.Second), w.watch.order.WakeAt, "pending-timeout wakes us")

	w.answer(lbReadWrite, lbReadOnly)
	require.Zero(t, w.hook("gateway-pebble-custom-notice", "JUJU_WORKLOAD_NAME", "gateway"))
	require.Equal(t, lbReadWrite, w.bag("database:7")["endpoints"])
	require.Equal(t, lbReadOnly, w.bag("database:7")["read-only-endpoints"])
	require.Equal(t, "active", w.juju.status)
	require.Equal(t, "loadbalancer 10.64.140.43, answers from inside the cluster", w.juju.message)
	require.NotContains(t, w.peer(), "service-pending")
	require.NotContains(t, w.juju.state["exposure"], "deferred")
	require.False(t, w.watch.order.Pending)
	w.settle()
	w.quiet("update-status")
	require.Equal(t, lbReadWrite, w.peer()["endpoints"])
}

func TestLoadBalancer_BothPortsCount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.juju.config["expose-external"] = "loadbalancer"
	w.settle()
	w.kube.ingress("10.64.140.43")
	w.answer(lbReadWrite)
	w.settle()
	require.NotContains(t, w.bag("database:7"), "endpoints", "the read-only port does not answer yet")
	w.answer(lbReadOnly)
	w.settle()
	require.Equal(t, lbReadWrite, w.bag("database:7")["endpoints"])
}

func TestNodePort_PublishesWhatAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.kube.pod("drawbridge-k8s-1", "node-1")
	w.kube.pod("drawbridge-k8s-2", "node-1")
	w.kube.node("node-1", "10.10.0.11")
	w.juju.config["expose-external"] = "nodeport"
	w.answer("10.10.0.10:31446", "10.10.0.10:31447", "10.10.0.11:31446")
	w.settle()
	require.Equal(t, "10.10.0.10:31446", w.bag("database:7")["endpoints"])
	require.Contains(t, w.juju.message, "silent: 10.10.0.11")
	require.Equal(t, "active", w.juju.status)
	w.answer("10.10.0.11:31447")
	w.settle()
	require.Equal(t, "10.10.0.10:31446,10.10.0.11:31446", w.bag("database:7")["endpoints"])
	require.Equal(t, "10.10.0.10:31447,10.10.0.11:31447", w.bag("database:7")["read-only-endpoints"])
	w.quiet("update-status")
	require.Equal(t, 4, w.kube.requests, "2 + nodes in use")
}

func TestModes_AllSixSwitches(t *testing.T) {
	t.Parallel()
	modes := map[string]string{"false": clusterHost + ":6446", "nodeport": "10.10.0.10:31446", "loadbalancer": lbReadWrite}
	for from := range modes {
		for to, endpoint := range modes {
			if from == to {
				continue
			}
			t.Run(from+" to "+to, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.answer("10.10.0.10:31446", "10.10.0.10:31447", lbReadWrite, lbReadOnly)
				for _, mode := range []string{from, to} {
					w.juju.config["expose-external"] = mode
					require.Zero(t, w.hook("config-changed"))
					if mode == "loadbalancer" {
						w.kube.ingress("10.64.140.43")
					}
					w.settle()
				}
				require.Equal(t, endpoint, w.bag("database:7")["endpoints"])
				require.Equal(t, "active", w.juju.status, w.juju.message)
				require.Equal(t, 1, w.kube.uid, "never by deletion")
				w.quiet("update-status")
			})
		}
	}
}

func TestPendingTimeout_BlocksAndIsStillRetried(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.juju.config["expose-external"] = "loadbalancer"
	w.juju.config["pending-timeout"] = "90s"
	w.settle()
	require.Equal(t, "waiting", w.juju.status)
	w.now = w.now.Add(90 * time.Second)
	require.Zero(t, w.hook("gateway-pebble-custom-notice", "JUJU_WORKLOAD_NAME", "gateway"))
	require.Equal(t, "blocked", w.juju.status)
	w.quiet("update-status")
	require.Len(t, w.kube.applies, 1, "the Service is never touched to help")
	w.kube.ingress("10.64.140.43")
	w.answer(lbReadWrite, lbReadOnly)
	w.settle()
	require.Equal(t, "active", w.juju.status)
}

func TestSilence_C5ThenBackAgainWritesNoDatabag(t *testing.T) {
	t.Parallel()
	w := balanced(t)
	peer, bag := fmt.Sprint(w.peer()), fmt.Sprint(w.bag("database:7"))
	w.silence(lbReadWrite)
	require.Zero(t, w.hook("update-status"))
	require.Equal(t, "waiting", w.juju.status)
	require.Contains(t, w.juju.message, "has not answered since 2026-11-30 12:00:00Z")
	require.Contains(t, w.juju.state["exposure"], "deferred")
	w.quiet("update-status")
	w.now = w.now.Add(16 * time.Minute)
	require.Zero(t, w.hook("update-status"))
	require.Equal(t, "blocked", w.juju.status)
	w.answer(lbReadWrite)
	w.settle()
	require.Equal(t, "active", w.juju.status)
	require.Equal(t, peer, fmt.Sprint(w.peer()))
	require.Equal(t, bag, fmt.Sprint(w.bag("database:7")))
}

func TestSilence_ThirtySecondRule(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.kube.pod("drawbridge-k8s-1", "node-1")
	w.kube.node("node-1", "10.10.0.11")
	w.juju.config["expose-external"] = "nodeport"
	w.answer("10.10.0.10:31446", "10.10.0.10:31447", "10.10.0.11:31446", "10.10.0.11:31447")
	w.settle()
	const both, one = "10.10.0.10:31446,10.10.0.11:31446", "10.10.0.10:31446"
	require.Equal(t, both, w.bag("database:7")["endpoints"])

	w.silence("10.10.0.11:31446")
	w.settle()
	require.Equal(t, both, w.bag("database:7")["endpoints"])
	require.Equal(t, w.now.Add(30*time.Second), w.watch.order.WakeAt)

	w.now = w.now.Add(29 * time.Second)
	w.settle()
	require.Equal(t, both, w.bag("database:7")["endpoints"])

	w.now = w.now.Add(time.Second)
	w.probes = nil
	require.Zero(t, w.hook("gateway-pebble-custom-notice", "JUJU_WORKLOAD_NAME", "gateway"))
	require.Equal(t, one, w.bag("database:7")["endpoints"])
	asked := 0
	for _, probed := range w.probes {
		if probed == "10.10.0.11:31446" {
			asked++
		}
	}
	require.Equal(t, 5, asked, "once, and four times more before it is dropped")
	w.settle()
	require.Equal(t, one, w.bag("database:7")["endpoints"])
}

func TestBackendGone_WithdrawsAndServesAnew(t *testing.T) {
	t.Parallel()
	w := balanced(t)
	client := w.juju.relation("database:7")
	w.mirror(client)
	first := w.bag("database:7")["secret-user"]
	backend := w.juju.relation("backend-database:4")
	backend.broken = true
	require.Zero(t, w.relationHook(backend, "broken", ""))
	require.Equal(t, map[string]string{"data": client.ownApp["data"]}, client.ownApp)
	require.NotContains(t, w.juju.secrets, strings.TrimPrefix(first, "secret:"))
	require.NotContains(t, w.peer(), "backend")
	require.NotContains(t, w.peer(), "endpoints")
	require.Equal(t, "blocked", w.juju.status)
	require.Contains(t, w.juju.message, "juju integrate drawbridge-k8s:backend-database")
	w.quiet("update-status")

	w.juju.relations = w.juju.relations[:0]
	w.juju.relations = append(w.juju.relations, w.juju.relate("drawbridge-peers:0", endpointPeers, "drawbridge-k8s"))
	w.juju.relations[0].ownApp = map[string]string{"schema": "1", "leader": w.juju.unit}
	w.juju.relations = append(w.juju.relations[:1], client)
	w.backend("backend-database:9")
	w.settle()
	require.NotContains(t, client.ownApp, "secret-user", "a mirror still shows the old credentials")
	require.Contains(t, w.juju.message, "once client-k8s has noticed")
	w.mirror(client)
	require.Zero(t, w.relationHook(client, "changed", "client-k8s/0"))
	require.NotEmpty(t, client.ownApp["secret-user"])
	require.NotEqual(t, first, client.ownApp["secret-user"])
	require.Equal(t, lbReadWrite, client.ownApp["endpoints"])
	require.Contains(t, w.sql.users, "relation-9-7")
	require.Equal(t, "9", w.peer()["backend"])
}

func TestBackendReplaced_WithdrawsFirst(t *testing.T) {
	t.Parallel()
	w := balanced(t)
	w.backend("backend-database:9")
	require.Zero(t, w.hook("backend-database-relation-changed", "JUJU_RELATION_ID", "backend-database:9"))
	require.NotContains(t, w.bag("database:7"), "secret-user")
	require.NotContains(t, w.bag("database:7"), "endpoints")
	require.NotContains(t, w.peer(), "backend")
	require.Equal(t, w.now, w.watch.order.WakeAt, "to be continued at once")
	w.settle()
	require.Equal(t, "9", w.peer()["backend"])
	require.Equal(t, lbReadWrite, w.bag("database:7")["endpoints"])
	require.Equal(t, "active", w.juju.status)
}

func TestBackendUnknown_TouchesNothing(t *testing.T) {
	t.Parallel()
	w := balanced(t)
	w.juju.relations = append(w.juju.relations[:1], w.juju.relations[2:]...)
	w.juju.hidden[endpointBackend] = []string{"mariadb-k8s"}
	bag, peer := fmt.Sprint(w.bag("database:7")), fmt.Sprint(w.peer())
	require.Zero(t, w.hook("update-status"))
	require.Equal(t, bag, fmt.Sprint(w.bag("database:7")))
	require.Equal(t, peer, fmt.Sprint(w.peer()))
	require.Equal(t, "waiting", w.juju.status)
	require.Equal(t, w.now.Add(30*time.Second), w.watch.order.WakeAt)
	w.now = w.now.Add(31 * time.Second)
	w.quiet("update-status")
	require.Equal(t, w.now.Add(29*time.Second), w.watch.order.WakeAt)
}

func TestBackendIncomplete_KeepsWhatClientsHave(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		break_ func(*world)
		text   string
	}{
		"secret not granted": {func(w *world) { w.juju.unreadable["backend4"] = true }, "cannot be read yet"},
		"no endpoints":       {func(w *world) { delete(w.juju.relation("backend-database:4").remoteApp, "endpoints") }, "endpoints"},
		"answers not":        {func(w *world) { w.silence(backendAddress) }, "a session: connection refused"},
		"hostile answer":     {func(w *world) { w.juju.relation("backend-database:4").remoteApp["endpoints"] = "a\x00b" }, "control characters"},
		"nothing yet":        {func(w *world) { w.juju.relation("backend-database:4").remoteApp = map[string]string{} }, "an answer"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := balanced(t)
			bag, peer := fmt.Sprint(w.bag("database:7")), fmt.Sprint(w.peer())
			c.break_(w)
			require.Zero(t, w.hook("update-status"))
			require.Equal(t, "waiting", w.juju.status)
			require.Contains(t, w.juju.message, c.text)
			w.quiet("update-status")
			require.Equal(t, bag, fmt.Sprint(w.bag("database:7")))
			require.Equal(t, peer, fmt.Sprint(w.peer()))
		})
	}
}

func TestBackendRole_ReadOnceAndNeverChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.settle()
	require.Equal(t, map[string]string{"database": "drawbridge", "extra-user-roles": "mysqlrouter",
		"requested-secrets": `["username", "password", "tls", "tls-ca", "uris"]`}, w.bag("backend-database:4"))
	w.juju.config["backend-role"] = "charmed_router"
	require.Zero(t, w.hook("config-changed"))
	require.Equal(t, "blocked", w.juju.status)
	require.Contains(t, w.juju.message, "remove the relation")
	require.Equal(t, "mysqlrouter", w.bag("backend-database:4")["extra-user-roles"])
	w.quiet("update-status")
}

func TestClient_MirrorOfAnotherSecretWithdraws(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.settle()
	client := w.juju.relation("database:7")
	client.remoteUnits["client-k8s/0"] = map[string]string{"data": `{"secret-user": "secret:old"}`}
	require.Zero(t, w.relationHook(client, "changed", "client-k8s/0"))
	require.NotContains(t, client.ownApp, "secret-user")
	require.NotContains(t, client.ownApp, "endpoints")
	require.Equal(t, "waiting", w.juju.status)
	w.settle()
	require.NotContains(t, client.ownApp, "secret-user")
	w.mirror(client)
	require.Zero(t, w.relationHook(client, "changed", "client-k8s/0"))
	require.NotEmpty(t, client.ownApp["secret-user"])
	w.settle()
	require.Equal(t, "active", w.juju.status)
}

func TestClient_BadRequestsBlockOnlyThemselves(t *testing.T) {
	t.Parallel()
	for name, bag := range map[string]map[string]string{
		"SQL in the name":   {"database": "x`; DROP DATABASE orders; --"},
		"system schema":     {"database": "mysql"},
		"malformed secrets": {"database": "x", "requested-secrets": "[username"},
		"roles":             {"database": "x", "extra-user-roles": "admin"},
		"entity":            {"database": "x", "entity-type": "USER"},
		"control":           {"database": "x\x07"},
		"huge":              {"database": "x", "junk": strings.Repeat("j", 300<<10)},
		"v2":                {"version": "v2", "requests": "[]"},
		"v1, no JSON":       {"version": "v1", "requests": "[{"},
		"v1, SQL":           {"version": "v1", "requests": `[{"resource": "x` + "`" + `; DROP DATABASE orders; --", "request-id": "1"}]`},
		"v1, roles":         {"version": "v1", "requests": `[{"resource": "x", "request-id": "1", "extra-user-roles": "admin"}]`},
		"v1, two requests":  {"version": "v1", "requests": `[{"resource": "x", "request-id": "1"}, {"resource": "y", "request-id": "2"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			bad := w.client("database:8", "bad-client")
			bad.remoteApp = bag
			w.settle()
			require.Equal(t, clusterHost+":6446", w.bag("database:7")["endpoints"])
			require.Empty(t, bad.ownApp)
			require.Equal(t, "blocked", w.juju.status)
			require.Contains(t, w.juju.message, "database:8")
			require.NotContains(t, w.juju.message, "\x07")
			w.quiet("update-status")
			bad.remoteApp = map[string]string{"database": "fine"}
			w.settle()
			require.Equal(t, "active", w.juju.status, "nothing stale is left once it is mended")
			require.NotEmpty(t, bad.ownApp["endpoints"])
		})
	}
}

func TestClient_NotAskedYet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.juju.relation("database:7").remoteApp = map[string]string{"external-node-connectivity": "true"}
	w.settle()
	require.Empty(t, w.bag("database:7"), "no write before the request")
	require.Equal(t, "active", w.juju.status)
	require.Contains(t, w.juju.message, "database:7 has not asked for a database yet")
}

func TestClient_OfAnotherModel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.juju.relation("database:7").model = "another"
	w.settle()
	require.Contains(t, w.juju.message, "another model")
}

func TestClient_GoneIsCleanedUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.settle()
	client := w.juju.relation("database:7")
	client.broken = true
	require.Zero(t, w.relationHook(client, "broken", ""))
	require.NotContains(t, w.sql.users, "relation-4-7")
	require.Equal(t, map[string]string{"data": client.ownApp["data"]}, client.ownApp, "a hook of the client that comes later finds no secret that is gone")
	require.True(t, w.sql.databases["orders"], "databases never")
	require.Len(t, w.juju.secrets, 1, "only the backend's is left")
	require.NotContains(t, w.peer(), "backend")
	require.Contains(t, w.juju.message, "no client related")
	w.quiet("update-status")
}

func TestClient_GoneWhileTheBackendIsAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.settle()
	client := w.juju.relation("database:7")
	client.broken = true
	w.silence(backendAddress)
	require.Zero(t, w.relationHook(client, "broken", ""))
	require.Contains(t, w.sql.users, "relation-4-7")
	w.juju.relations = w.juju.relations[:2]
	w.settle()
	w.answer(backendAddress)
	w.settle()
	require.NotContains(t, w.sql.users, "relation-4-7")
	require.Len(t, w.juju.secrets, 1)
}

func TestLeader_NewOneSweepsAndServesOn(t *testing.T) {
	t.Parallel()
	w := balanced(t)
	w.sql.users["relation-4-6"] = "left behind"
	w.juju.secrets["own99"] = &fakeSecret{label: "database.6.backend.4.user.secret", ours: true, content: map[string]string{}}
	w.juju.secrets["mine"] = &fakeSecret{label: "something else", ours: true, content: map[string]string{}}
	w.juju.unit = "drawbridge-k8s/1"
	w.juju.units["drawbridge-k8s/1"] = "active"
	w.kube.pod("drawbridge-k8s-1", "node-0")
	w.juju.state = map[string]string{}
	before := fmt.Sprint(w.bag("database:7"))
	require.Zero(t, w.hook("leader-elected"))
	require.Equal(t, "drawbridge-k8s/1", w.peer()["leader"])
	require.NotContains(t, w.sql.users, "relation-4-6")
	require.Contains(t, w.sql.users, "relation-4-7")
	require.NotContains(t, w.juju.secrets, "own99")
	require.Contains(t, w.juju.secrets, "mine")
	require.Equal(t, before, fmt.Sprint(w.bag("database:7")))
	w.settle()
	w.quiet("update-status")
}

func TestConfig_InvalidBlocksAndTouchesNothing(t *testing.T) {
	t.Parallel()
	for option, value := range map[string]any{
		"expose-external": "NodePort", "loadbalancer-extra-annotations": `{"a":1}`, "loadbalancer-source-ranges": "10.0.0.0",
		"loadbalancer-class": "a b", "external-traffic-policy": "local", "node-port": float64(70000),
		"read-only-node-port": float64(-1), "external-hostname": "a_b", "probe-mode": "tcp", "pending-timeout": "soon",
		"backend-role": "a b",
	} {
		t.Run(option, func(t *testing.T) {
			t.Parallel()
			w := balanced(t)
			bag, applies := fmt.Sprint(w.bag("database:7")), len(w.kube.applies)
			before := w.juju.config[option]
			w.juju.config[option] = value
			require.Zero(t, w.hook("config-changed"))
			require.Equal(t, "blocked", w.juju.status)
			require.Contains(t, w.juju.message, option)
			require.Contains(t, w.juju.message, "allowed")
			require.Len(t, w.kube.applies, applies)
			require.Equal(t, bag, fmt.Sprint(w.bag("database:7")))
			w.quiet("update-status")
			w.juju.config[option] = before
			w.settle()
			require.Equal(t, "active", w.juju.status)
		})
	}
}

func TestKubernetes_Refusals(t *testing.T) {
	t.Parallel()
	t.Run("no trust", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.kube.errs["Service"] = forbidden("get", "services")
		require.Zero(t, w.hook("config-changed"))
		require.Equal(t, 3, w.kube.requests, "asked once more, and for the own pod")
		require.Equal(t, "blocked", w.juju.status)
		require.Contains(t, w.juju.message, "juju trust drawbridge-k8s --scope=cluster")
		w.quiet("update-status")
		delete(w.kube.errs, "Service")
		w.settle()
		require.Equal(t, "active", w.juju.status)
	})
	t.Run("apply refused, with a deadline that doubles", func(t *testing.T) {
		t.Parallel()
		w := balanced(t)
		w.juju.config["loadbalancer-class"] = "example.com/internal"
		w.kube.alter = nil
		w.kube.errs["Apply"] = forbidden("patch", "services")
		w.juju.config["expose-external"] = "nodeport"
		require.Zero(t, w.hook("config-changed"))
		require.Equal(t, "blocked", w.juju.status)
		start := w.now
		require.Equal(t, start.Add(30*time.Second), w.watch.order.WakeAt)
		require.Equal(t, lbReadWrite, w.bag("database:7")["endpoints"], "the pass goes on with the live object")
		w.now = start.Add(10 * time.Second)
		require.Zero(t, w.hook("update-status"))
		require.Empty(t, w.juju.writes)
		require.Equal(t, start.Add(30*time.Second), w.watch.order.WakeAt)
		w.now = start.Add(30 * time.Second)
		require.Zero(t, w.hook("update-status"))
		require.Equal(t, start.Add(90*time.Second), w.watch.order.WakeAt)
		delete(w.kube.errs, "Apply")
		require.Zero(t, w.hook("update-status"))
		require.NotContains(t, w.juju.state["exposure"], "refused")
	})
	t.Run("busy", func(t *testing.T) {
		t.Parallel()
		w := balanced(t)
		w.kube.errs["Service"] = errors.New("connection reset")
		bag := fmt.Sprint(w.bag("database:7"))
		require.Zero(t, w.hook("update-status"))
		require.Equal(t, "waiting", w.juju.status)
		require.Equal(t, bag, fmt.Sprint(w.bag("database:7")))
		w.quiet("update-status")
	})
	t.Run("no right to read nodes", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.juju.config["expose-external"] = "nodeport"
		w.kube.errs["Node"] = forbidden("get", "nodes")
		for _, hook := range []string{"config-changed", "update-status", "stop", "remove"} {
			require.Zero(t, w.hook(hook))
		}
		require.Equal(t, "blocked", w.juju.status)
		require.Contains(t, w.juju.message, "juju trust")
	})
}

func TestService_DriftIsHealedInAnyHook(t *testing.T) {
	t.Parallel()
	w := balanced(t)
	w.kube.live = nil
	require.Zero(t, w.hook("update-status"))
	require.NotNil(t, w.kube.live)
	require.Equal(t, "maintenance", w.juju.status)
	w.kube.ingress("10.64.140.43")
	w.settle()
	require.Equal(t, "active", w.juju.status)
}

func TestService_AlteredByTheClusterIsNotRepeated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.juju.config["expose-external"] = "loadbalancer"
	w.juju.config["loadbalancer-extra-annotations"] = `{"example.com/a": "wanted"}`
	w.kube.alter = func(s *corev1.Service) { s.Annotations["example.com/a"] = "altered" }
	w.settle()
	require.Len(t, w.kube.applies, 1)
	require.Contains(t, w.juju.message, "example.com/a")
	w.kube.ingress("10.64.140.43")
	w.answer(lbReadWrite, lbReadOnly)
	w.settle()
	require.Len(t, w.kube.applies, 1)
	require.Equal(t, lbReadWrite, w.bag("database:7")["endpoints"])
	w.juju.config["loadbalancer-extra-annotations"] = `{"example.com/a": "other"}`
	w.settle()
	require.Len(t, w.kube.applies, 2, "tried again once the wish changes")
}

func TestGateway_NotThereIsMaintenance(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.gate.problem = "cannot bind 6446"
	w.gate.up = false
	w.settle()
	require.Equal(t, "blocked", w.juju.status)
	require.Contains(t, w.juju.message, "cannot bind 6446")
	w.gate.problem, w.gate.up = "", true
	w.settle()
	require.Equal(t, "active", w.juju.status)
	require.Equal(t, "2.8.16", w.juju.version)
}

func TestProbeNone_CountsOnceTheClusterIPAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.juju.config["expose-external"] = "loadbalancer"
	w.juju.config["probe-mode"] = "none"
	w.settle()
	w.kube.ingress("10.64.140.43")
	w.settle()
	require.Equal(t, "waiting", w.juju.status)
	w.answer("10.152.183.50:6446", "10.152.183.50:6447")
	w.probes = nil
	w.settle()
	require.Equal(t, lbReadWrite, w.bag("database:7")["endpoints"])
	require.Contains(t, w.juju.message, "not verifiable from inside")
	require.NotContains(t, w.probes, lbReadWrite)
}

func TestSourceRanges_OutsideThemIsNotVerifiable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.juju.config["expose-external"] = "loadbalancer"
	w.juju.config["loadbalancer-source-ranges"] = "192.0.2.0/24"
	w.settle()
	w.kube.ingress("10.64.140.43")
	w.answer("10.152.183.50:6446", "10.152.183.50:6447")
	w.settle()
	require.Equal(t, lbReadWrite, w.bag("database:7")["endpoints"])
	require.Contains(t, w.juju.message, "not verifiable from inside")
	w.juju.config["loadbalancer-source-ranges"] = "192.0.2.0/24, 10.1.0.0/16"
	w.settle()
	require.Equal(t, "waiting", w.juju.status, "the pod is let in now, so the address has to answer")
}

func TestExternalHostname_ReplacesTheHostAndIsProbed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.juju.config["expose-external"] = "loadbalancer"
	w.juju.config["external-hostname"] = "db.example.com"
	w.settle()
	require.Equal(t, "waiting", w.juju.status)
	w.kube.ingress("10.64.140.43")
	w.answer("db.example.com:6446", "db.example.com:6447")
	w.settle()
	require.Equal(t, "db.example.com:6446", w.bag("database:7")["endpoints"])
}

func TestStopAndRemove_OnlyWindDown(t *testing.T) {
	t.Parallel()
	w := balanced(t)
	w.quiet("stop")
	require.Nil(t, w.watch.order)
	require.Equal(t, 1, w.gate.stopped)
	require.Empty(t, w.juju.calls)
	w.quiet("remove")
}

func TestActions(t *testing.T) {
	t.Parallel()
	w := balanced(t)
	w.quiet2("actions/get-endpoints")
	require.Equal(t, lbReadWrite, w.juju.results["clients.database-7.endpoints"])
	require.Equal(t, "true", w.juju.results["probes.0.answers"])
	require.Contains(t, w.juju.results["text"], "answers")
	w.quiet2("actions/explain")
	require.Equal(t, "C3", w.juju.results["exposure.row"])
	require.Equal(t, "active", w.juju.results["status"])
	require.Equal(t, "LoadBalancer", w.juju.results["service.live.type"])
	w.juju.config["expose-external"] = "nodeport"
	w.quiet2("actions/explain")
	require.Contains(t, w.juju.results["service.differences.0"], "LoadBalancer")
	w.answer("10.10.0.10:31446", "10.10.0.10:31447")
	require.Zero(t, w.hook("actions/reconcile"))
	require.Equal(t, "10.10.0.10:31446", w.bag("database:7")["endpoints"])
	require.Equal(t, "active", w.juju.results["status"])
	require.Zero(t, w.hook("actions/nonsense"))
	require.Contains(t, w.juju.failure, "nonsense")
	w.juju.leader = false
	w.quiet2("actions/explain")
	w.quiet2("actions/get-endpoints")
	require.Equal(t, "10.10.0.10:31446", w.juju.results["published.endpoints"])
}

// quiet2 runs an action that must change nothing but its results.
func (w *world) quiet2(name string) {
	w.t.Helper()
	require.Zero(w.t, w.hook(name))
	require.Zero(w.t, w.kube.writes)
	require.Empty(w.t, w.sql.statements)
	for _, write := range w.juju.writes {
		require.True(w.t, strings.HasPrefix(write, "action-set"), write)
	}
}

// The charm and the backend begin anew together: no hook has seen the backend silent.
func TestBackend_ThatLostItsDataWhileNobodyLooked(t *testing.T) {
	t.Parallel()
	for _, event := range []string{"start", "upgrade-charm"} {
		t.Run(event, func(t *testing.T) {
			t.Parallel()
			w := balanced(t)
			password := w.sql.users["relation-4-7"]
			w.sql.users = map[string]string{}
			require.Zero(t, w.hook(event))
			require.Equal(t, map[string]string{"relation-4-7": password}, w.sql.users)
			w.settle()
			w.quiet(event)
		})
	}
}

func TestBackend_ThatLostItsDataGetsItsUsersAgain(t *testing.T) {
	t.Parallel()
	w := balanced(t)
	w.client("database:8", "second")
	w.settle()
	before := fmt.Sprint(w.sql.users)
	w.silence(backendAddress)
	w.settle()
	delete(w.sql.users, "relation-4-7")
	w.answer(backendAddress)
	require.Zero(t, w.hook("gateway-pebble-custom-notice", "JUJU_WORKLOAD_NAME", "gateway"))
	require.Equal(t, before, fmt.Sprint(w.sql.users))
	require.Equal(t, []string{"database orders", "user relation-4-7 on orders"}, w.sql.statements, "the other one is left alone")
	w.settle()
	w.quiet("update-status")
	require.NotContains(t, w.juju.state["exposure"], "sweep")
}

func TestReconcile_MakesLostUsersAgain(t *testing.T) {
	t.Parallel()
	w := balanced(t)
	password := w.sql.users["relation-4-7"]
	w.sql.users = map[string]string{}
	require.Zero(t, w.hook("actions/reconcile"))
	require.Equal(t, map[string]string{"relation-4-7": password}, w.sql.users)
}

func TestWorkloadHook_NeverFails(t *testing.T) {
	t.Parallel()
	w := balanced(t)
	w.juju.failAt = "is-leader"
	require.Equal(t, 1, w.hook("update-status"))
	require.Zero(t, w.hook("gateway-pebble-ready", "JUJU_WORKLOAD_NAME", "gateway"))
}

func TestEvent_KindsAreAllHandled(t *testing.T) {
	t.Parallel()
	w := balanced(t)
	for _, name := range []string{"install", "start", "config-changed", "upgrade-charm", "leader-elected", "leader-settings-changed",
		"update-status", "secret-changed", "secret-remove", "gateway-pebble-ready", "gateway-pebble-custom-notice",
		"gateway-pebble-check-failed", "gateway-pebble-check-recovered", "something-new"} {
		w.quiet(name)
	}
	for _, kind := range []string{"created", "joined", "changed", "departed"} {
		for _, id := range []string{"database:7", "backend-database:4", "drawbridge-peers:0"} {
			r := w.juju.relation(id)
			require.Zero(t, w.relationHook(r, kind, ""))
			require.Empty(t, w.juju.writes)
		}
	}

}

// A client whose own endpoint is called like ours to the backend is no backend to come.
func TestBackendGone_ThoughAClientIsListedThere(t *testing.T) {
	t.Parallel()
	w := balanced(t)
	w.juju.relations = append(w.juju.relations[:1], w.juju.relations[2:]...)
	w.juju.hidden[endpointBackend] = []string{"client-k8s"}
	require.Zero(t, w.hook("update-status"))
	require.Equal(t, "blocked", w.juju.status)
	require.NotContains(t, w.bag("database:7"), "secret-user")
}

func TestLeadership_LostBetweenAskingAndWriting(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.juju.each = func(tool string) {
		if tool == "status-get" || tool == "relation-list" {
			w.juju.leader = false
		}
	}
	require.Zero(t, w.hook("config-changed"))
	require.Empty(t, w.peer())
}

func TestSecretRevision_NobodyReadsIsRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.settle()
	id := strings.TrimPrefix(w.bag("database:7")["secret-user"], "secret:")
	label := w.juju.secrets[id].label
	require.Zero(t, w.hook("secret-remove", "JUJU_SECRET_ID", "secret:"+id, "JUJU_SECRET_LABEL", label, "JUJU_SECRET_REVISION", "1"))
	require.Len(t, w.juju.writes, 1)
	require.Contains(t, w.juju.writes[0], "secret-remove --revision 1")
	w.quiet("secret-remove", "JUJU_SECRET_ID", "secret:x", "JUJU_SECRET_LABEL", "", "JUJU_SECRET_REVISION", "1")
}

func TestRelationGoneMeanwhile_IsNoError(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.client("database:8", "second")
	w.settle()
	w.juju.config["expose-external"] = "nodeport"
	w.answer("10.10.0.10:31446", "10.10.0.10:31447")
	w.juju.each = func(tool string) {
		if tool == "relation-set" {
			w.juju.relations = slices.DeleteFunc(w.juju.relations, func(r *fakeRelation) bool { return r.id == "database:7" })
		}
	}
	require.Zero(t, w.hook("config-changed"))
	require.Equal(t, "10.10.0.10:31446", w.bag("database:8")["endpoints"])
}

func TestClient_AnExistingSecretIsTheTruth(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.settle()
	client := w.juju.relation("database:7")
	uri, password := client.ownApp["secret-user"], w.sql.users["relation-4-7"]
	client.ownApp = map[string]string{} // somebody wiped it; the secret is there
	w.sql.users["relation-4-7"] = "changed by hand"
	w.settle()
	require.Equal(t, uri, client.ownApp["secret-user"])
	require.Equal(t, password, w.sql.users["relation-4-7"])
	require.Equal(t, 1, w.juju.secrets[strings.TrimPrefix(uri, "secret:")].rev, "no new revision")
}

func TestClient_CredentialsThatAreNotTheCurrentOnes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.settle()
	adopted := fmt.Sprint(w.bag("database:7"))
	delete(w.peer(), "backend")
	w.settle()
	require.Equal(t, adopted, fmt.Sprint(w.bag("database:7")), "the secret found by its label is the one published")
	require.Equal(t, "4", w.peer()["backend"])

	delete(w.peer(), "backend")
	w.bag("database:7")["secret-user"] = "secret:of-another-backend"
	require.Zero(t, w.hook("update-status"))
	require.NotContains(t, w.bag("database:7"), "secret-user")
	w.settle()
	require.NotEmpty(t, w.bag("database:7")["secret-user"])
}

func TestClient_HiddenOnesAreNotCleanedUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.settle()
	client := w.juju.relation("database:7")
	w.juju.relations = w.juju.relations[:2]
	w.juju.hidden[endpointClients] = []string{"client-k8s"}
	w.settle()
	require.Contains(t, w.sql.users, "relation-4-7", "Juju knows the relation though this unit does not see it")
	require.Equal(t, "4", w.peer()["backend"])
	w.juju.relations = append(w.juju.relations, client)
	w.juju.hidden = map[string][]string{}
	w.settle()
	w.quiet("update-status")
	require.NotContains(t, w.juju.state["exposure"], "unknown")
}
