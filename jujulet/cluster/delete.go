// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cluster

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// delete removes an object, or marks it while it has finalizers. It returns the last or marked state.
// There is no grace period: a Pod is gone at once, and who runs it learns of it by the event.
func (s *Server) delete(t target, o *metav1.DeleteOptions) (Object, error) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	live, err := s.liveFor(t)
	if err != nil {
		return nil, err
	}
	if err := checkPreconditions(t, live, o.Preconditions); err != nil {
		return nil, err
	}
	if t.dryRun {
		return live, nil
	}
	if o.PropagationPolicy != nil && *o.PropagationPolicy == metav1.DeletePropagationOrphan {
		if err := s.orphan(live); err != nil {
			return nil, err
		}
	}
	return s.deleteLive(t.kind, live)
}

func checkPreconditions(t target, live Object, p *metav1.Preconditions) error {
	if p == nil {
		return nil
	}
	if p.UID != nil && *p.UID != live.GetUID() {
		return apierrors.NewConflict(t.kind.resource(), t.name, fmt.Errorf(
			"the UID in the precondition (%s) does not match the UID in record (%s). The object might have been deleted and then recreated", *p.UID, live.GetUID()))
	}
	if p.ResourceVersion != nil && *p.ResourceVersion != live.GetResourceVersion() {
		return apierrors.NewConflict(t.kind.resource(), t.name, fmt.Errorf(
			"the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). The object might have been modified", *p.ResourceVersion, live.GetResourceVersion()))
	}
	return nil
}

// deleteLive deletes an object under the lock.
func (s *Server) deleteLive(k *kind, live Object) (Object, error) {
	obj := live.DeepCopyObject().(Object)
	if k.Kind == Namespace {
		return s.deleteNamespace(k, obj)
	}
	if len(obj.GetFinalizers()) == 0 {
		return obj, s.remove(k, obj)
	}
	if obj.GetDeletionTimestamp() != nil {
		return live, nil
	}
	s.markDeleted(obj)
	return obj, s.commit(k, Modified, obj)
}

func (s *Server) markDeleted(obj Object) {
	now, zero := s.now(), int64(0)
	obj.SetDeletionTimestamp(&now)
	obj.SetDeletionGracePeriodSeconds(&zero)
	if obj.GetGeneration() > 0 {
		obj.SetGeneration(obj.GetGeneration() + 1)
	}
}

// deleteNamespace deletes all that is in a namespace, then the namespace; objects with finalizers keep
// it terminating until they are gone.
func (s *Server) deleteNamespace(k *kind, obj Object) (Object, error) {
	if obj.GetDeletionTimestamp() == nil {
		s.markDeleted(obj)
		obj.(*corev1.Namespace).Status.Phase = corev1.NamespaceTerminating
		if err := s.commit(k, Modified, obj); err != nil {
			return nil, err
		}
	}
	for _, other := range s.rules.kinds {
		if !other.namespaced {
			continue
		}
		for _, o := range s.store.list(other.Kind, obj.GetName()) {
			if _, err := s.deleteLive(other, o); err != nil {
				return nil, err
			}
		}
	}
	return obj, s.finishNamespace(obj)
}

// finishNamespace removes a terminating namespace that is empty.
func (s *Server) finishNamespace(obj Object) error {
	if obj.GetDeletionTimestamp() == nil || len(obj.GetFinalizers()) > 0 {
		return nil
	}
	for _, k := range s.rules.kinds {
		if k.namespaced && len(s.store.list(k.Kind, obj.GetName())) > 0 {
			return nil
		}
	}
	return s.remove(s.rules.byKind[Namespace], obj.DeepCopyObject().(Object))
}

// orphan takes owner out of the owner references of its dependents.
func (s *Server) orphan(owner Object) error {
	for _, k := range s.rules.kinds {
		for _, o := range s.store.list(k.Kind, owner.GetNamespace()) {
			var kept []metav1.OwnerReference
			for _, ref := range o.GetOwnerReferences() {
				if ref.UID != owner.GetUID() {
					kept = append(kept, ref)
				}
			}
			if len(kept) == len(o.GetOwnerReferences()) {
				continue
			}
			free := o.DeepCopyObject().(Object)
			free.SetOwnerReferences(kept)
			if err := s.commit(k, Modified, free); err != nil {
				return err
			}
		}
	}
	return nil
}
