// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package charm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/drawbridge-k8s/drawbridge/k8sservice"
	"github.com/drawbridge-k8s/drawbridge/relation"
)

// serviceView is what was seen and done of the Service.
type serviceView struct {
	kube      cluster
	kubeErr   error
	namespace string

	reading *reading
	live    *corev1.Service
	drift   []k8sservice.Difference
	hash    string
	step    relation.ServiceStep
	applied bool
	// lost says that something of Kubernetes that the exposure needs could not be read.
	lost bool
}

// podName is the name of a unit's pod.
func podName(unit string) string { return strings.ReplaceAll(unit, "/", "-") }

// ensureService is step B: it reads the Service once and applies it if it differs in what is ours.
func (p *pass) ensureService(ctx context.Context) {
	s := &p.service
	live, err := p.readService()
	s.live = live
	kube, namespace, _ := p.kube()
	view := relation.ServiceView{Unread: err != nil, Planned: p.planned, Invalid: len(p.configErrs) > 0}
	if err == nil {
		desired := p.desired(namespace)
		if !view.Invalid {
			s.hash = desired.Hash()
		}
		s.drift = k8sservice.Drift(s.live, desired)
		view.Terminating = k8sservice.ServiceTerminating(s.live)
		view.Differs = len(s.drift) > 0
		view.Remembered = p.state.Altered != nil && *p.state.Altered == alterationOf(s.hash, s.drift)
	}
	s.step = relation.DecideService(view)
	switch s.step {
	case relation.ServiceUnread:
		s.lost = true
		p.refused(err, "read the Service")
	case relation.ServiceTerminating:
		p.waiting("waiting for the Service %s, which is being deleted, to go", p.serviceName())
	case relation.ServiceApply:
		p.apply(ctx, kube, namespace)
	case relation.ServiceAltered:
		p.describeAltered()
	case relation.ServiceAsDesired:
		p.state.Altered = nil
	}
}

// reading is a Service that is being read.
type reading struct {
	done chan struct{}
	live *corev1.Service
	err  error
}

// startReading begins to read the Service: the pass goes on with Juju meanwhile. readService or close waits for it.
func (p *pass) startReading() {
	r := &reading{done: make(chan struct{})}
	p.service.reading = r
	kube, _, err := p.kube()
	if err != nil {
		r.err = err
		close(r.done)
		return
	}
	go func() {
		defer close(r.done)
		r.live, r.err = onceMore(func() (*corev1.Service, error) { return kube.Service(p.ext, p.serviceName()) })
	}()
}

// readService returns the Service, read once in a pass.
func (p *pass) readService() (*corev1.Service, error) {
	r := p.service.reading
	<-r.done
	return r.live, r.err
}

// apply makes the live Service the desired one. A refusal leaves the pass with the live object.
func (p *pass) apply(ctx context.Context, kube cluster, namespace string) {
	s := &p.service
	if p.dry || p.spent(ctx) {
		return
	}
	pod, err := onceMore(func() (*corev1.Pod, error) { return kube.Pod(p.ext, podName(p.event.Unit)) })
	if err != nil {
		p.refused(err, "read the own pod")
		return
	}
	owner, ok := k8sservice.OwnerOf(pod)
	if !ok {
		p.waiting("waiting for the pod of %s to show its StatefulSet", p.event.Unit)
		p.retryLater("read the own pod")
		return
	}
	desired := p.desired(namespace)
	live, removed, err := kube.Apply(p.ext, s.live, desired, owner)
	if k8sservice.Classify(err).Kind == k8sservice.Forbidden {
		live, removed, err = kube.Apply(p.ext, s.live, desired, owner)
	}
	if live != nil {
		s.live = live // also half of a change of class is what there is now
	}
	if err != nil {
		p.refused(err, "apply the Service")
		return
	}
	s.applied, p.told = true, true
	p.state.Altered = nil
	p.log.Info("applied the Service", "service", p.serviceName(), "type", string(live.Spec.Type), "because", fieldsOf(s.drift))
	if len(removed) > 0 {
		p.log.Warn("removed fields that the new type of the Service forbids", "fields", strings.Join(removed, ", "))
	}
	if s.drift = k8sservice.Drift(live, desired); len(s.drift) > 0 {
		altered := alterationOf(s.hash, s.drift)
		p.state.Altered = &altered
		p.describeAltered()
	}
}

// describeAltered names what somebody changes each time we apply it.
func (p *pass) describeAltered() {
	first := p.service.drift[0]
	p.waiting("the cluster accepted the Service but made %s %q, not %q; it is not tried again until either changes",
		first.Field, first.Got, first.Want)
}

// refused turns an error of the Kubernetes API into a cause and a deadline.
func (p *pass) refused(err error, what string) {
	p.retryLater(what)
	var unnamed *k8sservice.UnnamedPortError
	if errors.As(err, &unnamed) {
		p.blocked("cannot apply the Service: its port %d/%s, which is not ours, has no name; name or remove it",
			unnamed.Port, unnamed.Protocol)
		return
	}
	failure := k8sservice.Classify(err)
	switch failure.Kind {
	case k8sservice.Forbidden:
		p.blocked("not permitted to %s %s: run juju trust %s --scope=cluster", failure.Verb, failure.Resource, p.event.App)
	case k8sservice.Invalid:
		p.blocked("cannot %s: Kubernetes refuses it: %s", what, failure.Message)
	case k8sservice.OurBug:
		p.blocked("cannot %s: Kubernetes does not understand the request, a bug of this charm: %s", what, failure.Message)
	case k8sservice.Unauthorized:
		p.waiting("cannot %s: Kubernetes does not accept the pod's token; trying again", what)
	case k8sservice.NotFound, k8sservice.Busy:
		p.waiting("cannot %s; trying again: %s", what, failure.Message)
	default:
		p.waiting("cannot %s; trying again: %v", what, err)
	}
}

// retryLater sets the next deadline of something refused; each one that passes is followed by one twice as far away. What
// is not refused in a pass is forgotten by it.
func (p *pass) retryLater(what string) {
	if p.refusals == nil {
		p.refusals = map[string]refusal{}
	}
	p.refusals[what] = p.state.Refused[what].next(p.now)
	p.wakeAt(p.refusals[what].At)
}

// onceMore asks again if Kubernetes says that rights are missing: right after a grant it is not sure yet.
func onceMore[T any](ask func() (T, error)) (T, error) {
	value, err := ask()
	if k8sservice.Classify(err).Kind == k8sservice.Forbidden {
		return ask()
	}
	return value, err
}

// alterationOf is what to remember of a Service that came back other than it was asked for.
func alterationOf(hash string, drift []k8sservice.Difference) alteration {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", drift))
	return alteration{Want: hash, Got: hex.EncodeToString(sum[:])[:12]}
}

// fieldsOf names the fields of a drift.
func fieldsOf(drift []k8sservice.Difference) string {
	names := make([]string, len(drift))
	for i, difference := range drift {
		names[i] = difference.Field
	}
	return strings.Join(names, ", ")
}

// stamp writes a moment as statuses show it: absolute, so that the text does not change by itself.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }
