// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cluster

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// systemManager is the field manager of the server's own writes.
const systemManager = "jujulet"

// Server is one embedded Kubernetes API. It is safe for concurrent use.
type Server struct {
	options  Options
	rules    *rules
	store    *store
	accounts *accounts
	ranges   *ranges
	requests atomic.Int64
	fault    atomic.Pointer[func(*http.Request) error]
	closed   chan struct{}
	closing  sync.Once
}

// New makes a server, loads what Options.DB holds and makes sure that the namespaces "default" and
// "kube-system" and the Service "kubernetes" exist. Many servers in one process are cheap: the schema
// is parsed once.
func New(o Options) (*Server, error) {
	o.setDefaults()
	r, err := sharedRules()
	if err != nil {
		return nil, err
	}
	numbers, err := newRanges(o)
	if err != nil {
		return nil, err
	}
	s := &Server{options: o, rules: r, accounts: newAccounts(), ranges: numbers, store: newStore(o.History, nil), closed: make(chan struct{})}
	if err := s.load(); err != nil {
		return nil, err
	}
	if err := s.bootstrap(); err != nil {
		return nil, fmt.Errorf("cannot make the first objects of the cluster: %w", err)
	}
	return s, nil
}

func (o *Options) setDefaults() {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.NodePortFirst == 0 && o.NodePortLast == 0 {
		o.NodePortFirst, o.NodePortLast = 30000, 32767
	}
	if o.ServiceCIDR == "" {
		o.ServiceCIDR = "10.152.183.0/24"
	}
	if o.History <= 0 {
		o.History = 1024
	}
}

// load reads what an earlier server left in the database.
func (s *Server) load() error {
	if s.options.DB == nil {
		return nil
	}
	d, version, err := openDisk(s.options.DB)
	if err != nil {
		return err
	}
	s.store.disk = d
	s.store.version, s.store.floor = version, version
	if err := d.load(s.rules.byKind, func(k *kind, o Object) { s.store.put(k.Kind, o) }); err != nil {
		return err
	}
	return d.loadAccounts(s.accounts.set)
}

// bootstrap makes the objects that every cluster has.
func (s *Server) bootstrap() error {
	if s.options.Reserved == nil {
		s.ranges.reserved[s.ranges.address(10)] = true
	}
	a := s.Admin()
	for _, name := range []string{"default", "kube-system"} {
		if s.store.get(Namespace, "", name) != nil {
			continue
		}
		if _, err := a.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return err
		}
	}
	if s.store.get(Service, "default", "kubernetes") != nil {
		return nil
	}
	_, err := a.Create(&corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "kubernetes", Namespace: "default", Labels: map[string]string{"component": "apiserver", "provider": "kubernetes"}},
		Spec: corev1.ServiceSpec{
			ClusterIP: s.ranges.address(1).String(),
			Ports:     []corev1.ServicePort{{Name: "https", Port: 443}},
		},
	})
	return err
}

// Close ends all watches. The database stays open.
func (s *Server) Close() { s.closing.Do(func() { close(s.closed) }) }

// Handler serves the API. A request with "Authorization: Bearer TOKEN" acts as the account that
// SetAccount gave that token; TLS is the caller's.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.serve) }

// Admin is direct access for the runner itself.
func (s *Server) Admin() *Admin { return &Admin{s} }

// SetAccount makes or replaces the service account name in namespace: who presents token acts as
// system:serviceaccount:<namespace>:<name> with exactly these rules, from the next request on. It is
// persisted; setting what is there already costs nothing.
func (s *Server) SetAccount(namespace, name, token string, rules []Rule) error {
	if namespace == "" || name == "" || token == "" {
		return errors.New("cannot set account: namespace, name and token are needed")
	}
	a := &account{Namespace: namespace, Name: name, Token: token, Rules: slices.Clone(rules)}
	if other := s.accounts.find(token); other != nil && other.key() != a.key() {
		return fmt.Errorf("cannot set account %q: its token is that of another account", a.key())
	}
	if s.accounts.has(a) {
		return nil
	}
	if d := s.store.disk; d != nil {
		if err := d.saveAccount(a.key(), a); err != nil {
			return fmt.Errorf("cannot store account %q: %w", a.key(), err)
		}
	}
	s.accounts.set(a)
	return nil
}

// RemoveAccount forgets an account: its token is answered 401 from then on. Absent is no error.
func (s *Server) RemoveAccount(namespace, name string) error {
	key := storeKey(namespace, name)
	if d := s.store.disk; d != nil {
		if err := d.saveAccount(key, nil); err != nil {
			return fmt.Errorf("cannot remove account %q: %w", key, err)
		}
	}
	s.accounts.remove(key)
	return nil
}

// Token is the token of an account, "" when there is none.
func (s *Server) Token(namespace, name string) string {
	s.accounts.mu.RLock()
	defer s.accounts.mu.RUnlock()
	if a := s.accounts.byKey[storeKey(namespace, name)]; a != nil {
		return a.Token
	}
	return ""
}

// SetFault lays f over Handler and RoundTripper: it sees each request first. nil goes on; an error
// with a Status (k8s.io/apimachinery/pkg/api/errors) is the answer; ErrDisconnect ends the connection
// without an answer; another error is a 500. f may sleep, minding the request's context. nil removes it.
func (s *Server) SetFault(f func(*http.Request) error) {
	if f == nil {
		s.fault.Store(nil)
		return
	}
	s.fault.Store(&f)
}

// ErrDisconnect, returned by a fault, ends the connection without an answer.
var ErrDisconnect = errors.New("connection cut by a fault")

// Requests is how many HTTP requests were received, refused and faulted ones included.
func (s *Server) Requests() int64 { return s.requests.Load() }
