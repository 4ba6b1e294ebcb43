// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package scenario

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/drawbridge-k8s/drawbridge/connections"
	"github.com/drawbridge-k8s/drawbridge/hooks"
	"github.com/drawbridge-k8s/drawbridge/hooks/hooktool"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
	"github.com/drawbridge-k8s/drawbridge/tests/world"
	"github.com/drawbridge-k8s/drawbridge/workload"
)

// units are those of the gateway in a Standard(3).
var units = []string{"drawbridge-k8s/0", "drawbridge-k8s/1", "drawbridge-k8s/2"}

// The ConfigMaps of the examples: P3 and N9 of the oracles, and P4.
func p3(w *world.World) {
	w.ConfigMap("model-prediction", "model", "version", "3", "path", "/models/p")
}
func p4(w *world.World) {
	w.ConfigMap("model-prediction", "model", "version", "4", "path", "/models/p")
}
func n9(w *world.World) { w.ConfigMap("noise-recognition", "model", "version", "9") }

const both = "model-prediction, noise-recognition"

// connected is a settled gateway with n units and both ConfigMaps connected; what was pushed until then is forgotten.
func connected(t *testing.T, n int, config ...string) *world.World {
	t.Helper()
	w := world.New(t, world.Options{})
	p3(w)
	n9(w)
	w.Standard(n)
	w.Config(append([]string{connections.OptConfigMaps, both}, config...)...)
	w.Settle()
	forget(w)
	return w
}

func forget(w *world.World) {
	for _, unit := range units {
		w.BoxOf(unit).Pushes()
		w.BoxOf(unit).Execs()
	}
}

// applied is what a unit has recorded, desired what the leader has.
func applied(w *world.World, unit string) connections.Applied {
	return connections.ParseApplied(w.UnitBag(unit)[connections.KeyApplied])
}

func desired(w *world.World) connections.Desired {
	return connections.ParseDesired(w.Peer()[connections.KeyDesired])
}

// hashOf is the hash of ConfigMaps with our label.
func hashOf(maps ...connections.ConfigMap) string {
	var items []connections.Item
	for _, m := range maps {
		m.Labels = map[string]string{connections.LabelType: "model"}
		items = append(items, connections.Item{Kind: connections.KindConfigMap, Name: m.Name, Digest: m.Digest()})
	}
	return connections.HashOf(items)
}

func prediction(version string) connections.ConfigMap {
	return connections.ConfigMap{Name: "model-prediction", Data: map[string]string{"version": version, "path": "/models/p"}}
}

func noise() connections.ConfigMap {
	return connections.ConfigMap{Name: "noise-recognition", Data: map[string]string{"version": "9"}}
}

func TestConnections_Document(t *testing.T) {
	t.Parallel()
	t.Run("conn-T4", func(t *testing.T) {
		t.Parallel()
		w := connected(t, 1)
		before := w.Text(units[0])
		w.Config(connections.OptConfigMaps, "A_B")
		w.Settle()
		require.Equal(t, `blocked connected-configmaps: bad name "A_B"`, w.Status(units[0]))
		require.Equal(t, string(before), string(w.Text(units[0])))
		require.Zero(t, w.BoxOf(units[0]).Pushes())
		w.Config(connections.OptConfigMaps, both)
		w.Settle()
		require.Contains(t, w.Status(units[0]), "active ")
	})
	t.Run("conn-T10", func(t *testing.T) {
		t.Parallel()
		w := world.New(t, world.Options{})
		w.Standard(1)
		d := w.Document(units[0])
		require.Equal(t, 1, d.Schema)
		require.Equal(t, "drawbridge-k8s", d.App.Name)
		require.Equal(t, "drawbridge-k8s/0", d.Unit.Name)
		require.Equal(t, "drawbridge-k8s-0.drawbridge-k8s-endpoints.dev.svc.cluster.local", d.Unit.FQDN)
		require.Contains(t, d.Connections.Hash, "sha256:a9b041da")
		require.Contains(t, string(w.Text(units[0])), `"configmaps": {}`)
		require.Equal(t, 0o640, int(w.BoxOf(units[0]).Mode(connections.Path).Perm()))
		require.Equal(t, 0o700, int(w.BoxOf(units[0]).Mode(connections.Dir).Perm()))
		require.Empty(t, w.UnitBag(units[0])[connections.KeyApplied], "nothing connected, nothing recorded")
		require.Empty(t, desired(w))
		require.Empty(t, w.Told(world.Gateway))
		w.Quiet(2)
	})
	t.Run("conn-T18", func(t *testing.T) {
		t.Parallel()
		w := connected(t, 1)
		before := desired(w)
		w.ChangeConfigMap("model-prediction", func(m *corev1.ConfigMap) {
			m.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}"}
		})
		w.ConfigMapChanged(w.Leader())
		w.DeleteConfigMap("noise-recognition") // another uid and version
		n9(w)
		w.ConfigMapChanged(w.Leader())
		require.Equal(t, before, desired(w))
		require.Zero(t, w.BoxOf(units[0]).Pushes())
	})
}

func TestConnections_Flow(t *testing.T) {
	t.Parallel()
	t.Run("conn-T20", func(t *testing.T) {
		t.Parallel()
		w := connected(t, 3)
		require.Equal(t, hashOf(prediction("3"), noise()), desired(w).Hash)
		revision := desired(w).Revision
		p4(w)
		w.ConfigMapChanged(w.Leader())
		for _, unit := range units {
			require.Equal(t, 1, w.BoxOf(unit).Pushes(), unit)
			require.Equal(t, hashOf(prediction("4"), noise()), applied(w, unit).Hash, unit)
		}
		require.Equal(t, hashOf(prediction("4"), noise()), desired(w).Hash)
		require.Equal(t, revision+1, desired(w).Revision)
	})
	t.Run("conn-T21", func(t *testing.T) {
		t.Parallel()
		w := connected(t, 1)
		w.Config(connections.OptConfigMaps, "model-prediction")
		w.Settle()
		require.Equal(t, hashOf(prediction("3")), desired(w).Hash)
		revision := desired(w).Revision
		w.Config(connections.OptConfigMaps, both)
		w.Settle()
		require.Equal(t, hashOf(prediction("3"), noise()), desired(w).Hash)
		require.Equal(t, revision+1, desired(w).Revision)
	})
	t.Run("conn-T22", func(t *testing.T) {
		t.Parallel()
		w := connected(t, 1)
		revision := desired(w).Revision
		w.Config(connections.OptConfigMaps, "model-prediction")
		w.Settle()
		require.Equal(t, hashOf(prediction("3")), desired(w).Hash)
		require.Equal(t, revision+1, desired(w).Revision)
		require.Len(t, w.Document(units[0]).Connections.ConfigMaps["model"], 1)
	})
	t.Run("conn-T23", func(t *testing.T) {
		t.Parallel()
		w := connected(t, 3, connections.OptHook, "/opt/hook")
		told := w.Told(world.Gateway)
		w.Quiet(5)
		for _, unit := range units {
			require.Zero(t, w.BoxOf(unit).Pushes())
			require.Empty(t, w.BoxOf(unit).Execs())
		}
		require.Equal(t, told, w.Told(world.Gateway))
	})
	t.Run("conn-T24", func(t *testing.T) {
		t.Parallel()
		w := connected(t, 1, connections.OptHook, "/opt/hook")
		box, before := w.BoxOf(units[0]), applied(w, units[0])
		box.FailPushes = 1
		p4(w)
		var first string
		var recorded connections.Applied
		w.Dispatch = func(_, _ string, run func() int) (int, bool) {
			code := run()
			require.Zero(t, code)
			if first == "" {
				first, recorded = w.Status(units[0]), applied(w, units[0])
			}
			return code, true
		}
		w.ConfigMapChanged(units[0])
		require.Contains(t, first, "waiting connections: cannot write the document yet")
		require.Equal(t, before, recorded)
		require.Equal(t, hashOf(prediction("4"), noise()), applied(w, units[0]).Hash)
		require.Contains(t, w.Status(units[0]), "active ")
		require.Equal(t, 1, box.Pushes())
		require.Len(t, box.Execs(), 1)

		killed := false
		w.Dispatch = func(_, hook string, run func() int) (int, bool) {
			if killed || hook != "update-status" {
				return 0, false
			}
			killed = true
			run()
			return 1, true // what it wrote to Juju is lost
		}
		p3(w)
		w.Round()
		require.True(t, killed)
		require.Equal(t, 1, box.Pushes(), "the retry finds the file as it should be")
		require.NotEmpty(t, box.Execs())
		require.Equal(t, hashOf(prediction("3"), noise()), applied(w, units[0]).Hash)
	})
	t.Run("conn-T25", func(t *testing.T) {
		t.Parallel()
		w := connected(t, 3)
		late := units[2]
		if w.Leader() == late {
			late = units[1]
		}
		w.WorkloadOf(late).Down = true
		p4(w)
		w.ConfigMapChanged(w.Leader())
		require.Contains(t, w.Status(w.Leader()), "connections: 2/3 units")
		require.Contains(t, w.Status(late), "waiting for the gateway container")
		forget(w)
		w.WorkloadOf(late).Down = false
		w.Ready(late, "gateway")
		require.NotContains(t, w.Status(w.Leader()), "connections:")
		for _, unit := range units {
			require.Equal(t, unit == late, w.BoxOf(unit).Pushes() == 1, unit)
		}
	})
	t.Run("conn-T29b", func(t *testing.T) {
		t.Parallel()
		w := connected(t, 1)
		before, told := desired(w), w.Told(world.Gateway)
		w.RestartContainer(units[0])
		require.Equal(t, 1, w.BoxOf(units[0]).Pushes())
		require.Equal(t, before, desired(w))
		require.Equal(t, told, w.Told(world.Gateway))
	})
	t.Run("conn-T29c", func(t *testing.T) {
		t.Parallel()
		w := connected(t, 3)
		before, told, old := w.Peer()[connections.KeyDesired], w.Told(world.Gateway), w.Leader()
		next := units[0]
		if old == next {
			next = units[1]
		}
		require.NoError(t, w.Model.SetLeader(next))
		w.Settle()
		w.Round()
		require.Equal(t, next, w.Leader())
		require.Equal(t, before, w.Peer()[connections.KeyDesired])
		require.Equal(t, told, w.Told(world.Gateway))
	})
	t.Run("conn-T29d", func(t *testing.T) {
		t.Parallel()
		w := connected(t, 3)
		w.Scale(4)
		w.Settle()
		require.Equal(t, hashOf(prediction("3"), noise()), w.Document("drawbridge-k8s/3").Connections.Hash)
		for _, unit := range units {
			require.Zero(t, w.BoxOf(unit).Pushes(), unit)
		}
		require.NotContains(t, w.Status(w.Leader()), "connections:")
	})
	t.Run("conn-T29e", func(t *testing.T) {
		t.Parallel()
		w := connected(t, 1)
		p4(w)
		mark := w.Mark()
		w.ConfigMapChanged(units[0])
		var first string
		for _, change := range w.Changes(mark) {
			hook, _, _ := strings.Cut(change, ": ")
			if first == "" {
				first = hook
			}
			if !strings.HasPrefix(change, "the ") {
				require.Equal(t, first, hook, "everything happens in the same hook")
			}
		}
		require.Equal(t, hashOf(prediction("4"), noise()), applied(w, units[0]).Hash)
	})
	t.Run("conn-T47", func(t *testing.T) {
		t.Parallel()
		w := connected(t, 1)
		mark := w.Mark()
		w.ConfigMapChanged(units[0])
		require.Empty(t, w.Changes(mark))
		require.Zero(t, w.BoxOf(units[0]).Pushes())
	})
}

// status answers requests for ConfigMaps with an error.
func faulty(w *world.World, code int) {
	w.Fault(func(r *http.Request) error {
		if code == 0 || !strings.Contains(r.URL.Path, "/configmaps/") {
			return nil
		}
		if code == http.StatusForbidden {
			return apierrors.NewForbidden(corev1.Resource("configmaps"), "model-prediction",
				errors.New(`User "x" cannot get resource "configmaps" in API group "" in the namespace "dev"`))
		}
		return apierrors.NewServiceUnavailable("later")
	})
}

func TestConnections_Missing(t *testing.T) {
	t.Parallel()
	t.Run("conn-T26", func(t *testing.T) {
		t.Parallel()
		w := connected(t, 1)
		w.Config(connections.OptConfigMaps, both+", x")
		w.Settle()
		require.Equal(t, "blocked connections: configmap x not found", w.Status(units[0]))
		require.Equal(t, []connections.Problem{{Kind: "configmap", Name: "x", State: "missing"}}, w.Document(units[0]).Connections.Problems)
		require.Len(t, w.Document(units[0]).Connections.Items(), 2)
		const problem = "StatefulSet/drawbridge-k8s Warning ConnectionProblem: connected configmap {x} does not exist"
		count := func() int {
			return len(slices.DeleteFunc(w.Told(world.Gateway), func(s string) bool { return s != problem }))
		}
		require.Equal(t, 1, count())
		w.Quiet(3)
		require.Equal(t, 1, count())
		t.Run("conn-T27b", func(t *testing.T) {
			forget(w)
			w.ConfigMap("x", "", "k", "v")
			w.ConfigMapChanged(units[0])
			require.Equal(t, 1, w.BoxOf(units[0]).Pushes())
			require.Contains(t, w.Status(units[0]), "active ")
		})
	})
	t.Run("conn-T27", func(t *testing.T) {
		t.Parallel()
		w := connected(t, 1)
		told := w.Told(world.Gateway)
		w.Config(connections.OptConfigMaps, both+", x?")
		w.Settle()
		require.Contains(t, w.Status(units[0]), "active ")
		require.Equal(t, told, w.Told(world.Gateway))
	})
	t.Run("conn-T28", func(t *testing.T) {
		t.Parallel()
		w := connected(t, 1, connections.OptHook, "/opt/hook")
		w.DeleteConfigMap("noise-recognition")
		w.ConfigMapChanged(units[0])
		require.Len(t, w.Document(units[0]).Connections.Items(), 1)
		require.Equal(t, 1, w.BoxOf(units[0]).Pushes())
		require.Equal(t, []string{"/opt/hook --reconnect --configmeta /etc/drawbridge/configmeta.json --changed configmap/noise-recognition"}, w.BoxOf(units[0]).Execs())
		require.Equal(t, "blocked connections: configmap noise-recognition not found", w.Status(units[0]))
	})
	t.Run("conn-T29", func(t *testing.T) {
		t.Parallel()
		w := connected(t, 1)
		before := w.Document(units[0]).Connections.Items()
		faulty(w, http.StatusServiceUnavailable)
		w.Round()
		require.Contains(t, w.Status(units[0]), "active ")
		require.Zero(t, w.BoxOf(units[0]).Pushes())
		require.Equal(t, before, w.Document(units[0]).Connections.Items())
		faulty(w, http.StatusForbidden)
		w.Round()
		require.Equal(t, before, w.Document(units[0]).Connections.Items(), "kept")
		require.Contains(t, string(w.Text(units[0])), `"state": "stale"`)
		require.Contains(t, w.Status(units[0]), "blocked ")
		require.Contains(t, w.Status(units[0]), "get configmaps")
		require.Contains(t, w.Status(units[0]), "trust")
		faulty(w, 0)
		w.Round()
		require.Contains(t, w.Status(units[0]), "active ")
		require.NotContains(t, string(w.Text(units[0])), "stale")
	})
	t.Run("a lost file while the API is away", func(t *testing.T) {
		t.Parallel()
		w := connected(t, 1)
		before, told := desired(w), w.Told(world.Gateway)
		faulty(w, http.StatusServiceUnavailable)
		w.RestartContainer(units[0])
		require.Zero(t, w.BoxOf(units[0]).Pushes())
		require.Contains(t, w.Status(units[0]), "waiting connections: cannot read configmap")
		require.Equal(t, before, desired(w))
		require.Equal(t, told, w.Told(world.Gateway), "nothing is told as removed")
		faulty(w, 0)
		w.Round()
		require.Equal(t, before.Hash, w.Document(units[0]).Connections.Hash)
	})
	t.Run("too large", func(t *testing.T) {
		t.Parallel()
		w := connected(t, 1)
		before := w.Text(units[0])
		names := both
		for i := range 5 {
			w.ConfigMap(fmt.Sprintf("big-%d", i), "", "k", strings.Repeat("x", 900<<10))
			names += fmt.Sprintf(", big-%d", i)
		}
		w.Config(connections.OptConfigMaps, names)
		w.Settle()
		require.Contains(t, w.Status(units[0]), "blocked connections: the configmaps are too large together: ")
		require.Equal(t, string(before), string(w.Text(units[0])))
	})
}

func TestConnections_Hook(t *testing.T) {
	t.Parallel()
	const call = "/opt/hook --reconnect --configmeta /etc/drawbridge/configmeta.json --changed "
	t.Run("conn-T50", func(t *testing.T) {
		t.Parallel()
		w := connected(t, 1, connections.OptHook, "/opt/hook")
		box := w.BoxOf(units[0])
		pushed := ""
		box.Hook = func(c workload.Command) workload.Outcome {
			pushed = w.Document(units[0]).Connections.Hash
			require.Equal(t, pushed, c.Environment["CONNECTIONS_HASH"])
			require.LessOrEqual(t, c.Timeout, 60*time.Second)
			return workload.Outcome{}
		}
		p4(w)
		w.ConfigMapChanged(units[0])
		require.Equal(t, []string{call + "configmap/model-prediction"}, box.Execs())
		require.Equal(t, hashOf(prediction("4"), noise()), pushed, "after the push")
		require.Equal(t, pushed, applied(w, units[0]).Hook.Hash)
	})
	t.Run("conn-T51", func(t *testing.T) {
		t.Parallel()
		w := connected(t, 1, connections.OptHook, "/opt/hook")
		box := w.BoxOf(units[0])
		box.Hook = func(workload.Command) workload.Outcome { return workload.Outcome{Code: 3, Output: "no"} }
		p4(w)
		w.ConfigMapChanged(units[0])
		require.Contains(t, w.Status(units[0]), "active ")
		require.Contains(t, w.Status(units[0]), "connections hook failed (rc 3), retry 1/5")
		require.Equal(t, 3, applied(w, units[0]).Hook.RC)
		require.Equal(t, hashOf(prediction("4"), noise()), w.Document(units[0]).Connections.Hash, "the document stays")
		w.Clock.Add(10 * time.Second)
		w.Round()
		require.Equal(t, []string{call + "configmap/model-prediction", call + "configmap/model-prediction"}, box.Execs())
		require.Contains(t, w.Status(units[0]), "retry 2/5")
		require.Contains(t, w.Told(world.Gateway), "StatefulSet/drawbridge-k8s Warning ConnectionsHookFailed: unit {drawbridge-k8s/0}: connections hook exited 3")
		for range 5 {
			w.Clock.Add(10 * time.Second)
			w.Round()
		}
		require.Len(t, box.Execs(), 3, "five attempts in all")
		require.Contains(t, w.Status(units[0]), "blocked connections hook failed (rc 3) 5 times: run resync-connections")
		p3(w)
		w.ConfigMapChanged(units[0])
		require.Equal(t, 1, applied(w, units[0]).Hook.Attempts, "a new hash starts again")
		box.Hook = nil
		w.Clock.Add(10 * time.Second)
		w.Round()
		require.NotContains(t, w.Status(units[0]), "hook failed")
		require.Zero(t, applied(w, units[0]).Hook.RC)
		t.Run("resync-connections", func(t *testing.T) {
			forget(w)
			action := w.Action(units[0], connections.ActionResync, nil)
			require.Equal(t, model.ActionCompleted, action.Status, action.Message)
			require.Equal(t, 1, box.Pushes())
			require.Equal(t, []string{call + "configmap/model-prediction,configmap/noise-recognition"}, box.Execs())
		})
	})
	t.Run("conn-T53", func(t *testing.T) {
		t.Parallel()
		w := connected(t, 1, connections.OptHook, "/opt/hook")
		w.WorkloadOf(units[0]).Down = true
		p4(w)
		w.ConfigMapChanged(units[0])
		w.ConfigMap("third", "", "k", "v")
		w.Config(connections.OptConfigMaps, "model-prediction, third")
		w.Settle()
		w.WorkloadOf(units[0]).Down = false
		w.Ready(units[0], "gateway")
		require.Equal(t, []string{call + "configmap/model-prediction,configmap/noise-recognition,configmap/third"}, w.BoxOf(units[0]).Execs())
		require.Equal(t, desired(w).Hash, applied(w, units[0]).Hook.Hash)
	})
	t.Run("conn-T54", func(t *testing.T) {
		t.Parallel()
		w := connected(t, 1)
		p4(w)
		w.ConfigMapChanged(units[0])
		require.Equal(t, 1, w.BoxOf(units[0]).Pushes())
		require.Empty(t, w.BoxOf(units[0]).Execs())
		w.Config(connections.OptHook, "/opt/hook")
		w.Settle()
		require.Empty(t, w.BoxOf(units[0]).Execs(), "nothing has changed by that")
	})
	t.Run("conn-T55", func(t *testing.T) {
		t.Parallel()
		w := world.New(t, world.Options{})
		p3(w)
		n9(w)
		w.Deploy(world.Backend, world.Backend, 1, nil)
		w.Deploy(world.Gateway, world.Gateway, 1, map[string]string{connections.OptConfigMaps: both, connections.OptHook: "/opt/hook"})
		w.Deploy(world.Client, world.Client, 1, nil)
		w.Integrate(world.Gateway+":backend-database", world.Backend+":database")
		w.Settle()
		require.NotEmpty(t, w.Document(units[0]).Connections.Items())
		require.Empty(t, w.BoxOf(units[0]).Execs(), "a first delivery")
		require.Equal(t, desired(w).Hash, applied(w, units[0]).Hook.Hash)
		w.Config(connections.OptConfigMaps, "noise-recognition   model-prediction")
		w.Settle()
		w.Config(connections.OptHook, "/opt/other")
		w.Settle()
		require.Empty(t, w.BoxOf(units[0]).Execs())
	})
}

// provider makes an application that shows what metadata returns, whenever one of its hooks runs.
func provider(w *world.World, app string, metadata func() string) {
	w.Handlers[app] = func(ctx context.Context, h *hooks.Hook) error {
		if leader, err := h.Tools.IsLeader(ctx); err != nil || !leader {
			return err
		}
		ids, err := h.Tools.RelationIDs(ctx, connections.EndpointProvided)
		if err != nil || h.Event.Kind == hooks.RelationBroken || h.Event.Kind == hooks.Stop || h.Event.Kind == hooks.Remove {
			return err
		}
		for _, id := range ids {
			if err := h.Tools.RelationSetApp(ctx, id, map[string]string{connections.KeyMetadata: metadata()}); err != nil {
				return err
			}
		}
		return h.Tools.StatusSet(ctx, hooktool.Active, "")
	}
	w.Deploy(world.Gateway, app, 1, nil)
}

// spark is the metadata of an application.
func spark(endpoint string) connections.Metadata {
	return connections.Metadata{Name: "other", Category: "spark", DistroID: "example/spark", Version: "2.4",
		Services: map[string]connections.Service{"livy": {Exported: "livy", Endpoints: []string{endpoint}}},
		Units:    []connections.Unit{{Name: "spark/0", FQDN: "spark-0.spark-endpoints"}}}
}

func text(t *testing.T, m connections.Metadata) string {
	t.Helper()
	value, err := m.Text()
	require.NoError(t, err)
	return value
}

func TestConnections_Applications(t *testing.T) {
	t.Parallel()
	answer := func(w *world.World) map[string]string {
		return w.Bag(world.Gateway, connections.EndpointRequired, "spark", world.Gateway)
	}
	start := func(t *testing.T, n int, value func() string, config ...string) *world.World {
		w := connected(t, n, config...)
		provider(w, "spark", value)
		w.Integrate(world.Gateway+":connections", "spark:connection")
		w.Settle()
		return w
	}
	t.Run("conn-T30", func(t *testing.T) {
		t.Parallel()
		endpoint := "http://spark-0:8998"
		value := func() string { return text(t, spark(endpoint)) }
		w := start(t, 3, value, connections.OptHook, "/opt/hook")
		for _, unit := range units {
			require.Equal(t, endpoint, w.Document(unit).Connections.Clusters["spark"].Services["livy"].Endpoints[0])
		}
		require.Equal(t, "accepted", answer(w)["status"])
		require.Equal(t, w.Document(units[0]).Connections.Clusters["spark"].Digest, answer(w)["applied"])
		require.Contains(t, w.Told(world.Gateway), "StatefulSet/drawbridge-k8s Normal ConnectionAdded: cluster {spark} connected")
		w.Quiet(3)
		t.Run("conn-T31", func(t *testing.T) {
			forget(w)
			endpoint = "http://spark-1:8998"
			w.Hook("spark/0", "update-status")
			for _, unit := range units {
				require.Equal(t, 1, w.BoxOf(unit).Pushes(), unit)
				require.Equal(t, []string{"/opt/hook --reconnect --configmeta /etc/drawbridge/configmeta.json --changed cluster/spark"}, w.BoxOf(unit).Execs())
			}
			require.Contains(t, w.Told(world.Gateway), "StatefulSet/drawbridge-k8s Normal ConnectionChanged: connected cluster {spark} has changed; updating configmeta")
		})
		t.Run("conn-T39c", func(t *testing.T) {
			w.RemoveRelation(world.Gateway+":connections", "spark:connection")
			w.Settle()
			require.Empty(t, w.Document(units[0]).Connections.Clusters)
			require.Contains(t, w.Told(world.Gateway), "StatefulSet/drawbridge-k8s Normal ConnectionRemoved: cluster {spark} disconnected")
			require.Contains(t, w.Status(w.Leader()), "active ")
		})
	})
	t.Run("conn-T34", func(t *testing.T) {
		t.Parallel()
		m := spark("e")
		w := start(t, 1, func() string { return text(t, m) }, connections.OptConnectable, "spark")
		require.Equal(t, "accepted", answer(w)["status"])
		m.Category = "db"
		w.Hook("spark/0", "update-status")
		require.Equal(t, `blocked connections: spark: category "db" not in connectable-to`, w.Status(units[0]))
		require.Equal(t, "rejected", answer(w)["status"])
		require.Equal(t, `category "db" not in connectable-to`, answer(w)["reason"])
		require.Empty(t, w.Document(units[0]).Connections.Clusters)
		require.Len(t, w.Document(units[0]).Connections.Items(), 2, "the others stay")
	})
	t.Run("conn-T37", func(t *testing.T) {
		t.Parallel()
		value := ""
		w := start(t, 1, func() string { return value })
		require.Equal(t, "waiting connections: waiting for the metadata of spark", w.Status(units[0]))
		require.Empty(t, answer(w)["status"])
		require.Equal(t, connections.Pending, desired(w).Items[0].State)
		value = text(t, spark("e"))
		w.Hook("spark/0", "update-status")
		require.Equal(t, "accepted", answer(w)["status"])
		value = "{"
		w.Hook("spark/0", "update-status")
		require.Contains(t, w.Status(units[0]), "blocked connections: spark: its metadata is not the JSON expected")
		require.Contains(t, w.Document(units[0]).Connections.Clusters, "spark", "the last good one is kept")
	})
	t.Run("conn-T32", func(t *testing.T) {
		t.Parallel()
		w := connected(t, 3)
		w.Deploy(world.Gateway, "taker", 1, nil)
		w.Integrate("taker:connections", world.Gateway+":connection")
		w.Settle()
		m, err := connections.ParseMetadata(w.Bag(world.Gateway, connections.EndpointProvided, "taker", world.Gateway)[connections.KeyMetadata])
		require.NoError(t, err)
		names := map[string]bool{}
		for _, unit := range m.Units {
			names[unit.FQDN] = true
		}
		require.Len(t, names, 3)
		require.Equal(t, "mysql-gateway", m.Category)
		require.Equal(t, []string{world.InModel + ":6446"}, m.Services["mysql"].Endpoints, "what has answered")
		require.Equal(t, m.Services, w.Document("taker/0").Connections.Clusters[world.Gateway].Services)
		require.NotContains(t, w.Bag(world.Gateway, connections.EndpointProvided, "taker", world.Gateway)[connections.KeyMetadata], "model-prediction")
	})
	t.Run("conn-T38", func(t *testing.T) {
		t.Parallel()
		w := connected(t, 1)
		w.Deploy(world.Gateway, "b", 1, nil)
		w.Integrate(world.Gateway+":connections", "b:connection")
		w.Integrate("b:connections", world.Gateway+":connection")
		w.Settle()
		require.Contains(t, w.Document(units[0]).Connections.Clusters, "b")
		require.Contains(t, w.Document("b/0").Connections.Clusters, world.Gateway)
		revision := desired(w).Revision
		w.Quiet(10)
		require.Equal(t, revision, desired(w).Revision)
	})
	t.Run("metadata never stands on a command line", func(t *testing.T) {
		t.Parallel()
		w := connected(t, 1)
		seen := false
		w.Tools = func(_ string, call hooktool.Call, next world.ToolRunner) ([]byte, error) {
			if call.Tool == "relation-set" && strings.Contains(string(call.Stdin), connections.KeyMetadata) {
				seen = true
				require.NotContains(t, strings.Join(call.Args, " "), "metadata")
				require.Contains(t, call.Args, "--file")
			}
			return next()
		}
		w.Deploy(world.Gateway, "taker", 1, nil)
		w.Integrate("taker:connections", world.Gateway+":connection")
		w.Settle()
		require.True(t, seen)
	})
}

func TestConnections_Events(t *testing.T) {
	t.Parallel()
	fresh := func(w *world.World, before []string) []string {
		return slices.DeleteFunc(w.Told(world.Gateway), func(s string) bool { return slices.Contains(before, s) })
	}
	t.Run("conn-T90", func(t *testing.T) {
		t.Parallel()
		w := connected(t, 3)
		before := w.Told(world.Gateway)
		leader := w.Leader()
		p4(w)
		var atOnce []string
		w.Dispatch = func(unit, _ string, run func() int) (int, bool) {
			already := w.Told(world.Gateway)
			code := run()
			if unit != leader {
				require.Equal(t, already, w.Told(world.Gateway), "a unit that does not lead tells nothing")
			} else if atOnce == nil {
				atOnce = fresh(w, before)
			}
			return code, true
		}
		w.ConfigMapChanged(leader)
		require.Equal(t, []string{
			"ConfigMap/model-prediction Normal ConnectionPropagating: connected to application {drawbridge-k8s}; updating it",
			"StatefulSet/drawbridge-k8s Normal ConnectionChanged: connected configmap {model-prediction} has changed; updating configmeta",
		}, atOnce)
		t.Run("conn-T94", func(t *testing.T) { require.Len(t, atOnce, 2, "they are there when the hook ends") })
	})
	t.Run("conn-T91", func(t *testing.T) {
		t.Parallel()
		w := connected(t, 1)
		added := w.Told(world.Gateway)
		for _, name := range []string{"model-prediction", "noise-recognition"} {
			require.Contains(t, added, "StatefulSet/drawbridge-k8s Normal ConnectionAdded: configmap {"+name+"} connected")
			require.Contains(t, added, "ConfigMap/"+name+" Normal ConnectedTo: connected to application {drawbridge-k8s}")
		}
		w.Round()
		require.Equal(t, added, w.Told(world.Gateway))
		w.Config(connections.OptConfigMaps, "noise-recognition")
		w.Settle()
		gone := fresh(w, added)
		require.Contains(t, gone, "StatefulSet/drawbridge-k8s Normal ConnectionRemoved: configmap {model-prediction} disconnected")
		require.Contains(t, gone, "ConfigMap/model-prediction Normal ConnectionRemoved: disconnected from application {drawbridge-k8s}")
		all := w.Told(world.Gateway)
		// A hook that was killed after it had told, and before that was recorded.
		killed := false
		w.Dispatch = func(_, hook string, run func() int) (int, bool) {
			if killed || hook != "update-status" {
				return 0, false
			}
			killed = true
			run()
			return 1, true
		}
		p4(w)
		w.Config(connections.OptConfigMaps, both)
		w.Round()
		require.True(t, killed)
		told := fresh(w, all)
		require.Equal(t, slices.Compact(slices.Clone(told)), told, "nothing is told twice")
	})
	t.Run("conn-T93", func(t *testing.T) {
		t.Parallel()
		w := connected(t, 1)
		w.Fault(func(r *http.Request) error {
			if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/events") {
				return apierrors.NewForbidden(corev1.Resource("events"), "",
					errors.New(`User "x" cannot create resource "events" in API group "" in the namespace "dev"`))
			}
			return nil
		})
		p4(w)
		w.ConfigMapChanged(units[0])
		require.Equal(t, hashOf(prediction("4"), noise()), applied(w, units[0]).Hash)
		w.Round()
		w.Round()
		require.Equal(t, 1, strings.Count(w.Log(), "takes no Events"))
		require.Contains(t, w.Status(units[0]), "active ")
	})
}

func TestConnections_Actions(t *testing.T) {
	t.Parallel()
	w := connected(t, 3)
	t.Run("conn-T67", func(t *testing.T) {
		action := w.Action(units[1], connections.ActionQuery, map[string]any{"key": "connections.hash"})
		require.Equal(t, model.ActionCompleted, action.Status, action.Message)
		require.Equal(t, applied(w, units[1]).Hash, action.Results["value"])
		action = w.Action(units[1], connections.ActionQuery, map[string]any{"key": "connections.nosuch"})
		require.Equal(t, model.ActionFailed, action.Status)
		require.Contains(t, action.Message, "no such key")
		w.ConfigMap("model-prediction", "model", "big", strings.Repeat("x", 70<<10))
		w.ConfigMapChanged(w.Leader())
		action = w.Action(units[1], connections.ActionQuery, nil)
		require.Equal(t, model.ActionFailed, action.Status)
		require.Contains(t, action.Message, "key")
	})
	action := w.Action(w.Leader(), connections.ActionGet, nil)
	require.Equal(t, model.ActionCompleted, action.Status, action.Message)
	require.Contains(t, fmt.Sprint(action.Results["text"]), "configmap/model-prediction")
	require.Contains(t, fmt.Sprint(action.Results), desired(w).Hash)
}

// Neither feature waits for, or changes, the other.
func TestConnections_AreIndependentOfTheExposure(t *testing.T) {
	t.Parallel()
	t.Run("trouble with connections", func(t *testing.T) {
		t.Parallel()
		w := connected(t, 3, connections.OptHook, "/opt/hook")
		w.Answer(ports(lbFirst)...)
		faulty(w, http.StatusForbidden)
		provider(w, "spark", func() string { return "{" })
		w.Integrate(world.Gateway+":connections", "spark:connection")
		w.Config("expose-external", "loadbalancer", connections.OptConfigMaps, both+" gone", connections.OptConnectable, "colour=red")
		w.Settle()
		w.Ingress(lbFirst)
		for _, unit := range units {
			w.BoxOf(unit).FailPushes = 100
			w.BoxOf(unit).Hook = func(workload.Command) workload.Outcome { return workload.Outcome{Code: 1} }
		}
		w.Notice(w.Leader())
		require.Equal(t, lbFirst+":6446", w.Endpoints())
		require.Contains(t, w.Status(w.Leader()), "blocked connect")
		require.Contains(t, w.Status(w.Leader()), "more)")
	})
	t.Run("the hook of the workload does not hold up what clients are told", func(t *testing.T) {
		t.Parallel()
		w := connected(t, 1, connections.OptHook, "/opt/hook")
		w.Answer(ports(lbFirst)...)
		w.Config("expose-external", "loadbalancer")
		w.Settle()
		w.Ingress(lbFirst)
		told := []string{}
		w.BoxOf(units[0]).Hook = func(workload.Command) workload.Outcome {
			told = append(told, w.Endpoints()) // as committed
			return workload.Outcome{}
		}
		p4(w)
		w.Notice(units[0])
		require.Equal(t, []string{lbFirst + ":6446"}, told, "it ran once, when the clients had been told")
	})
	t.Run("an API that says nothing about ConfigMaps does not hold it up", func(t *testing.T) {
		t.Parallel()
		w := connected(t, 1)
		w.Answer(ports(lbFirst)...)
		w.Config("expose-external", "loadbalancer")
		w.Settle()
		w.Ingress(lbFirst)
		slow := true
		w.API = func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			if slow && strings.Contains(r.URL.Path, "/configmaps/") {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return next.RoundTrip(r)
		}
		var took time.Duration
		w.Dispatch = func(_, _ string, run func() int) (int, bool) {
			begin := time.Now()
			code := run()
			if slow { // the hook that tells the client
				took, slow = time.Since(begin), false
			}
			return code, true
		}
		w.Notice(units[0])
		require.Equal(t, lbFirst+":6446", w.Endpoints())
		require.Less(t, took, 3*time.Second)
		require.Positive(t, took)
	})
	t.Run("trouble with the exposure", func(t *testing.T) {
		t.Parallel()
		w := connected(t, 3)
		w.Silence(world.BackendAddress)
		w.Config("expose-external", "nonsense", "node-port", "70000")
		w.Settle()
		require.Contains(t, w.Status(w.Leader()), "blocked ")
		p4(w)
		w.ConfigMapChanged(w.Leader())
		for _, unit := range units {
			require.Equal(t, hashOf(prediction("4"), noise()), applied(w, unit).Hash, unit)
		}
		w.RemoveRelation(world.Gateway+":backend-database", world.Backend+":database")
		w.Settle()
		p3(w)
		w.ConfigMapChanged(w.Leader())
		for _, unit := range units {
			require.Equal(t, hashOf(prediction("3"), noise()), applied(w, unit).Hash, unit)
		}
	})
	t.Run("what others learn of us", func(t *testing.T) {
		t.Parallel()
		w := connected(t, 1)
		w.Deploy(world.Gateway, "taker", 1, nil)
		w.Integrate("taker:connections", world.Gateway+":connection")
		w.Settle()
		endpoints := func() []string {
			return w.Document("taker/0").Connections.Clusters[world.Gateway].Services["mysql"].Endpoints
		}
		w.Config("expose-external", "loadbalancer")
		w.Settle()
		require.Equal(t, []string{world.InModel + ":6446"}, endpoints(), "what has not answered is not told")
		w.Ingress(lbFirst)
		w.Notice(w.Leader())
		require.Equal(t, []string{world.InModel + ":6446"}, endpoints())
		w.Answer(ports(lbFirst)...)
		w.Notice(w.Leader())
		require.Equal(t, []string{lbFirst + ":6446"}, endpoints())
		require.Contains(t, w.Told(world.Gateway), "StatefulSet/drawbridge-k8s Normal ConnectionPropagating: connected to application {taker}; updating it")
		require.Contains(t, w.Told("taker"), "StatefulSet/taker Normal ConnectionChanged: connected cluster {drawbridge-k8s} has changed; updating configmeta")
	})
}
