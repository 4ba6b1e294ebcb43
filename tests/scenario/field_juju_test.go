// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package scenario

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/drawbridge-k8s/drawbridge/hooks/hooktool"
	"github.com/drawbridge-k8s/drawbridge/jujulet/cluster"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
	"github.com/drawbridge-k8s/drawbridge/tests/world"
)

// The tests of this file are cases of Juju's events, of leadership, of peer data
// and of deferral.

// noneFailed requires that no hook failed.
func noneFailed(t *testing.T, ran []string) {
	t.Helper()
	for _, hook := range ran {
		require.NotContains(t, hook, " failed ")
	}
}

// writesOf are the changes of databags that one unit has made since the mark.
func writesOf(w *world.World, mark world.Mark, unit string) []string {
	return slices.DeleteFunc(w.Changes(mark), func(change string) bool { return !strings.HasPrefix(change, unit+" ") })
}

func TestField_100_RolledBackWithItsHook(t *testing.T) {
	t.Parallel()
	w := world.New(t, world.Options{})
	w.Standard(2)
	fail := true
	w.Dispatch = func(unit, hook string, run func() int) (int, bool) {
		if !fail || unit != w.Leader() || hook != "config-changed" {
			return 0, false
		}
		require.Zero(t, run())
		return 1, true
	}
	w.Config("expose-external", "loadbalancer")
	require.Contains(t, w.Settle(), w.Leader()+" failed config-changed")
	require.Empty(t, w.Peer()["service-pending"], "the flag went with its hook")
	fail = false
	w.Clock.Add(time.Minute)
	noneFailed(t, w.Settle())
	require.Equal(t, "true", w.Peer()["service-pending"], "the next hook finds it again")
	require.Equal(t, world.InModel+":6446", w.Endpoints())
}

func TestField_101_LeadershipMovesWhilePending(t *testing.T) {
	t.Parallel()
	w := world.New(t, world.Options{})
	w.Standard(2)
	w.Config("expose-external", "loadbalancer")
	w.Settle()
	old := w.Leader()
	other := world.Gateway + "/1"
	if old == other {
		other = world.Gateway + "/0"
	}
	require.NoError(t, w.Model.SetLeader(other))
	mark := w.Mark()
	w.Hook(old, "update-status")
	noneFailed(t, w.Hook(old, "config-changed"))
	for _, write := range writesOf(w, mark, old) {
		require.NotContains(t, write, " "+world.Gateway+" ", "an application databag")
	}
	w.Ingress(lbFirst)
	w.Answer(ports(lbFirst)...)
	w.Notice(other)
	require.Equal(t, lbFirst+":6446", w.Endpoints(), "the new leader ends what the old one began")
	require.Equal(t, other, w.Peer()["leader"])
	w.Quiet(2)
}

func TestField_103_RefreshPublishesWithItsFirstHook(t *testing.T) {
	t.Parallel()
	w := published(t, 3)
	require.NoError(t, w.Model.SetLeader(world.Gateway+"/2"))
	w.Settle()
	uid := w.Live().UID
	w.Ingress(lbSecond)
	w.Silence(ports(lbFirst)...)
	w.Answer(ports(lbSecond)...)
	w.Refresh(world.Gateway, world.Gateway)
	w.KillPod(world.Gateway + "/2") // Kubernetes begins with the highest
	var first string
	for range 10 {
		first = w.Step(world.Gateway + "/2")
		if first != "" && !strings.HasSuffix(first, " charm") {
			break
		}
	}
	require.Equal(t, "upgrade-charm", first)
	require.Equal(t, lbSecond+":6446", w.Endpoints(), "published by the leader's first hook after the refresh")
	noneFailed(t, w.Settle())
	require.Equal(t, uid, w.Live().UID)
	w.Quiet(1)
}

func TestField_104_JoinedWhileNobodyLed(t *testing.T) {
	t.Parallel()
	w := world.New(t, world.Options{})
	leaderless := true
	w.Tools = func(unit string, call hooktool.Call, next world.ToolRunner) ([]byte, error) {
		if leaderless && call.Tool == "is-leader" && strings.HasPrefix(unit, world.Gateway) {
			return []byte("false"), nil
		}
		return next()
	}
	w.Standard(2)
	require.Empty(t, w.Published(world.Client))
	leaderless = false
	w.Hook(w.Leader(), "leader-elected")
	require.Equal(t, world.InModel+":6446", w.Endpoints())
	require.NotEmpty(t, w.Published(world.Client)["secret-user"])
}

// stateOf is what a unit keeps with state-set.
func stateOf(t *testing.T, w *world.World, unit string) string {
	t.Helper()
	state, err := w.Model.CharmState(t.Context(), unit)
	require.NoError(t, err)
	return state["exposure"]
}

func TestField_106_DeferralIsAFlag(t *testing.T) {
	t.Parallel()
	w := pending(t)
	w.Round()
	state := stateOf(t, w, w.Leader())
	require.Contains(t, state, "deferred")
	mark := w.Mark()
	for range 100 { // the charm's own tests go to 500
		require.Len(t, w.Notice(w.Leader()), 1, "one hook, in which the deferred one runs again")
	}
	require.Equal(t, state, stateOf(t, w, w.Leader()))
	require.Empty(t, w.Changes(mark))
	w.Ingress(lbFirst)
	w.Answer(ports(lbFirst)...)
	w.Notice(w.Leader())
	require.NotContains(t, stateOf(t, w, w.Leader()), "deferred", "what settled is not deferred")
}

func TestField_107_EachHookSaysWhatIsPending(t *testing.T) {
	t.Parallel()
	w := pending(t)
	for i := 1; i <= 3; i++ {
		before := strings.Count(w.Log(), "going on with a deferred exposure")
		w.Notice(w.Leader())
		require.Equal(t, before+1, strings.Count(w.Log(), "going on with a deferred exposure"))
	}
	lines := strings.Split(w.Log(), "\n")
	line := lines[len(lines)-1]
	for _, l := range lines {
		if strings.Contains(l, "going on with a deferred exposure") {
			line = l
		}
	}
	require.Contains(t, line, "deferred-by=config-changed")
	require.Contains(t, line, "since=2026-11-30T12:00:00Z")
	require.Contains(t, line, "hook=gateway-pebble-custom-notice")
	require.Contains(t, line, "update-status", "what else will retry it")
}

func TestField_109_TwiceInOneHook(t *testing.T) {
	t.Parallel()
	w := world.New(t, world.Options{})
	w.Dispatch = func(unit, _ string, run func() int) (int, bool) {
		if !strings.HasPrefix(unit, world.Gateway) {
			return 0, false
		}
		if exit := run(); exit != 0 {
			return exit, true
		}
		version, statements := w.Cluster.Version(), len(w.SQL.Statements)
		exit := run()
		require.Equal(t, version, w.Cluster.Version(), "the second pass writes nothing to Kubernetes")
		require.Len(t, w.SQL.Statements, statements, "and nothing to the backend")
		return exit, true
	}
	w.Standard(1)
	w.Config("expose-external", "loadbalancer")
	w.Settle()
	w.Ingress(lbFirst)
	w.Answer(ports(lbFirst)...)
	w.Notice(w.Leader())
	require.Equal(t, lbFirst+":6446", w.Endpoints())
	require.Len(t, secretsOf(t, w, w.Leader()), 1)
}

// secretsOf are the secrets that a unit manages.
func secretsOf(t *testing.T, w *world.World, unit string) []model.SecretMeta {
	t.Helper()
	secrets, err := w.Model.ManagedSecrets(t.Context(), unit)
	require.NoError(t, err)
	return secrets
}

func TestField_110_112_PodReplacedWhilePending(t *testing.T) {
	t.Parallel()
	w := pending(t)
	told := w.WorkloadOf(w.Leader()).Told
	require.NotEmpty(t, told.ReadWrite)
	since := w.Peer()["service-pending-since"]
	unit := w.Leader()
	w.Clock.Add(2 * time.Minute)
	w.KillPod(unit) // an empty disk
	ran := strings.Join(w.Settle(), "\n")
	require.Contains(t, ran, "start")
	require.Equal(t, told, w.WorkloadOf(w.Leader()).Told, "what ran in the container is made again")
	require.Equal(t, since, w.Peer()["service-pending-since"], "it is the same wait")
	require.Equal(t, world.InModel+":6446", w.Endpoints())
	w.Ingress(lbFirst)
	w.Answer(ports(lbFirst)...)
	w.Notice(w.Leader())
	require.Equal(t, lbFirst+":6446", w.Endpoints())
}

// TestField_113_HealedWithoutUpdateStatus breaks one thing at a time and lets only
// the named event happen.
func TestField_113_HealedWithoutUpdateStatus(t *testing.T) {
	t.Parallel()
	notice := func(w *world.World) []string { return w.Notice(w.Leader()) }
	settle := func(w *world.World) []string { return w.Settle() }
	faults := []struct {
		name   string
		fault  func(*world.World)
		event  func(*world.World) []string
		expect func(*testing.T, *world.World)
	}{
		{"the Service is deleted", func(w *world.World) {
			require.NoError(w.T, w.Admin.Delete(cluster.Service, world.Model, world.Service))
		}, notice, func(t *testing.T, w *world.World) { require.NotNil(t, w.Live()) }},
		{"the Service is changed", func(w *world.World) {
			w.ChangeService(func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeNodePort })
		}, notice, func(t *testing.T, w *world.World) {
			require.Equal(t, corev1.ServiceTypeLoadBalancer, w.Live().Spec.Type)
		}},
		{"the address moves", func(w *world.World) {
			w.Ingress(lbSecond)
			w.Answer(ports(lbSecond)...)
		}, notice, func(t *testing.T, w *world.World) { require.Equal(t, lbSecond+":6446", w.Endpoints()) }},
		{"the pod is gone", func(w *world.World) { w.KillPod(w.Leader()) }, settle,
			func(t *testing.T, w *world.World) { require.NotEmpty(t, w.WorkloadOf(w.Leader()).Told.ReadWrite) }},
		{"the container is restarted", func(w *world.World) {
			require.NoError(w.T, w.WorkloadOf(w.Leader()).Stop(w.T.Context()))
		}, func(w *world.World) []string { return w.Ready(w.Leader(), "gateway") },
			func(t *testing.T, w *world.World) { require.NotEmpty(t, w.WorkloadOf(w.Leader()).Told.ReadWrite) }},
		{"leadership moves", func(w *world.World) { require.NoError(w.T, w.Model.SetLeader(world.Gateway+"/1")) }, settle,
			func(t *testing.T, w *world.World) { require.Equal(t, world.Gateway+"/1", w.Peer()["leader"]) }},
	}
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			w := published(t, 2)
			w.T = t
			f.fault(w)
			ran := f.event(w)
			noneFailed(t, ran)
			require.NotContains(t, strings.Join(ran, "\n"), "update-status")
			f.expect(t, w)
		})
	}
}

func TestField_115_RefreshedWhileInError(t *testing.T) {
	t.Parallel()
	w := published(t, 1)
	unit := w.Leader()
	fail := true
	w.Dispatch = func(_, hook string, _ func() int) (int, bool) { return 1, fail && hook == "config-changed" }
	w.Config("external-traffic-policy", "Local")
	require.Contains(t, w.Settle(), unit+" failed config-changed")
	// Keys of another revision, and none of this one's schema.
	peers := peersOf(t, w)
	w.Write(unit, peers, true, map[string]string{"schema": "", "of-another-revision": "kept"})
	w.Refresh(world.Gateway, world.Gateway)
	w.KillPod(unit)
	fail = false
	require.NoError(t, w.Model.Resolve(unit, model.ResolveRetry))
	var hooks []string
	for _, ran := range w.Settle() {
		if strings.HasPrefix(ran, unit+" ") && !strings.HasSuffix(ran, " charm") {
			hooks = append(hooks, strings.TrimPrefix(ran, unit+" "))
		}
	}
	require.NotEmpty(t, hooks)
	require.Equal(t, "config-changed", hooks[0], "the hook that had failed comes before upgrade-charm")
	require.Equal(t, corev1.ServiceExternalTrafficPolicyLocal, w.Live().Spec.ExternalTrafficPolicy)
	require.Equal(t, "kept", w.Peer()["of-another-revision"])
	require.Equal(t, "1", w.Peer()["schema"])
	require.Equal(t, lbFirst+":6446", w.Endpoints())
	require.Contains(t, w.Status(unit), "active ")
	w.Quiet(1)
}

// peersOf is the number of the gateway's peer relation.
func peersOf(t *testing.T, w *world.World) int {
	t.Helper()
	status, err := w.Model.Status()
	require.NoError(t, err)
	for _, r := range status.Relations {
		if len(r.Ends) == 1 && r.Ends[0].App == world.Gateway {
			return r.ID
		}
	}
	require.Fail(t, "no peer relation")
	return 0
}

func TestField_116_EveryHookTwice(t *testing.T) {
	t.Parallel()
	w := published(t, 2)
	mark := w.Mark()
	for _, unit := range []string{world.Gateway + "/0", world.Gateway + "/1"} {
		for _, hook := range []string{
			"install", "upgrade-charm", "leader-elected", "config-changed", "start", "update-status",
			"leader-settings-changed", "database-relation-created", "database-relation-changed",
			"backend-database-relation-created", "backend-database-relation-changed",
			"drawbridge-peers-relation-created", "drawbridge-peers-relation-changed",
			"gateway-pebble-ready", "gateway-pebble-check-failed", "gateway-pebble-check-recovered",
		} {
			for range 2 {
				noneFailed(t, w.Hook(unit, hook))
				require.Empty(t, w.Changes(mark), hook)
			}
		}
	}
}

func TestField_118_EventsThatNeverCame(t *testing.T) {
	t.Parallel()
	w := world.New(t, world.Options{})
	w.Dispatch = func(unit, hook string, _ func() int) (int, bool) {
		return 0, strings.HasPrefix(unit, world.Gateway) && strings.HasPrefix(hook, "database-relation-")
	}
	w.Standard(1)
	w.Deploy(world.Client, "second", 1, map[string]string{"database": "second"})
	w.Integrate(world.Gateway+":database", "second:database")
	w.Settle()
	require.Empty(t, w.Published("second"), "none of its events was seen")
	w.Round()
	require.Equal(t, world.InModel+":6446", w.Endpoints())
	require.Equal(t, world.InModel+":6446", w.Published("second")["endpoints"])
	require.NotEmpty(t, w.Published("second")["secret-user"])
}

func TestField_119_FollowersWriteTheirOwnDatabag(t *testing.T) {
	t.Parallel()
	w := world.New(t, world.Options{})
	w.Standard(3)
	status, err := w.Model.Status()
	require.NoError(t, err)
	for _, r := range status.Relations {
		if len(r.Ends) == 1 && r.Ends[0].App == world.Gateway {
			for i, node := range []string{"node-0", "node-1", "node-2"} {
				require.Equal(t, node, r.Bags[world.Gateway+"/"+string(rune('0'+i))]["node"])
			}
		}
	}
}

func TestField_121_StaleReadOfTheOwnWrite(t *testing.T) {
	t.Parallel()
	w := published(t, 1)
	stale := readService(t, w)
	serve := 0
	w.API = func(request *http.Request, next http.RoundTripper) (*http.Response, error) {
		answer, err := next.RoundTrip(request)
		if err == nil && request.Method == http.MethodGet && strings.HasSuffix(request.URL.Path, "/services/"+world.Service) && serve > 0 {
			serve--
			answer.Body.Close()
			answer.Body, answer.ContentLength = io.NopCloser(strings.NewReader(stale)), int64(len(stale))
		}
		return answer, err
	}
	w.Config("expose-external", "nodeport")
	w.Settle()
	require.Equal(t, corev1.ServiceTypeNodePort, w.Live().Spec.Type)
	w.Answer(w.NodePorts()...)
	w.Notice(w.Leader())
	nodes := w.NodeEndpoints("mysql-rw", "node-0")
	require.Equal(t, nodes, w.Endpoints())
	ports := w.NodePorts()
	serve = 1
	w.Notice(w.Leader())
	require.Zero(t, serve)
	require.Equal(t, corev1.ServiceTypeNodePort, w.Live().Spec.Type)
	require.Equal(t, ports, w.NodePorts(), "nothing is allocated anew")
	require.Equal(t, nodes, w.Endpoints(), "no flip-flop")
	w.Quiet(2)
}

// readService is the Service as the API answers now.
func readService(t *testing.T, w *world.World) string {
	t.Helper()
	var text string
	w.API = func(request *http.Request, next http.RoundTripper) (*http.Response, error) {
		answer, err := next.RoundTrip(request)
		if err == nil && request.Method == http.MethodGet && strings.HasSuffix(request.URL.Path, "/services/"+world.Service) {
			body, err := io.ReadAll(answer.Body)
			require.NoError(t, err)
			text = string(body)
			answer.Body = io.NopCloser(strings.NewReader(text))
		}
		return answer, err
	}
	w.Notice(w.Leader())
	w.API = nil
	require.NotEmpty(t, text)
	return text
}

func TestField_122_PendingTakenBack(t *testing.T) {
	t.Parallel()
	w := pending(t)
	require.Equal(t, "true", w.Peer()["service-pending"])
	w.Config("expose-external", "false")
	ran := w.Settle()
	require.Contains(t, ran, w.Leader()+" config-changed")
	require.Empty(t, w.Peer()["service-pending"])
	require.NotContains(t, stateOf(t, w, w.Leader()), "deferred")
	require.Equal(t, world.InModel+":6446", w.Endpoints())
	require.Contains(t, w.Status(w.Leader()), "active ")
	w.Quiet(1)
}

// Seen in the sources of others: S1, S8, S13, S14, S19.

func TestField_S1_SilentAfterPublishing(t *testing.T) {
	t.Parallel()
	w := published(t, 1)
	w.Silence(ports(lbFirst)...)
	w.Notice(w.Leader())
	require.Contains(t, w.Status(w.Leader()), "waiting loadbalancer "+lbFirst+" has not answered since 2026-11-30 12:00:00Z")
	require.Equal(t, lbFirst+":6446", w.Endpoints())
	require.Empty(t, w.Peer()["service-pending"])
	w.Clock.Add(16 * time.Minute)
	w.Round()
	require.Contains(t, w.Status(w.Leader()), "blocked loadbalancer "+lbFirst+" has not answered since")
	w.Answer(ports(lbFirst)...)
	w.Notice(w.Leader())
	require.Contains(t, w.Status(w.Leader()), "active ")
}

func TestField_S8_UnitZeroIsAway(t *testing.T) {
	t.Parallel()
	w := world.New(t, world.Options{})
	w.Standard(2)
	require.NoError(t, w.Model.SetLeader(world.Gateway+"/1"))
	w.Settle()
	require.NoError(t, w.Admin.Delete(cluster.Pod, world.Model, world.Gateway+"-0"))
	require.NoError(t, w.Admin.Delete(cluster.Service, world.Model, world.Service))
	ran := w.Notice(world.Gateway + "/1")
	noneFailed(t, ran)
	require.NotNil(t, w.Live())
	require.Len(t, w.Live().OwnerReferences, 1)
	require.Contains(t, w.Status(world.Gateway+"/1"), "active ")
}

func TestField_S13_PodOfAPeerIsAway(t *testing.T) {
	t.Parallel()
	w := nodePorts(t, 3)
	require.NoError(t, w.Admin.Delete(cluster.Pod, world.Model, world.Gateway+"-2"))
	noneFailed(t, w.Notice(w.Leader()))
	require.Equal(t, w.NodeEndpoints("mysql-rw", "node-0", "node-1"), w.Endpoints())
}

func TestField_S14_TrafficPolicyIsAnOption(t *testing.T) {
	t.Parallel()
	w := published(t, 1)
	require.Equal(t, corev1.ServiceExternalTrafficPolicyCluster, w.Live().Spec.ExternalTrafficPolicy)
	w.Config("external-traffic-policy", "Local")
	w.Settle()
	require.Equal(t, corev1.ServiceExternalTrafficPolicyLocal, w.Live().Spec.ExternalTrafficPolicy)
}

func TestField_S19_TheFlagWakesEverybody(t *testing.T) {
	t.Parallel()
	w := world.New(t, world.Options{})
	w.Standard(3)
	w.Config("expose-external", "loadbalancer")
	mark := w.Mark()
	woken := map[string]bool{}
	for _, ran := range w.Settle() {
		if unit, ok := strings.CutSuffix(ran, " drawbridge-peers-relation-changed"); ok {
			woken[unit] = true
		}
	}
	require.Len(t, woken, 3, "the leader's own write wakes the leader too")
	for unit := range woken {
		if unit != w.Leader() {
			require.Empty(t, writesOf(w, mark, unit), "a follower has nothing to write")
		}
	}
}
