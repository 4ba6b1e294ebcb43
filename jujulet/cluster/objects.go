// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cluster

import (
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// largestData is how many bytes the values of a ConfigMap or Secret may have together.
const largestData = 1 << 20

func validateConfigMap(next, live *corev1.ConfigMap) field.ErrorList {
	var errs field.ErrorList
	size := 0
	for _, key := range slices.Sorted(maps.Keys(next.Data)) {
		size += len(next.Data[key])
		errs = append(errs, dataKey(key, field.NewPath("data").Key(key))...)
		if _, ok := next.BinaryData[key]; ok {
			errs = append(errs, field.Invalid(field.NewPath("data").Key(key), key, "duplicate of key present in binaryData"))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(next.BinaryData)) {
		size += len(next.BinaryData[key])
		errs = append(errs, dataKey(key, field.NewPath("binaryData").Key(key))...)
	}
	if size > largestData {
		errs = append(errs, field.TooLong(field.NewPath(""), "", largestData))
	}
	if live == nil || live.Immutable == nil || !*live.Immutable {
		return errs
	}
	const fixed = "field is immutable when `immutable` is set"
	if next.Immutable == nil || !*next.Immutable {
		errs = append(errs, field.Forbidden(field.NewPath("immutable"), fixed))
	}
	if !equality.Semantic.DeepEqual(next.Data, live.Data) {
		errs = append(errs, field.Forbidden(field.NewPath("data"), fixed))
	}
	if !equality.Semantic.DeepEqual(next.BinaryData, live.BinaryData) {
		errs = append(errs, field.Forbidden(field.NewPath("binaryData"), fixed))
	}
	return errs
}

func dataKey(key string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, msg := range validation.IsConfigMapKey(key) {
		errs = append(errs, field.Invalid(path, key, msg))
	}
	return errs
}

// defaultSecret moves stringData, which is write-only, into data.
func defaultSecret(s *corev1.Secret) {
	fillString(&s.Type, corev1.SecretTypeOpaque)
	for key, value := range s.StringData {
		if s.Data == nil {
			s.Data = map[string][]byte{}
		}
		s.Data[key] = []byte(value)
	}
	s.StringData = nil
}

func validateSecret(next, live *corev1.Secret) field.ErrorList {
	var errs field.ErrorList
	size := 0
	for _, key := range slices.Sorted(maps.Keys(next.Data)) {
		size += len(next.Data[key])
		errs = append(errs, dataKey(key, field.NewPath("data").Key(key))...)
	}
	if size > largestData {
		errs = append(errs, field.TooLong(field.NewPath("data"), "", largestData))
	}
	if live == nil {
		return errs
	}
	if next.Type != live.Type {
		errs = append(errs, field.Invalid(field.NewPath("type"), next.Type, "field is immutable"))
	}
	if live.Immutable != nil && *live.Immutable {
		const fixed = "field is immutable when `immutable` is set"
		if next.Immutable == nil || !*next.Immutable {
			errs = append(errs, field.Forbidden(field.NewPath("immutable"), fixed))
		}
		if !equality.Semantic.DeepEqual(next.Data, live.Data) {
			errs = append(errs, field.Forbidden(field.NewPath("data"), fixed))
		}
	}
	return errs
}

func defaultNamespace(n *corev1.Namespace) {
	if n.Name == "" {
		return
	}
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	n.Labels[corev1.LabelMetadataName] = n.Name
}

func prepareNamespace(next, live *corev1.Namespace) {
	if live == nil {
		next.Status = corev1.NamespaceStatus{Phase: corev1.NamespaceActive}
		next.Spec.Finalizers = []corev1.FinalizerName{corev1.FinalizerKubernetes}
		return
	}
	next.Spec.Finalizers = live.Spec.Finalizers
	next.Status = live.Status
}

func nodeFields(n *corev1.Node) map[string]string {
	return map[string]string{"spec.unschedulable": strconv.FormatBool(n.Spec.Unschedulable)}
}

// validateEvent: an event is in the namespace of the object that it is about.
func validateEvent(next, live *corev1.Event) field.ErrorList {
	path := field.NewPath("involvedObject", "namespace")
	about := next.InvolvedObject.Namespace
	if about == "" && next.Namespace != "default" || about != "" && about != next.Namespace {
		return field.ErrorList{field.Invalid(path, about, "does not match event.namespace")}
	}
	return nil
}

func eventFields(e *corev1.Event) map[string]string {
	source := e.Source.Component
	if source == "" {
		source = e.ReportingController
	}
	o := e.InvolvedObject
	return map[string]string{
		"involvedObject.kind": o.Kind, "involvedObject.namespace": o.Namespace, "involvedObject.name": o.Name,
		"involvedObject.uid": string(o.UID), "involvedObject.apiVersion": o.APIVersion,
		"involvedObject.resourceVersion": o.ResourceVersion, "involvedObject.fieldPath": o.FieldPath,
		"reason": e.Reason, "reportingComponent": e.ReportingController, "source": source, "type": e.Type,
	}
}
