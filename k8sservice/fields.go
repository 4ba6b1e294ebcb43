// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package k8sservice

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fields is a set of fields as managedFields write it: "f:spec" -> "f:type".
type fields map[string]any

// has reports whether the field at a path, or anything below it, is in the set.
func (f fields) has(path ...string) bool {
	node := map[string]any(f)
	for i, name := range path {
		next, ok := node[name]
		if !ok {
			return false
		}
		if i == len(path)-1 {
			return true
		}
		if node, ok = next.(map[string]any); !ok {
			return false
		}
	}
	return false
}

// isOurs selects what our applies own.
func isOurs(e metav1.ManagedFieldsEntry) bool {
	return e.Manager == FieldManager && e.Operation == metav1.ManagedFieldsOperationApply
}

// isForeign selects what anybody else owns.
func isForeign(e metav1.ManagedFieldsEntry) bool { return e.Manager != FieldManager }

// isForeignApply selects what somebody else keeps applying.
func isForeignApply(e metav1.ManagedFieldsEntry) bool {
	return isForeign(e) && e.Operation == metav1.ManagedFieldsOperationApply
}

// ownedBy returns the fields of the managers selected. Entries that cannot be
// read count as empty.
func ownedBy(live *corev1.Service, selected func(metav1.ManagedFieldsEntry) bool) fields {
	set := fields{}
	for _, entry := range live.ManagedFields {
		if !selected(entry) || entry.FieldsV1 == nil {
			continue
		}
		var read map[string]any
		if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &read) == nil {
			merge(set, read)
		}
	}
	return set
}

// merge adds the fields of b to a.
func merge(a, b map[string]any) {
	for name, below := range b {
		old, ok := a[name].(map[string]any)
		if added, isMap := below.(map[string]any); ok && isMap {
			merge(old, added)
			continue
		}
		if _, there := a[name]; !there {
			a[name] = below
		}
	}
}
