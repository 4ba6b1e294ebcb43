// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package network

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// serves tells whether a Service wants an address from this load balancer.
func (l *LoadBalancer) serves(s *corev1.Service) bool {
	if s.Spec.Type != corev1.ServiceTypeLoadBalancer || s.DeletionTimestamp != nil {
		return false
	}
	return s.Spec.LoadBalancerClass == nil || *s.Spec.LoadBalancerClass == l.settings.Class
}

// answering tells whether an entry's address takes connections.
func (l *LoadBalancer) answering(e *lbEntry) bool {
	return e.address.IsValid() && e.written && !e.broken && !l.settings.Break && !l.now().Before(e.answers)
}

// frontends returns the addresses that take connections.
func (l *LoadBalancer) frontends() map[key][]netip.Addr {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := map[key][]netip.Addr{}
	for k, e := range l.entries {
		if l.answering(e) {
			all[k] = append(all[k], e.address)
		}
		for _, o := range e.old {
			if !e.broken && !l.settings.Break {
				all[k] = append(all[k], o.address)
			}
		}
	}
	return all
}

// names returns the host names that resolve.
func (l *LoadBalancer) names() map[string][]netip.Addr {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := map[string][]netip.Addr{}
	for _, e := range l.entries {
		if e.hostname != "" && e.address.IsValid() && !l.now().Before(e.resolves) {
			all[e.hostname] = []netip.Addr{e.address}
		}
	}
	return all
}

// sync brings addresses and statuses in step with the Services. It returns when it wants to be called again at the
// latest; 0 means at a change only.
func (l *LoadBalancer) sync(ctx context.Context, services []corev1.Service) (time.Duration, error) {
	l.mu.Lock()
	present := map[key]bool{}
	for i := range services {
		present[keyOf(&services[i])] = l.serves(&services[i])
	}
	for k := range l.entries {
		if !present[k] {
			delete(l.entries, k)
		}
	}
	var writes []write
	for i := range services {
		if !present[keyOf(&services[i])] {
			continue
		}
		if w := l.decide(&services[i]); w != (write{}) {
			writes = append(writes, w)
		}
	}
	l.mu.Unlock()
	var errs []error
	for _, w := range writes {
		errs = append(errs, l.write(ctx, w))
	}
	return l.next(), errors.Join(errs...)
}

// write is what has to be told to the API about one Service.
type write struct {
	service *corev1.Service
	entry   *lbEntry
	status  bool
	pool    bool // the annotation is missing
	event   string
}

// decide brings the entry of one Service up to date and returns what has to be written.
func (l *LoadBalancer) decide(s *corev1.Service) write {
	k, now := keyOf(s), l.now()
	e := l.entries[k]
	if e != nil && (e.uid != s.UID || e.written && e.address.IsValid() && len(s.Status.LoadBalancer.Ingress) == 0) {
		// Another Service of that name, or the same after it was of another type for a moment.
		delete(l.entries, k)
		e = nil
	}
	if e == nil {
		e = &lbEntry{uid: s.UID, kind: l.settings.Kind, requested: now}
		l.entries[k] = e
		l.adopt(e, s)
	}
	e.old = slices.DeleteFunc(e.old, func(o oldAddress) bool { return !now.Before(o.until) })
	w := write{service: s, entry: e}
	if !e.address.IsValid() && !e.vanished && !l.settings.Hold && !now.Before(e.requested.Add(l.settings.AssignDelay)) {
		if !l.assign(e, s) && !e.warned {
			e.warned = true
			w.event = fmt.Sprintf("Failed to allocate IP for %q: no available IPs", k.namespace+"/"+k.name)
		}
	}
	w.status = !equality.Semantic.DeepEqual(e.ingress(), s.Status.LoadBalancer.Ingress) && (e.address.IsValid() || e.written)
	w.pool = e.kind == LBMetalLB && e.address.IsValid() && s.Annotations[PoolAnnotation] == ""
	if !w.status && !w.pool && w.event == "" {
		return write{}
	}
	return w
}

// adopt takes over the address that a Service has from an earlier life of the load balancer. It answers at once.
func (l *LoadBalancer) adopt(e *lbEntry, s *corev1.Service) {
	for _, in := range s.Status.LoadBalancer.Ingress {
		a, err := netip.ParseAddr(in.IP)
		switch {
		case in.Hostname == hostname(s):
			if a, ok := l.free(); ok {
				e.kind, e.address, e.hostname = LBHostname, a, in.Hostname
			}
		case err == nil && l.plan.LBRange.Contains(a) && !l.used(a):
			e.kind, e.address = LBVIP, a
			if in.IPMode != nil && *in.IPMode == corev1.LoadBalancerIPModeProxy {
				e.kind = LBProxy
			} else if s.Annotations[PoolAnnotation] != "" {
				e.kind = LBMetalLB
			}
		default:
			continue
		}
		e.written, e.assigned = true, l.now()
		return
	}
	e.written = len(s.Status.LoadBalancer.Ingress) > 0 // what is not ours is replaced
}

// assign gives an address of the pool.
func (l *LoadBalancer) assign(e *lbEntry, s *corev1.Service) bool {
	a, ok := l.free()
	if !ok {
		return false
	}
	now := l.now()
	e.kind, e.address, e.assigned, e.warned = l.settings.Kind, a, now, false
	e.answers, e.resolves, e.hostname = now.Add(l.settings.AnswerDelay), now.Add(l.settings.DNSDelay), ""
	if e.kind == LBHostname {
		e.hostname = hostname(s)
	}
	return true
}

// hostname is the name that kind hostname gives to a Service; the same one for all its life.
func hostname(s *corev1.Service) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(s.UID))
	name := s.Name
	if len(name) > 40 {
		name = name[:40]
	}
	return fmt.Sprintf("%s-%08x.%s", name, h.Sum32(), LBDomain)
}

// ingress is the status that an entry stands for.
func (e *lbEntry) ingress() []corev1.LoadBalancerIngress {
	mode := corev1.LoadBalancerIPModeVIP
	switch {
	case !e.address.IsValid():
		return nil
	case e.hostname != "":
		return []corev1.LoadBalancerIngress{{Hostname: e.hostname}}
	case e.kind == LBProxy:
		mode = corev1.LoadBalancerIPModeProxy
	}
	return []corev1.LoadBalancerIngress{{IP: e.address.String(), IPMode: &mode}}
}

// write tells the API.
func (l *LoadBalancer) write(ctx context.Context, w write) error {
	if w.event != "" {
		if err := l.api.CreateEvent(ctx, l.warning(w.service, w.event)); err != nil {
			return fmt.Errorf("cannot record an event of Service %s: %w", w.service.Name, err)
		}
	}
	if w.status {
		l.mu.Lock()
		s := w.service.DeepCopy()
		s.Status.LoadBalancer.Ingress = w.entry.ingress()
		l.mu.Unlock()
		if err := l.api.UpdateServiceStatus(ctx, s); err != nil {
			return fmt.Errorf("cannot write status of Service %s: %w", s.Name, err)
		}
		l.mu.Lock()
		w.entry.written = true
		l.mu.Unlock()
	}
	if w.pool {
		annotations := map[string]string{PoolAnnotation: "jujulet"}
		if err := l.api.AnnotateService(ctx, w.service.Namespace, w.service.Name, annotations); err != nil {
			return fmt.Errorf("cannot annotate Service %s: %w", w.service.Name, err)
		}
	}
	return nil
}

// warning makes an event of a Service.
func (l *LoadBalancer) warning(s *corev1.Service, message string) *corev1.Event {
	now := metav1.NewTime(l.now())
	l.mu.Lock()
	l.events++
	name := fmt.Sprintf("%s.%x%04x", s.Name, now.UnixNano(), l.events)
	l.mu.Unlock()
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "v1", Kind: "Service", Namespace: s.Namespace, Name: s.Name, UID: s.UID, ResourceVersion: s.ResourceVersion,
		},
		Type: corev1.EventTypeWarning, Reason: "AllocationFailed", Message: message,
		FirstTimestamp: now, LastTimestamp: now, Count: 1, Source: corev1.EventSource{Component: "jujulet-load-balancer"},
	}
}

// next returns the time until the next thing that is due by itself.
func (l *LoadBalancer) next() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	var next time.Duration
	due := func(t time.Time) {
		if d := t.Sub(now); d > 0 && (next == 0 || d < next) {
			next = d
		}
	}
	for _, e := range l.entries {
		if !e.address.IsValid() && !e.vanished && !l.settings.Hold {
			due(e.requested.Add(l.settings.AssignDelay))
		}
		due(e.answers)
		due(e.resolves)
		for _, o := range e.old {
			due(o.until)
		}
	}
	return next
}
