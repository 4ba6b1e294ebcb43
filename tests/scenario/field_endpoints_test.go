// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package scenario

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/drawbridge-k8s/drawbridge/tests/world"
)

// The tests of this file are cases of people who expose databases: endpoints
// that were published too early, too late, wrong, or never again. field-N is
// the number of the case.

// published is a world in loadbalancer mode whose client has lbFirst.
func published(t *testing.T, units int) *world.World {
	t.Helper()
	w := world.New(t, world.Options{})
	w.Standard(units)
	w.Config("expose-external", "loadbalancer")
	w.Settle()
	w.Ingress(lbFirst)
	w.Answer(ports(lbFirst)...)
	w.Notice(w.Leader())
	require.Equal(t, lbFirst+":6446", w.Endpoints())
	return w
}

// nodePorts is a world in nodeport mode whose nodes all answer.
func nodePorts(t *testing.T, units int) *world.World {
	t.Helper()
	w := world.New(t, world.Options{})
	w.Standard(units)
	w.Config("expose-external", "nodeport")
	w.Settle()
	w.Answer(w.NodePorts()...)
	w.Notice(w.Leader())
	return w
}

func TestField_1_AddressMoves(t *testing.T) {
	t.Parallel()
	w := published(t, 1)
	w.Ingress(lbSecond)
	w.Silence(ports(lbFirst)...)
	w.Round()
	require.Equal(t, "true", w.Peer()["service-pending"])
	require.Equal(t, lbFirst+":6446", w.Endpoints())
	w.Answer(ports(lbSecond)...)
	w.Round()
	require.Equal(t, lbSecond+":6446", w.Endpoints())
	require.Equal(t, lbSecond+":6447", w.Published(world.Client)["read-only-endpoints"])
}

func TestField_2_OneChangeOneEvent(t *testing.T) {
	t.Parallel()
	w := published(t, 1)
	w.Answer(ports(lbSecond)...)
	w.Ingress(lbSecond)
	var events int
	for _, ran := range w.Notice(w.Leader()) {
		if strings.HasPrefix(ran, world.Client) && strings.HasSuffix(ran, "database-relation-changed") {
			events++
		}
	}
	require.Equal(t, 1, events)
}

func TestField_4_EarlyJoinHeals(t *testing.T) {
	t.Parallel()
	w := world.New(t, world.Options{})
	w.Deploy(world.Gateway, world.Gateway, 1, nil)
	w.Deploy(world.Client, world.Client, 1, map[string]string{"database": world.Database})
	w.Integrate(world.Gateway+":database", world.Client+":database")
	w.WorkloadOf(world.Gateway + "/0").Down = true
	w.Settle()
	require.Empty(t, w.Endpoints())
	w.Deploy(world.Backend, world.Backend, 1, nil)
	w.Integrate(world.Gateway+":backend-database", world.Backend+":database")
	w.Settle()
	w.WorkloadOf(world.Gateway + "/0").Down = false
	w.Ready(world.Gateway+"/0", "gateway")
	w.Round()
	require.Contains(t, w.Status(world.Gateway+"/0"), "active ")
	require.Equal(t, world.InModel+":6446", w.Endpoints())
}

func TestField_5_KilledBetweenApplyAndProbe(t *testing.T) {
	t.Parallel()
	w := world.New(t, world.Options{})
	w.Standard(1)
	w.Config("expose-external", "loadbalancer")
	killed := false
	w.Dispatch = func(unit, hook string, run func() int) (int, bool) {
		if killed || hook != "config-changed" || !strings.HasPrefix(unit, world.Gateway) {
			return 0, false
		}
		killed = true
		run()
		return 1, true // the Service is applied, nothing else of the hook counts
	}
	w.Settle()
	require.True(t, killed)
	require.Equal(t, corev1.ServiceTypeLoadBalancer, w.Live().Spec.Type)
	require.Equal(t, world.InModel+":6446", w.Endpoints())
	w.Clock.Add(time.Minute) // the agent's retry is due
	w.Settle()
	require.Equal(t, "true", w.Peer()["service-pending"], "the next hook treats it as pending")
	require.Equal(t, world.InModel+":6446", w.Endpoints())
}

func TestField_7_BackendWithoutItsUser(t *testing.T) {
	t.Parallel()
	w := world.New(t, world.Options{})
	w.Silence(world.BackendAddress)
	w.Standard(1)
	require.Empty(t, w.Published(world.Client), "front door open, nobody behind it: nothing is published")
	require.Contains(t, w.Status(world.Gateway+"/0"), "waiting for "+world.Backend)
}

func TestField_8_ThreeStatesThreeTexts(t *testing.T) {
	t.Parallel()
	w := world.New(t, world.Options{})
	w.Standard(1)
	w.Config("expose-external", "loadbalancer")
	w.Settle()
	w.Round()
	none := w.Status(w.Leader())
	w.Ingress(lbFirst)
	w.Notice(w.Leader())
	silent := w.Status(w.Leader())
	w.Answer(ports(lbFirst)...)
	w.Notice(w.Leader())
	answers := w.Status(w.Leader())
	require.Contains(t, none, "no address yet")
	require.Contains(t, silent, lbFirst+" does not answer yet")
	require.Contains(t, answers, lbFirst+", answers")
}

func TestField_10_InternalAddressFirst(t *testing.T) {
	t.Parallel()
	w := world.New(t, world.Options{})
	w.Standard(1)
	w.Config("expose-external", "loadbalancer")
	w.Settle()
	w.Ingress("172.17.3.3")
	w.Round()
	w.Ingress("lb.example.com")
	w.Answer(ports("lb.example.com")...)
	w.Round()
	require.Equal(t, "lb.example.com:6446", w.Endpoints())
	require.NotContains(t, strings.Join(w.Values(), " "), "172.17.3.3")
}

func TestField_11_HostnameStaysAName(t *testing.T) {
	t.Parallel()
	w := world.New(t, world.Options{})
	w.Standard(1)
	w.Config("expose-external", "loadbalancer")
	w.Settle()
	w.Ingress("lb.example.com")
	w.Answer(ports("lb.example.com")...)
	w.Notice(w.Leader())
	require.Equal(t, "lb.example.com:6446", w.Endpoints())
}

func TestField_13_NothingIsWrittenAsText(t *testing.T) {
	t.Parallel()
	for name, ingress := range map[string][]corev1.LoadBalancerIngress{
		"empty entry": {{}}, "empty ip": {{IP: ""}}, "none": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := world.New(t, world.Options{})
			w.Standard(1)
			w.Config("expose-external", "loadbalancer")
			w.Settle()
			w.IngressEntries(ingress...)
			w.Round()
			require.Equal(t, "true", w.Peer()["service-pending"])
			require.Equal(t, world.InModel+":6446", w.Endpoints())
		})
	}
}

// endpoint is what one element of an endpoints list may look like.
var endpoint = regexp.MustCompile(`^(\[[0-9a-f:.]+\]|[A-Za-z0-9._-]+):([1-9][0-9]{0,4})$`)

func TestField_14_ValuesAreHostAndPort(t *testing.T) {
	t.Parallel()
	w := published(t, 3)
	w.Ingress(lbFirst, "fd00::1")
	w.Answer("[fd00::1]:6446", "[fd00::1]:6447")
	w.Notice(w.Leader())
	w.Config("expose-external", "nodeport")
	w.Settle()
	w.Answer(w.NodePorts()...)
	w.Notice(w.Leader())
	var seen int
	for _, value := range w.ValuesOf("endpoints", "read-only-endpoints") {
		for item := range strings.SplitSeq(value, ",") {
			seen++
			require.Regexp(t, endpoint, item)
		}
	}
	require.Greater(t, seen, 8)
}

func TestField_17_EveryNodeOfAUnitOnce(t *testing.T) {
	t.Parallel()
	w := world.New(t, world.Options{})
	w.Standard(3)
	w.Node(world.Gateway+"/2", "node-1")
	w.Config("expose-external", "nodeport")
	w.Settle()
	w.Answer(w.NodePorts()...)
	w.Notice(w.Leader())
	require.Equal(t, w.NodeEndpoints("mysql-rw", "node-0", "node-1"), w.Endpoints())
}

func TestField_19_20_OrderDoesNotMatter(t *testing.T) {
	t.Parallel()
	w := nodePorts(t, 3)
	require.Len(t, strings.Split(w.Endpoints(), ","), 3)
	endpoints := w.Endpoints()
	for i := range 5 {
		// The API lists pods by name; moving units between nodes changes the order in which nodes are met.
		w.Node(world.Gateway+"/0", fmt.Sprintf("node-%d", i%3))
		w.Node(world.Gateway+"/1", fmt.Sprintf("node-%d", (i+1)%3))
		w.Node(world.Gateway+"/2", fmt.Sprintf("node-%d", (i+2)%3))
		w.Settle()
		require.Equal(t, endpoints, w.Endpoints())
		w.Quiet(2)
	}
}

func TestField_26_28_IngressOfAnotherType(t *testing.T) {
	t.Parallel()
	w := published(t, 1)
	w.Config("expose-external", "nodeport")
	w.Settle()
	w.Answer(w.NodePorts()...)
	w.Notice(w.Leader())
	require.Equal(t, w.NodeEndpoints("mysql-rw", "node-0"), w.Endpoints())
	w.Config("expose-external", "false")
	w.Settle()
	require.Equal(t, world.InModel+":6446", w.Endpoints())
}

func TestField_29_AddressVanishesAndComesBack(t *testing.T) {
	t.Parallel()
	w := published(t, 1)
	w.Ingress()
	mark := w.Mark()
	for range 5 {
		w.Round()
	}
	require.Equal(t, lbFirst+":6446", w.Endpoints(), "clients keep an address that may come back")
	require.Equal(t, "true", w.Peer()["service-pending"])
	w.Ingress(lbFirst)
	for range 2 {
		w.Round()
	}
	require.Empty(t, w.Peer()["service-pending"])
	flips := 0
	for _, change := range w.Changes(mark) {
		if strings.HasSuffix(change, " service-pending") {
			flips++
		}
	}
	require.Equal(t, 2, flips, "one transition each way")
}

func TestField_31_S2_AllOrNothing(t *testing.T) {
	t.Parallel()
	w := world.New(t, world.Options{})
	w.SQL.Err = fmt.Errorf("read only")
	w.Standard(1)
	require.Empty(t, w.Published(world.Client)["endpoints"])
	require.Empty(t, w.Published(world.Client)["secret-user"])
	w.SQL.Err = nil
	w.Round()
	require.NotEmpty(t, w.Published(world.Client)["secret-user"])
	require.Equal(t, world.InModel+":6446", w.Endpoints())

	// S2: a client that joins while the switch is pending gets nothing yet.
	w.Config("expose-external", "loadbalancer")
	w.Deploy(world.Client, "late", 1, map[string]string{"database": "late"})
	w.Integrate(world.Gateway+":database", "late:database")
	w.Settle()
	require.Empty(t, w.Published("late")["endpoints"])
	require.Empty(t, w.Published("late")["secret-user"])
}

func TestField_32_NoWriteBeforeTheRequest(t *testing.T) {
	t.Parallel()
	w := world.New(t, world.Options{})
	w.Deploy(world.Backend, world.Backend, 1, nil)
	w.Deploy(world.Gateway, world.Gateway, 1, nil)
	w.Deploy(world.Client, world.Client, 1, map[string]string{"database": ""})
	w.Integrate(world.Gateway+":backend-database", world.Backend+":database")
	w.Integrate(world.Gateway+":database", world.Client+":database")
	w.Settle()
	w.Round()
	require.Empty(t, w.Published(world.Client))
}

func TestField_23_ExternalModeLeaksNothingInternal(t *testing.T) {
	t.Parallel()
	w := published(t, 1)
	for key, value := range w.Published(world.Client) {
		require.NotContains(t, value, "10.1.", key)
		require.NotContains(t, value, "10.152.", key)
		require.NotContains(t, value, ".svc.", key)
	}
}

func TestField_25_DrainedNode(t *testing.T) {
	t.Parallel()
	w := nodePorts(t, 3)
	w.PodReady(world.Gateway+"/2", false)
	w.Round()
	require.Equal(t, w.NodeEndpoints("mysql-rw", "node-0", "node-1"), w.Endpoints())
}
