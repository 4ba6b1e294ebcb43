// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cluster

import (
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// kindFor is the kind of the type parameter of the functions of this file.
func kindFor[T Object](a *Admin) (Kind, error) {
	var none T
	empty, ok := reflect.New(reflect.TypeOf(none).Elem()).Interface().(Object)
	if !ok {
		return "", fmt.Errorf("cannot use a %T: it is not in the table of kinds", none)
	}
	k, err := a.kindOf(empty)
	if err != nil {
		return "", err
	}
	return k.Kind, nil
}

func as[T Object](o Object, err error) (T, error) {
	if err != nil {
		var none T
		return none, err
	}
	return o.(T), nil
}

// Get reads one object of type T, as in Get[*corev1.Service](admin, "dev", "db").
func Get[T Object](a *Admin, namespace, name string) (T, error) {
	k, err := kindFor[T](a)
	if err != nil {
		return as[T](nil, err)
	}
	return as[T](a.Get(k, namespace, name))
}

// List reads all objects of type T in namespace ("" = all namespaces) that match a label selector
// ("" = all), sorted by namespace and name.
func List[T Object](a *Admin, namespace, labelSelector string) ([]T, error) {
	k, err := kindFor[T](a)
	if err != nil {
		return nil, err
	}
	items, err := a.List(k, ListOptions{Namespace: namespace, LabelSelector: labelSelector})
	if err != nil {
		return nil, err
	}
	out := make([]T, 0, len(items))
	for _, o := range items {
		out = append(out, o.(T))
	}
	return out, nil
}

// Change reads an object, lets change edit a copy, and stores it (status apart); when another write came
// between, it starts again, so change must be repeatable. Its error ends the attempt and is returned.
func Change[T Object](a *Admin, namespace, name string, change func(T) error) (T, error) {
	return edit(a, namespace, name, a.Update, change)
}

// ChangeStatus is Change for the status.
func ChangeStatus[T Object](a *Admin, namespace, name string, change func(T) error) (T, error) {
	return edit(a, namespace, name, a.UpdateStatus, change)
}

func edit[T Object](a *Admin, namespace, name string, store func(Object) (Object, error), change func(T) error) (T, error) {
	for {
		live, err := Get[T](a, namespace, name)
		if err != nil {
			return live, err
		}
		next := live.DeepCopyObject().(T)
		if err := change(next); err != nil {
			return live, err
		}
		out, err := store(next)
		if !apierrors.IsConflict(err) {
			return as[T](out, err)
		}
	}
}

// Ensure creates obj, or updates the object of that name to it (status apart) when it exists.
func Ensure[T Object](a *Admin, obj T) (T, error) {
	out, err := a.Create(obj)
	if apierrors.IsAlreadyExists(err) {
		out, err = a.Update(obj)
	}
	return as[T](out, err)
}
