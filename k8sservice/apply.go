// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package k8sservice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// rangesAnnotation is the old spelling of loadBalancerSourceRanges, which
// Kubernetes still reads, and refuses on other types just the same.
const rangesAnnotation = corev1.AnnotationLoadBalancerSourceRangesKey

// Apply makes the live Service (nil when there is none) what is desired and
// returns it as it came back, and the names of fields of somebody else that
// had to be removed because the new type forbids them. It never deletes the
// Service; between two load balancer classes it goes through NodePort. An
// owner without a uid is left out: a wrong one would get the Service deleted.
//
// It may be interrupted anywhere and applied again. With an error, the Service
// returned is the last one that came back, nil if none did.
func (c *Client) Apply(ctx context.Context, live *corev1.Service, d Desired, owner Owner) (*corev1.Service, []string, error) {
	if err := unnamedPort(live); err != nil {
		return nil, nil, err
	}
	b := d.body()
	b.setOwner(owner)
	var step *corev1.Service
	var removed []string
	if changesClass(live, d) {
		var err error
		step, removed, err = c.applyBody(ctx, live, d.stepBody(owner))
		if err != nil {
			return step, removed, err
		}
		live = step
	}
	applied, more, err := c.applyBody(ctx, live, b)
	if applied == nil {
		applied = step
	}
	return applied, append(removed, more...), err
}

func (b *body) setOwner(owner Owner) {
	if owner.Name == "" || owner.UID == "" {
		return
	}
	b.Metadata.Owners = []ownerReference{{APIVersion: "apps/v1", Kind: ownerKind, Name: owner.Name, UID: owner.UID}}
}

// changesClass reports whether the class of a load balancer must change,
// which Kubernetes allows on the way through another type only.
func changesClass(live *corev1.Service, d Desired) bool {
	if live == nil || live.Spec.Type != corev1.ServiceTypeLoadBalancer || d.Mode != LoadBalancer {
		return false
	}
	if d.Class == "" && !ownedBy(live, isOurs).has("f:spec", "f:loadBalancerClass") {
		return false // a class that somebody else chose is none of ours
	}
	return d.Class != value(live.Spec.LoadBalancerClass)
}

// stepBody is the NodePort between two load balancer classes.
func (d Desired) stepBody(owner Owner) body {
	d.Mode = NodePort
	b := d.body()
	b.setOwner(owner)
	b.Metadata.Annotations = map[string]string{AnnotationStep: "loadbalancer-class"}
	return b
}

// applyBody removes what would stand in the way and applies.
func (c *Client) applyBody(ctx context.Context, live *corev1.Service, b body) (*corev1.Service, []string, error) {
	var cleared *corev1.Service
	patch, removed := obstacles(live, b)
	if patch != nil {
		var err error
		cleared, err = c.patch(ctx, b.Metadata.Name, types.MergePatchType, patch)
		if err != nil {
			return nil, nil, fmt.Errorf("cannot clear fields of Service %q: %w", b.Metadata.Name, err)
		}
	}
	applied, err := c.patch(ctx, b.Metadata.Name, types.ApplyPatchType, b)
	if err != nil {
		return cleared, removed, fmt.Errorf("cannot apply Service %q: %w", b.Metadata.Name, err)
	}
	return applied, removed, nil
}

// obstacles returns a merge patch that takes away what an apply cannot: fields
// of somebody else that the new type forbids (named in removed), and
// annotations that are ours though somebody has overwritten their values. The
// type is in the patch, so that no load balancer is left without its source
// ranges for even a moment. Nil when there is nothing in the way.
func obstacles(live *corev1.Service, b body) (patch map[string]any, removed []string) {
	if live == nil {
		return nil, nil
	}
	own, foreign := ownedBy(live, isOurs), ownedBy(live, isForeign)
	applied := ownedBy(live, isForeignApply)
	spec, annotations := map[string]any{}, map[string]any{}

	for _, key := range surplusAnnotations(live, b) {
		path := []string{"f:metadata", "f:annotations", "f:" + key}
		if !own.has(path...) && !applied.has(path...) {
			annotations[key] = nil
		}
	}
	if b.Spec.Type != corev1.ServiceTypeLoadBalancer {
		ranges := []string{"f:spec", "f:loadBalancerSourceRanges"}
		if len(live.Spec.LoadBalancerSourceRanges) > 0 && (foreign.has(ranges...) || !own.has(ranges...)) {
			spec["loadBalancerSourceRanges"] = nil
			removed = append(removed, "spec.loadBalancerSourceRanges")
		}
		path := []string{"f:metadata", "f:annotations", "f:" + rangesAnnotation}
		if _, there := live.Annotations[rangesAnnotation]; there && (foreign.has(path...) || !own.has(path...)) {
			annotations[rangesAnnotation] = nil
			removed = append(removed, "metadata.annotations["+rangesAnnotation+"]")
		}
	}
	if len(spec) == 0 && len(annotations) == 0 {
		return nil, nil
	}
	patch = map[string]any{}
	if len(annotations) > 0 {
		patch["metadata"] = map[string]any{"annotations": annotations}
	}
	if len(removed) > 0 {
		spec["type"] = b.Spec.Type
	}
	if len(spec) > 0 {
		patch["spec"] = spec
	}
	return patch, removed
}

// patch sends one patch of the Service.
func (c *Client) patch(ctx context.Context, name string, kind types.PatchType, content any) (*corev1.Service, error) {
	text, err := json.Marshal(content)
	if err != nil {
		return nil, errors.New("internal error: cannot encode a patch")
	}
	var service corev1.Service
	err = c.do(ctx, func(ctx context.Context) error {
		request := c.rest.Patch(kind).Namespace(c.o.Namespace).Resource("services").Name(name).
			Param("fieldManager", c.o.FieldManager)
		if kind == types.ApplyPatchType {
			request = request.Param("force", "true")
		}
		return request.MaxRetries(0).Body(text).Do(ctx).Into(&service)
	})
	if err != nil {
		return nil, err
	}
	return &service, nil
}
