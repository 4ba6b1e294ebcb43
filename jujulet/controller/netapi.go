// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cluster"
)

// eventTTL is how long an event is kept after it was last seen, as in
// Kubernetes.
const eventTTL = time.Hour

// networkAPI is the embedded API as the network sees it.
type networkAPI struct {
	admin *cluster.Admin
	clock func() time.Time
}

// Services lists the Services of all namespaces.
func (a networkAPI) Services(context.Context) ([]corev1.Service, error) {
	list, err := cluster.List[*corev1.Service](a.admin, "", "")
	out := make([]corev1.Service, len(list))
	for i, o := range list {
		out[i] = *o.DeepCopy()
	}
	return out, err
}

// EndpointSlices lists the slices of all namespaces.
func (a networkAPI) EndpointSlices(context.Context) ([]discoveryv1.EndpointSlice, error) {
	list, err := cluster.List[*discoveryv1.EndpointSlice](a.admin, "", "")
	out := make([]discoveryv1.EndpointSlice, len(list))
	for i, o := range list {
		out[i] = *o.DeepCopy()
	}
	return out, err
}

// Nodes lists the nodes.
func (a networkAPI) Nodes(context.Context) ([]corev1.Node, error) {
	list, err := cluster.List[*corev1.Node](a.admin, "", "")
	out := make([]corev1.Node, len(list))
	for i, o := range list {
		out[i] = *o.DeepCopy()
	}
	return out, err
}

// Changes wakes up on every change of those.
func (a networkAPI) Changes(ctx context.Context) <-chan struct{} {
	out := make(chan struct{}, 1)
	events := a.admin.Watch(ctx, cluster.ListOptions{}, cluster.Service, cluster.EndpointSlice, cluster.Node)
	go func() {
		defer close(out)
		for range events {
			select {
			case out <- struct{}{}:
			default:
			}
		}
	}()
	return out
}

// UpdateServiceStatus writes the status of a Service.
func (a networkAPI) UpdateServiceStatus(_ context.Context, s *corev1.Service) error {
	_, err := a.admin.UpdateStatus(s)
	return err
}

// AnnotateService sets annotations of a Service.
func (a networkAPI) AnnotateService(_ context.Context, namespace, name string, annotations map[string]string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		return fmt.Errorf("cannot annotate service %q: %w", name, err)
	}
	_, err = a.admin.Patch(cluster.Service, namespace, name, "", types.MergePatchType, patch)
	return err
}

// CreateEvent records an event. As Kubernetes' recorders do, one that says the
// same of the same object again only raises the count of the first.
func (a networkAPI) CreateEvent(_ context.Context, e *corev1.Event) error {
	now := metav1.NewTime(a.clock())
	list, err := cluster.List[*corev1.Event](a.admin, e.Namespace, "")
	if err != nil {
		return err
	}
	for _, known := range list {
		if sameEvent(known, e) {
			_, err := cluster.Change(a.admin, known.Namespace, known.Name, func(o *corev1.Event) error {
				o.Count++
				o.LastTimestamp = now
				return nil
			})
			return err
		}
		if now.Sub(known.LastTimestamp.Time) > eventTTL {
			_ = a.admin.Delete(cluster.EventKind, known.Namespace, known.Name)
		}
	}
	created := e.DeepCopy()
	if created.Name == "" {
		created.Name = fmt.Sprintf("%s.%x", e.InvolvedObject.Name, now.UnixNano())
	}
	if created.FirstTimestamp.IsZero() {
		created.FirstTimestamp = now
	}
	created.LastTimestamp = now
	created.Count = max(created.Count, 1)
	_, err = a.admin.Create(created)
	return err
}

// sameEvent reports whether b says of the same object what a says.
func sameEvent(a, b *corev1.Event) bool {
	return a.InvolvedObject.Kind == b.InvolvedObject.Kind && a.InvolvedObject.Name == b.InvolvedObject.Name &&
		a.InvolvedObject.UID == b.InvolvedObject.UID && a.Type == b.Type && a.Reason == b.Reason && a.Message == b.Message
}
