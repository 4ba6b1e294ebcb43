// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/drawbridge-k8s/drawbridge/jujulet/agent"
	"github.com/drawbridge-k8s/drawbridge/jujulet/cluster"
	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
	"github.com/drawbridge-k8s/drawbridge/jujulet/pod"
)

// restartDelay is the pause before a dead pod or agent is made again.
const restartDelay = time.Second

// agentSocket is the name of an agent's socket in a pod's control folder.
const agentSocket = "agent.sock"

// controlFolder is where the charm container sees its control folder.
const controlFolder = "/run/ctl"

// sandbox is a running pod.
type sandbox interface {
	Exec(ctx context.Context, container string, c pod.Command) (int, error)
	Spawn(ctx context.Context, container string, c pod.Command) (running, error)
	StartContainer(ctx context.Context, name string) error
	ContainerDone(name string) <-chan struct{}
	Done() <-chan struct{}
	Kill()
}

// unit is the kubelet's view of one unit: a sequence of pods, one at a time,
// until stop is called.
type unit struct {
	c       *modelWorker
	name    string
	app     string
	ordinal int
	log     *slog.Logger

	cancel context.CancelFunc
	done   chan struct{} // closed when the last pod has gone

	mu      sync.Mutex
	sandbox sandbox // nil between pods
	uid     string  // of the Pod object of this sandbox
	state   podState
	lives   int // pods so far, in this process
	// version is the application's CharmVersion when the pod was made.
	version int
	agent   running // nil while none runs
	ending  bool    // the pod is being replaced
}

// start begins the sequence of pods.
func (u *unit) start(ctx context.Context) {
	ctx, u.cancel = context.WithCancel(ctx)
	u.done = make(chan struct{})
	go func() {
		defer close(u.done)
		u.run(ctx)
	}()
}

// stop ends the present pod and the sequence, and returns when it is gone.
func (u *unit) stop() {
	u.cancel()
	<-u.done
}

// run makes pods until ctx ends.
func (u *unit) run(ctx context.Context) {
	for {
		err := u.live(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			u.log.Error("cannot run pod", "unit", u.name, "error", err)
			u.c.report(u.name, model.PodStatus{State: "error", Message: err.Error()})
		} else {
			u.log.Info("pod ended", "unit", u.name)
		}
		if !sleep(ctx, restartDelay) {
			return
		}
	}
}

// live is the life of one pod. It returns nil when the pod ended after it had
// started.
func (u *unit) live(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	app, err := u.c.application(u.app)
	if err != nil {
		return err
	}
	object, err := u.c.createPod(app, u.name, u.node().Name)
	if err != nil {
		return err
	}
	defer u.c.removePod(object)
	folder, err := u.folder()
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	listener, err := net.Listen("unix", filepath.Join(folder, agentSocket))
	if err != nil {
		return fmt.Errorf("cannot listen for the agent: %w", err)
	}
	address, err := u.c.nextAddress()
	if err != nil {
		listener.Close()
		return err
	}
	began := u.c.clock()
	if err := u.c.makeVolumes(u.name); err != nil {
		listener.Close()
		return err
	}
	spec, err := u.spec(app, address, folder)
	if err != nil {
		listener.Close()
		return err
	}
	box, err := u.c.startSandbox(ctx, spec)
	if err != nil {
		listener.Close()
		return err
	}
	u.begin(box, object, app, address)
	u.log.Info("pod started", "unit", u.name, "address", address, "took", u.c.clock().Sub(began).Round(time.Millisecond))
	var work sync.WaitGroup
	work.Go(func() { u.serveAgent(ctx, listener) })
	for _, container := range u.containers() {
		work.Go(func() { u.supervise(ctx, box, container) })
	}
	work.Go(func() { u.runAgent(ctx, box) })
	work.Go(func() { u.watchHealth(ctx, app, address) })
	select {
	case <-ctx.Done():
	case <-box.Done():
	}
	cancel()
	listener.Close()
	box.Kill()
	work.Wait()
	u.end()
	return nil
}

// containers are the names of the running pod's containers.
func (u *unit) containers() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	var names []string
	for _, c := range u.state.containers {
		names = append(names, c.name)
	}
	return names
}

// supervise starts a container again whenever it has ended, as long as the pod
// lives.
func (u *unit) supervise(ctx context.Context, box sandbox, container string) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-box.ContainerDone(container):
		}
		if ctx.Err() != nil {
			return
		}
		u.change(container, func(c *containerState) {
			c.running, c.started, c.ready = false, false, false
			c.restarts++
		})
		if !sleep(ctx, restartDelay) {
			return
		}
		if err := box.StartContainer(ctx, container); err != nil {
			if ctx.Err() == nil {
				u.log.Error("cannot restart container", "unit", u.name, "container", container, "error", err)
			}
			continue
		}
		u.change(container, func(c *containerState) { c.running, c.since = true, u.c.clock() })
	}
}

// node is the machine that the unit is on: units alternate.
func (u *unit) node() node { return u.c.nodes[u.ordinal%len(u.c.nodes)] }

// folder makes the pod's control folder, empty. It is on the pods' tmpfs: what a
// charm writes there is gone with the process.
func (u *unit) folder() (string, error) {
	path := filepath.Join(u.c.config.Runtime, podsFolder, "ctl", shortName(u.c.info.Name+"/"+u.name))
	if err := os.RemoveAll(path); err != nil {
		return "", fmt.Errorf("cannot clear %s: %w", path, err)
	}
	return path, makeFolder(path)
}

// begin records that a pod runs and tells the API and the model.
func (u *unit) begin(box sandbox, object *corev1.Pod, app model.ApplicationStatus, address netip.Addr) {
	now := u.c.clock()
	state := podState{ip: address.String(), hostIP: u.node().Address, since: now}
	for _, name := range append([]string{pod.CharmContainer}, containerNames(app)...) {
		state.containers = append(state.containers, containerState{name: name, running: true, since: now})
	}
	u.mu.Lock()
	u.sandbox, u.uid, u.state = box, string(object.UID), state
	u.version, u.ending = app.CharmVersion, false
	u.lives++
	u.mu.Unlock()
	u.publish()
}

// end records that no pod runs.
func (u *unit) end() {
	u.mu.Lock()
	u.sandbox, u.uid, u.state = nil, "", podState{}
	u.mu.Unlock()
	u.c.report(u.name, model.PodStatus{})
}

// current returns the running sandbox.
func (u *unit) current() (sandbox, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.sandbox == nil {
		return nil, &control.Error{Kind: control.KindConflict, Message: fmt.Sprintf("the pod of unit %q is not running", u.name)}
	}
	return u.sandbox, nil
}

// change edits the state of one container and tells who shows it.
func (u *unit) change(container string, edit func(*containerState)) {
	u.mu.Lock()
	changed := false
	for i := range u.state.containers {
		if c := &u.state.containers[i]; c.name == container {
			before := *c
			edit(c)
			changed = *c != before
		}
	}
	u.mu.Unlock()
	if changed {
		u.publish()
	}
}

// publish writes the pod's state to the API and to the model.
func (u *unit) publish() {
	u.mu.Lock()
	state, uid, version := u.state, u.uid, u.version
	state.containers = append([]containerState(nil), state.containers...)
	u.mu.Unlock()
	if uid == "" {
		return
	}
	_, err := cluster.ChangeStatus(u.c.admin, u.c.info.Name, podName(u.name), func(o *corev1.Pod) error {
		if string(o.UID) != uid {
			return errors.New("the pod was replaced")
		}
		o.Status = state.status(o.Status, u.c.clock())
		return nil
	})
	if err != nil {
		u.log.Warn("cannot update pod status", "unit", u.name, "error", err)
	}
	u.c.report(u.name, model.PodStatus{Address: state.ip, UID: uid, Ready: state.ready(), CharmVersion: version})
}

// serveAgent answers the unit's agent.
func (u *unit) serveAgent(ctx context.Context, l net.Listener) {
	if err := agent.Serve(ctx, l, u.c.model, u.name); err != nil && ctx.Err() == nil {
		u.log.Error("cannot serve the agent", "unit", u.name, "error", err)
	}
}

// watchHealth follows the health of the workload containers.
func (u *unit) watchHealth(ctx context.Context, app model.ApplicationStatus, address netip.Addr) {
	var work sync.WaitGroup
	for name, port := range healthPorts(app) {
		work.Go(func() {
			u.c.health.watch(ctx, address.String(), port, func(started, ready bool) {
				u.change(name, func(c *containerState) { c.started, c.ready = started, ready })
			})
		})
	}
	work.Wait()
}
