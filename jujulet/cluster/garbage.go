// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cluster

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// eventsLast is how long an Event is kept.
const eventsLast = time.Hour

// collectGarbage deletes every object none of whose owners exists and Events that are old, and lets
// terminating namespaces go once they are empty. An owner exists when kind, name and uid all match; kinds that are not in the
// table are taken to exist, as nothing is known of them.
func (s *Server) collectGarbage() error {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	for _, k := range s.rules.kinds {
		for _, obj := range s.store.list(k.Kind, "") {
			orphaned, old := s.orphaned(obj), k.Kind == EventKind && s.old(obj.(*corev1.Event))
			if obj.GetDeletionTimestamp() != nil || !orphaned && !old {
				continue
			}
			if orphaned {
				s.options.Logger.Info("deleting an object whose owners are gone", "kind", string(k.Kind), "object", keyOf(obj))
			}
			if _, err := s.deleteLive(k, obj); err != nil {
				return err
			}
		}
	}
	for _, obj := range s.store.list(Namespace, "") {
		if ns := obj.(*corev1.Namespace); ns.DeletionTimestamp != nil {
			if err := s.finishNamespace(ns); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Server) old(e *corev1.Event) bool {
	last := e.LastTimestamp.Time
	if last.IsZero() {
		last = e.CreationTimestamp.Time
	}
	return s.options.Clock().Sub(last) > eventsLast
}

// orphaned: obj has owners and none of them exists.
func (s *Server) orphaned(obj Object) bool {
	owners := obj.GetOwnerReferences()
	for _, ref := range owners {
		if s.ownerExists(obj.GetNamespace(), ref) {
			return false
		}
	}
	return len(owners) > 0
}

func (s *Server) ownerExists(namespace string, ref metav1.OwnerReference) bool {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	k := s.rules.byKind[Kind(ref.Kind)]
	if err != nil || k == nil || k.gvk.Group != gv.Group {
		return true
	}
	if !k.namespaced {
		namespace = ""
	}
	owner := s.store.get(k.Kind, namespace, ref.Name)
	return owner != nil && owner.GetUID() == ref.UID
}
