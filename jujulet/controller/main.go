// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package controller

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cluster"
	"github.com/drawbridge-k8s/drawbridge/jujulet/cluster/network"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
	"github.com/drawbridge-k8s/drawbridge/jujulet/pod"
)

// errShutdown is the cause of an orderly end.
var errShutdown = errors.New("shutdown was asked for")

// endTimeout bounds an orderly end; what is left then ends with the process.
const endTimeout = 10 * time.Second

// databaseName is the store in the state folder.
const databaseName = "model.db"

// Main is the cluster process: the hidden command [ClusterCommand] with its
// argument. It returns the exit code. File 3 takes the news that it is ready,
// file 4 is the lock of the state folder.
func Main(args []string) int {
	ready := os.NewFile(3, "ready")
	if err := runCluster(args, ready); err != nil {
		fmt.Fprintf(os.Stderr, "ERROR %v\n", err)
		_ = json.NewEncoder(ready).Encode(readyMessage{Error: err.Error()})
		return 1
	}
	return 0
}

// runCluster is Main with an error.
func runCluster(args []string, ready *os.File) error {
	if err := pod.ClusterInit(2); err != nil {
		return err
	}
	var cfg config
	if len(args) != 2 {
		return errors.New("internal error: the cluster process needs its configuration")
	}
	if err := json.Unmarshal([]byte(args[1]), &cfg); err != nil {
		return fmt.Errorf("internal error: cannot read the configuration: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM, unix.SIGINT)
	defer stop()
	ctx, shutdown := context.WithCancelCause(ctx)
	defer shutdown(nil)
	level := slog.LevelInfo
	if cfg.Debug {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	c := newController(cfg, log, shutdown)
	return c.run(ctx, func() error {
		defer ready.Close()
		return json.NewEncoder(ready).Encode(readyMessage{})
	})
}

// newController makes a controller that has opened nothing yet.
func newController(cfg config, log *slog.Logger, shutdown context.CancelCauseFunc) *Controller {
	return &Controller{
		config: cfg, log: log, clock: time.Now, started: time.Now().UTC(), plan: network.DefaultPlan(), nodes: defaultNodes(),
		health: newHealth(), shutdown: shutdown, faults: faults{clock: time.Now},
		workers: map[string]*modelWorker{},
	}
}

// run opens everything, says that it is ready, and serves until ctx ends.
func (c *Controller) run(ctx context.Context, ready func() error) error {
	if err := c.openStore(); err != nil {
		return err
	}
	defer func() {
		if err := c.store.Close(); err != nil {
			c.log.Error("cannot close the store", "error", err)
		}
	}()
	group, ctx := errgroup.WithContext(ctx)
	if err := c.startCluster(ctx, group); err != nil {
		return err
	}
	pods, err := c.openPods()
	if err != nil {
		return err
	}
	for _, w := range c.allWorkers() {
		if err := w.forgetPods(); err != nil {
			return err
		}
	}
	control, err := listenControl(c.config.Runtime)
	if err != nil {
		return err
	}
	group.Go(func() error { return c.serveControl(ctx, control) })
	c.launch = func(w *modelWorker) { w.start(ctx, group.Go) }
	for _, w := range c.allWorkers() {
		c.launch(w)
	}
	if err := ready(); err != nil {
		return fmt.Errorf("cannot say that all is ready: %w", err)
	}
	c.log.Info("ready", "state", c.config.State)
	<-ctx.Done()
	c.log.Info("ending", "cause", context.Cause(ctx))
	return c.end(group, pods)
}

// forgetPods tells the model that no unit has a pod: those of an earlier
// process died with it.
func (c *modelWorker) forgetPods() error {
	status, err := c.model.Status()
	if err != nil {
		return fmt.Errorf("cannot read the model: %w", err)
	}
	for _, app := range status.Applications {
		for unit := range app.Units {
			if err := c.model.SetPodStatus(unit, model.PodStatus{}); err != nil {
				return fmt.Errorf("cannot forget the pod of %q: %w", unit, err)
			}
		}
	}
	return nil
}

// end waits for all parts, but not forever: what is left ends with the process.
func (c *Controller) end(group *errgroup.Group, pods *pod.Manager) error {
	done := make(chan error, 1)
	go func() {
		for _, w := range c.allWorkers() {
			w.stopUnits()
		}
		c.outside.stop()
		err := group.Wait()
		c.work.Wait()
		done <- errors.Join(err, pods.Close(), os.RemoveAll(c.config.Runtime))
	}()
	select {
	case err := <-done:
		return err
	case <-time.After(endTimeout):
		return fmt.Errorf("cannot end in order: something still runs after %s", endTimeout)
	}
}

// stopUnits ends all pods.
func (c *modelWorker) stopUnits() {
	c.mu.Lock()
	units := make([]*unit, 0, len(c.units))
	for _, u := range c.units {
		units = append(units, u)
	}
	c.mu.Unlock()
	for _, u := range units {
		u.cancel()
	}
	for _, u := range units {
		<-u.done
	}
}

// openStore opens the models and the API in one database, and makes the first
// model if there is none.
func (c *Controller) openStore() error {
	var err error
	if c.store, err = model.OpenStore(filepath.Join(c.config.State, databaseName), c.modelOptions()); err != nil {
		return fmt.Errorf("cannot open the store: %w", err)
	}
	if err := c.openModels(); err != nil {
		return errors.Join(err, c.store.Close())
	}
	return nil
}

// openModels makes what works on the store's content.
func (c *Controller) openModels() error {
	if len(c.store.Models()) == 0 {
		if _, err := c.store.AddModel(c.config.Model, nil); err != nil {
			return fmt.Errorf("cannot make the model %q: %w", c.config.Model, err)
		}
	}
	c.base = c.log.Handler()
	c.log = slog.New(modelLog{next: c.base, add: func(line model.LogLine) {
		for _, m := range c.store.Models() {
			m.AddLog(line)
		}
	}})
	c.keys = keyStore{c.store.DB()}
	var err error
	if c.api, err = cluster.New(cluster.Options{DB: c.store.DB(), Logger: c.log, Clock: c.clock}); err != nil {
		return fmt.Errorf("cannot open the cluster: %w", err)
	}
	c.admin = c.api.Admin()
	for _, m := range c.store.Models() {
		if _, err := c.newWorker(m); err != nil {
			return err
		}
	}
	return nil
}

// startCluster starts the API's controllers, the network and the API server.
func (c *Controller) startCluster(ctx context.Context, group *errgroup.Group) error {
	if err := c.ensureCluster(); err != nil {
		return err
	}
	group.Go(func() error { return c.api.Run(ctx) })
	if err := c.startNetwork(ctx, group); err != nil {
		return err
	}
	address := net.JoinHostPort(c.plan.APIServer.String(), "443")
	ca, cert, err := c.keys.authority(apiNames(c.plan.Domain), c.plan.APIServer.String())
	if err != nil {
		return err
	}
	c.ca = ca
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("cannot listen for the Kubernetes API: %w", err)
	}
	secure := tls.NewListener(listener, &tls.Config{
		Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
	})
	group.Go(func() error { return serveHTTP(ctx, secure, c.api.Handler(), time.Second) })
	return nil
}

// apiNames are the DNS names of the API server.
func apiNames(domain string) []string {
	return []string{"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc." + domain}
}

// openPods makes the manager of pods.
func (c *Controller) openPods() (*pod.Manager, error) {
	manager, err := pod.NewManager(pod.Options{
		Dir:    filepath.Join(c.config.Runtime, podsFolder),
		Hide:   []string{c.config.State, c.config.Runtime},
		Pebble: c.config.Pebble,
		Attach: func(pid int, s pod.Spec) error { return c.net.Attach(pid, s.IP) },
		Detach: func(s pod.Spec) { c.net.Detach(s.IP) },
		Logger: c.log,
	})
	if err != nil {
		return nil, err
	}
	c.startSandbox = func(ctx context.Context, s pod.Spec) (sandbox, error) {
		p, err := manager.Start(ctx, s)
		if err != nil {
			return nil, err
		}
		return podSandbox{p}, nil
	}
	return manager, nil
}

// podSandbox is a pod as the kubelet part sees it.
type podSandbox struct{ *pod.Pod }

// Spawn starts a command in a container.
func (p podSandbox) Spawn(ctx context.Context, container string, command pod.Command) (running, error) {
	process, err := p.Pod.Spawn(ctx, container, command)
	if err != nil {
		return nil, err
	}
	return process, nil
}
