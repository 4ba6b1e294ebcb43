// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package network

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// LBClass is the spec.loadBalancerClass that the load balancer serves besides Services without a class, unless
// LBSettings.Class says otherwise.
const LBClass = "jujulet.internal/lb"

// PoolAnnotation is what the kind "metallb" sets on a Service that it has given an address, as MetalLB does.
const PoolAnnotation = "metallb.io/ip-allocated-from-pool"

// LoadBalancer gives addresses to Services of type LoadBalancer. Its methods may be called concurrently.
type LoadBalancer struct {
	api  API
	plan Plan
	now  func() time.Time
	log  *slog.Logger
	poke func()

	mu       sync.Mutex
	settings LBSettings
	entries  map[key]*lbEntry
	events   int
}

// lbEntry is what the load balancer knows of one Service.
type lbEntry struct {
	uid       types.UID
	kind      LBKind
	requested time.Time
	address   netip.Addr // the zero value: none assigned
	hostname  string
	assigned  time.Time
	answers   time.Time // from when the address answers
	resolves  time.Time // from when the host name resolves
	old       []oldAddress
	written   bool // the status has been ours
	broken    bool // by Break
	vanished  bool // by Vanish
	warned    bool // about the exhausted pool
}

// oldAddress is one that a Service has moved away from.
type oldAddress struct {
	address netip.Addr
	until   time.Time
}

// newLoadBalancer checks the settings.
func newLoadBalancer(o Options, poke func()) (*LoadBalancer, error) {
	l := &LoadBalancer{api: o.API, plan: o.Plan, now: o.Clock, log: o.Logger, poke: poke, entries: map[key]*lbEntry{}}
	return l, l.SetSettings(o.LB)
}

// Settings returns the settings, defaults filled in.
func (l *LoadBalancer) Settings() LBSettings {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.settings
	s.Pool = slices.Clone(s.Pool)
	return s
}

// SetSettings replaces the settings. Addresses that are assigned stay; delays count for what is assigned from now on.
func (l *LoadBalancer) SetSettings(s LBSettings) error {
	switch s.Kind {
	case "":
		s.Kind = LBVIP
	case LBVIP, LBProxy, LBHostname, LBMetalLB:
	default:
		return fmt.Errorf("cannot set load balancer: kind %q is not one of vip, proxy, hostname, metallb", s.Kind)
	}
	for name, d := range map[string]time.Duration{"assign": s.AssignDelay, "answer": s.AnswerDelay, "DNS": s.DNSDelay} {
		if d < 0 {
			return fmt.Errorf("cannot set load balancer: %s delay %s is negative", name, d)
		}
	}
	if s.Pool == nil {
		s.Pool = DefaultPool()
	}
	for _, a := range s.Pool {
		if !l.plan.LBRange.Contains(a) {
			return fmt.Errorf("cannot set load balancer: pool address %s is not in %s", a, l.plan.LBRange)
		}
	}
	if s.Class == "" {
		s.Class = LBClass
	}
	l.mu.Lock()
	l.settings = s
	for _, e := range l.entries {
		e.warned = false
	}
	l.mu.Unlock()
	l.poke()
	return nil
}

// Assignment describes what one Service has got.
type Assignment struct {
	Namespace string     `json:"namespace"`
	Service   string     `json:"service"`
	Kind      LBKind     `json:"kind"`
	Address   netip.Addr `json:"address"`
	Hostname  string     `json:"hostname,omitempty"`
	Requested time.Time  `json:"requested"`
	Assigned  time.Time  `json:"assigned,omitzero"`
	Answers   bool       `json:"answers"`
}

// Assignments returns all Services of the load balancer, sorted; those that wait for an address have the zero
// Address.
func (l *LoadBalancer) Assignments() []Assignment {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []Assignment
	for _, k := range l.keys() {
		e := l.entries[k]
		all = append(all, Assignment{
			Namespace: k.namespace, Service: k.name, Kind: e.kind, Address: e.address, Hostname: e.hostname,
			Requested: e.requested, Assigned: e.assigned, Answers: l.answering(e),
		})
	}
	return all
}

// MoveOptions say how an address moves.
type MoveOptions struct {
	// To is the new address; the zero value means the next free one of the pool.
	To netip.Addr
	// KeepOld is how long the old address still answers.
	KeepOld time.Duration
}

// errNoAddress says that a Service has none.
var errNoAddress = errors.New("it has no address of the load balancer")

// Move gives a Service another address. The new one is in the status at once and answers after AnswerDelay. The host name of
// kind hostname stays and resolves to the new address.
func (l *LoadBalancer) Move(namespace, name string, o MoveOptions) (netip.Addr, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[key{namespace, name}]
	if e == nil || !e.address.IsValid() {
		return netip.Addr{}, fmt.Errorf("cannot move address of Service %s: %w", name, errNoAddress)
	}
	to := o.To
	if !to.IsValid() {
		var ok bool
		if to, ok = l.free(); !ok {
			return netip.Addr{}, fmt.Errorf("cannot move address of Service %s: no address of the pool is free", name)
		}
	} else if !l.plan.LBRange.Contains(to) || l.used(to) {
		return netip.Addr{}, fmt.Errorf("cannot move address of Service %s: %s is in use or not in %s", name, to, l.plan.LBRange)
	}
	now := l.now()
	if o.KeepOld > 0 {
		e.old = append(e.old, oldAddress{e.address, now.Add(o.KeepOld)})
	}
	e.address, e.assigned, e.answers = to, now, now.Add(l.settings.AnswerDelay)
	l.poke()
	return to, nil
}

// Break keeps the address of one Service from answering, or lets it answer again.
func (l *LoadBalancer) Break(namespace, name string, broken bool) error {
	return l.change(namespace, name, "break", func(e *lbEntry) { e.broken = broken })
}

// Vanish takes the address of a Service away, status included. It gets none until Restore.
func (l *LoadBalancer) Vanish(namespace, name string) error {
	return l.change(namespace, name, "take away", func(e *lbEntry) {
		e.vanished, e.address, e.hostname, e.assigned, e.old = true, netip.Addr{}, "", time.Time{}, nil
	})
}

// Restore lets a Service have an address again, AssignDelay from now.
func (l *LoadBalancer) Restore(namespace, name string) error {
	return l.change(namespace, name, "restore", func(e *lbEntry) {
		if e.vanished {
			e.vanished, e.requested = false, l.now()
		}
	})
}

// change changes the entry of a Service.
func (l *LoadBalancer) change(namespace, name, verb string, f func(*lbEntry)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[key{namespace, name}]
	if e == nil {
		return fmt.Errorf("cannot %s address of Service %s: it is no Service of the load balancer", verb, name)
	}
	f(e)
	l.poke()
	return nil
}

// keys returns the sorted keys of all entries.
func (l *LoadBalancer) keys() []key {
	all := make([]key, 0, len(l.entries))
	for k := range l.entries {
		all = append(all, k)
	}
	slices.SortFunc(all, key.compare)
	return all
}

// used tells whether an address is assigned.
func (l *LoadBalancer) used(a netip.Addr) bool {
	for _, e := range l.entries {
		if e.address == a || slices.ContainsFunc(e.old, func(o oldAddress) bool { return o.address == a }) {
			return true
		}
	}
	return false
}

// free returns the first free address of the pool.
func (l *LoadBalancer) free() (netip.Addr, bool) {
	for _, a := range l.settings.Pool {
		if !l.used(a) {
			return a, true
		}
	}
	return netip.Addr{}, false
}
