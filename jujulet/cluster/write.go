// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cluster

import (
	"errors"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
)

// target says where one write goes and who makes it.
type target struct {
	kind            *kind
	namespace, name string
	// status: the write is to the status subresource.
	status  bool
	manager string
	dryRun  bool
}

func (t target) fields() *managedfields.FieldManager {
	if t.status {
		return t.kind.status
	}
	return t.kind.main
}

func (t target) notFound() error { return apierrors.NewNotFound(t.kind.resource(), t.name) }

// create stores obj, which it takes over.
func (s *Server) create(t target, obj Object) (Object, error) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	if err := s.checkNamespace(t.kind, t.namespace); err != nil {
		return nil, err
	}
	if err := matchNamespace(t, obj); err != nil {
		return nil, err
	}
	if obj.GetResourceVersion() != "" {
		return nil, errors.New("resourceVersion should not be set on objects to be created")
	}
	if err := giveName(t.kind, obj); err != nil {
		return nil, err
	}
	t.kind.defaults(obj)
	s.freshMeta(t.kind, obj)
	next, err := t.fields().Update(emptyObject(t.kind), obj, t.manager)
	if err != nil {
		return nil, err
	}
	return s.finishCreate(t, next.(Object))
}

// finishCreate is the part of a creation that follows the field manager.
func (s *Server) finishCreate(t target, obj Object) (Object, error) {
	k := t.kind
	s.freshMeta(k, obj)
	k.prepare(obj, nil)
	if k.spec != nil {
		obj.SetGeneration(1)
	}
	if errs := createErrors(k, obj); len(errs) > 0 {
		return nil, apierrors.NewInvalid(k.gvk.GroupKind(), obj.GetName(), errs)
	}
	if err := s.allocate(obj, nil); err != nil {
		return nil, err
	}
	if s.store.get(k.Kind, obj.GetNamespace(), obj.GetName()) != nil {
		return nil, apierrors.NewAlreadyExists(k.resource(), obj.GetName())
	}
	obj.GetObjectKind().SetGroupVersionKind(k.gvk)
	if t.dryRun {
		return obj, nil
	}
	return obj, s.commit(k, Added, obj)
}

// update replaces an object by what edit makes of a copy of it. put: the whole object came from the
// client, so another uid is a conflict, not an invalid change.
func (s *Server) update(t target, put bool, edit func(live Object) (Object, error)) (Object, error) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	live, err := s.liveFor(t)
	if err != nil {
		return nil, err
	}
	next, err := edit(live.DeepCopyObject().(Object))
	if err != nil {
		return nil, err
	}
	if err := checkIdentity(t, live, next, put); err != nil {
		return nil, err
	}
	t.kind.defaults(next)
	rebase(t, next, live)
	managed, err := t.fields().Update(live, next, t.manager)
	if err != nil {
		return nil, err
	}
	return s.finishUpdate(t, live, managed.(Object))
}

// apply is a server-side apply. mayCreate is asked before an absent object is created; created tells
// that it was.
func (s *Server) apply(t target, patch *unstructured.Unstructured, force bool, mayCreate func() error) (obj Object, created bool, err error) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	if err := s.checkNamespace(t.kind, t.namespace); err != nil {
		return nil, false, err
	}
	if err := matchNamespace(t, patch); err != nil {
		return nil, false, err
	}
	if n := patch.GetName(); n != "" && n != t.name {
		return nil, false, nameMismatch(n, t.name)
	}
	live := s.store.get(t.kind.Kind, t.namespace, t.name)
	if live == nil {
		obj, err = s.applyNew(t, patch, force, mayCreate)
		return obj, true, err
	}
	if v := patch.GetResourceVersion(); v != "" && v != live.GetResourceVersion() {
		return nil, false, stale(t)
	}
	next, err := t.fields().Apply(live, patch, t.manager, force)
	if err != nil {
		return nil, false, err
	}
	out := next.(Object)
	rebase(t, out, live)
	obj, err = s.finishUpdate(t, live, out)
	return obj, false, err
}

func (s *Server) applyNew(t target, patch *unstructured.Unstructured, force bool, mayCreate func() error) (Object, error) {
	if t.status {
		return nil, t.notFound()
	}
	if err := mayCreate(); err != nil {
		return nil, err
	}
	next, err := t.fields().Apply(emptyObject(t.kind), patch, t.manager, force)
	if err != nil {
		return nil, err
	}
	obj := next.(Object)
	obj.SetName(t.name)
	obj.SetNamespace(t.namespace)
	return s.finishCreate(t, obj)
}

// finishUpdate is the part of an update that follows the field manager: it returns live itself when
// nothing but times in managedFields would change.
func (s *Server) finishUpdate(t target, live, next Object) (Object, error) {
	k := t.kind
	carryMeta(next, live)
	if !t.status {
		k.prepare(next, live)
	}
	countGeneration(k, next, live)
	if errs := updateErrors(t, next, live); len(errs) > 0 {
		return nil, apierrors.NewInvalid(k.gvk.GroupKind(), live.GetName(), errs)
	}
	if !t.status {
		if err := s.allocate(next, live); err != nil {
			return nil, err
		}
	}
	next.GetObjectKind().SetGroupVersionKind(k.gvk)
	if unchanged(live, next) {
		return live, nil
	}
	if t.dryRun {
		return next, nil
	}
	if live.GetDeletionTimestamp() != nil && len(next.GetFinalizers()) == 0 {
		return next, s.remove(k, next)
	}
	return next, s.commit(k, Modified, next)
}

// liveFor reads the object that a write is about.
func (s *Server) liveFor(t target) (Object, error) {
	if live := s.store.get(t.kind.Kind, t.namespace, t.name); live != nil {
		return live, nil
	}
	return nil, t.notFound()
}

// emptyObject is what the field manager takes for an object that does not exist yet.
func emptyObject(k *kind) runtime.Object {
	o := k.empty()
	o.GetObjectKind().SetGroupVersionKind(k.gvk)
	return o
}

// rebase puts back what this door does not write: the status, or everything but status and metadata.
func rebase(t target, next, live Object) {
	switch {
	case !t.kind.hasStatus:
	case !t.status:
		t.kind.setStatus(next, live.DeepCopyObject().(Object))
	default:
		full := live.DeepCopyObject().(Object)
		t.kind.setStatus(full, next)
		*objectMeta(full) = *objectMeta(next)
		copyInto(next, full)
	}
}

// checkIdentity compares name, namespace, resourceVersion and uid of a changed object with the live one.
func checkIdentity(t target, live, next Object, put bool) error {
	if err := matchNamespace(t, next); err != nil {
		return err
	}
	if n := next.GetName(); n != t.name {
		if n == "" && put {
			return apierrors.NewBadRequest("name must be provided")
		}
		return nameMismatch(n, t.name)
	}
	if put && next.GetUID() != "" && next.GetUID() != live.GetUID() {
		//lint:ignore ST1005 the text is Kubernetes' own
		return apierrors.NewConflict(t.kind.resource(), t.name, fmt.Errorf(
			"Precondition failed: UID in precondition: %v, UID in object meta: %v", next.GetUID(), live.GetUID()))
	}
	if v := next.GetResourceVersion(); v != "" && v != live.GetResourceVersion() {
		return stale(t)
	}
	return nil
}

func stale(t target) error {
	return apierrors.NewConflict(t.kind.resource(), t.name,
		errors.New("the object has been modified; please apply your changes to the latest version and try again"))
}

func nameMismatch(body, url string) error {
	return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", body, url))
}

// matchNamespace takes over the namespace of the request, and refuses another one.
func matchNamespace(t target, obj metav1.Object) error {
	if n := obj.GetNamespace(); n != "" && n != t.namespace {
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	obj.SetNamespace(t.namespace)
	return nil
}

// checkNamespace refuses writes that make objects in a namespace that is absent or going.
func (s *Server) checkNamespace(k *kind, namespace string) error {
	if !k.namespaced {
		return nil
	}
	ns := s.store.get(Namespace, "", namespace)
	if ns == nil {
		return apierrors.NewNotFound(s.rules.byKind[Namespace].resource(), namespace)
	}
	if ns.GetDeletionTimestamp() != nil {
		return apierrors.NewForbidden(k.resource(), "", fmt.Errorf("unable to create new content in namespace %s because it is being terminated", namespace))
	}
	return nil
}

func (s *Server) commit(k *kind, typ EventType, obj Object) error {
	if err := s.store.commit(k, typ, obj); err != nil {
		return apierrors.NewInternalError(err)
	}
	return nil
}

// remove takes an object out of the store; obj becomes its last state.
func (s *Server) remove(k *kind, obj Object) error { return s.commit(k, Deleted, obj) }

func formatVersion(v int64) string { return strconv.FormatInt(v, 10) }
