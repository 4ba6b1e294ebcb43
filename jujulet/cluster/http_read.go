// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cluster

import (
	"fmt"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// selection is what a list or watch asks for.
type selection struct {
	kind      *kind
	namespace string
	name      string
	labels    labels.Selector
	fields    fields.Selector
}

// matches reports whether obj (nil: absent) belongs to the selection.
func (s selection) matches(obj Object) bool {
	if obj == nil {
		return false
	}
	if s.namespace != "" && obj.GetNamespace() != s.namespace || s.name != "" && obj.GetName() != s.name {
		return false
	}
	if s.labels != nil && !s.labels.Matches(labels.Set(obj.GetLabels())) {
		return false
	}
	return s.fields == nil || s.fields.Empty() || s.fields.Matches(fieldSet(s.kind, obj))
}

// fieldSet has all that a field selector may ask about obj.
func fieldSet(k *kind, obj Object) fields.Set {
	set := fields.Set{"metadata.name": obj.GetName()}
	if k.namespaced {
		set["metadata.namespace"] = obj.GetNamespace()
	}
	for name, v := range k.fields(obj) {
		set[name] = v
	}
	return set
}

// nameSelected is the name that a field selector asks for exactly; rights by resourceNames count it.
func nameSelected(selector string) string {
	s, err := fields.ParseSelector(selector)
	if err != nil {
		return ""
	}
	name, _ := s.RequiresExactMatch("metadata.name")
	return name
}

func (c *call) selection() (selection, error) {
	s := selection{kind: c.kind, namespace: c.namespace}
	if !c.kind.namespaced {
		s.namespace = ""
	}
	var err error
	if s.labels, err = labels.Parse(c.query.Get("labelSelector")); err != nil {
		return s, apierrors.NewBadRequest(fmt.Sprintf("unable to parse requirement: %v", err))
	}
	text := c.query.Get("fieldSelector")
	if s.fields, err = fields.ParseSelector(text); err != nil {
		return s, apierrors.NewBadRequest(err.Error())
	}
	known := fieldSet(c.kind, c.kind.empty())
	for _, r := range s.fields.Requirements() {
		if _, ok := known[r.Field]; !ok {
			return s, apierrors.NewBadRequest(fmt.Sprintf("Unable to find %q that match label selector %q, field selector %q: field label not supported: %s",
				c.kind.gvk.GroupVersion().WithResource(c.resource).String(), c.query.Get("labelSelector"), text, r.Field))
		}
	}
	return s, nil
}

// snapshot reads what a selection shows now, and the version of that.
func (s *Server) snapshot(sel selection) ([]Object, int64) {
	s.store.mu.RLock()
	defer s.store.mu.RUnlock()
	return s.selected(sel), s.store.version
}

// selected is snapshot under the lock.
func (s *Server) selected(sel selection) []Object {
	var out []Object
	for _, o := range s.store.list(sel.kind.Kind, sel.namespace) {
		if sel.matches(o) {
			out = append(out, o)
		}
	}
	return out
}

func (c *call) get() error {
	c.store.mu.RLock()
	namespace := c.namespace
	if !c.kind.namespaced {
		namespace = ""
	}
	obj, now := c.store.get(c.kind.Kind, namespace, c.action.name), c.store.version
	c.store.mu.RUnlock()
	if err := c.checkVersion(now); err != nil {
		return err
	}
	if obj == nil {
		return apierrors.NewNotFound(c.kind.resource(), c.action.name)
	}
	if c.wantsMetadata() {
		c.json(http.StatusOK, partial(obj))
		return nil
	}
	return c.object(http.StatusOK, obj)
}

func (c *call) listAll() error {
	sel, err := c.selection()
	if err != nil {
		return err
	}
	items, version := c.snapshot(sel)
	if err := c.checkVersion(version); err != nil {
		return err
	}
	if c.wantsTable() {
		table, err := c.table(items, formatVersion(version))
		if err != nil {
			return err
		}
		c.json(http.StatusOK, table)
		return nil
	}
	if c.wantsMetadata() {
		c.json(http.StatusOK, partialList(items, version))
		return nil
	}
	c.json(http.StatusOK, c.asList(items, version))
	return nil
}

// asList is the list object of a kind. All of it is given whatever limit was asked for.
func (c *call) asList(items []Object, version int64) runtime.Object {
	list := c.kind.list(items, metav1.ListMeta{ResourceVersion: formatVersion(version)})
	list.GetObjectKind().SetGroupVersionKind(c.kind.gvk.GroupVersion().WithKind(string(c.kind.Kind) + "List"))
	return list
}

// checkVersion refuses a read at a version that is not there yet, or exactly at one that is past.
func (c *call) checkVersion(now int64) error {
	text := c.query.Get("resourceVersion")
	if text == "" || text == "0" {
		return nil
	}
	v, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	switch {
	case int64(v) > now:
		return tooLarge(int64(v), now)
	case c.query.Get("resourceVersionMatch") == string(metav1.ResourceVersionMatchExact) && int64(v) < now:
		return apierrors.NewResourceExpired("The resourceVersion for the provided list is too old.")
	}
	return nil
}

// tooLarge is the answer to a version of the future.
func tooLarge(v, now int64) *apierrors.StatusError {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", v, now), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
	return err
}
