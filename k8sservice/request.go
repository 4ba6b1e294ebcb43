// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package k8sservice

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

// object is what a request reads into.
type object = runtime.Object

// DefaultTimeout bounds one call with its retries.
const DefaultTimeout = 10 * time.Second

const (
	mostAttempts = 4
	firstBackoff = 100 * time.Millisecond
	longestWait  = 2 * time.Second
)

// NewClient returns a client; it makes no request. It fails when the CA or
// the address is unusable.
func NewClient(o Options) (*Client, error) {
	if o.FieldManager == "" {
		o.FieldManager = FieldManager
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Client{o: o}
	config, err := c.config()
	if err != nil {
		return nil, err
	}
	if c.http, err = rest.HTTPClientFor(config); err != nil {
		return nil, fmt.Errorf("cannot prepare the Kubernetes client: %w", err)
	}
	if c.rest, err = rest.RESTClientForConfigAndClient(config, c.http); err != nil {
		return nil, fmt.Errorf("cannot prepare the Kubernetes client: %w", err)
	}
	return c, nil
}

func (c *Client) config() (*rest.Config, error) {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(corev1.SchemeGroupVersion,
		&corev1.Service{}, &corev1.Pod{}, &corev1.PodList{}, &corev1.Node{}, &corev1.ConfigMap{},
		&corev1.Event{}, &corev1.EventList{})
	metav1.AddToGroupVersion(scheme, corev1.SchemeGroupVersion)
	scheme.AddKnownTypes(metav1.SchemeGroupVersion, &metav1.PartialObjectMetadata{})
	config := &rest.Config{
		Host:    c.o.Host,
		APIPath: "/api",
		ContentConfig: rest.ContentConfig{
			ContentType:          runtime.ContentTypeJSON,
			GroupVersion:         &corev1.SchemeGroupVersion,
			NegotiatedSerializer: serializer.NewCodecFactory(scheme).WithoutConversion(),
		},
		UserAgent:                 FieldManager,
		QPS:                       -1, // the default would make a hook sleep
		WarningHandlerWithContext: warnings{c.o.Logger},
		Transport:                 c.o.Transport,
		WrapTransport: func(next http.RoundTripper) http.RoundTripper {
			return &authorized{c: c, next: next}
		},
	}
	if c.o.Transport == nil {
		ca, err := os.ReadFile(c.o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("cannot read the CA of the Kubernetes API: %w", err)
		}
		config.CAData = ca
		// A proxy of the model is not for the pod's own API server.
		config.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	}
	return config, nil
}

// authorized counts requests and puts the token on them.
type authorized struct {
	c    *Client
	next http.RoundTripper
}

// RoundTrip sends the request with the token as the file has it now.
func (a *authorized) RoundTrip(r *http.Request) (*http.Response, error) {
	a.c.requests.Add(1)
	if a.c.o.TokenFile != "" {
		token, err := os.ReadFile(a.c.o.TokenFile)
		if err != nil {
			return nil, fmt.Errorf("cannot read the service account's token: %w", err)
		}
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+string(bytes.TrimSpace(token)))
	}
	return a.next.RoundTrip(r)
}

// warnings logs what the server warns of.
type warnings struct{ log *slog.Logger }

// HandleWarningHeaderWithContext logs one warning.
func (w warnings) HandleWarningHeaderWithContext(_ context.Context, code int, _ string, text string) {
	if code == 299 && text != "" {
		w.log.Debug("the Kubernetes API warns", "warning", oneLine(text))
	}
}

// timeoutError says which bound has passed.
type timeoutError struct{ after time.Duration }

func (e *timeoutError) Error() string { return "timed out after " + e.after.String() }

// Unwrap makes it a deadline exceeded.
func (e *timeoutError) Unwrap() error { return context.DeadlineExceeded }

// do makes one call, and makes it again a few times while the API is busy and
// the time lasts. A refused token is read again, once.
func (c *Client) do(ctx context.Context, call func(context.Context) error) error {
	bound, cancel := context.WithTimeoutCause(ctx, c.o.Timeout, &timeoutError{c.o.Timeout})
	defer cancel()
	unauthorized := false
	for attempt := 1; ; attempt++ {
		err := call(bound)
		switch {
		case err == nil:
			return nil
		case bound.Err() != nil:
			return errors.Join(context.Cause(bound), err)
		case apierrors.IsUnauthorized(err) && !unauthorized:
			unauthorized = true
			continue
		case attempt >= mostAttempts || !retryable(err):
			return err
		}
		wait := firstBackoff << (attempt - 1)
		if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
			wait = max(wait, time.Duration(seconds)*time.Second)
		}
		if wait > longestWait {
			return err // later, then; the hook must go on
		}
		c.o.Logger.Debug("the Kubernetes API is busy", "attempt", attempt, "error", oneLine(err.Error()))
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-bound.Done():
			timer.Stop()
			return errors.Join(context.Cause(bound), err)
		}
	}
}
