// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cluster"
	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// modelWorker is what the cluster process does for one model: Kubernetes objects
// and pods, in the namespace of the model's name.
type modelWorker struct {
	*Controller
	log   *slog.Logger
	model *model.Model
	info  model.Info
	// requests answers what is asked about the model.
	requests http.Handler

	wake    chan struct{}   // see poke
	trusted map[string]bool // rights given, by application; reconcile's own
	cancel  context.CancelFunc
	ended   chan struct{} // closed when follow has ended

	mu     sync.Mutex
	status model.Status // as last read
	units  map[string]*unit
	ending map[string]bool // units whose last pod is being ended
	pods   map[string]model.PodStatus
}

// newWorker makes the worker of a model, and its namespace.
func (c *Controller) newWorker(m *model.Model) (*modelWorker, error) {
	w := &modelWorker{
		Controller: c, model: m, info: m.Info(), log: slog.New(modelLog{next: c.base, add: m.AddLog}),
		wake: make(chan struct{}, 1), trusted: map[string]bool{}, cancel: func() {}, ended: make(chan struct{}),
		units: map[string]*unit{}, ending: map[string]bool{}, pods: map[string]model.PodStatus{},
	}
	if _, err := cluster.Ensure(c.admin, namespaceObject(w.info)); err != nil {
		return nil, fmt.Errorf("cannot make the namespace %q: %w", w.info.Name, err)
	}
	w.requests = w.handler()
	c.workersMu.Lock()
	defer c.workersMu.Unlock()
	c.workers[w.info.Name] = w
	return w, nil
}

// allWorkers returns the workers, by the names of their models.
func (c *Controller) allWorkers() []*modelWorker {
	c.workersMu.Lock()
	defer c.workersMu.Unlock()
	var out []*modelWorker
	for _, name := range slices.Sorted(maps.Keys(c.workers)) {
		out = append(out, c.workers[name])
	}
	return out
}

// start follows the model until ctx ends or stop is called.
func (c *modelWorker) start(ctx context.Context, serve func(func() error)) {
	ctx, c.cancel = context.WithCancel(ctx)
	serve(func() error {
		defer close(c.ended)
		return c.follow(ctx)
	})
}

// handler returns the handler of requests about one model.
func (c *modelWorker) handler() http.Handler {
	mux := http.NewServeMux()
	c.operatorHandlers(mux)
	c.offerHandlers(mux)
	plain(c, mux, "model-config", c.getModelConfig)
	plain(c, mux, "set-model-config", c.postModelConfig)
	c.clusterHandlers(mux)
	mux.HandleFunc("POST /v1/debug-log", c.streamLogs)
	mux.HandleFunc("POST /v1/journal", c.streamJournal)
	mux.HandleFunc("POST /v1/shell", c.openShell)
	return mux
}

// addressInUse reports whether a running pod of the model has the address.
func (c *modelWorker) addressInUse(address string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, status := range c.pods {
		if status.Address == address {
			return true
		}
	}
	return false
}

// application returns an application as last read from the model.
func (c *modelWorker) application(name string) (model.ApplicationStatus, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	app, ok := c.status.Applications[name]
	if !ok {
		return app, &control.Error{Kind: control.KindNotFound, Message: fmt.Sprintf("application %q not found", name)}
	}
	return app, nil
}

// setStatus keeps the model as last read.
func (c *modelWorker) setStatus(s model.Status) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status = s
}

// newUnit makes the kubelet's part of a unit.
func (c *modelWorker) newUnit(s model.UnitStatus) *unit {
	return &unit{c: c, name: s.Name, app: appOf(s.Name), ordinal: s.Ordinal, log: c.log}
}

// report tells the model about a unit's pod, if it is news.
func (c *modelWorker) report(unit string, status model.PodStatus) {
	c.mu.Lock()
	known := c.pods[unit]
	c.pods[unit] = status
	c.mu.Unlock()
	if known == status {
		return
	}
	if err := c.model.SetPodStatus(unit, status); err != nil {
		c.log.Debug("cannot report pod", "unit", unit, "error", err)
	}
	c.changes.bump()
}

// token returns the service account token of an application, "" if there is
// none.
func (c *modelWorker) token(app string) string {
	token, err := c.keys.token(c.account(app))
	if err != nil {
		c.log.Error("cannot read token", "application", app, "error", err)
		return ""
	}
	return token
}

// follow reconciles after every change of the model or of Services, until ctx
// ends or the model has been destroyed.
func (c *modelWorker) follow(ctx context.Context) error {
	wake := c.model.Watch(ctx)
	services := c.admin.Watch(ctx, cluster.ListOptions{Namespace: c.info.Name}, cluster.Service, cluster.StatefulSet)
	pods := c.admin.Watch(ctx, cluster.ListOptions{Namespace: c.info.Name}, cluster.Pod)
	for {
		if err := c.reconcile(ctx); err != nil && ctx.Err() == nil {
			c.log.Error("cannot reconcile", "error", err)
		}
		c.changes.bump()
		gone, after := c.advance()
		if gone {
			return nil
		}
		var timer <-chan time.Time
		if after > 0 {
			timer = time.After(after)
		}
		for again := false; !again; {
			select {
			case <-ctx.Done():
				return nil
			case <-timer:
				again = true
			case _, ok := <-wake:
				if !ok && ctx.Err() == nil {
					return errors.New("the model was closed")
				}
				again = true
			case <-services:
				again = true
			case <-c.wake:
				again = true
			case event, ok := <-pods:
				if ok { // closed when ctx has ended
					c.podEvent(event)
				}
			}
		}
		if !sleep(ctx, settle) {
			return nil
		}
		drain(wake)
		drain(services)
	}
}

// drain takes what is waiting in a channel.
func drain[T any](channel <-chan T) {
	for {
		select {
		case _, ok := <-channel:
			if !ok {
				return
			}
		default:
			return
		}
	}
}

// podEvent ends the sandbox of a Pod object that somebody deleted.
func (c *modelWorker) podEvent(event cluster.Event) {
	if event.Type != cluster.Deleted || event.Object == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, u := range c.units {
		if podName(u.name) == event.Object.GetName() {
			u.deleted(string(event.Object.GetUID()))
		}
	}
}

// deleted ends the sandbox if the Pod object with this uid was its own.
func (u *unit) deleted(uid string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.sandbox != nil && u.uid == uid {
		u.c.work.Go(u.sandbox.Kill)
	}
}

// account names the service account of an application among those of all
// namespaces.
func (c *modelWorker) account(app string) string { return c.info.Name + "/" + app }
