// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package k8sservice

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
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

// InClusterOptions returns the options of a pod: the API's address from the
// environment, token, CA and namespace from the service account's folder,
// found below root ("" in production).
func InClusterOptions(getenv func(string) string, root string) (Options, error) { panic("unfinished") }

// Client reads and writes the few kinds that the charm needs. Every call is
// bounded by Options.Timeout, and repeated a few times within it when the API
// is busy. It is safe for concurrent use.
type Client struct{ o Options }

// NewClient returns a client; it makes no request.
func NewClient(o Options) (*Client, error) { return &Client{o: o}, nil }

// Requests returns how many requests have been made so far, repeated and
// failed ones included.
func (c *Client) Requests() int { panic("unfinished") }

// Service returns a Service, nil when there is none of that name.
func (c *Client) Service(ctx context.Context, name string) (*corev1.Service, error) {
	panic("unfinished")
}

// Apply makes the live Service (nil when there is none) what is desired and
// returns it as it came back, and the names of fields of somebody else that
// had to be removed because the new type forbids them. It never deletes the
// Service; between two load balancer classes it goes through NodePort.
func (c *Client) Apply(ctx context.Context, live *corev1.Service, d Desired, owner Owner) (*corev1.Service, []string, error) {
	panic("unfinished")
}

// Pod returns a pod, nil when there is none of that name.
func (c *Client) Pod(ctx context.Context, name string) (*corev1.Pod, error) { panic("unfinished") }

// Pods returns the application's pods, sorted by name.
func (c *Client) Pods(ctx context.Context, app string) ([]corev1.Pod, error) { panic("unfinished") }

// Node returns a node, nil when there is none of that name.
func (c *Client) Node(ctx context.Context, name string) (*corev1.Node, error) { panic("unfinished") }

// Events returns the events about a Service, oldest first.
func (c *Client) Events(ctx context.Context, service, uid string) ([]corev1.Event, error) {
	panic("unfinished")
}

// PendingReason returns the text of the newest warning among a Service's
// events ("" without one), in one line: why it has no address.
func PendingReason(events []corev1.Event) string { panic("unfinished") }
