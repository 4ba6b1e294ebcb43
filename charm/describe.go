// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package charm

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/drawbridge-k8s/drawbridge/database"
	"github.com/drawbridge-k8s/drawbridge/k8sservice"
	"github.com/drawbridge-k8s/drawbridge/probe"
	"github.com/drawbridge-k8s/drawbridge/relation"
)

// describeConfig records what is wrong with the configuration.
func (p *pass) describeConfig() {
	for _, err := range p.configErrs {
		p.blocked("%v", err)
	}
}

// describeExposure records why the exposure is as it is.
func (p *pass) describeExposure() {
	switch p.row {
	case relation.RowGone:
		p.missingBackend()
	case relation.RowIncomplete:
		p.describeIncomplete()
	case relation.RowNoAddress:
		p.describeNoAddress()
	case relation.RowPending:
		p.late(p.peer.PendingSince, "%s does not answer yet (%s); waiting since %s", p.place(), p.why(), stamp(p.peer.PendingSince))
	case relation.RowSilent:
		since := p.silentSince()
		p.late(since, "%s has not answered since %s (%s); clients keep it", p.place(), stamp(since), p.why())
	case relation.RowAnswers:
		p.describeAnswers()
	}
}

// late records a cause that becomes one for a person after pending-timeout, or at once where waiting cannot help.
func (p *pass) late(since time.Time, format string, args ...any) {
	if p.gatewayBlocked() || !p.now.Before(since.Add(p.config.PendingTimeout)) {
		p.blocked(format, args...)
		return
	}
	p.waiting(format, args...)
}

// describeIncomplete says what the backend, or the reading of Kubernetes, lacks.
func (p *pass) describeIncomplete() {
	b := p.backend
	switch {
	case b.state == relation.BackendUnknown:
		p.waiting("waiting for Juju to show the relation %s", endpointBackend)
	case b.state == relation.BackendReady:
		// Kubernetes could not be read; that cause is there already.
	case p.seen.direct != nil && p.seen.direct.MySQLCode == database.CodeHostBlocked:
		p.blocked("the backend %s has blocked this unit's host (error 1129): run FLUSH HOSTS on it", b.app)
	case b.missing == "":
		p.waiting("waiting for %s on %s", b.app, endpointBackend)
	default:
		p.waiting("waiting for %s on %s: %s", b.app, endpointBackend, b.missing)
	}
}

// describeNoAddress says that there is no address yet, and why, as far as Kubernetes knows.
func (p *pass) describeNoAddress() {
	s := &p.service
	kind := "Kubernetes"
	if s.live != nil {
		kind = string(s.live.Spec.Type)
	}
	if s.applied && s.live.Spec.Type == corev1.ServiceTypeLoadBalancer {
		p.maintenance("requested a LoadBalancer Service; waiting for its address")
		return
	}
	reason := ""
	if s.live != nil && s.kube != nil {
		if events, err := s.kube.Events(p.ext, s.live.Name, string(s.live.UID)); err == nil {
			reason = k8sservice.PendingReason(events)
		}
	}
	if reason != "" {
		reason = ": " + reason
	}
	switch {
	case k8sservice.ServiceTerminating(s.live):
		return // said already
	case s.live == nil:
		p.late(p.peer.PendingSince, "waiting for the Service %s since %s", p.serviceName(), stamp(p.peer.PendingSince))
	default:
		p.late(p.peer.PendingSince, "no address yet for the %s Service %s, since %s%s", kind, s.live.Name,
			stamp(p.peer.PendingSince), reason)
	}
}

// describeAnswers is the text of a settled exposure.
func (p *pass) describeAnswers() {
	verified := p.peer.Verified
	p.active = p.placeOf(verified)
	switch {
	case p.seen.unverifiable:
		p.active += ", not verifiable from inside"
	case p.service.live.Spec.Type != corev1.ServiceTypeClusterIP && !p.passesBalancer():
		p.active += ", answers from inside the cluster"
	default:
		p.active += ", answers"
	}
	var silent []relation.Address
	for _, address := range p.seen.listed {
		if !p.seen.answered[address] {
			silent = append(silent, address)
		}
	}
	if len(silent) > 0 {
		p.note("silent: %s", strings.Join(hostsOf(silent), ", "))
	}
	if len(p.clients) == 0 {
		p.note("no client related")
	}
	for _, c := range p.clients {
		switch {
		case c.elsewhere && p.service.live.Spec.Type == corev1.ServiceTypeClusterIP:
			p.note("%s is in another model and cannot resolve names of this cluster", c.id)
		case !c.Request.Asked() && c.RequestErr == nil && !relation.HoldsCredentials(c.Own):
			p.note("%s has not asked for a database yet", c.id)
		}
	}
}

// note adds to the text of a settled exposure.
func (p *pass) note(format string, args ...any) {
	p.notes = append(p.notes, fmt.Sprintf(format, args...))
}

// passesBalancer reports whether a probe from a pod really passes the load balancer: kube-proxy answers pods itself where
// the balancer has an IP, unless that is in mode Proxy.
func (p *pass) passesBalancer() bool {
	if p.service.live.Spec.Type != corev1.ServiceTypeLoadBalancer {
		return false
	}
	for _, ingress := range p.service.live.Status.LoadBalancer.Ingress {
		if ingress.IP != "" && (ingress.IPMode == nil || *ingress.IPMode != corev1.LoadBalancerIPModeProxy) {
			return false
		}
	}
	return true
}

// place names the address set as listed.
func (p *pass) place() string { return p.placeOf(p.seen.listed) }

// placeOf names addresses with the mode of the live Service.
func (p *pass) placeOf(addresses []relation.Address) string {
	mode := "in-cluster"
	switch p.service.live.Spec.Type {
	case corev1.ServiceTypeLoadBalancer:
		mode = string(k8sservice.LoadBalancer)
	case corev1.ServiceTypeNodePort:
		mode = string(k8sservice.NodePort)
	}
	return mode + " " + strings.Join(hostsOf(addresses), ", ")
}

// gatewayBlocked reports whether the backend lets a gateway in no more: it counts connect errors by host, and for all that
// come through a gateway that host is the gateway.
func (p *pass) gatewayBlocked() bool {
	for _, verdict := range p.seen.verdicts {
		if verdict.MySQLCode == database.CodeHostBlocked {
			return true
		}
	}
	return false
}

// why is the reason of the first address that does not answer.
func (p *pass) why() string {
	if p.gatewayBlocked() {
		return "the backend has blocked the gateway, error 1129: run FLUSH HOSTS on it"
	}
	for _, address := range p.seen.listed {
		for _, endpoint := range []string{address.ReadWrite, address.ReadOnly} {
			if verdict, ok := p.seen.verdicts[endpoint]; ok && !verdict.OK {
				return shortReason(verdict)
			}
		}
	}
	return "its cluster IP does not answer"
}

// shortReason is why an address does not answer, without what the status says already.
func shortReason(verdict probe.Verdict) string {
	reason := strings.TrimPrefix(verdict.Reason, "cannot open a session at "+verdict.Address+": ")
	return strings.TrimPrefix(reason, "dial tcp "+verdict.Address+": connect: ")
}

// hostsOf returns the hosts of addresses for people: without the dot that ends an absolute name.
func hostsOf(addresses []relation.Address) []string {
	hosts := make([]string, len(addresses))
	for i, address := range addresses {
		hosts[i] = strings.TrimSuffix(address.Host(), ".")
	}
	return hosts
}
