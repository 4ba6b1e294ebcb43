// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package k8sservice

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// watchSeconds is how long the server keeps one stream; the caller opens
// another.
const watchSeconds = 600

// WatchService calls changed with the Service of a name, and with nil when it
// is deleted, until the stream ends: nil if the server ended it, else the
// error. It starts with the state as the server has it cached; a Service that
// is not there gives silence, so read it first. Any end means: read again,
// compare, watch again.
func (c *Client) WatchService(ctx context.Context, name string, changed func(*corev1.Service)) error {
	request := c.rest.Get().Namespace(c.o.Namespace).Resource("services").Param("fieldSelector", "metadata.name="+name)
	return stream(ctx, request, changed)
}

// WatchNode does for a node what WatchService does for a Service.
func (c *Client) WatchNode(ctx context.Context, name string, changed func(*corev1.Node)) error {
	request := c.rest.Get().Resource("nodes").Param("fieldSelector", "metadata.name="+name)
	return stream(ctx, request, changed)
}

// acceptMetadata asks for an object's metadata alone.
const acceptMetadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

// WatchConfigMap does for a ConfigMap what WatchService does for a Service, but tells its version only ("" when it is
// deleted): the content of many that change together does not fit into a small process, and who wants it can read it.
func (c *Client) WatchConfigMap(ctx context.Context, name string, changed func(version string)) error {
	request := c.rest.Get().Namespace(c.o.Namespace).Resource("configmaps").
		Param("fieldSelector", "metadata.name="+name).SetHeader("Accept", acceptMetadata)
	return events(ctx, request, func(e watch.Event) {
		object, ok := e.Object.(metav1.Object)
		switch {
		case !ok || object.GetName() != name:
		case e.Type == watch.Deleted:
			changed("")
		default:
			changed(object.GetResourceVersion())
		}
	})
}

// WatchPods calls changed with every pod of the application that changes or,
// gone being true, is deleted, until the stream ends, as WatchService does.
func (c *Client) WatchPods(ctx context.Context, app string, changed func(pod *corev1.Pod, gone bool)) error {
	request := c.rest.Get().Namespace(c.o.Namespace).Resource("pods").Param("labelSelector", LabelApp+"="+app)
	return events(ctx, request, func(e watch.Event) {
		if pod, ok := e.Object.(*corev1.Pod); ok {
			changed(pod, e.Type == watch.Deleted)
		}
	})
}

// stream watches one object.
func stream[T any](ctx context.Context, request *rest.Request, changed func(*T)) error {
	return events(ctx, request, func(e watch.Event) {
		if v, ok := e.Object.(any).(*T); ok {
			if e.Type == watch.Deleted {
				v = nil
			}
			changed(v)
		}
	})
}

// events opens a watch and passes on what it says until it ends. Version 0
// makes it start with the present state, whatever the age of the object.
func events(ctx context.Context, request *rest.Request, handle func(watch.Event)) error {
	w, err := request.Param("watch", "true").Param("resourceVersion", "0").
		Param("timeoutSeconds", strconv.Itoa(watchSeconds)).MaxRetries(0).Watch(ctx)
	if err != nil {
		return fmt.Errorf("cannot watch: %w", err)
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case e, open := <-w.ResultChan():
			switch {
			case !open:
				return nil
			case e.Type == watch.Error:
				return fmt.Errorf("cannot watch: %w", apierrors.FromObject(e.Object))
			case e.Type == watch.Added, e.Type == watch.Modified, e.Type == watch.Deleted:
				handle(e)
			}
		}
	}
}

// Older reports whether the version a of an object precedes b. Versions that
// cannot be compared do not precede one another.
func Older(a, b string) bool {
	x, errX := strconv.ParseUint(a, 10, 64)
	y, errY := strconv.ParseUint(b, 10, 64)
	return errors.Join(errX, errY) == nil && x < y
}
