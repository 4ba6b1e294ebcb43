// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package network

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
