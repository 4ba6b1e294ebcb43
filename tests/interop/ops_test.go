// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package interop

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	opsSurface = "ops-surface-k8s"
	owner      = "owner"    // keeps its stored state in a file of its pod
	observer   = "observer" // keeps it in Juju
)

// seen are the events that a unit of the surface charm has kept.
func (c *cluster) seen(unit string) []string {
	c.t.Helper()
	return into[[]string](c.t, c.run(unit, "report"), "events")
}

// awaitSeen waits until a unit has kept an event and returns all of them.
func (c *cluster) awaitSeen(unit, event string) []string {
	c.t.Helper()
	c.await(fmt.Sprintf("%s sees %q", unit, event), func() error {
		if c.saw(unit, event) == 0 {
			return errors.New("not yet")
		}
		return nil
	})
	events := c.seen(unit)
	require.Contains(c.t, events, event)
	return events
}

// requireOrder checks that these events are there, in this order, whatever is between them.
func requireOrder(t *testing.T, events []string, wanted ...string) {
	t.Helper()
	rest := events
	for _, want := range wanted {
		i := slices.Index(rest, want)
		require.GreaterOrEqual(t, i, 0, "%q is not, or not in its place, in %q", want, events)
		rest = rest[i+1:]
	}
}

// An unmodified ops charm, on everything that such a charm uses.
func TestOps(t *testing.T) {
	c := newCluster(t, "ops")
	charm := pythonCharm(t, opsSurface)
	c.must("deploy", charm, owner, "--resource", "work-image=host")
	c.must("deploy", charm, observer, "--resource", "work-image=host", "--config", "count=1")
	c.settled("active", owner+"/0") // so that it leads
	c.must("scale-application", owner, "2")
	c.settled("active", owner+"/0", owner+"/1", observer+"/0")

	t.Run("life", c.opsLife)
	t.Run("config and peers", c.opsConfig)
	t.Run("relations and secrets", c.opsRelations)
	t.Run("secrets of the model and of the unit", c.opsSecrets)
	t.Run("deferral", c.opsDeferral)
	t.Run("actions", c.opsActions)
	t.Run("pebble", c.opsPebble)
	t.Run("kubernetes", c.opsKubernetes)
	t.Run("stored state", c.opsStoredState)
	t.Run("ends", c.opsEnds)
}

// within lets a part of the test fail as its own.
func (c *cluster) within(t *testing.T) *cluster { return &cluster{t: t, state: c.state} }

func (c *cluster) opsLife(t *testing.T) {
	c = c.within(t)
	requireOrder(t, c.seen(owner+"/0"), "install", "crew_relation_created crew owner -", "leader_elected", "config_changed", "start")
	require.Contains(t, c.seen(owner+"/0"), "work_pebble_ready work")
	requireOrder(t, c.awaitSeen(owner+"/1", "crew_relation_changed crew owner owner/0"), "install", "crew_relation_created crew owner -", "config_changed", "start",
		"crew_relation_joined crew owner owner/0", "crew_relation_changed crew owner owner/0")
	require.NotContains(t, c.seen(owner+"/1"), "leader_elected")
	var status struct {
		Applications map[string]struct {
			Version string `json:"version"`
			Status  struct {
				Current string `json:"current"`
				Message string `json:"message"`
			} `json:"application-status"`
		} `json:"applications"`
	}
	require.NoError(t, json.Unmarshal([]byte(c.must("status", "--format", "json")), &status))
	require.Equal(t, "1.2.3", status.Applications[owner].Version)
	require.Equal(t, "active", status.Applications[owner].Status.Current)
	require.Equal(t, "2 planned", status.Applications[owner].Status.Message)
	require.Equal(t, "count=1", c.units()[observer+"/0"].Workload.Message)
	report := c.run(owner+"/0", "report")
	require.Equal(t, "8080/tcp,9090/tcp", report["ports"])
	require.Equal(t, "True", report["leader"])
}

func (c *cluster) opsConfig(t *testing.T) {
	c = c.within(t)
	require.Equal(t, map[string]any{"accept": true, "count": 3.0, "greeting": "hello", "ratio": 0.5},
		into[map[string]any](t, c.run(owner+"/0", "report"), "config"), "what is unset is not there")
	c.until(owner+"/1", "crew_relation_changed crew owner owner/0", func() {
		c.must("config", owner, "greeting=bonjour", "count=4", "ratio=1.25", "unset=set")
	})
	c.settled("active", owner+"/0", owner+"/1")
	report := c.run(owner+"/1", "report")
	require.Equal(t, map[string]string{owner + "/0": "bonjour from owner/0", owner + "/1": "bonjour from owner/1"},
		into[map[string]string](t, report, "crew"))
	require.Equal(t, map[string]any{"accept": true, "count": 4.0, "greeting": "bonjour", "ratio": 1.25, "unset": "set"},
		into[map[string]any](t, report, "config"))
	require.Equal(t, "bonjour", report["chosen"])
	require.Equal(t, "count=4", c.units()[owner+"/0"].Workload.Message)
}

func (c *cluster) opsRelations(t *testing.T) {
	c = c.within(t)
	c.integrate(observer+":link", owner+":side")
	c.awaitSeen(observer+"/0", "link_relation_changed link owner owner/1")
	requireOrder(t, c.seen(observer+"/0"), "link_relation_created link owner -", "link_relation_joined link owner owner/0",
		"link_relation_changed link owner owner/0")
	requireOrder(t, c.awaitSeen(owner+"/1", "side_relation_joined side observer observer/0"), "side_relation_created side observer -", "side_relation_joined side observer observer/0")
	report := c.run(observer+"/0", "report")
	require.Equal(t, []string{"first"}, into[[]string](t, report, "tokens"))
	require.Equal(t, "bonjour", c.linkData("app")["greeting"])
	require.True(t, strings.HasPrefix(c.linkData(owner + "/1")["address"], "10.1."), "%v", report["seen"])

	t.Log("a change of the application's databag")
	c.until(observer+"/0", "link_relation_changed link owner -", func() { c.must("config", owner, "greeting=salut") })
	require.Equal(t, "salut", c.linkData("app")["greeting"])

	t.Log("a new revision of the secret")
	results := c.run(owner+"/0", "revise", "token=second")
	require.Equal(t, "shared daily True of the relation side", results["info"])
	c.awaitSeen(observer+"/0", "secret_changed theirs")
	require.Equal(t, []string{"first", "first>second>second"}, into[[]string](t, c.run(observer+"/0", "report"), "tokens"))
	c.awaitSeen(owner+"/0", "secret_remove shared 1")
	c.settled("active", owner+"/0", observer+"/0")
	info := c.must("exec", "--unit", owner+"/0", "--", "secret-info-get", "--label", "shared", "--format", "json")
	require.Contains(t, info, `"revision":2`)
}

func (c *cluster) opsSecrets(t *testing.T) {
	c = c.within(t)
	uri := strings.TrimSpace(c.must("add-secret", "pass", "token=open sesame"))
	c.must("grant-secret", "pass", observer)
	c.until(observer+"/0", "config_changed", func() { c.must("config", observer, "token="+uri) })
	require.Equal(t, "open sesame", c.run(observer+"/0", "report")["token"])
	c.until(observer+"/0", "secret_changed None", func() { c.must("update-secret", "pass", "token=close sesame") })
	report := c.run(observer+"/0", "report")
	require.Equal(t, "close sesame", report["token"])
	tokens := into[[]string](t, report, "tokens")
	require.Equal(t, "open sesame>close sesame>close sesame", tokens[len(tokens)-1])

	c.until(owner+"/0", "secret_expired short 1", func() { c.run(owner+"/0", "expire") })
	c.settled("active", owner+"/0")
	_, _, code := c.jujulet("exec", "--unit", owner+"/0", "--", "secret-info-get", "--label", "short")
	require.NotZero(t, code, "its only revision is removed")
}

// linkData is what the observer has seen of a databag of the owner.
func (c *cluster) linkData(member string) map[string]string {
	c.t.Helper()
	seen := into[map[string]string](c.t, c.run(observer+"/0", "report"), "seen")
	data := map[string]string{}
	require.NoError(c.t, json.Unmarshal([]byte(seen[member]), &data), "%v", seen)
	return data
}

func (c *cluster) opsDeferral(t *testing.T) {
	c = c.within(t)
	c.must("config", observer, "accept=false")
	c.settled("maintenance", observer+"/0")
	require.Equal(t, "not accepting", c.units()[observer+"/0"].Workload.Message)
	accepted := strings.Count(strings.Join(c.seen(observer+"/0"), "\n"), "accepted")
	c.until(observer+"/0", "a change deferred", func() { c.must("config", owner, "greeting=hej") })
	require.Equal(t, "salut", c.linkData("app")["greeting"])
	c.until(observer+"/0", "config_changed", func() { c.must("config", observer, "accept=true") })
	c.settled("active", observer+"/0")
	require.Equal(t, "hej", c.linkData("app")["greeting"])
	events := c.seen(observer + "/0")
	require.Equal(t, accepted+1, strings.Count(strings.Join(events, "\n"), "accepted"), "%q", events)
	require.Equal(t, []string{"accepted", "config_changed"}, events[len(events)-2:], "what was deferred comes before the hook's own event")
}

func (c *cluster) opsActions(t *testing.T) {
	c = c.within(t)
	results := c.run(owner+"/0", "echo", `text=a "b" = c`, "nested.deep=x")
	require.Equal(t, `a "b" = c`, results["text"])
	require.Equal(t, map[string]any{"number": "7", "deep": "x"}, results["nested"])
	failed := c.task(owner+"/0", "fail")
	require.Equal(t, "failed", failed.Status)
	require.Equal(t, "as asked", failed.Message)
	require.Equal(t, "done", failed.Results["half"])
	require.Equal(t, "failed", c.task(owner+"/0", "crash").Status)
	require.NotContains(t, c.seen(owner+"/0"), "crashed", "what a failed dispatch stored is lost")
	out, errs, _ := c.jujulet("run", owner+"/0", "echo")
	require.Contains(t, out+errs, `"text" property is missing and required`)
	c.settled("active", owner+"/0")
}

func (c *cluster) opsPebble(t *testing.T) {
	c = c.within(t)
	results := c.run(owner+"/0", "pebble")
	for key, want := range map[string]string{
		"pulled": "text\n", "listed": "b.txt file 0o640 5", "is-dir": "True", "exists": "False", "out": "in\n/srv\ny\n", "err": "on stderr\n",
		"exec-error": "3 no\n", "path-error": "not-found", "before": "active", "stopped": "inactive", "after": "active",
		"plan": "healthy,sleeper", "check": "up 2",
	} {
		require.Equal(t, want, results[key], key)
	}
	results = c.run(owner+"/0", "notify")
	require.Equal(t, "1", results["notices"])
	require.Equal(t, "work", results["who"])
	c.awaitSeen(owner+"/0", "work_pebble_custom_notice work drawbridge.example/hello custom")

	c.run(owner+"/0", "health", "up=false")
	c.awaitSeen(owner+"/0", "work_pebble_check_failed work healthy down")
	c.settled("blocked", owner+"/0")
	c.run(owner+"/0", "health", "up=true")
	c.awaitSeen(owner+"/0", "work_pebble_check_recovered work healthy up")
	c.settled("active", owner+"/0")
}

func (c *cluster) opsKubernetes(t *testing.T) {
	c = c.within(t)
	refused := c.task(owner+"/0", "kube")
	require.Equal(t, "failed", refused.Status)
	require.Contains(t, refused.Message, `403: configmaps "owner-surface" is forbidden: User "system:serviceaccount:`)
	c.must("trust", owner, "--scope=cluster")
	results := c.run(owner+"/0", "kube")
	services := into[[]string](t, results, "services")
	require.Contains(t, services, owner)
	require.Contains(t, services, owner+"-endpoints")
	require.Contains(t, services, observer)
	require.Equal(t, owner+"/0", results["annotation"])
	require.Equal(t, owner+"/0", results["config-map"])
	require.True(t, strings.HasPrefix(results["cluster-ip"].(string), "10.152.183."))
	require.Contains(t, c.must("cluster", "get", "service", owner), "drawbridge.example/by: owner/0")
}

// A pod that is replaced takes along a file with stored state; what Juju keeps survives.
func (c *cluster) opsStoredState(t *testing.T) {
	c = c.within(t)
	for _, unit := range []string{owner + "/0", observer + "/0"} {
		c.must("kill", "pod", unit)
		events := c.awaitSeen(unit, "upgrade_charm")
		c.settled("active", unit)
		if unit == observer+"/0" {
			requireOrder(t, events, "install", "link_relation_created link owner -", "upgrade_charm", "config_changed", "start")
			require.Equal(t, "hej", c.linkData("app")["greeting"])
			continue
		}
		require.NotContains(t, events, "install")
		require.Equal(t, "upgrade_charm", events[0])
	}
}

func (c *cluster) opsEnds(t *testing.T) {
	c = c.within(t)
	c.must("scale-application", owner, "1")
	c.awaitSeen(owner+"/0", "crew_relation_departed crew owner owner/1 departing=owner/1")
	c.awaitSeen(observer+"/0", "link_relation_departed link owner owner/1 departing=owner/1")
	c.must("remove-relation", observer, owner)
	requireOrder(t, c.awaitSeen(observer+"/0", "link_relation_broken link owner -"),
		"link_relation_departed link owner owner/0 departing=owner/0", "link_relation_broken link owner -")
	requireOrder(t, c.awaitSeen(owner+"/0", "side_relation_broken side observer -"),
		"side_relation_departed side observer observer/0 departing=observer/0", "side_relation_broken side observer -")
	c.must("remove-application", "--no-prompt", observer)
	c.await("the observer is gone", func() error {
		if _, there := c.units()[observer+"/0"]; there {
			return fmt.Errorf("still there")
		}
		return nil
	})
}
