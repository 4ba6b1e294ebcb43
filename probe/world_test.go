// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package probe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drawbridge-k8s/drawbridge/k8sservice"
)

// world is what a watch under test sees, in a bubble of synthetic time. It is
// the looker, the sessions, the Pebble and, when hooks is set, the charm.
type world struct {
	t *testing.T
	w *watcher

	mu      sync.Mutex
	live    *corev1.Service
	nodes   []*corev1.Node
	partial bool
	changed chan struct{}
	rereads int
	lagging bool // a read takes long

	once     map[string]error // the next answer only
	answers  map[string]error // missing: does not answer within its deadline
	sessions []string         // addresses tried, with the millisecond
	notices  []int            // milliseconds
	down     bool             // Pebble
	begin    time.Time
}

var errRefused = errors.New("connection refused")

func newWorld(t *testing.T, kind corev1.ServiceType) *world {
	x := &world{t: t, changed: make(chan struct{}, 1), once: map[string]error{}, answers: map[string]error{"backend:3306": nil}, begin: time.Now()}
	x.live = &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "db-service", Namespace: "dev", UID: "uid-1"},
		Spec: corev1.ServiceSpec{Type: kind, ClusterIP: "10.152.183.7", Ports: []corev1.ServicePort{
			{Name: "mysql-rw", Port: 6446, NodePort: 30001}, {Name: "mysql-ro", Port: 6447, NodePort: 30002}}},
	}
	x.w = newWatcher(WatchDeps{Build: "b", Notifier: x, Logger: discard(),
		Session: func(Login) Session { return x.session }}, x)
	return x
}

func (x *world) look() (look, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return look{live: x.live.DeepCopy(), nodes: x.nodes, complete: !x.partial}, true
}
func (x *world) changes() <-chan struct{} { return x.changed }
func (x *world) reread() {
	x.mu.Lock()
	x.rereads++
	lagging := x.lagging
	x.mu.Unlock()
	if !lagging {
		poke(x.changed)
	}
}

func (x *world) ms() int { return int(time.Since(x.begin).Milliseconds()) }

func (x *world) session(ctx context.Context, address string) error {
	x.mu.Lock()
	x.sessions = append(x.sessions, fmt.Sprintf("%s@%d", address, x.ms()))
	err, ok := x.answers[address]
	if e, fails := x.once[address]; fails {
		err = e
		delete(x.once, address)
	}
	x.mu.Unlock()
	if !ok {
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}

func (x *world) Notify(context.Context) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.down {
		return errRefused
	}
	x.notices = append(x.notices, x.ms())
	return nil
}

// set changes the world and tells the watch if the cluster has changed.
func (x *world) set(change func()) {
	x.mu.Lock()
	change()
	x.mu.Unlock()
	poke(x.changed)
	synctest.Wait()
}

func (x *world) ingress(ips ...string) {
	x.set(func() {
		x.live.Status.LoadBalancer.Ingress = nil
		for _, ip := range ips {
			x.live.Status.LoadBalancer.Ingress = append(x.live.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: ip})
		}
	})
}

// answer makes both ports of a host give an answer; not nil for refusing.
func (x *world) answer(host string, err error) {
	x.set(func() { x.answers[host+":6446"], x.answers[host+":6447"] = err, err })
}

// order is what a hook that looks now would order.
func (x *world) order(change ...func(*Order)) Order {
	x.mu.Lock()
	defer x.mu.Unlock()
	yes := x.answers["backend:3306"] == nil
	set := k8sservice.Addresses(x.live, k8sservice.AddressOptions{Nodes: x.nodes})
	o := Order{Build: "b", App: "db", Namespace: "dev", Service: "db-service",
		Seen: Seen{Exists: true, UID: string(x.live.UID), Deleting: x.live.DeletionTimestamp != nil,
			Fields: k8sservice.Fingerprint(x.live), Addresses: set, Answers: map[string]bool{}, Backend: &yes},
		Backend: []string{"backend:3306"}, Login: Login{Username: "u", Password: "p"}}
	for _, address := range set.All() {
		err, ok := x.answers[address]
		o.Seen.Answers[address] = ok && err == nil
		o.Pending = o.Pending || !o.Seen.Answers[address]
	}
	o.Pending = o.Pending || set.Empty()
	for _, f := range change {
		f(&o)
	}
	return o
}

// hook gives an order to the running watch.
func (x *world) hook(o Order) reply {
	x.t.Helper()
	answer := make(chan reply, 1)
	x.w.requests <- request{message{Order: &o}, answer}
	r := <-answer
	synctest.Wait()
	return r
}

func (x *world) noticed() []int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.notices)
}

func (x *world) tried() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	tried := slices.Clone(x.sessions)
	x.sessions = nil
	return tried
}

// run runs the watch in a bubble of synthetic time beside the test.
func watching(t *testing.T, kind corev1.ServiceType, prepare func(*world), test func(*world)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := newWorld(t, kind)
		if prepare != nil {
			prepare(x)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		first := x.order()
		go func() { ended <- x.w.run(ctx, first) }()
		synctest.Wait()
		test(x)
		cancel()
		<-ended
		time.Sleep(2 * Budget) // sessions that nobody waits for
	})
}
