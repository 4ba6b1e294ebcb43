// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cluster

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
)

// Admin acts on the store with Go values: no rights are asked and nothing is encoded, all other rules
// (defaults, validation, allocation, field ownership, no-op detection) are those of the HTTP door.
// Errors are those of k8s.io/apimachinery/pkg/api/errors. Objects handed out are shared with the
// store: read only. Objects handed in are not kept and not changed.
//
// With a database, no method that writes may be called from inside a bbolt transaction of the caller.
type Admin struct{ s *Server }

// ListOptions narrow a list or a watch. The zero value is everything.
type ListOptions struct {
	Namespace     string
	Name          string
	LabelSelector string
}

func (a *Admin) kindOf(obj Object) (*kind, error) {
	kinds, _, err := scheme.Scheme.ObjectKinds(obj)
	if err != nil || len(kinds) == 0 {
		return nil, fmt.Errorf("cannot use a %T: it is not in the table of kinds", obj)
	}
	k := a.s.rules.byKind[Kind(kinds[0].Kind)]
	if k == nil || k.gvk != kinds[0] {
		return nil, fmt.Errorf("cannot use a %T: it is not in the table of kinds", obj)
	}
	return k, nil
}

func (a *Admin) target(kind Kind, namespace, name string) (target, error) {
	k := a.s.rules.byKind[kind]
	if k == nil {
		return target{}, fmt.Errorf("cannot use kind %q: it is not in the table of kinds", kind)
	}
	if !k.namespaced {
		namespace = ""
	}
	return target{kind: k, namespace: namespace, name: name, manager: systemManager}, nil
}

// own makes a copy of obj and the target that it names.
func (a *Admin) own(obj Object) (Object, target, error) {
	k, err := a.kindOf(obj)
	if err != nil {
		return nil, target{}, err
	}
	t, err := a.target(k.Kind, obj.GetNamespace(), obj.GetName())
	return obj.DeepCopyObject().(Object), t, err
}

// Get reads one object; namespace is "" for Nodes and Namespaces.
func (a *Admin) Get(kind Kind, namespace, name string) (Object, error) {
	t, err := a.target(kind, namespace, name)
	if err != nil {
		return nil, err
	}
	a.s.store.mu.RLock()
	defer a.s.store.mu.RUnlock()
	return a.s.liveFor(t)
}

func (a *Admin) selection(kind Kind, o ListOptions) (selection, error) {
	t, err := a.target(kind, o.Namespace, o.Name)
	if err != nil {
		return selection{}, err
	}
	sel := selection{kind: t.kind, namespace: t.namespace, name: t.name}
	if sel.labels, err = labels.Parse(o.LabelSelector); err != nil {
		return sel, apierrors.NewBadRequest(err.Error())
	}
	return sel, nil
}

// List reads objects, sorted by namespace and name.
func (a *Admin) List(kind Kind, o ListOptions) ([]Object, error) {
	sel, err := a.selection(kind, o)
	if err != nil {
		return nil, err
	}
	items, _ := a.s.snapshot(sel)
	return items, nil
}

// Create stores a new object and returns it as stored.
func (a *Admin) Create(obj Object) (Object, error) {
	own, t, err := a.own(obj)
	if err != nil {
		return nil, err
	}
	return a.s.create(t, own)
}

// Update replaces an object, its status apart. A resourceVersion in obj must be the current one; none
// means unconditional.
func (a *Admin) Update(obj Object) (Object, error) { return a.put(obj, false) }

// UpdateStatus replaces the status (and metadata) of an object.
func (a *Admin) UpdateStatus(obj Object) (Object, error) { return a.put(obj, true) }

func (a *Admin) put(obj Object, status bool) (Object, error) {
	own, t, err := a.own(obj)
	if err != nil {
		return nil, err
	}
	if status && !t.kind.hasStatus {
		return nil, fmt.Errorf("cannot update the status of a %s: it has none", t.kind.Kind)
	}
	t.status = status
	return a.s.update(t, true, func(Object) (Object, error) { return own, nil })
}

// Apply is a server-side apply of what is set in obj, by manager. force takes over what others own.
func (a *Admin) Apply(obj Object, manager string, force bool) (Object, error) {
	k, err := a.kindOf(obj)
	if err != nil {
		return nil, err
	}
	t, err := a.target(k.Kind, obj.GetNamespace(), obj.GetName())
	if err != nil {
		return nil, err
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("cannot apply %s %q: %v", k.Kind, keyOf(obj), err)
	}
	patch := &unstructured.Unstructured{Object: fields}
	patch.SetGroupVersionKind(k.gvk)
	unstructured.RemoveNestedField(fields, "status")
	unstructured.RemoveNestedField(fields, "metadata", "creationTimestamp")
	t.manager = manager
	out, _, err := a.s.apply(t, patch, force, func() error { return nil })
	return out, err
}

// Patch applies a merge, strategic or JSON patch; subresource is "" or "status".
func (a *Admin) Patch(kind Kind, namespace, name, subresource string, typ types.PatchType, data []byte) (Object, error) {
	t, err := a.target(kind, namespace, name)
	if err != nil {
		return nil, err
	}
	if typ == types.ApplyPatchType {
		return nil, errNoPatch
	}
	t.status = subresource == "status"
	return a.s.update(t, false, func(live Object) (Object, error) {
		patched, err := patchObject(t, live, typ, data)
		if err != nil {
			return nil, err
		}
		obj, _, err := a.s.rules.lenient.Decode(patched, &t.kind.gvk, t.kind.empty())
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return obj.(Object), nil
	})
}

// Delete removes an object, or marks it as terminating while it has finalizers. Absent is a NotFound
// error.
func (a *Admin) Delete(kind Kind, namespace, name string) error {
	t, err := a.target(kind, namespace, name)
	if err != nil {
		return err
	}
	_, err = a.s.delete(t, &metav1.DeleteOptions{})
	return err
}
