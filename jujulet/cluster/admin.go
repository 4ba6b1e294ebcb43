// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cluster

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"
)

// Admin acts on the store with Go values: no rights are asked and nothing is encoded, all other rules
// (defaults, validation, allocation, field ownership, no-op detection) are those of the HTTP door.
// Errors are those of k8s.io/apimachinery/pkg/api/errors. Objects handed out are shared with the
// store: read only. Objects handed in are not kept and not changed.
type Admin struct{ s *Server }

// ListOptions narrow a list or a watch. The zero value is everything.
type ListOptions struct {
	Namespace     string
	Name          string
	LabelSelector string
}

// Get reads one object; namespace is "" for Nodes and Namespaces.
func (a *Admin) Get(kind Kind, namespace, name string) (Object, error) {
	return nil, errors.New("unfinished")
}

// List reads objects, sorted by namespace and name.
func (a *Admin) List(kind Kind, o ListOptions) ([]Object, error) {
	return nil, errors.New("unfinished")
}

// Create stores a new object and returns it as stored.
func (a *Admin) Create(obj Object) (Object, error) { return nil, errors.New("unfinished") }

// Update replaces an object, its status apart. A resourceVersion in obj must be the current one; none
// means unconditional.
func (a *Admin) Update(obj Object) (Object, error) { return nil, errors.New("unfinished") }

// UpdateStatus replaces the status (and metadata) of an object.
func (a *Admin) UpdateStatus(obj Object) (Object, error) { return nil, errors.New("unfinished") }

// Apply is a server-side apply of what is set in obj, by manager. force takes over what others own.
func (a *Admin) Apply(obj Object, manager string, force bool) (Object, error) {
	return nil, errors.New("unfinished")
}

// Patch applies a merge, strategic or JSON patch; subresource is "" or "status".
func (a *Admin) Patch(kind Kind, namespace, name, subresource string, t types.PatchType, data []byte) (Object, error) {
	return nil, errors.New("unfinished")
}

// Delete removes an object, or marks it as terminating while it has finalizers. Absent is a NotFound
// error.
func (a *Admin) Delete(kind Kind, namespace, name string) error { return errors.New("unfinished") }

// Watch sends the present state as Added events, then every change, until ctx ends; then the channel
// is closed. No kinds means all. A slow reader loses nothing (the queue grows).
func (a *Admin) Watch(ctx context.Context, o ListOptions, kinds ...Kind) <-chan Event { return nil }

// Get reads one object of type T, as in Get[*corev1.Service](admin, "dev", "db").
func Get[T Object](a *Admin, namespace, name string) (T, error) {
	var none T
	return none, errors.New("unfinished")
}

// List reads all objects of type T in namespace ("" = all namespaces) that match a label selector
// ("" = all), sorted by namespace and name.
func List[T Object](a *Admin, namespace, labelSelector string) ([]T, error) {
	return nil, errors.New("unfinished")
}

// Change reads an object, lets change edit a copy, and updates it; on a conflict it starts again.
// change must be repeatable; its error ends the attempt and is returned.
func Change[T Object](a *Admin, namespace, name string, change func(T) error) (T, error) {
	var none T
	return none, errors.New("unfinished")
}

// ChangeStatus is Change for the status.
func ChangeStatus[T Object](a *Admin, namespace, name string, change func(T) error) (T, error) {
	var none T
	return none, errors.New("unfinished")
}

// Ensure creates obj, or updates the object of that name to it (status apart) when it exists.
func Ensure[T Object](a *Admin, obj T) (T, error) {
	var none T
	return none, errors.New("unfinished")
}
