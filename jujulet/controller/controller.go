// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package controller

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cluster"
	"github.com/drawbridge-k8s/drawbridge/jujulet/cluster/network"
	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
	"github.com/drawbridge-k8s/drawbridge/jujulet/pod"
)

// settle is how long the controller waits after a wake-up for more of them.
const settle = 10 * time.Millisecond

// config is what Up tells the cluster process.
type config struct {
	Version      string        `json:"version"`
	State        string        `json:"state"`
	Runtime      string        `json:"runtime"`
	Model        string        `json:"model"`
	Controller   string        `json:"controller"`
	UpdateStatus time.Duration `json:"update-status"`
	Jujulet      string        `json:"jujulet"` // path of this binary
	Pebble       string        `json:"pebble"`  // path of the Pebble daemon
	Debug        bool          `json:"debug,omitempty"`
}

// node is a machine of the cluster.
type node struct{ Name, Address string }

// Controller is the cluster process: everything in it ends with it.
type Controller struct {
	config  config
	log     *slog.Logger
	clock   func() time.Time
	started time.Time

	model   *model.Model
	info    model.Info
	api     *cluster.Server
	admin   *cluster.Admin
	net     *network.Network
	outside outside
	plan    network.Plan
	nodes   []node
	keys    keyStore
	ca      []byte
	health  *health

	startSandbox func(ctx context.Context, s pod.Spec) (sandbox, error)
	shutdown     context.CancelCauseFunc
	changes      changes
	work         sync.WaitGroup // what must end before the store is closed

	wake    chan struct{}   // see poke
	trusted map[string]bool // rights given, by application; reconcile's own

	mu     sync.Mutex
	status model.Status // as last read
	units  map[string]*unit
	ending map[string]bool // units whose last pod is being ended
	pods   map[string]model.PodStatus
}

// application returns an application as last read from the model.
func (c *Controller) application(name string) (model.ApplicationStatus, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	app, ok := c.status.Applications[name]
	if !ok {
		return app, &control.Error{Kind: control.KindNotFound, Message: fmt.Sprintf("application %q not found", name)}
	}
	return app, nil
}

// setStatus keeps the model as last read.
func (c *Controller) setStatus(s model.Status) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status = s
}

// newUnit makes the kubelet's part of a unit.
func (c *Controller) newUnit(s model.UnitStatus) *unit {
	return &unit{c: c, name: s.Name, app: appOf(s.Name), ordinal: s.Ordinal, log: c.log}
}

// appOf is the application of a unit.
func appOf(unit string) string {
	for i := len(unit) - 1; i >= 0; i-- {
		if unit[i] == '/' {
			return unit[:i]
		}
	}
	return unit
}

// report tells the model about a unit's pod, if it is news.
func (c *Controller) report(unit string, status model.PodStatus) {
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
func (c *Controller) token(app string) string {
	token, err := c.keys.token(app)
	if err != nil {
		c.log.Error("cannot read token", "application", app, "error", err)
		return ""
	}
	return token
}

// podEnvironment is what a kubelet tells every container about the API.
func (c *Controller) podEnvironment() []string {
	host := c.plan.APIServer.String()
	return []string{
		"KUBERNETES_SERVICE_HOST=" + host,
		"KUBERNETES_SERVICE_PORT=443",
		"KUBERNETES_SERVICE_PORT_HTTPS=443",
		"KUBERNETES_PORT=tcp://" + host + ":443",
		"KUBERNETES_PORT_443_TCP=tcp://" + host + ":443",
		"KUBERNETES_PORT_443_TCP_ADDR=" + host,
		"KUBERNETES_PORT_443_TCP_PORT=443",
		"KUBERNETES_PORT_443_TCP_PROTO=tcp",
	}
}

// nextAddress returns an address for a pod. The count is kept over restarts,
// so that a pod that is made again has another address than before.
func (c *Controller) nextAddress() (netip.Addr, error) {
	base := c.plan.Pods.Masked().Addr().As4()
	size := uint32(1) << (32 - c.plan.Pods.Bits())
	start := binary.BigEndian.Uint32(base[:])
	for range size {
		count, err := c.keys.count("pod-address")
		if err != nil {
			return netip.Addr{}, err
		}
		// The first addresses belong to the network and its gateway.
		var raw [4]byte
		binary.BigEndian.PutUint32(raw[:], start+10+uint32(count)%(size-20))
		address := netip.AddrFrom4(raw)
		if !c.addressInUse(address.String()) {
			return address, nil
		}
	}
	return netip.Addr{}, errors.New("cannot give the pod an address: all are in use")
}

// addressInUse reports whether a running pod has the address.
func (c *Controller) addressInUse(address string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, status := range c.pods {
		if status.Address == address {
			return true
		}
	}
	return false
}

// modelOptions are the options for opening the model.
func (c *Controller) modelOptions() model.Options {
	return model.Options{
		Name: c.config.Model, Controller: c.config.Controller, CharmDir: filepath.Join(c.config.State, "charms"),
		Clock: c.clock, Logger: c.log, Domain: c.plan.Domain,
	}
}

// follow reconciles after every change of the model or of Services, until ctx
// ends.
func (c *Controller) follow(ctx context.Context) error {
	wake := c.model.Watch(ctx)
	services := c.admin.Watch(ctx, cluster.ListOptions{Namespace: c.info.Name}, cluster.Service, cluster.StatefulSet)
	pods := c.admin.Watch(ctx, cluster.ListOptions{Namespace: c.info.Name}, cluster.Pod)
	for {
		if err := c.reconcile(ctx); err != nil && ctx.Err() == nil {
			c.log.Error("cannot reconcile", "error", err)
		}
		c.changes.bump()
		for again := false; !again; {
			select {
			case <-ctx.Done():
				return nil
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
func (c *Controller) podEvent(event cluster.Event) {
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

// isAbsent reports whether an object was not there.
func isAbsent(err error) bool { return apierrors.IsNotFound(err) }
