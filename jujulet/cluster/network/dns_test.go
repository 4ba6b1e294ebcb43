// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package network_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cluster/network"
)

// ask asks the cluster's name server and returns the sorted answers, or the code of the refusal.
func ask(t *testing.T, transport, server, name string, kind uint16) string {
	t.Helper()
	m := new(dns.Msg)
	m.SetQuestion(name, kind)
	c := dns.Client{Net: transport, Timeout: 2 * time.Second}
	reply, took, err := c.Exchange(m, server+":53")
	require.NoError(t, err)
	require.Less(t, took, time.Second)
	if reply.Rcode != dns.RcodeSuccess {
		return dns.RcodeToString[reply.Rcode]
	}
	var all []string
	for _, rr := range reply.Answer {
		text := strings.Fields(rr.String())
		all = append(all, text[len(text)-1])
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func TestDNS(t *testing.T) {
	api, _ := bare(t, network.LBSettings{})
	api.put(database(corev1.ServiceTypeClusterIP))
	headless := corev1.Service{}
	headless.Name, headless.Spec.ClusterIP = "db-endpoints", "None"
	api.put(headless)
	empty := corev1.Service{}
	empty.Name, empty.Spec.ClusterIP = "empty-endpoints", "None"
	api.put(empty)
	api.endpoints("db-endpoints", 3306, endpoint{"10.1.0.20", "db-0", "node-0", true}, endpoint{"10.1.0.21", "db-1", "node-1", true},
		endpoint{"10.1.0.22", "db-2", "node-1", false})
	server := network.DefaultPlan().DNS.String()
	require.Eventually(t, func() bool {
		return ask(t, "udp", server, "db-1.db-endpoints.dev.svc.cluster.local.", dns.TypeA) == "10.1.0.21"
	}, 5*time.Second, time.Millisecond)
	for _, test := range []struct {
		name string
		kind uint16
		want string
	}{
		{"db.dev.svc.cluster.local.", dns.TypeA, "10.152.183.77"},
		{"DB.dev.SVC.cluster.local.", dns.TypeA, "10.152.183.77"},
		{"db.dev.svc.cluster.local.", dns.TypeAAAA, ""},
		{"db.other.svc.cluster.local.", dns.TypeA, "NXDOMAIN"},
		{"db-endpoints.dev.svc.cluster.local.", dns.TypeA, "10.1.0.20 10.1.0.21"},
		{"db-0.db-endpoints.dev.svc.cluster.local.", dns.TypeA, "10.1.0.20"},
		{"db-2.db-endpoints.dev.svc.cluster.local.", dns.TypeA, "NXDOMAIN"},
		{"empty-endpoints.dev.svc.cluster.local.", dns.TypeA, "NXDOMAIN"},
		{"dev.svc.cluster.local.", dns.TypeA, ""},
		{"10-1-0-20.dev.pod.cluster.local.", dns.TypeA, "10.1.0.20"},
		{"kubernetes.default.svc.cluster.local.", dns.TypeA, "10.152.183.1"},
		{"node-1.", dns.TypeA, "10.10.0.11"},
		{"77.183.152.10.in-addr.arpa.", dns.TypePTR, "db.dev.svc.cluster.local."},
		{"20.0.1.10.in-addr.arpa.", dns.TypePTR, "db-0.db-endpoints.dev.svc.cluster.local."},
		{"99.0.1.10.in-addr.arpa.", dns.TypePTR, "NXDOMAIN"},
		{"nonsense.in-addr.arpa.", dns.TypePTR, "NXDOMAIN"},
		{"example.com.", dns.TypeA, "NXDOMAIN"},
		{"db.dev.svc.cluster.local.example.com.", dns.TypeA, "NXDOMAIN"},
	} {
		for _, transport := range []string{"udp", "tcp"} {
			require.Equal(t, test.want, ask(t, transport, server, test.name, test.kind), "%s over %s", test.name, transport)
		}
	}
	api.edit("db-endpoints", func(s *corev1.Service) { s.Spec.PublishNotReadyAddresses = true })
	require.Eventually(t, func() bool {
		return ask(t, "udp", server, "db-2.db-endpoints.dev.svc.cluster.local.", dns.TypeA) == "10.1.0.22"
	}, 5*time.Second, time.Millisecond)
}
