// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package tour

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// world is a runner with a charm in it, as far as the tour can see them. The charm's conduct can be spoiled.
type world struct {
	// told is how long after an answer the charm publishes; early publishes as soon as Kubernetes reports an address;
	// restless writes to the client's databag while pending; lying claims active while pending; mute never publishes a
	// load balancer's address; rows is what a query finds.
	told                         time.Duration
	early, restless, lying, mute bool
	rows                         int
	// lags is how much later than it should a unit's document follows; untold keeps an Event from being made.
	lags   time.Duration
	untold bool
	// document is the version in all documents; missing, that a connected ConfigMap is.
	document string
	listed   string
	missing  bool
	events   []control.Event

	ctx     context.Context
	begin   time.Time
	mu      sync.Mutex
	changed chan struct{}
	journal []model.JournalEntry
	service corev1.Service
	version int
	answers map[string]time.Time // from when an address answers
	bag     map[string]string
	pending bool
	lb      control.LBSettings
	next    int
	kills   []string
	tasks   sync.WaitGroup
}

const (
	worldRelation = 4
	worldNodePort = 30446
)

func newWorld(ctx context.Context) *world {
	w := &world{
		told: 150 * time.Millisecond, rows: tableRows, ctx: ctx, begin: time.Now(), changed: make(chan struct{}),
		answers: map[string]time.Time{}, bag: map[string]string{}, next: 43,
	}
	w.service.Name = serviceName
	w.service.Spec.Type = corev1.ServiceTypeClusterIP
	w.service.Spec.Ports = []corev1.ServicePort{{Name: "mysql-rw", Port: readWritePort}, {Name: "mysql-ro", Port: 6447}}
	return w
}

func (w *world) update(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
	close(w.changed)
	w.changed = make(chan struct{})
}

// later does something after a while, unless the test ends before.
func (w *world) later(after time.Duration, do func()) {
	w.tasks.Go(func() {
		select {
		case <-time.After(after):
			w.update(do)
		case <-w.ctx.Done():
		}
	})
}

// commit adds a hook to the journal; the mutex is held.
func (w *world) commit(status string, writes ...model.JournalWrite) {
	w.journal = append(w.journal, model.JournalEntry{
		Seq: uint64(len(w.journal) + 1), Time: time.Now(), Unit: bridgeApp + "/0", Hook: "config-changed", Writes: writes,
		Statuses: []model.StatusValue{{Status: status, Since: time.Now()}},
	})
	for _, write := range writes {
		switch {
		case write.Key == keyPending:
			w.pending = !write.Deleted
		case write.Relation == worldRelation:
			w.bag[write.Key] = write.Value
		}
	}
}

func (w *world) publish(addresses string) {
	w.commit("active", flag(false), told(worldRelation, addresses))
}

func (w *world) clusterAddress() string { return serviceName + ".dev.svc.cluster.local.:6446" }

func (w *world) Deploy(_ context.Context, r control.DeployRequest) (control.DeployResult, error) {
	return control.DeployResult{Application: r.Application}, nil
}

func (w *world) Integrate(_ context.Context, a, _ string) (control.Relation, error) {
	if a == clientApp+":"+clientEndpoint {
		w.later(time.Second, func() {
			w.answers[w.clusterAddress()] = time.Now()
			w.bag[keySecret], w.bag[keyDatabase] = "secret:s1", "app"
			w.publish(w.clusterAddress())
		})
	}
	return control.Relation{}, nil
}

// ApplyObjects is the operator changing ConfigMaps; the units follow, the last one after 700 ms.
func (w *world) ApplyObjects(_ context.Context, manifest string) ([]string, error) {
	version := "3"
	if strings.Contains(manifest, `"4"`) {
		version = "4"
	}
	w.update(func() {
		if w.listed == "" {
			w.document = version
			return
		}
		for i := range 3 {
			delay := 500*time.Millisecond + time.Duration(i)*100*time.Millisecond
			if i == 2 {
				delay += w.lags
			}
			w.expect(delay, func() {
				unit := fmt.Sprintf("%s/%d", bridgeApp, i)
				w.document = version
				w.commit("active", model.JournalWrite{Endpoint: peerEndpoint, Bag: unit, Key: keyApplied, Value: "{}"})
				w.journal[len(w.journal)-1].Unit = unit
			})
		}
		w.events = append(w.events, control.Event{Reason: "ConnectionChanged", Object: "StatefulSet/" + bridgeApp,
			Message: "connected configmap {" + changedMap + "} has changed; updating configmeta"})
		if !w.untold {
			w.events = append(w.events, control.Event{Reason: "ConnectionPropagating", Object: "ConfigMap/" + changedMap,
				Message: "connected to application {" + bridgeApp + "}; updating it"})
		}
	})
	return nil, nil
}

func (w *world) DeleteObject(context.Context, string, string) error {
	w.expect(time.Second, func() { w.missing = true })
	return nil
}

func (w *world) Events(context.Context, string) ([]control.Event, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.events), nil
}

// connq is the program in the workload.
func (w *world) connq(r control.ShellRequest, s control.Streams) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	answer := map[string]string{
		"get connections.clusters": backendApp, "get " + versionKey: w.document, "cluster " + bridgeApp + " mysql": w.clusterAddress(),
	}[strings.Join(r.Command[1:], " ")]
	if r.Unit == clientUnit && r.Command[1] == "get" {
		answer = bridgeApp
	}
	fmt.Fprintln(s.Stdout, answer)
	return 0
}

func (w *world) SetConfig(_ context.Context, r control.ConfigChange) error {
	w.update(func() {
		if names, ok := r.Set[mapsOption]; ok {
			w.listed, w.missing = names, false
			return
		}
		switch r.Set[modeOption] {
		case modeOff:
			w.service.Spec.Type, w.service.Status = corev1.ServiceTypeClusterIP, corev1.ServiceStatus{}
			w.expect(w.told, func() { w.publish(w.clusterAddress()) })
		case modeNodePort:
			w.service.Spec.Type, w.service.Status = corev1.ServiceTypeNodePort, corev1.ServiceStatus{}
			w.service.Spec.Ports[0].NodePort = worldNodePort
			for _, address := range []string{"10.10.0.10:30446", "10.10.0.11:30446"} {
				w.answers[address] = time.Now()
			}
			w.expect(w.told, func() { w.publish("10.10.0.10:30446,10.10.0.11:30446") })
		case modeBalancer:
			w.service.Spec.Type = corev1.ServiceTypeLoadBalancer
			w.service.Spec.Ports[0].NodePort = worldNodePort
			w.expect(50*time.Millisecond, func() { w.commit("waiting", flag(true)) })
			w.expect(w.lb.AssignDelay+60*time.Millisecond, w.assign)
		}
		w.version++
	})
	return nil
}

// expect is later for those who hold the mutex.
func (w *world) expect(after time.Duration, do func()) { go w.later(after, do) }

// assign gives the Service an address, and the charm what follows from that.
func (w *world) assign() {
	ip := fmt.Sprintf("10.64.140.%d", w.next)
	address := ip + ":6446"
	w.next++
	w.service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: ip}}
	w.version++
	w.answers[address] = time.Now().Add(w.lb.AnswerDelay)
	if w.restless {
		w.expect(20*time.Millisecond, func() {
			w.commit("waiting", model.JournalWrite{Relation: worldRelation, Bag: bridgeApp, Key: "version", Value: "8.0"})
		})
	}
	switch {
	case w.mute:
	case w.early:
		w.expect(30*time.Millisecond, func() { w.publish(address) })
	default:
		w.expect(w.lb.AnswerDelay+w.told, func() { w.publish(address) })
	}
}

func (w *world) SetLoadBalancer(_ context.Context, r control.LBChange) (control.LBSettings, error) {
	w.update(func() {
		if r.AssignDelay != nil {
			w.lb.AssignDelay = *r.AssignDelay
		}
		if r.AnswerDelay != nil {
			w.lb.AnswerDelay = *r.AnswerDelay
		}
		if r.Move != "" {
			w.expect(50*time.Millisecond, func() { w.commit("waiting", flag(true)) })
			w.assign()
		}
	})
	return w.lb, nil
}

func (w *world) Status(context.Context) (model.Status, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := model.Status{Model: model.Info{Name: "dev", Domain: "cluster.local"}, Applications: map[string]model.ApplicationStatus{}}
	for name, units := range map[string]int{backendApp: 1, bridgeApp: 3, clientApp: 1} {
		a := model.ApplicationStatus{Name: name, Units: map[string]model.UnitStatus{}}
		for i := range units {
			unit := fmt.Sprintf("%s/%d", name, i)
			status := model.StatusValue{Status: "active"}
			if name == bridgeApp && w.pending && !w.lying {
				status.Status = "waiting"
			}
			if name == bridgeApp && w.missing {
				status = model.StatusValue{Status: "blocked", Message: "connections: configmap " + deletedMap + " not found"}
			}
			a.Units[unit] = model.UnitStatus{Name: unit, Leader: i == 0, Idle: true, Workload: status, RawWorkload: status}
		}
		s.Applications[name] = a
	}
	bag := map[string]string{}
	for key, value := range w.bag {
		bag[key] = value
	}
	s.Relations = []model.RelationStatus{{ID: worldRelation, Ends: []model.EndpointRef{
		{App: bridgeApp, Name: "database", Role: model.Provider}, {App: clientApp, Name: clientEndpoint, Role: model.Requirer},
	}, Bags: map[string]map[string]string{bridgeApp: bag}}}
	return s, nil
}

func (w *world) wait(ctx context.Context) error {
	w.mu.Lock()
	changed := w.changed
	w.mu.Unlock()
	select {
	case <-changed:
		return nil
	case <-time.After(time.Second):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *world) Wait(ctx context.Context, check func(context.Context) (bool, error)) error {
	for {
		if done, err := check(ctx); done || err != nil {
			return err
		}
		if err := w.wait(ctx); err != nil {
			return err
		}
	}
}

func (w *world) Run(context.Context, control.RunRequest) (control.Operation, error) {
	return control.Operation{ID: "1", Tasks: []model.Action{{ID: "2"}}}, nil
}

func (w *world) WaitTask(context.Context, string, int) (model.Action, error) {
	return model.Action{ID: "2", Status: model.ActionCompleted, Results: map[string]any{"count": fmt.Sprint(w.rows)}}, nil
}

func (w *world) Journal(ctx context.Context, _ control.JournalRequest, each func(model.JournalEntry) error) error {
	for seen := 0; ; {
		w.mu.Lock()
		entries := slices.Clone(w.journal[seen:])
		w.mu.Unlock()
		for _, e := range entries {
			if err := each(e); err != nil {
				return err
			}
		}
		seen += len(entries)
		if err := w.wait(ctx); err != nil {
			return err
		}
	}
}

func (w *world) ShowSecret(_ context.Context, ref string, reveal bool) (control.Secret, error) {
	if ref != "secret:s1" || !reveal {
		return control.Secret{}, errors.New("no such secret")
	}
	return control.Secret{Content: map[string]string{"username": "u", "password": "p"}}, nil
}

func (w *world) Cluster(context.Context) (control.Cluster, error) {
	return control.Cluster{Nodes: []control.Node{
		{Name: "node-0", InternalIP: "10.10.0.10", Units: []string{"drawbridge-k8s/0", "mariadb-k8s/0"}},
		{Name: "node-1", InternalIP: "10.10.0.11", Units: []string{"drawbridge-k8s/1"}},
		{Name: "node-2", InternalIP: "10.10.0.12", Units: []string{"client-k8s/0"}},
	}}, nil
}

func (w *world) Kill(_ context.Context, target control.KillTarget, unit string) error {
	w.update(func() { w.kills = append(w.kills, string(target)+" "+unit) })
	return nil
}

// session is what a login finds.
func (w *world) session(_ context.Context, l Login, address string, _ time.Duration) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.Username != "u" || l.Password != "p" || l.Database != "app" {
		return errors.New("access denied")
	}
	if from, ok := w.answers[address]; !ok || time.Now().Before(from) {
		return errors.New("no answer")
	}
	return nil
}

func (w *world) Shell(ctx context.Context, r control.ShellRequest, s control.Streams) (int, error) {
	if r.Command[0] == connqPath {
		return w.connq(r, s), nil
	}
	if r.Command[0] != control.BinaryInPod || (r.Unit != clientUnit && !r.Outside) {
		return 1, errors.New("no such place")
	}
	switch r.Command[1] {
	case ProbeCommand:
		return 0, newProber(s.Stdout, w.session).run(ctx, s.Stdin)
	case QueryCommand:
		var order QueryOrder
		if err := json.NewDecoder(s.Stdin).Decode(&order); err != nil {
			return 1, err
		}
		answer := QueryAnswer{}
		if err := w.session(ctx, order.Login, order.Address, 0); err != nil {
			answer.Error = err.Error()
		} else if order.SQL == readTable {
			answer.Rows = w.rows
		}
		return 0, json.NewEncoder(s.Stdout).Encode(answer)
	}
	return 1, nil
}

func (w *world) Kubernetes() (http.RoundTripper, string) { return apiOf{w}, "http://api" }

// apiOf serves the watch of Services.
type apiOf struct{ *world }

func (a apiOf) RoundTrip(r *http.Request) (*http.Response, error) {
	body, events := io.Pipe()
	ctx := r.Context()
	a.tasks.Go(func() {
		for sent := -1; ; {
			a.mu.Lock()
			var event bytes.Buffer
			if a.version > sent {
				sent = a.version
				_ = json.NewEncoder(&event).Encode(watchEvent{"MODIFIED", a.service})
			}
			a.mu.Unlock()
			if event.Len() > 0 {
				if _, err := events.Write(event.Bytes()); err != nil {
					return
				}
			}
			if err := a.wait(ctx); err != nil {
				events.CloseWithError(err)
				return
			}
		}
	})
	return &http.Response{StatusCode: http.StatusOK, Status: "200 OK", Body: body, Request: r}, nil
}
