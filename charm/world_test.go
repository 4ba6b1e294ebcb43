// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package charm

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/drawbridge-k8s/drawbridge/database"
	"github.com/drawbridge-k8s/drawbridge/hooks"
	"github.com/drawbridge-k8s/drawbridge/hooks/hooktool"
	"github.com/drawbridge-k8s/drawbridge/k8sservice"
	"github.com/drawbridge-k8s/drawbridge/probe"
	"github.com/drawbridge-k8s/drawbridge/workload"
)

const (
	backendAddress = "mariadb-k8s-0.mariadb-k8s-endpoints.dev.svc.cluster.local.:3306"
	clusterHost    = "drawbridge-k8s-service.dev.svc.cluster.local."
)

// world is one unit of drawbridge-k8s and its surroundings, all in memory.
type world struct {
	t     *testing.T
	juju  *fakeJuju
	kube  *fakeCluster
	gate  *fakeGateway
	sql   *fakeAdmin
	watch *fakeWatch
	now   time.Time
	// answers are the host:port pairs that let a session in.
	answers map[string]bool
	// reasons are why others do not.
	reasons map[string]error
	// codes are the server's errors that it then gives.
	codes    map[string]uint16
	probes   []string
	sessions int // how many were opened
	checks   int // how often some were probed together
	root     string
}

// newWorld is a leader with peers, backend and one client, in `false` mode, where everything answers; no hook has run.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		t: t, juju: newFakeJuju(), kube: newFakeCluster(), gate: &fakeGateway{up: true},
		sql: &fakeAdmin{users: map[string]string{}, databases: map[string]bool{}}, watch: &fakeWatch{},
		now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), answers: map[string]bool{}, reasons: map[string]error{},
		root: t.TempDir(),
	}
	w.juju.relate("drawbridge-peers:0", endpointPeers, "drawbridge-k8s")
	w.backend("backend-database:4")
	w.client("database:7", "client-k8s")
	w.answer(backendAddress, clusterHost+":6446", clusterHost+":6447")
	return w
}

// backend relates a backend that has answered.
func (w *world) backend(id string) *fakeRelation {
	r := w.juju.relate(id, endpointBackend, "mariadb-k8s", "mariadb-k8s/0")
	secret := "backend" + r.number()
	w.juju.secrets[secret] = &fakeSecret{content: map[string]string{"username": "relation-" + r.number(), "password": "backend-pw"}}
	r.remoteApp = map[string]string{
		"database": "drawbridge", "endpoints": backendAddress, "read-only-endpoints": backendAddress,
		"secret-user": "secret:" + secret, "version": "10.11",
	}
	return r
}

// client relates a client that has asked for a database with secrets.
func (w *world) client(id, app string) *fakeRelation {
	r := w.juju.relate(id, endpointClients, app, app+"/0")
	r.remoteApp = map[string]string{"database": "orders", "requested-secrets": `["username", "password", "tls", "tls-ca", "uris"]`}
	return r
}

func (w *world) answer(endpoints ...string) {
	for _, endpoint := range endpoints {
		w.answers[endpoint] = true
	}
}

func (w *world) silence(endpoints ...string) {
	for _, endpoint := range endpoints {
		delete(w.answers, endpoint)
	}
}

// options are the fakes.
func (w *world) options() Options {
	return Options{
		Root:  w.root,
		Clock: func() time.Time { return w.now },
		Session: func(c database.Credentials) probe.Session {
			return func(_ context.Context, address string) error {
				w.sessions++
				if err := w.reasons[address]; err != nil {
					return err
				}
				if !w.answers[address] {
					return errors.New("connection refused")
				}
				if c.Password != "backend-pw" {
					return errors.New("the server refuses these credentials (error 1045)")
				}
				return nil
			}
		},
		newCluster: func(func(string) string, *slog.Logger) (cluster, string, error) { return w.kube, "dev", nil },
		NewGateway: func(*slog.Logger) Gateway { return w.gate },
		OpenAdmin: func(context.Context, database.Credentials, string) (Admin, error) {
			if w.sql.err != nil {
				return nil, w.sql.err
			}
			return w.sql, nil
		},
		newWatch: func(hooks.Event) watch { return w.watch },
		check: func(ctx context.Context, session probe.Session, addresses []string, _ time.Duration) []probe.Verdict {
			verdicts := make([]probe.Verdict, len(addresses))
			w.checks++
			for i, address := range addresses {
				w.probes = append(w.probes, address)
				err := session(ctx, address)
				verdicts[i] = probe.Verdict{Address: address, OK: err == nil}
				if verdicts[i].TimedOut = errors.Is(err, context.DeadlineExceeded) || errors.Is(err, probe.ErrHangs); verdicts[i].TimedOut {
					err = errors.New("timed out")
				}
				if err != nil {
					verdicts[i].Reason, verdicts[i].MySQLCode = err.Error(), w.codes[address]
				}
			}
			return verdicts
		},
		pause: func(context.Context, time.Duration) {},
	}
}

// hook runs a hook named as Juju names it; extra variables follow as pairs. It returns the exit code.
func (w *world) hook(name string, extra ...string) int {
	w.t.Helper()
	env := map[string]string{
		"JUJU_UNIT_NAME": w.juju.unit, "JUJU_MODEL_NAME": "dev", "JUJU_MODEL_UUID": "model-uuid",
		"JUJU_CHARM_DIR": "/charm-dir", "JUJU_HOOK_NAME": name, "JUJU_DISPATCH_PATH": "hooks/" + name,
	}
	if dir, action := path.Split(name); dir == "actions/" {
		env["JUJU_HOOK_NAME"], env["JUJU_DISPATCH_PATH"], env["JUJU_ACTION_NAME"] = "", name, action
	}
	for i := 0; i+1 < len(extra); i += 2 {
		env[extra[i]] = extra[i+1]
	}
	w.juju.calls, w.juju.writes, w.juju.logs = nil, nil, nil
	w.kube.requests, w.kube.writes = 0, 0
	w.sql.statements = nil
	undo := w.juju.snapshot()
	code := hooks.Dispatch(w.t.Context(), hooks.Env{
		Getenv:  func(key string) string { return env[key] },
		Handler: New(w.options()).Handle,
		Connect: func(context.Context, func(string) string) (*hooktool.Client, error) { return hooktool.New(w.juju), nil },
		Stderr:  io.Discard,
	})
	if code != 0 {
		w.t.Logf("%s failed: %q", name, w.juju.logs)
	}
	if code != 0 || w.juju.killAt > 0 {
		undo()
	}
	return code
}

// relationHook runs a hook of a relation.
func (w *world) relationHook(r *fakeRelation, kind, unit string) int {
	w.t.Helper()
	return w.hook(r.endpoint+"-relation-"+kind, "JUJU_RELATION", r.endpoint, "JUJU_RELATION_ID", r.id,
		"JUJU_REMOTE_APP", r.remote, "JUJU_REMOTE_UNIT", unit)
}

// settle runs hooks until one writes nothing; it fails after ten.
func (w *world) settle() {
	w.t.Helper()
	for range 10 {
		require.Zero(w.t, w.hook("update-status"))
		if len(w.juju.writes) == 0 && w.kube.writes == 0 {
			return
		}
	}
	w.t.Fatalf("a chain of hooks feeds itself: the tenth wrote %q", w.juju.writes)
}

// quiet runs a hook and checks that it writes nothing at all (invariant I9).
func (w *world) quiet(name string, extra ...string) {
	w.t.Helper()
	require.Zero(w.t, w.hook(name, extra...))
	require.Empty(w.t, w.juju.writes)
	require.Zero(w.t, w.kube.writes)
	require.Empty(w.t, w.sql.statements)
}

// bag is our application databag in a relation.
func (w *world) bag(id string) map[string]string { return w.juju.relation(id).ownApp }

// peer is the peer application databag.
func (w *world) peer() map[string]string { return w.bag("drawbridge-peers:0") }

// mirror is what the units of a client do when they see our databag.
func (w *world) mirror(r *fakeRelation) {
	seen := maps.Clone(r.ownApp)
	delete(seen, "data")
	text, err := json.Marshal(seen)
	require.NoError(w.t, err)
	for _, unit := range r.units {
		r.remoteUnits[unit] = map[string]string{"data": string(text)}
	}
}

// fakeCluster is the part of Kubernetes that the core uses.
type fakeCluster struct {
	live     *corev1.Service
	pods     []corev1.Pod
	nodes    map[string]*corev1.Node
	events   []corev1.Event
	requests int
	writes   int
	errs     map[string]error // by method
	applies  []k8sservice.Desired
	alter    func(*corev1.Service)
	uid      int
	maps     map[string]*corev1.ConfigMap
	told     []string // Events that were made
}

func newFakeCluster() *fakeCluster {
	k := &fakeCluster{nodes: map[string]*corev1.Node{}, errs: map[string]error{}}
	k.pod("drawbridge-k8s-0", "node-0")
	k.node("node-0", "10.10.0.10")
	return k
}

func (k *fakeCluster) node(name, address string) {
	k.nodes[name] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
		Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}}}
}

func (k *fakeCluster) pod(name, node string) {
	controller := true
	k.pods = append(k.pods, corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "drawbridge-k8s", UID: "set-uid", Controller: &controller}}},
		Spec: corev1.PodSpec{NodeName: node},
		Status: corev1.PodStatus{Phase: corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	})
}

func (k *fakeCluster) Service(context.Context, string) (*corev1.Service, error) {
	k.requests++
	if err := k.errs["Service"]; err != nil {
		return nil, err
	}
	if k.live == nil {
		return nil, nil
	}
	return k.live.DeepCopy(), nil
}

func (k *fakeCluster) Apply(_ context.Context, _ *corev1.Service, d k8sservice.Desired, owner k8sservice.Owner) (*corev1.Service, []string, error) {
	k.requests++
	k.writes++
	if err := k.errs["Apply"]; err != nil {
		return nil, nil, err
	}
	k.applies = append(k.applies, d)
	if k.live == nil {
		k.uid++
		k.live = &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: d.Name, Namespace: d.Namespace,
			UID: types.UID(strings.Repeat("u", k.uid))}}
		k.live.Spec.ClusterIP = "10.152.183.50"
	}
	s := k.live
	s.Labels = map[string]string{k8sservice.LabelApp: d.App, k8sservice.LabelManagedBy: k8sservice.FieldManager}
	s.Annotations = nil
	s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: owner.Name, UID: types.UID(owner.UID)}}
	s.Spec.Type = d.Mode.ServiceType()
	s.Spec.Selector = map[string]string{k8sservice.LabelApp: d.App}
	ports := [2]int32{}
	if d.Mode != k8sservice.False {
		ports = [2]int32{31446, 31447}
	}
	s.Spec.Ports = []corev1.ServicePort{
		{Name: "mysql-rw", Port: 6446, TargetPort: intstr.FromInt32(6446), NodePort: ports[0]},
		{Name: "mysql-ro", Port: 6447, TargetPort: intstr.FromInt32(6447), NodePort: ports[1]},
	}
	s.Spec.LoadBalancerSourceRanges = nil
	if d.Mode == k8sservice.LoadBalancer {
		s.Spec.LoadBalancerSourceRanges = slices.Clone(d.SourceRanges)
		if len(d.Annotations) > 0 {
			keys, _ := json.Marshal(slices.Sorted(maps.Keys(d.Annotations)))
			s.Annotations = maps.Clone(d.Annotations)
			s.Annotations[k8sservice.AnnotationKeys] = string(keys)
		}
	} else {
		s.Status.LoadBalancer.Ingress = nil
	}
	if k.alter != nil {
		k.alter(s)
	}
	return s.DeepCopy(), nil, nil
}

func (k *fakeCluster) ingress(ips ...string) {
	k.live.Status.LoadBalancer.Ingress = nil
	for _, ip := range ips {
		k.live.Status.LoadBalancer.Ingress = append(k.live.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: ip})
	}
}

func (k *fakeCluster) Pod(_ context.Context, name string) (*corev1.Pod, error) {
	k.requests++
	if err := k.errs["Pod"]; err != nil {
		return nil, err
	}
	for i := range k.pods {
		if k.pods[i].Name == name {
			return &k.pods[i], nil
		}
	}
	return nil, nil
}

func (k *fakeCluster) Pods(context.Context, string) ([]corev1.Pod, error) {
	k.requests++
	return k.pods, k.errs["Pods"]
}

func (k *fakeCluster) Node(_ context.Context, name string) (*corev1.Node, error) {
	k.requests++
	return k.nodes[name], k.errs["Node"]
}

func (k *fakeCluster) Events(context.Context, string, string) ([]corev1.Event, error) {
	k.requests++
	return k.events, k.errs["Events"]
}

func (k *fakeCluster) ConfigMap(_ context.Context, name string) (*corev1.ConfigMap, error) {
	k.requests++
	return k.maps[name], k.errs["ConfigMap"]
}

func (k *fakeCluster) CreateEvent(_ context.Context, event *corev1.Event) error {
	k.requests++
	if err := k.errs["CreateEvent"]; err != nil {
		return err
	}
	k.writes++
	k.told = append(k.told, event.Reason+": "+event.Message)
	return nil
}

// forbidden is how RBAC refuses.
func forbidden(verb, resource string) error {
	err := apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "x",
		errors.New(`User "system:serviceaccount:dev:drawbridge-k8s" cannot `+verb+` resource "`+resource+`" in API group "" in the namespace "dev"`))
	return err
}

type fakeGateway struct {
	up      bool
	err     error
	problem string
	have    string
	ensured int
	stopped int
	// deadline is that of the last Stop.
	deadline time.Time
}

func (g *fakeGateway) Ensure(_ context.Context, wanted workload.Gateway) (workload.Report, error) {
	g.ensured++
	if g.err != nil {
		return workload.Report{}, g.err
	}
	text := strings.Join(wanted.ReadWrite, ",") + "|" + strings.Join(wanted.ReadOnly, ",")
	changed := text != g.have
	g.have = text
	return workload.Report{Up: g.up, Changed: changed, Version: "2.8.16", Problem: g.problem}, nil
}

func (g *fakeGateway) Stop(ctx context.Context) error {
	g.stopped++
	g.deadline, _ = ctx.Deadline()
	return nil
}

type fakeAdmin struct {
	users      map[string]string
	databases  map[string]bool
	statements []string
	err        error
	each       func() // is called with every statement
}

func (a *fakeAdmin) statement(text string) {
	a.statements = append(a.statements, text)
	if a.each != nil {
		a.each()
	}
}

func (a *fakeAdmin) EnsureDatabase(_ context.Context, name string) error {
	a.statement("database " + name)
	a.databases[name] = true
	return a.err
}

func (a *fakeAdmin) EnsureUser(_ context.Context, user, password, database string) error {
	a.statement("user " + user + " on " + database)
	a.users[user] = password
	return a.err
}

func (a *fakeAdmin) DropUser(_ context.Context, user string) error {
	a.statement("drop " + user)
	delete(a.users, user)
	return a.err
}

func (a *fakeAdmin) ClientUsers(_ context.Context, backendUser string) (map[int]string, error) {
	users := map[int]string{}
	for name := range a.users {
		for id := range 100 {
			if database.UserName(backendUser, id) == name {
				users[id] = name
			}
		}
	}
	return users, a.err
}

func (a *fakeAdmin) Close() error { return nil }

type fakeWatch struct {
	order   *probe.Order
	stopped int
	hanging []string // what it says when it is asked
	asked   int
}

func (f *fakeWatch) Ensure(_ context.Context, order probe.Order) error { f.order = &order; return nil }
func (f *fakeWatch) Stop(context.Context) error                        { f.order = nil; f.stopped++; return nil }

func (f *fakeWatch) Hanging(context.Context) []string { f.asked++; return f.hanging }
