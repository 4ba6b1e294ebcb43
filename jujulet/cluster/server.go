// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cluster

import (
	"context"
	"errors"
	"net/http"
)

// Server is one embedded Kubernetes API. It is safe for concurrent use.
type Server struct{}

// New makes a server, loads what Options.DB holds and makes sure that the namespaces "default" and
// "kube-system" and the Service "kubernetes" exist. Many servers in one process are cheap: the schema
// is parsed once.
func New(o Options) (*Server, error) { return nil, errors.New("unfinished") }

// Run runs the controllers (garbage collection by owner, endpoint slices) until ctx ends. Without it
// objects are stored and served, nothing else happens to them.
func (s *Server) Run(ctx context.Context) error { return errors.New("unfinished") }

// Handler serves the API. A request with "Authorization: Bearer TOKEN" acts as the account that
// SetAccount gave that token; TLS is the caller's.
func (s *Server) Handler() http.Handler { return nil }

// RoundTripper sends requests to Handler without a socket; the host in the URL is ignored. Bodies of
// watches stream.
func (s *Server) RoundTripper() http.RoundTripper { return nil }

// Admin is direct access for the runner itself.
func (s *Server) Admin() *Admin { return nil }

// SetAccount makes or replaces the service account name in namespace: who presents token acts as
// system:serviceaccount:<namespace>:<name> with exactly these rules, from the next request on. It is
// persisted.
func (s *Server) SetAccount(namespace, name, token string, rules []Rule) error { return nil }

// RemoveAccount forgets an account: its token is answered 401 from then on. Absent is no error.
func (s *Server) RemoveAccount(namespace, name string) error { return nil }

// UntrustedRules are what Juju 3.6 gives an application without trust: its namespace get and list;
// get, list, patch of pods and services and create of pods/exec in it; namespaces get and list
// everywhere.
func UntrustedRules(namespace string) []Rule { return nil }

// TrustedRules are what `juju trust --scope=cluster` gives: everything everywhere.
func TrustedRules() []Rule { return nil }

// SetFault lays f over Handler and RoundTripper: it sees each request first. nil goes on; an error
// with a Status (k8s.io/apimachinery/pkg/api/errors) is the answer; ErrDisconnect ends the connection
// without an answer; another error is a 500. f may sleep, minding the request's context. nil removes it.
func (s *Server) SetFault(f func(*http.Request) error) {}

// ErrDisconnect, returned by a fault, ends the connection without an answer.
var ErrDisconnect = errors.New("connection cut by a fault")

// Requests is how many HTTP requests were received, refused and faulted ones included.
func (s *Server) Requests() int64 { return 0 }
