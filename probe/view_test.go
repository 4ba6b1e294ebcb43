// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package probe

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/k8sservice"
)

func TestView_Difference(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	set := k8sservice.AddressSet{ReadWrite: []string{"a:6446"}, ReadOnly: []string{"a:6447"}}
	for _, test := range []struct {
		name    string
		backend *bool
		answers map[string]bool
		see     func(*view)
		want    []item
	}{
		{name: "as ordered", backend: &yes, answers: map[string]bool{"a:6446": true, "a:6447": true}, see: func(*view) {}},
		{name: "the address set, and one that is new in it answers", backend: &yes, see: func(v *view) {
			v.service.Addresses = k8sservice.AddressSet{ReadWrite: []string{"b:6446"}, ReadOnly: []string{"b:6447"}}
			v.state("b:6446").note(Verdict{OK: true})
		}, want: []item{{"addresses b:6446,b:6447", true}, {"answers b:6446", true}}},
		{name: "steady", backend: &yes, answers: map[string]bool{"a:6447": true}, see: func(v *view) {
			for range steadyAfter {
				v.state("a:6446").note(Verdict{OK: true})
			}
		}, want: []item{{"answers a:6446", true}, {"steady a:6446", true}}},
		{name: "the backend is down: what lies behind it is not told", backend: &yes, answers: map[string]bool{"a:6446": true, "a:6447": true},
			see: func(v *view) {
				for range silentAfter {
					v.backend.note(Verdict{})
					v.state("a:6446").note(Verdict{})
				}
			}, want: []item{{"backend false", false}}},
		{name: "the backend is back, and an address", backend: &no, see: func(v *view) {
			v.backend.note(Verdict{OK: true})
			v.state("a:6447").note(Verdict{OK: true})
		}, want: []item{{"backend true", false}, {"answers a:6447", true}}},
		{name: "the Service is deleted", backend: &yes, see: func(v *view) { v.service.Deleting = true },
			want: []item{{"service true uid true f", false}}},
		{name: "held: the order may be younger", backend: &yes, see: func(v *view) {
			v.held, v.service.Deleting, v.service.Addresses = true, true, k8sservice.AddressSet{}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			v := &view{}
			v.take(Order{Login: Login{Username: "u"}, Backend: []string{"db:3306"},
				Seen: Seen{Exists: true, UID: "uid", Fields: "f", Addresses: set, Backend: test.backend, Answers: test.answers}})
			test.see(v)
			require.Equal(t, test.want, v.difference())
		})
	}
}
