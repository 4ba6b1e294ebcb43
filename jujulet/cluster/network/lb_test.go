// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package network_test

import (
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cluster/network"
)

// balancer is a load balancer with a clock of the test's.
type balancer struct {
	*network.LoadBalancer
	t   *testing.T
	api *fakeAPI
	now time.Time
}

func newBalancer(t *testing.T, s network.LBSettings) *balancer {
	t.Helper()
	b := &balancer{t: t, api: newFakeAPI(), now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	b.again(s)
	return b
}

// again replaces the load balancer, as a new start of the cluster does.
func (b *balancer) again(s network.LBSettings) {
	b.t.Helper()
	l, err := network.NewLoadBalancer(network.Options{API: b.api, LB: s, Clock: func() time.Time { return b.now }})
	require.NoError(b.t, err)
	b.LoadBalancer = l
}

// sync syncs until nothing is written any more, and returns when it is due again.
func (b *balancer) sync() time.Duration {
	b.t.Helper()
	for range 5 {
		before := b.api.writes
		next, err := b.Sync(b.t.Context())
		require.NoError(b.t, err)
		if b.api.writes == before {
			return next
		}
	}
	b.t.Fatal("the load balancer does not settle")
	return 0
}

// pass lets time go by.
func (b *balancer) pass(d time.Duration) time.Duration {
	b.t.Helper()
	b.now = b.now.Add(d)
	return b.sync()
}

// ingress returns what the Service's status says, as text.
func (b *balancer) ingress(name string) []string {
	var all []string
	s := b.api.service(name)
	for _, in := range s.Status.LoadBalancer.Ingress {
		text := in.IP + in.Hostname
		if in.IPMode != nil {
			text += " " + string(*in.IPMode)
		}
		all = append(all, text)
	}
	return all
}

// answers tells whether an address of the Service takes connections.
func (b *balancer) answers(name, address string) bool {
	return slices.Contains(b.Frontends("dev", name), netip.MustParseAddr(address))
}

const first, second = "10.64.140.43", "10.64.140.44"

func TestLB_Delays(t *testing.T) {
	b := newBalancer(t, network.LBSettings{AssignDelay: 4 * time.Second, AnswerDelay: 3 * time.Second})
	b.api.put(database(corev1.ServiceTypeClusterIP))
	require.Zero(t, b.sync(), "not a Service of the load balancer")
	require.Empty(t, b.Assignments())
	b.api.put(database(corev1.ServiceTypeLoadBalancer))
	require.Equal(t, 4*time.Second, b.sync())
	require.Equal(t, time.Second, b.pass(3*time.Second))
	require.Empty(t, b.ingress("db"))
	require.Equal(t, 3*time.Second, b.pass(time.Second))
	require.Equal(t, []string{first + " VIP"}, b.ingress("db"))
	require.False(t, b.answers("db", first))
	require.Equal(t, time.Millisecond, b.pass(3*time.Second-time.Millisecond))
	require.False(t, b.answers("db", first))
	require.Zero(t, b.pass(time.Millisecond))
	require.True(t, b.answers("db", first))
	require.Equal(t, 1, b.api.writes)
}

func TestLB_Kinds(t *testing.T) {
	for _, test := range []struct {
		kind network.LBKind
		want string
		pool string
	}{
		{"", first + " VIP", ""},
		{network.LBVIP, first + " VIP", ""},
		{network.LBProxy, first + " Proxy", ""},
		{network.LBMetalLB, first + " VIP", "jujulet"},
	} {
		t.Run(string(test.kind), func(t *testing.T) {
			b := newBalancer(t, network.LBSettings{Kind: test.kind})
			b.api.put(database(corev1.ServiceTypeLoadBalancer))
			b.sync()
			require.Equal(t, []string{test.want}, b.ingress("db"))
			require.Equal(t, test.pool, b.api.service("db").Annotations[network.PoolAnnotation])
			require.True(t, b.answers("db", first))

			// A new start of the cluster finds the same.
			b.again(network.LBSettings{Kind: network.LBHostname, AssignDelay: time.Hour, AnswerDelay: time.Hour})
			writes := b.api.writes
			b.sync()
			require.Equal(t, []string{test.want}, b.ingress("db"))
			require.True(t, b.answers("db", first))
			require.Equal(t, writes, b.api.writes)
		})
	}
}

func TestLB_Hostname(t *testing.T) {
	b := newBalancer(t, network.LBSettings{Kind: network.LBHostname, DNSDelay: 5 * time.Second})
	b.api.put(database(corev1.ServiceTypeLoadBalancer))
	require.Equal(t, 5*time.Second, b.sync())
	names := b.ingress("db")
	require.Len(t, names, 1)
	require.Regexp(t, `^db-[0-9a-f]{8}\.lb\.jujulet\.internal$`, names[0])
	require.Empty(t, b.Names())
	require.True(t, b.answers("db", first))
	b.pass(5 * time.Second)
	require.Equal(t, map[string][]netip.Addr{names[0]: {netip.MustParseAddr(first)}}, b.Names())

	_, err := b.Move("dev", "db", network.MoveOptions{})
	require.NoError(t, err)
	b.sync()
	require.Equal(t, names, b.ingress("db"), "the name stays")
	require.Equal(t, map[string][]netip.Addr{names[0]: {netip.MustParseAddr(second)}}, b.Names())

	b.again(network.LBSettings{})
	b.sync()
	require.Equal(t, names, b.ingress("db"))
	require.Len(t, b.Names(), 1)
}

func TestLB_PoolExhausted(t *testing.T) {
	b := newBalancer(t, network.LBSettings{Pool: []netip.Addr{netip.MustParseAddr(first)}})
	b.api.put(database(corev1.ServiceTypeLoadBalancer))
	b.sync()
	other := database(corev1.ServiceTypeLoadBalancer)
	other.Name = "other"
	b.api.put(other)
	b.sync()
	b.sync()
	require.Empty(t, b.ingress("other"))
	require.Len(t, b.api.events, 1)
	e := b.api.events[0]
	require.Equal(t, "Warning", e.Type)
	require.Equal(t, "AllocationFailed", e.Reason)
	require.Contains(t, e.Message, "no available IPs")
	require.Equal(t, "other", e.InvolvedObject.Name)
	require.EqualValues(t, "uid-other", e.InvolvedObject.UID)

	b.api.remove("db")
	b.sync()
	require.Equal(t, []string{first + " VIP"}, b.ingress("other"))
	require.NoError(t, b.SetSettings(network.LBSettings{Pool: []netip.Addr{}}))
	b.api.put(database(corev1.ServiceTypeLoadBalancer))
	b.sync()
	require.Len(t, b.api.events, 2)
	require.NoError(t, b.SetSettings(network.LBSettings{}))
	b.sync()
	require.Equal(t, []string{second + " VIP"}, b.ingress("db"))
}

func TestLB_HoldAndBreak(t *testing.T) {
	b := newBalancer(t, network.LBSettings{Hold: true})
	b.api.put(database(corev1.ServiceTypeLoadBalancer))
	require.Zero(t, b.sync())
	require.Empty(t, b.ingress("db"))
	require.NoError(t, b.SetSettings(network.LBSettings{Break: true}))
	b.sync()
	require.Equal(t, []string{first + " VIP"}, b.ingress("db"))
	require.False(t, b.answers("db", first))
	require.NoError(t, b.SetSettings(network.LBSettings{}))
	require.True(t, b.answers("db", first))
	require.NoError(t, b.Break("dev", "db", true))
	require.False(t, b.answers("db", first))
	require.NoError(t, b.Break("dev", "db", false))
	require.True(t, b.answers("db", first))
	require.ErrorContains(t, b.Break("dev", "no", true), "no Service of the load balancer")
}

func TestLB_Move(t *testing.T) {
	b := newBalancer(t, network.LBSettings{AnswerDelay: time.Second})
	b.api.put(database(corev1.ServiceTypeLoadBalancer))
	_, err := b.Move("dev", "db", network.MoveOptions{})
	require.ErrorContains(t, err, "has no address")
	b.sync()
	b.pass(time.Second)
	to, err := b.Move("dev", "db", network.MoveOptions{KeepOld: 3 * time.Second})
	require.NoError(t, err)
	require.Equal(t, second, to.String())
	require.Equal(t, time.Second, b.sync())
	require.Equal(t, []string{second + " VIP"}, b.ingress("db"))
	require.True(t, b.answers("db", first))
	require.False(t, b.answers("db", second))
	b.pass(time.Second)
	require.True(t, b.answers("db", first))
	require.True(t, b.answers("db", second))
	b.pass(2 * time.Second)
	require.False(t, b.answers("db", first))

	to, err = b.Move("dev", "db", network.MoveOptions{To: netip.MustParseAddr("10.64.140.200")})
	require.NoError(t, err)
	b.pass(time.Second)
	require.True(t, b.answers("db", to.String()))
	require.False(t, b.answers("db", second), "the old address is gone at once")
	_, err = b.Move("dev", "db", network.MoveOptions{To: netip.MustParseAddr("10.1.0.1")})
	require.ErrorContains(t, err, "not in 10.64.140.0/24")
}

func TestLB_VanishAndRestore(t *testing.T) {
	b := newBalancer(t, network.LBSettings{AssignDelay: time.Second})
	b.api.put(database(corev1.ServiceTypeLoadBalancer))
	b.sync()
	b.pass(time.Second)
	require.NoError(t, b.Vanish("dev", "db"))
	b.sync()
	require.Empty(t, b.ingress("db"))
	require.Empty(t, b.Frontends("dev", "db"))
	b.pass(time.Hour)
	require.Empty(t, b.ingress("db"))
	require.NoError(t, b.Restore("dev", "db"))
	require.Equal(t, time.Second, b.sync())
	b.pass(time.Second)
	require.Equal(t, []string{first + " VIP"}, b.ingress("db"))
}

func TestLB_Class(t *testing.T) {
	class := func(c string) *string { return &c }
	for _, test := range []struct {
		name           string
		wanted         *string
		ours           string
		gets, getAfter bool
	}{
		{"none", nil, "", true, true},
		{"the default one", class(network.LBClass), "", true, false},
		{"a foreign one", class("example.com/other"), "", false, true},
		{"one that was set", class("example.com/other"), "example.com/other", true, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBalancer(t, network.LBSettings{Class: test.ours})
			s := database(corev1.ServiceTypeLoadBalancer)
			s.Spec.LoadBalancerClass = test.wanted
			b.api.put(s)
			b.sync()
			require.Equal(t, test.gets, len(b.ingress("db")) == 1)
			require.Empty(t, b.api.events)
			require.NoError(t, b.SetSettings(network.LBSettings{Class: "example.com/other"}))
			b.sync()
			require.Equal(t, test.getAfter, len(b.Frontends("dev", "db")) == 1)
		})
	}
}

// A Service that was of another type for a moment asks anew, and so does another Service of the same name.
func TestLB_AsksAnew(t *testing.T) {
	for name, change := range map[string]func(*corev1.Service){
		"status wiped": func(s *corev1.Service) { s.Status = corev1.ServiceStatus{} },
		"made again":   func(s *corev1.Service) { s.UID, s.Status = "uid-2", corev1.ServiceStatus{} },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBalancer(t, network.LBSettings{AssignDelay: time.Second})
			b.api.put(database(corev1.ServiceTypeLoadBalancer))
			b.sync()
			b.pass(time.Second)
			b.api.edit("db", change)
			require.Equal(t, time.Second, b.sync())
			require.Empty(t, b.Frontends("dev", "db"))
			b.pass(time.Second)
			require.Equal(t, []string{first + " VIP"}, b.ingress("db"))
		})
	}
}

func TestLB_Release(t *testing.T) {
	for name, change := range map[string]func(*corev1.Service){
		"other type":     func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeNodePort },
		"being deleted":  func(s *corev1.Service) { now := metav1.Now(); s.DeletionTimestamp = &now },
		"class of other": func(s *corev1.Service) { c := "example.com/x"; s.Spec.LoadBalancerClass = &c },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBalancer(t, network.LBSettings{})
			b.api.put(database(corev1.ServiceTypeLoadBalancer))
			b.sync()
			b.api.edit("db", change)
			b.sync()
			require.Empty(t, b.Frontends("dev", "db"))
			require.Empty(t, b.Assignments())
		})
	}
}

func TestLB_StatusIsWrittenAgainAfterAnError(t *testing.T) {
	b := newBalancer(t, network.LBSettings{})
	b.api.put(database(corev1.ServiceTypeLoadBalancer))
	b.api.fail = errors.New("the object has been modified")
	_, err := b.Sync(t.Context())
	require.ErrorContains(t, err, "cannot write status of Service db")
	require.False(t, b.answers("db", first), "an address that nobody was told does not answer")
	b.api.fail = nil
	b.sync()
	require.Equal(t, []string{first + " VIP"}, b.ingress("db"))
	require.True(t, b.answers("db", first))
}

func TestLB_SettingsAreChecked(t *testing.T) {
	for _, test := range []struct {
		settings network.LBSettings
		want     string
	}{
		{network.LBSettings{Kind: "cloud"}, `kind "cloud"`},
		{network.LBSettings{AssignDelay: -1}, "negative"},
		{network.LBSettings{Pool: []netip.Addr{netip.MustParseAddr("10.1.0.1")}}, "not in 10.64.140.0/24"},
	} {
		_, err := network.NewLoadBalancer(network.Options{API: newFakeAPI(), LB: test.settings, Clock: time.Now})
		require.ErrorContains(t, err, test.want)
	}
}
