// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package carry

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drawbridge-k8s/drawbridge/connections"
	"github.com/drawbridge-k8s/drawbridge/k8sservice"
)

// tell makes the Events of the news, and notes in announced what was told. Events are best effort: what Kubernetes
// refuses for good counts as told; what it cannot take now is tried again by the next pass.
func (p *Pass) tell(ctx context.Context, hurry bool, announced connections.Announced, news []connections.News) {
	within := tellWithin
	if hurry {
		within = hurryWithin
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var failed error
	forbidden := false
	for _, n := range news {
		var err error
		for _, notice := range n.Notices {
			if err = p.event(ctx, notice); err != nil {
				break
			}
		}
		kind := k8sservice.Classify(err).Kind
		if err != nil && (kind == k8sservice.Busy || kind == k8sservice.Unauthorized) {
			failed = err
			continue
		}
		if err != nil && !forbidden {
			forbidden = true
			p.h.Log.Warn("Kubernetes takes no Events of this charm; what changes is not told there", "error", err)
		}
		if n.Value == "" {
			delete(announced, n.Key)
		} else {
			announced[n.Key] = n.Value
		}
	}
	if failed != nil {
		p.h.Log.Info("cannot make Events now; trying again", "error", failed)
	}
}

// event makes one Event. It is about the application's StatefulSet or a ConfigMap; one about a ConfigMap that is not there
// is not made.
func (p *Pass) event(ctx context.Context, n connections.Notice) error {
	p.openKube()
	if p.kubeErr != nil {
		return p.kubeErr
	}
	object, err := p.object(ctx, n.ConfigMap)
	if err != nil || object == nil {
		return err
	}
	now := metav1.NewTime(p.h.Now)
	kind := corev1.EventTypeNormal
	if n.Warning {
		kind = corev1.EventTypeWarning
	}
	return p.kube.CreateEvent(ctx, &corev1.Event{
		TypeMeta:       metav1.TypeMeta{Kind: "Event", APIVersion: "v1"},
		ObjectMeta:     metav1.ObjectMeta{Name: n.EventName(object.Name, string(object.UID)), Namespace: p.namespace},
		InvolvedObject: *object, Type: kind, Reason: n.Reason, Message: clipMessage(n.Message),
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
		Source: corev1.EventSource{Component: p.h.Event.App}, ReportingController: connections.Domain,
	})
}

// clipMessage keeps within what Kubernetes takes.
func clipMessage(text string) string {
	const most = 1024
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-3], "") + "..."
}

// object finds what an Event is about; nil when it is not there.
func (p *Pass) object(ctx context.Context, configMap string) (*corev1.ObjectReference, error) {
	if configMap != "" {
		m, err := p.kube.ConfigMap(ctx, configMap)
		if err != nil || m == nil {
			return nil, err
		}
		return &corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: p.namespace, Name: configMap, UID: m.UID}, nil
	}
	if p.set != nil {
		return p.set, nil
	}
	pod, err := p.kube.Pod(ctx, strings.ReplaceAll(p.h.Event.Unit, "/", "-"))
	if err != nil || pod == nil {
		return nil, err
	}
	owner, ok := k8sservice.OwnerOf(pod)
	if !ok {
		return nil, nil
	}
	p.set = &corev1.ObjectReference{
		APIVersion: "apps/v1", Kind: "StatefulSet", Namespace: p.namespace, Name: owner.Name, UID: types.UID(owner.UID),
	}
	return p.set, nil
}
