// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package scenario

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cluster"
	"github.com/drawbridge-k8s/drawbridge/tests/world"
)

// The tests of this file are cases of pending for ever, of changing the Service,
// of nodes and of rights.

// pending is a world whose load balancer has given no address.
func pending(t *testing.T) *world.World {
	t.Helper()
	w := world.New(t, world.Options{})
	w.Standard(1)
	w.Config("expose-external", "loadbalancer")
	w.Settle()
	return w
}

func TestField_37_40_41_WhyAndSinceWhen(t *testing.T) {
	t.Parallel()
	w := pending(t)
	w.Event("Warning", "AllocationFailed", "no available addresses in the pool")
	w.Round()
	status := w.Status(w.Leader())
	require.Contains(t, status, "waiting no address yet for the LoadBalancer Service")
	require.Contains(t, status, "no available addresses in the pool")
	require.Contains(t, status, "2026-11-30 12:00", "an absolute time, so that the text does not change by itself")
	before := w.Mark()
	w.Clock.Add(time.Minute)
	w.Round()
	require.Equal(t, status, w.Status(w.Leader()))
	require.Empty(t, w.Changes(before))
}

func TestField_38_NoLoadBalancerAtAll(t *testing.T) {
	t.Parallel()
	w := pending(t)
	began := time.Now()
	w.Round()
	require.Less(t, time.Since(began), 20*time.Second)
	require.True(t, strings.HasPrefix(w.Status(w.Leader()), "waiting "))
	w.Clock.Add(16 * time.Minute)
	w.Round()
	require.True(t, strings.HasPrefix(w.Status(w.Leader()), "blocked "), "after pending-timeout a person should look")
	w.Ingress(lbFirst)
	w.Answer(ports(lbFirst)...)
	w.Round()
	require.True(t, strings.HasPrefix(w.Status(w.Leader()), "active "), "it was still retried")
}

func TestField_44_OwnWorkIsMaintenance(t *testing.T) {
	t.Parallel()
	w := world.New(t, world.Options{})
	w.Standard(1)
	w.WorkloadOf(w.Leader()).Down = true
	w.Round()
	require.Equal(t, "maintenance waiting for the gateway container", w.Status(w.Leader()))
}

func TestField_46_OneBadClientOfTwo(t *testing.T) {
	t.Parallel()
	w := world.New(t, world.Options{})
	w.Standard(1)
	w.Deploy(world.Client, "bad", 1, map[string]string{"database": "mysql"})
	w.Integrate(world.Gateway+":database", "bad:database")
	w.Settle()
	status := w.Status(w.Leader())
	require.Contains(t, status, "blocked database:")
	require.Contains(t, status, "bad")
	require.Empty(t, w.Published("bad")["secret-user"])
	require.Equal(t, world.InModel+":6446", w.Endpoints())
}

func TestField_47_S4_S17_BadInput(t *testing.T) {
	t.Parallel()
	cases := []struct{ option, value string }{
		{"expose-external", "NodePort"}, {"expose-external", "LOADBALANCER"}, {"expose-external", " nodeport"},
		{"expose-external", ""}, {"expose-external", "true"},
		{"loadbalancer-extra-annotations", "{a:1"}, {"loadbalancer-extra-annotations", "[]"},
		{"loadbalancer-extra-annotations", `"x"`}, {"loadbalancer-extra-annotations", `{"a":1}`},
		{"loadbalancer-extra-annotations", "null"}, {"loadbalancer-extra-annotations", `{"a":"1","a":"2"}`},
		{"loadbalancer-extra-annotations", `{"bad key":"1"}`},
		{"loadbalancer-extra-annotations", `{"a":"` + strings.Repeat("x", 300<<10) + `"}`},
		{"loadbalancer-source-ranges", "10.0.0.0"}, {"loadbalancer-source-ranges", "10.0.0.0/8,,"},
		{"loadbalancer-class", "bad class"}, {"external-traffic-policy", "local"},
		{"node-port", "-1"}, {"node-port", "70000"}, {"read-only-node-port", "70000"},
		{"external-hostname", "not a name"}, {"probe-mode", "tcp"},
		{"pending-timeout", "soon"}, {"pending-timeout", "-1m"}, {"backend-role", "a;b"},
	}
	for _, c := range cases {
		name := c.option + "=" + c.value[:min(len(c.value), 20)]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := world.New(t, world.Options{})
			w.Standard(1)
			before := w.Live()
			w.Config(c.option, c.value)
			ran := w.Settle()
			for _, hook := range ran {
				require.NotContains(t, hook, "failed")
			}
			status := w.Status(w.Leader())
			require.Contains(t, status, "blocked cannot use "+c.option+"=", "the option is named")
			require.Contains(t, status, "allowed: ")
			require.Equal(t, before.Spec, w.Live().Spec)
			require.Equal(t, world.InModel+":6446", w.Endpoints(), "nothing is lost")
			require.NoError(t, w.Model.ResetConfig(world.Gateway, []string{c.option}))
			w.Settle()
			require.Contains(t, w.Status(w.Leader()), "active ", "and it heals at once")
		})
	}
}

func TestField_52_53_AllSwitches(t *testing.T) {
	t.Parallel()
	modes := []string{"false", "nodeport", "loadbalancer"}
	for _, from := range modes {
		for _, to := range modes {
			if from == to {
				continue
			}
			t.Run(from+" to "+to, func(t *testing.T) {
				t.Parallel()
				w := world.New(t, world.Options{})
				w.Standard(1)
				w.Config("expose-external", from)
				w.Settle()
				if from == "loadbalancer" {
					w.ChangeService(func(s *corev1.Service) { s.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24"} })
				}
				uid, clusterIP := w.Live().UID, w.Live().Spec.ClusterIP
				w.Config("expose-external", to)
				w.Settle()
				live := w.Live()
				require.Equal(t, uid, live.UID, "in place")
				require.Equal(t, clusterIP, live.Spec.ClusterIP)
				if to != "loadbalancer" {
					require.Empty(t, live.Spec.LoadBalancerSourceRanges)
					require.Zero(t, live.Spec.HealthCheckNodePort)
					require.Empty(t, live.Status.LoadBalancer.Ingress)
				}
				for _, port := range live.Spec.Ports {
					require.Equal(t, to == "false", port.NodePort == 0, "node port of %s", port.Name)
				}
				require.NotContains(t, w.Status(w.Leader()), "cannot apply")
			})
		}
	}
}

func TestField_56_58_59_Annotations(t *testing.T) {
	t.Parallel()
	w := published(t, 1)
	w.ChangeService(func(s *corev1.Service) { s.Annotations = map[string]string{"cloud.example.com/id": "7"} })
	w.Config("loadbalancer-extra-annotations", `{"example.com/a":"1","example.com/b":"2"}`)
	w.Settle()
	require.Equal(t, "1", w.Live().Annotations["example.com/a"])
	w.Config("loadbalancer-extra-annotations", `{"example.com/b":"3"}`)
	w.Settle()
	require.NotContains(t, w.Live().Annotations, "example.com/a")
	require.Equal(t, "3", w.Live().Annotations["example.com/b"])
	require.Equal(t, "7", w.Live().Annotations["cloud.example.com/id"], "foreign keys survive")
	w.Config("expose-external", "nodeport")
	w.Settle()
	require.NotContains(t, w.Live().Annotations, "example.com/b", "ours belong to loadbalancer mode")
	require.Equal(t, "7", w.Live().Annotations["cloud.example.com/id"])
}

func TestField_65_DeletedByHand(t *testing.T) {
	t.Parallel()
	w := published(t, 1)
	uid := w.Live().UID
	require.NoError(t, w.Admin.Delete(cluster.Service, world.Model, world.Service))
	w.Notice(w.Leader())
	require.NotNil(t, w.Live())
	require.NotEqual(t, uid, w.Live().UID)
	require.Equal(t, corev1.ServiceTypeLoadBalancer, w.Live().Spec.Type)
	require.Equal(t, lbFirst+":6446", w.Endpoints(), "no new address yet: clients keep theirs")
	require.Equal(t, "true", w.Peer()["service-pending"])
}

func TestField_70_HandSetNodePort(t *testing.T) {
	t.Parallel()
	w := nodePorts(t, 1)
	w.ChangeService(func(s *corev1.Service) {
		for i := range s.Spec.Ports {
			if s.Spec.Ports[i].Name == "mysql-rw" {
				s.Spec.Ports[i].NodePort = 31235
			}
		}
	})
	w.Answer(w.NodePorts()...)
	w.Notice(w.Leader())
	require.Equal(t, "10.10.0.10:31235", w.Endpoints())
	w.Quiet(2)
}

func TestField_71_TwoPorts(t *testing.T) {
	t.Parallel()
	w := published(t, 1)
	require.Len(t, w.Live().Spec.Ports, 2)
}

func TestField_73_74_JujusServiceIsNotOurs(t *testing.T) {
	t.Parallel()
	w := published(t, 1)
	uid := w.Live().UID
	w.KillPod(w.Leader()) // an upgrade replaces the pod as well
	ran := w.Settle()
	require.Contains(t, strings.Join(ran, "\n"), "upgrade-charm")
	require.Equal(t, uid, w.Live().UID)
	require.Equal(t, lbFirst, w.Live().Status.LoadBalancer.Ingress[0].IP)
	_, err := cluster.Get[*corev1.Service](w.Admin, world.Model, world.Gateway)
	require.True(t, apierrors.IsNotFound(err), "the Service named after the application is Juju's")
}

func TestField_76_EveryHookKeepsTheType(t *testing.T) {
	t.Parallel()
	w := nodePorts(t, 1)
	version := w.Live().ResourceVersion
	for _, hook := range []string{"start", "config-changed", "upgrade-charm", "leader-elected", "update-status",
		"leader-settings-changed", "install"} {
		w.Hook(w.Leader(), hook)
		require.Equal(t, version, w.Live().ResourceVersion, hook)
	}
	w.Ready(w.Leader(), "gateway")
	require.Equal(t, version, w.Live().ResourceVersion)
}

func TestField_79_OnlyNodesOfReadyUnits(t *testing.T) {
	t.Parallel()
	w := world.New(t, world.Options{})
	w.Standard(2)
	w.PodReady(world.Gateway+"/1", false)
	w.Config("expose-external", "nodeport")
	w.Settle()
	w.Answer(w.NodePorts()...)
	w.Notice(w.Leader())
	require.Equal(t, w.NodeEndpoints("mysql-rw", "node-0"), w.Endpoints())
}

func TestField_80_OneNodeRefuses(t *testing.T) {
	t.Parallel()
	w := world.New(t, world.Options{})
	w.Standard(3)
	w.Config("expose-external", "nodeport")
	w.Settle()
	w.Answer(w.NodePorts()...)
	w.Silence(strings.Split(w.NodeEndpoints("mysql-rw", "node-1"), ",")...)
	w.Notice(w.Leader())
	require.Equal(t, w.NodeEndpoints("mysql-rw", "node-0", "node-2"), w.Endpoints())
	require.Contains(t, w.Status(w.Leader()), "silent: 10.10.0.11")
	w.Answer(w.NodePorts()...)
	w.Notice(w.Leader())
	require.Equal(t, w.NodeEndpoints("mysql-rw", "node-0", "node-1", "node-2"), w.Endpoints())
}

func TestField_82_NodeOfTheUnit(t *testing.T) {
	t.Parallel()
	w := nodePorts(t, 1)
	w.Node(w.Leader(), "node-2")
	w.Settle()
	require.Equal(t, w.NodeEndpoints("mysql-rw", "node-2"), w.Endpoints())
}

func TestField_83_89_Rights(t *testing.T) {
	t.Parallel()
	w := world.New(t, world.Options{Untrusted: true})
	w.Standard(1)
	require.Contains(t, w.Status(w.Leader()), "blocked not permitted to")
	require.Contains(t, w.Status(w.Leader()), "juju trust "+world.Gateway+" --scope=cluster")
	w.Trust(world.Gateway, true)
	w.Settle()
	require.Contains(t, w.Status(w.Leader()), "active ")

	// Rights on everything but nodes: only nodeport mode minds.
	w.Rights(world.Gateway, cluster.Rule{Namespace: world.Model, PolicyRule: rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"services", "pods", "events"}, Verbs: []string{"*"},
	}})
	w.Round()
	require.Contains(t, w.Status(w.Leader()), "active ")
	w.Config("expose-external", "nodeport")
	for _, hook := range w.Settle() {
		require.NotContains(t, hook, "failed")
	}
	require.Contains(t, w.Status(w.Leader()), "blocked not permitted to")
	require.Contains(t, w.Status(w.Leader()), "nodes")
	w.Scale(0)
	for _, hook := range w.Settle() {
		require.NotContains(t, hook, "failed", "not in stop and remove either")
	}
}

func TestField_85_86_88_IPv6(t *testing.T) {
	t.Parallel()
	w := pending(t)
	w.Ingress("10.0.0.1", "fc00::1")
	w.Answer("10.0.0.1:6446", "10.0.0.1:6447", "[fc00::1]:6446", "[fc00::1]:6447")
	w.Notice(w.Leader())
	require.Equal(t, "10.0.0.1:6446,[fc00::1]:6446", w.Endpoints())
	w.Ingress("10.0.0.2", "fc00::2")
	w.Answer("10.0.0.2:6446", "10.0.0.2:6447", "[fc00::2]:6446", "[fc00::2]:6447")
	w.Notice(w.Leader())
	require.Equal(t, "10.0.0.2:6446,[fc00::2]:6446", w.Endpoints())
}

func TestField_91_98_Owner(t *testing.T) {
	t.Parallel()
	w := published(t, 1)
	owners := w.Live().OwnerReferences
	require.Len(t, owners, 1)
	require.Equal(t, "StatefulSet", owners[0].Kind)
	require.Equal(t, world.Gateway, owners[0].Name)
	require.NotNil(t, owners[0].BlockOwnerDeletion)
	require.False(t, *owners[0].BlockOwnerDeletion)
	require.Empty(t, w.Live().Finalizers)
}

func TestField_92_97_RemovedWithTheApplication(t *testing.T) {
	t.Parallel()
	w := pending(t)
	require.NoError(t, w.Model.RemoveApplication(world.Gateway))
	for _, hook := range w.Settle() {
		require.NotContains(t, hook, "failed")
	}
	require.Nil(t, w.Live(), "the owner reference takes it along")
}

func TestField_94_95_ScaleKeepsTheService(t *testing.T) {
	t.Parallel()
	w := published(t, 3)
	uid := w.Live().UID
	for _, units := range []int{2, 1, 0} {
		w.Scale(units)
		for _, hook := range w.Settle() {
			require.NotContains(t, hook, "failed")
		}
		require.NotNil(t, w.Live())
		require.Equal(t, uid, w.Live().UID)
		require.Equal(t, lbFirst+":6446", w.Endpoints())
	}
	w.Scale(1)
	w.Settle()
	require.Equal(t, uid, w.Live().UID)
	require.Equal(t, lbFirst+":6446", w.Endpoints())
	require.Contains(t, w.Status(world.Gateway+"/0"), "active ")
}

func TestField_124_157_ConflictsAndBusyServers(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]error{
		"conflict":    apierrors.NewConflict(corev1.Resource("services"), world.Service, errors.New("changed")),
		"too many":    apierrors.NewTooManyRequests("slow down", 0),
		"unavailable": apierrors.NewServiceUnavailable("starting"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := world.New(t, world.Options{})
			w.Standard(1)
			left := 2
			w.Fault(func(r *http.Request) error {
				if r.Method != http.MethodPatch || left == 0 {
					return nil
				}
				left--
				return fault
			})
			w.Config("expose-external", "loadbalancer")
			w.Settle()
			require.Zero(t, left)
			require.Equal(t, corev1.ServiceTypeLoadBalancer, w.Live().Spec.Type, "twice refused, then done, in one hook")

			w.Fault(func(r *http.Request) error {
				if r.Method == http.MethodPatch {
					return fault
				}
				return nil
			})
			w.Config("expose-external", "nodeport")
			for _, hook := range w.Settle() {
				require.NotContains(t, hook, "failed")
			}
			require.Contains(t, w.Status(w.Leader()), "waiting cannot apply the Service; trying again")
			require.Equal(t, world.InModel+":6446", w.Endpoints())
			w.Fault(nil)
			w.Round()
			require.Equal(t, corev1.ServiceTypeNodePort, w.Live().Spec.Type)
		})
	}
}

func TestField_124_RefusedForEver(t *testing.T) {
	t.Parallel()
	w := world.New(t, world.Options{})
	w.Standard(1)
	w.Fault(func(*http.Request) error { return fmt.Errorf("connection reset") })
	mark := w.Mark()
	for range 5 {
		for _, hook := range w.Round() {
			require.NotContains(t, hook, "failed")
		}
	}
	require.Empty(t, w.Changes(mark), "what cannot be seen changes nothing")
	require.Equal(t, world.InModel+":6446", w.Endpoints())
}
