// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package charm

import (
	"context"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/drawbridge-k8s/drawbridge/k8sservice"
	"github.com/drawbridge-k8s/drawbridge/probe"
	"github.com/drawbridge-k8s/drawbridge/relation"
)

// sight is what the pass saw of the addresses.
type sight struct {
	set    k8sservice.AddressSet
	listed []relation.Address
	// direct is the verdict of the direct session to the backend, nil when none was opened.
	direct *probe.Verdict
	// verdicts are those of single host:port pairs.
	verdicts map[string]probe.Verdict
	answered map[relation.Address]bool
	// unverifiable says that the address cannot be tried from inside; it counts once the cluster IP answers.
	unverifiable bool
	exposure     relation.Exposure
	observation  relation.Observation
}

// Bounds on the second look at a verified address before it is dropped.
const (
	recheckTimes = 4
	recheckEvery = 500 * time.Millisecond
)

// expose is step C: it lists the addresses, probes them, decides, and publishes.
func (p *pass) expose(ctx context.Context) error {
	p.look(ctx)
	v := &p.seen
	v.exposure = v.observation.Decide()
	p.row = v.exposure.Row
	p.peer = v.exposure.Peer
	if v.exposure.Silent != nil {
		p.state.Silent = v.exposure.Silent
	}
	if len(p.state.Silent) == 0 {
		p.state.Silent = nil
	}
	p.settleDeferral(v.exposure.Deferred || v.exposure.Row == relation.RowIncomplete && p.state.Deferred != nil)
	p.exposureDeadlines()
	if err := p.serveClients(ctx); err != nil {
		return err
	}
	p.describeExposure()
	return nil
}

// look lists and probes the addresses and leaves the observation to decide on.
func (p *pass) look(ctx context.Context) {
	v := &p.seen
	if p.backend.state != relation.BackendGone && p.spent(ctx) {
		p.service.lost = true // nothing new is started; the next hook looks
		p.waiting("the cluster or the backend answers slowly; going on in the next hook")
	} else if p.backend.state != relation.BackendGone {
		if p.backend.state == relation.BackendReady {
			p.direct(ctx)
		}
		p.list()
	}
	o := &v.observation
	*o = relation.Observation{
		Backend: p.backend.state, Peer: p.peer, Hash: p.service.hash, Listed: v.listed, Silent: p.state.Silent,
		InClients: p.inClients(), Now: p.now,
	}
	if p.service.lost && o.Backend == relation.BackendReady {
		o.Backend = relation.BackendIncomplete
	}
	if !o.Probes() {
		return
	}
	p.probeListed(ctx)
	o.Answered = v.answered
	p.recheck(ctx)
}

// direct opens a session to the backend itself, which tells "backend down" from "front door down".
func (p *pass) direct(ctx context.Context) {
	session, endpoints := p.sparing(ctx, p.o.Session(p.backend.credentials())), p.backend.data.Endpoints
	verdict := p.o.check(p.ext, session, endpoints[:1], probe.Budget)[0]
	if !verdict.OK && len(endpoints) > 1 && !p.spent(ctx) {
		for _, other := range p.o.check(p.ext, session, endpoints[1:], probe.Budget) {
			if other.OK {
				verdict = other
				break
			}
		}
	}
	p.seen.direct = &verdict
	p.state.Stalled = verdict.TimedOut
	if !verdict.OK {
		p.backend.state = relation.BackendIncomplete
		p.backend.missing = "a session: " + shortReason(verdict)
		p.state.Sweep = true // it may come back without its data
	}
}

// sparing leaves out what a watch knows to hang, once a direct session was not answered in time: the watch brings its own
// logins there to an end, while each that a hook gives up counts as a connect error, and some hours of hooks would lock the
// host out. It costs a settled hook nothing.
func (p *pass) sparing(ctx context.Context, session probe.Session) probe.Session {
	if !p.state.Stalled || p.o.NoWatch {
		return session
	}
	hanging := p.o.newWatch(p.event).Hanging(ctx)
	return func(ctx context.Context, address string) error {
		if slices.Contains(hanging, address) {
			return probe.ErrHangs
		}
		return session(ctx, address)
	}
}

// list finds the addresses that Kubernetes reports, by the live Service's own type.
func (p *pass) list() {
	s := &p.service
	if s.live == nil || s.lost {
		return
	}
	if invalid(p.configErrs, optExternalHostname) {
		s.lost = true // what is published hangs on it
		return
	}
	options := k8sservice.AddressOptions{
		Domain:           k8sservice.ClusterDomain(p.c.readRoot("etc/resolv.conf"), s.namespace),
		ExternalHostname: p.config.ExternalHostname,
	}
	if s.live.Spec.Type == corev1.ServiceTypeNodePort {
		nodes, err := p.nodes()
		if err != nil {
			s.lost = true
			p.refused(err, "read the nodes")
			return
		}
		options.Nodes = nodes
	}
	p.seen.set = k8sservice.Addresses(s.live, options)
	p.seen.listed = relation.PairAddresses(p.seen.set.ReadWrite, p.seen.set.ReadOnly)
}

// nodes reads the nodes that ready units run on.
func (p *pass) nodes() ([]*corev1.Node, error) {
	kube := p.service.kube
	pods, err := onceMore(func() ([]corev1.Pod, error) { return kube.Pods(p.ext, p.event.App) })
	if err != nil {
		return nil, err
	}
	var nodes []*corev1.Node
	for _, name := range k8sservice.ReadyNodes(pods) {
		node, err := onceMore(func() (*corev1.Node, error) { return kube.Node(p.ext, name) })
		if err != nil {
			return nil, err
		}
		if node != nil {
			nodes = append(nodes, node)
		}
	}
	return nodes, nil
}

// probeListed opens sessions through every listed address, on both ports, or through the cluster IP where the address
// cannot be tried from inside.
func (p *pass) probeListed(ctx context.Context) {
	v := &p.seen
	v.answered = map[relation.Address]bool{}
	v.unverifiable = p.config.ProbeNone || p.outsideRanges(ctx)
	session := p.o.Session(p.backend.credentials())
	if v.unverifiable {
		inside := k8sservice.ClusterIPs(p.service.live)
		pairs := relation.PairAddresses(inside.ReadWrite, inside.ReadOnly)
		p.try(session, pairs, probe.Budget)
		answers := slices.ContainsFunc(pairs, p.answers)
		for _, address := range v.listed {
			v.answered[address] = answers
		}
		return
	}
	p.try(session, v.listed, probe.Budget)
	for _, address := range v.listed {
		v.answered[address] = p.answers(address)
	}
}

// try probes both ports of every address under one deadline and keeps the verdicts.
func (p *pass) try(session probe.Session, addresses []relation.Address, budget time.Duration) {
	readWrite, readOnly := relation.SplitAddresses(addresses)
	if p.seen.verdicts == nil {
		p.seen.verdicts = map[string]probe.Verdict{}
	}
	for _, verdict := range p.o.check(p.ext, session, append(readWrite, readOnly...), budget) {
		p.seen.verdicts[verdict.Address] = verdict
	}
}

// answers reports whether both ports of an address answered.
func (p *pass) answers(address relation.Address) bool {
	return p.seen.verdicts[address.ReadWrite].OK && p.seen.verdicts[address.ReadOnly].OK
}

// recheck probes again, a few times, what is about to be dropped for its silence.
func (p *pass) recheck(ctx context.Context) {
	o := &p.seen.observation
	suspects := o.Suspects()
	if len(suspects) == 0 || p.seen.unverifiable || p.spent(ctx) {
		return
	}
	session := p.o.Session(p.backend.credentials())
	for range recheckTimes {
		if len(suspects) == 0 {
			break
		}
		started := time.Now()
		p.try(session, suspects, recheckEvery)
		suspects = slices.DeleteFunc(suspects, func(address relation.Address) bool {
			p.seen.answered[address] = p.answers(address)
			return p.seen.answered[address]
		})
		if rest := recheckEvery - time.Since(started); rest > 0 && len(suspects) > 0 {
			p.o.pause(p.ext, rest)
		}
	}
	o.Rechecked = map[relation.Address]bool{}
	for _, address := range suspects {
		o.Rechecked[address] = true
	}
}

// outsideRanges reports whether the load balancer lets this pod not in: its address is in none of the source ranges.
func (p *pass) outsideRanges(ctx context.Context) bool {
	spec := p.service.live.Spec
	if spec.Type != corev1.ServiceTypeLoadBalancer || len(spec.LoadBalancerSourceRanges) == 0 {
		return false
	}
	own, _, err := p.tools.NetworkGet(ctx, endpointPeers)
	if err != nil {
		return false
	}
	address, err := netip.ParseAddr(own)
	if err != nil {
		return false
	}
	for _, text := range spec.LoadBalancerSourceRanges {
		if prefix, err := netip.ParsePrefix(text); err == nil && prefix.Contains(address.Unmap()) {
			return false
		}
	}
	return true
}

// exposureDeadlines are the moments at which something becomes due though nothing may happen until then.
func (p *pass) exposureDeadlines() {
	v := &p.seen
	switch v.exposure.Row {
	case relation.RowNoAddress, relation.RowPending:
		p.wakeLater(p.peer.PendingSince.Add(p.config.PendingTimeout))
	case relation.RowSilent:
		p.wakeLater(p.silentSince().Add(p.config.PendingTimeout))
	case relation.RowAnswers:
		for _, address := range p.peer.Verified {
			if since, silent := p.state.Silent[address.String()]; silent {
				p.wakeAt(since.Add(relation.DropAfter))
			}
		}
	}
}

// wakeLater is wakeAt for a moment that only matters once: when it has not passed.
func (p *pass) wakeLater(at time.Time) {
	if at.After(p.now) {
		p.wakeAt(at)
	}
}

// silentSince is the moment from which no verified address has answered.
func (p *pass) silentSince() time.Time {
	var last time.Time
	for _, address := range p.peer.Verified {
		if since, silent := p.state.Silent[address.String()]; silent && since.After(last) {
			last = since
		}
	}
	return last
}
