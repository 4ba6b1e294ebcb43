// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package probe

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/drawbridge-k8s/drawbridge/database"
	"github.com/drawbridge-k8s/drawbridge/k8sservice"
)

const (
	// silentAfter is how many sessions in a row must fail before an address
	// that answers counts as silent: one is an accident.
	silentAfter = 2
	// steadyAfter is how many in a row must work before an address that the
	// order has as silent is told once more, as steady.
	steadyAfter = 4
)

// state is what the watch knows of one address.
type state struct {
	ok      bool
	fails   int // in a row
	works   int // in a row
	refused bool
}

// note takes a verdict in.
func (s *state) note(v Verdict) {
	s.refused = v.MySQLCode == database.CodeAccessDenied || v.MySQLCode == database.CodeDatabaseAccessDenied
	if v.OK {
		s.ok, s.fails = true, 0
		s.works++
		return
	}
	s.works = 0
	if s.fails++; s.fails >= silentAfter {
		s.ok = false
	}
}

// view is what the watch sees: at first what its order says.
type view struct {
	order     Order
	service   Seen // without verdicts
	clusterIP []string
	addresses map[string]*state
	backend   *state // nil: not tried
	held      bool   // what we see of the Service may be older than the order
}

// take begins anew from an order: its verdicts are younger than ours. What we
// see of the Service stays; the caller has it read again if it differs.
func (v *view) take(o Order) {
	first := v.addresses == nil
	v.order = o
	if first {
		v.service = serviceOf(o.Seen)
	}
	v.addresses = map[string]*state{}
	for address, ok := range o.Seen.Answers {
		v.addresses[address] = &state{ok: ok}
	}
	v.backend = nil
	if o.Seen.Backend != nil {
		v.backend = &state{ok: *o.Seen.Backend}
	}
}

// serviceOf leaves the verdicts out.
func serviceOf(s Seen) Seen {
	s.Answers, s.Backend = nil, nil
	return s
}

func sameService(a, b Seen) bool {
	return a.Exists == b.Exists && a.UID == b.UID && a.Deleting == b.Deleting &&
		a.Fields == b.Fields && a.Addresses.Equal(b.Addresses)
}

// look is what the cluster shows.
type look struct {
	live     *corev1.Service
	nodes    []*corev1.Node // those of ready units, for a NodePort
	complete bool           // all that addresses depend on was read
}

// see takes the cluster in and reports whether the Service or the address set
// has changed. While pods or nodes cannot be read, the addresses are those of
// the order: only the rest of the Service is ours to see.
func (v *view) see(l look) (changed bool) {
	seen := Seen{
		Exists:    l.live != nil,
		Deleting:  k8sservice.ServiceTerminating(l.live),
		Fields:    k8sservice.Fingerprint(l.live),
		Addresses: v.order.Seen.Addresses,
	}
	if l.live != nil {
		seen.UID = string(l.live.UID)
	}
	if l.complete {
		seen.Addresses = k8sservice.Addresses(l.live, k8sservice.AddressOptions{
			Domain: v.order.Domain, ExternalHostname: v.order.ExternalHostname, Nodes: l.nodes,
		})
	}
	v.clusterIP = k8sservice.ClusterIPs(l.live).All()
	changed = !sameService(seen, v.service)
	v.service = seen
	v.forget()
	return changed
}

// forget drops what is known of addresses that are no longer tried.
func (v *view) forget() {
	targets := v.targets()
	for address := range v.addresses {
		if !slices.Contains(targets, address) {
			delete(v.addresses, address)
		}
	}
}

// targets returns the addresses to try.
func (v *view) targets() []string {
	if !v.canTry() {
		return nil
	}
	if v.order.NotVerifiable {
		return v.clusterIP
	}
	return v.service.Addresses.All()
}

// answers reports whether an address answers, or, where the
// order says that it cannot be tried, the cluster IP in its place; and whether
// it has done so for a while.
func (v *view) answers(address string) (ok, steady bool) {
	if !v.order.NotVerifiable {
		s := v.addresses[address]
		if s == nil { // not tried yet: as the order has it
			return v.order.Seen.Answers[address], false
		}
		return s.ok, s.ok && s.works >= steadyAfter
	}
	ok, steady = len(v.clusterIP) > 0, len(v.clusterIP) > 0
	for _, instead := range v.clusterIP {
		s := v.addresses[instead]
		if s == nil {
			return v.order.Seen.Answers[address], false
		}
		ok = ok && s.ok
		steady = steady && s.ok && s.works >= steadyAfter
	}
	return ok, steady
}

// doubtful reports whether something that answers has just failed once.
func (v *view) doubtful() bool {
	doubt := func(s *state) bool { return s != nil && s.ok && s.fails > 0 }
	for _, s := range v.addresses {
		if doubt(s) {
			return true
		}
	}
	return doubt(v.backend)
}

// refused reports whether the backend refuses the credentials.
func (v *view) refused() bool {
	if v.backend != nil && v.backend.refused {
		return true
	}
	for _, s := range v.addresses {
		if s.refused {
			return true
		}
	}
	return false
}

// pending reports whether to look more often than when all is well: the order
// says so, something differs from it, or nothing answers.
func (v *view) pending(items []item) bool {
	if v.order.Pending || len(items) > 0 || v.doubtful() {
		return true
	}
	if v.targets() == nil {
		return false
	}
	return !slices.ContainsFunc(v.service.Addresses.All(), func(address string) bool {
		ok, _ := v.answers(address)
		return ok
	})
}

// difference returns in what the view is not what the order says, in a stable
// order.
func (v *view) difference() []item {
	var items []item
	want, got := v.order.Seen, v.service
	if v.held {
		got = serviceOf(want)
	}
	if !got.Addresses.Equal(want.Addresses) {
		items = append(items, item{key: "addresses " + strings.Join(got.Addresses.All(), ","), fast: true})
	}
	got.Addresses = want.Addresses
	if !sameService(want, got) {
		items = append(items, item{key: fmt.Sprintf("service %t %s %t %s", got.Exists, got.UID, got.Deleting, got.Fields)})
	}
	if !v.canTry() {
		return items
	}
	if v.backend != nil && (want.Backend == nil || v.backend.ok != *want.Backend) {
		items = append(items, item{key: fmt.Sprintf("backend %t", v.backend.ok)})
	}
	if v.backend != nil && !v.backend.ok {
		return items // what lies behind it cannot be told
	}
	for _, address := range v.service.Addresses.All() {
		ok, steady := v.answers(address)
		switch {
		case ok == want.Answers[address]:
		case !ok:
			items = append(items, item{key: "silent " + address})
		default:
			items = append(items, item{key: "answers " + address, fast: true})
			if steady {
				items = append(items, item{key: "steady " + address, fast: true})
			}
		}
	}
	return items
}
