// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package k8sservice

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
)

// Options say how to reach the Kubernetes API.
type Options struct {
	Host         string // "https://10.152.183.1:443"
	TokenFile    string // read for every request: Kubernetes replaces its content
	CAFile       string
	Namespace    string
	FieldManager string            // "" is FieldManager
	Transport    http.RoundTripper // instead of the network, for tests; CAFile is not read then
	Logger       *slog.Logger      // server warnings and retries; nil discards
	Timeout      time.Duration     // of one call with its retries; 0 is 10 s
}

// serviceAccount is the folder that Kubernetes mounts into every container.
const serviceAccount = "var/run/secrets/kubernetes.io/serviceaccount"

// InClusterOptions returns the options of a pod: the API's address from the
// environment, token, CA and namespace from the service account's folder,
// found below root ("" in production).
func InClusterOptions(getenv func(string) string, root string) (Options, error) {
	host, port := getenv("KUBERNETES_SERVICE_HOST"), getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return Options{}, errors.New("cannot reach the Kubernetes API: KUBERNETES_SERVICE_HOST or KUBERNETES_SERVICE_PORT is not set")
	}
	folder := filepath.Join(root, "/", serviceAccount)
	namespace, err := os.ReadFile(filepath.Join(folder, "namespace"))
	if err != nil {
		return Options{}, fmt.Errorf("cannot read the pod's namespace: %w", err)
	}
	return Options{
		Host:      "https://" + net.JoinHostPort(host, port),
		TokenFile: filepath.Join(folder, "token"),
		CAFile:    filepath.Join(folder, "ca.crt"),
		Namespace: strings.TrimSpace(string(namespace)),
	}, nil
}

// Client reads and writes the few kinds that the charm needs. Every call is
// bounded by Options.Timeout, and repeated a few times within it when the API
// is busy. It is safe for concurrent use.
type Client struct {
	o        Options
	rest     rest.Interface
	http     *http.Client
	requests atomic.Int64
}

// Requests returns how many requests have been made so far, repeated and
// failed ones included.
func (c *Client) Requests() int { return int(c.requests.Load()) }

// Close gives up idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Service returns a Service, nil when there is none of that name.
func (c *Client) Service(ctx context.Context, name string) (*corev1.Service, error) {
	return get(ctx, c, c.namespaced("services", name), new(corev1.Service))
}

// Pod returns a pod, nil when there is none of that name.
func (c *Client) Pod(ctx context.Context, name string) (*corev1.Pod, error) {
	return get(ctx, c, c.namespaced("pods", name), new(corev1.Pod))
}

// Node returns a node, nil when there is none of that name.
func (c *Client) Node(ctx context.Context, name string) (*corev1.Node, error) {
	return get(ctx, c, func() *rest.Request { return c.rest.Get().Resource("nodes").Name(name) }, new(corev1.Node))
}

// Pods returns the application's pods, sorted by name.
func (c *Client) Pods(ctx context.Context, app string) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := c.do(ctx, func(ctx context.Context) error {
		return c.rest.Get().Namespace(c.o.Namespace).Resource("pods").
			Param("labelSelector", LabelApp+"="+app).MaxRetries(0).Do(ctx).Into(&list)
	})
	if err != nil {
		return nil, fmt.Errorf("cannot list pods of %q: %w", app, err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return list.Items, nil
}

// ConfigMap returns a ConfigMap, nil when there is none of that name.
func (c *Client) ConfigMap(ctx context.Context, name string) (*corev1.ConfigMap, error) {
	return get(ctx, c, c.namespaced("configmaps", name), new(corev1.ConfigMap))
}

// CreateEvent makes an Event in the pod's namespace. One of that name that is there already is no error: the name of an
// Event of ours says what it tells.
func (c *Client) CreateEvent(ctx context.Context, event *corev1.Event) error {
	err := c.do(ctx, func(ctx context.Context) error {
		return c.rest.Post().Namespace(c.o.Namespace).Resource("events").Body(event).MaxRetries(0).Do(ctx).Error()
	})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("cannot create Event %q: %w", event.Name, err)
	}
	return nil
}

// Events returns the events about a Service, oldest first.
func (c *Client) Events(ctx context.Context, service, uid string) ([]corev1.Event, error) {
	selector := "involvedObject.kind=Service,involvedObject.name=" + service
	if uid != "" {
		selector += ",involvedObject.uid=" + uid
	}
	var list corev1.EventList
	err := c.do(ctx, func(ctx context.Context) error {
		return c.rest.Get().Namespace(c.o.Namespace).Resource("events").
			Param("fieldSelector", selector).MaxRetries(0).Do(ctx).Into(&list)
	})
	if err != nil {
		return nil, fmt.Errorf("cannot list events of Service %q: %w", service, err)
	}
	slices.SortStableFunc(list.Items, func(a, b corev1.Event) int { return eventTime(a).Compare(eventTime(b)) })
	return list.Items, nil
}

// eventTime is when an event happened last, in whichever field its source
// writes it.
func eventTime(e corev1.Event) time.Time {
	last := e.LastTimestamp.Time
	for _, t := range []time.Time{e.EventTime.Time, e.FirstTimestamp.Time, e.CreationTimestamp.Time} {
		if last.IsZero() {
			last = t
		}
	}
	if e.Series != nil && e.Series.LastObservedTime.After(last) {
		last = e.Series.LastObservedTime.Time
	}
	return last
}

// PendingReason returns the text of the newest warning among a Service's
// events ("" without one), in one line: why it has no address.
func PendingReason(events []corev1.Event) string {
	var newest *corev1.Event
	for i := range events {
		e := &events[i]
		if e.Type == corev1.EventTypeWarning && (newest == nil || !eventTime(*e).Before(eventTime(*newest))) {
			newest = e
		}
	}
	if newest == nil {
		return ""
	}
	if newest.Message == "" {
		return oneLine(newest.Reason)
	}
	return oneLine(newest.Reason + ": " + newest.Message)
}

func (c *Client) namespaced(resource, name string) func() *rest.Request {
	return func() *rest.Request { return c.rest.Get().Namespace(c.o.Namespace).Resource(resource).Name(name) }
}

// get reads one object into v and returns it, nil when it is not there.
func get[T any, P interface {
	*T
	object
}](ctx context.Context, c *Client, request func() *rest.Request, v P) (P, error) {
	err := c.do(ctx, func(ctx context.Context) error { return request().MaxRetries(0).Do(ctx).Into(v) })
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("cannot read from the Kubernetes API: %w", err)
	}
	return v, nil
}
