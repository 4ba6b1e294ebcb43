// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cluster

import (
	"reflect"
	"strings"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// longestGenerated is the longest base of a generated name: 63 without the suffix of 5.
const longestGenerated = 58

// giveName makes up a name from generateName when there is none.
func giveName(k *kind, obj Object) error {
	base := obj.GetGenerateName()
	if obj.GetName() != "" || base == "" {
		if obj.GetName() == "" {
			return apierrors.NewInvalid(k.gvk.GroupKind(), "", field.ErrorList{
				field.Required(field.NewPath("metadata", "name"), "name or generateName is required")})
		}
		return nil
	}
	if len(base) > longestGenerated {
		base = base[:longestGenerated]
	}
	obj.SetName(base + rand.String(5))
	return nil
}

// freshMeta sets the metadata that only the server sets, and drops a status that may not come from a
// creation.
func (s *Server) freshMeta(k *kind, obj Object) {
	obj.SetUID(types.UID(uuid.NewString()))
	obj.SetCreationTimestamp(s.now())
	obj.SetDeletionTimestamp(nil)
	obj.SetDeletionGracePeriodSeconds(nil)
	obj.SetGeneration(0)
	obj.SetResourceVersion("")
	obj.SetSelfLink("")
	if k.hasStatus && !k.keepsStatus {
		k.setStatus(obj, k.empty())
	}
}

// now is the clock at the resolution that objects have.
func (s *Server) now() metav1.Time { return metav1.NewTime(s.options.Clock()).Rfc3339Copy() }

// carryMeta takes over from the live object what no update changes.
func carryMeta(next, live Object) {
	if next.GetUID() == "" {
		next.SetUID(live.GetUID())
	}
	next.SetCreationTimestamp(live.GetCreationTimestamp())
	next.SetDeletionTimestamp(live.GetDeletionTimestamp())
	next.SetDeletionGracePeriodSeconds(live.GetDeletionGracePeriodSeconds())
	next.SetGeneration(live.GetGeneration())
	next.SetResourceVersion(live.GetResourceVersion())
	next.SetSelfLink("")
	if next.GetGenerateName() == "" {
		next.SetGenerateName(live.GetGenerateName())
	}
}

// countGeneration adds one when the spec changes, for the kinds that count.
func countGeneration(k *kind, next, live Object) {
	if k.spec != nil && !equality.Semantic.DeepEqual(k.spec(next), k.spec(live)) {
		next.SetGeneration(live.GetGeneration() + 1)
	}
}

// createErrors checks a new object.
func createErrors(k *kind, obj Object) field.ErrorList {
	errs := ownerTexts(validation.ValidateObjectMetaAccessor(obj, k.namespaced, k.nameRule, field.NewPath("metadata")))
	errs = append(errs, k.validate(obj, nil)...)
	if k.keepsStatus {
		errs = append(errs, k.validateStatus(obj, nil)...)
	}
	return errs
}

// updateErrors checks a changed object. As on a real server the metadata is looked at by the generic
// layer and again by the kind, so that its errors are listed more than once among the causes.
func updateErrors(t target, next, live Object) field.ErrorList {
	path := field.NewPath("metadata")
	errs := validation.ValidateObjectMetaAccessorUpdate(next, live, path)
	errs = append(errs, errs...)
	if t.status {
		return append(ownerTexts(errs), t.kind.validateStatus(next, live)...)
	}
	errs = append(errs, validation.ValidateObjectMetaAccessor(next, t.kind.namespaced, t.kind.nameRule, path)...)
	return append(ownerTexts(errs), t.kind.validate(next, live)...)
}

// ownerTexts words errors about owner references as the servers of this release do: without the index,
// and an empty value is called invalid where the library now calls it missing.
func ownerTexts(errs field.ErrorList) field.ErrorList {
	const list = "metadata.ownerReferences"
	for i, e := range errs {
		rest, ok := strings.CutPrefix(e.Field, list+"[")
		if !ok {
			continue
		}
		_, rest, _ = strings.Cut(rest, "]")
		worded := *e
		worded.Field = list + rest
		if e.Type == field.ErrorTypeRequired {
			worded.Type, worded.BadValue = field.ErrorTypeInvalid, ""
		}
		errs[i] = &worded
	}
	return errs
}

// unchanged reports that two states differ in nothing but the times of managedFields entries.
func unchanged(live, next Object) bool {
	a, b := live.GetManagedFields(), next.GetManagedFields()
	if !sameManagers(a, b) {
		return false
	}
	next.SetManagedFields(a)
	same := equality.Semantic.DeepEqual(live, next)
	next.SetManagedFields(b)
	return same
}

func sameManagers(a, b []metav1.ManagedFieldsEntry) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		x, y := a[i], b[i]
		x.Time, y.Time = nil, nil
		if !equality.Semantic.DeepEqual(x, y) {
			return false
		}
	}
	return true
}

// objectMeta is the metadata of a stored object; all kinds have metav1.ObjectMeta.
func objectMeta(o Object) *metav1.ObjectMeta {
	return o.(metav1.ObjectMetaAccessor).GetObjectMeta().(*metav1.ObjectMeta)
}

// copyInto makes *to a shallow copy of *from; both have the same type.
func copyInto(to, from Object) { reflect.ValueOf(to).Elem().Set(reflect.ValueOf(from).Elem()) }
