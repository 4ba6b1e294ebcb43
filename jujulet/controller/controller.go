// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package controller

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"net/netip"
	"path/filepath"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cluster"
	"github.com/drawbridge-k8s/drawbridge/jujulet/cluster/network"
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

	store   *model.Store
	base    slog.Handler // where log goes beside the models' debug-logs
	api     *cluster.Server
	admin   *cluster.Admin
	net     *network.Network
	outside outside
	faults  faults
	plan    network.Plan
	nodes   []node
	keys    keyStore
	ca      []byte
	health  *health

	startSandbox func(ctx context.Context, s pod.Spec) (sandbox, error)
	shutdown     context.CancelCauseFunc
	changes      changes
	work         sync.WaitGroup // what must end before the store is closed

	// launch starts what keeps a worker's model in step.
	launch func(w *modelWorker)

	workersMu sync.Mutex
	workers   map[string]*modelWorker // by the model's name
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

// addressInUse reports whether a running pod of any model has the address.
func (c *Controller) addressInUse(address string) bool {
	return slices.ContainsFunc(c.allWorkers(), func(w *modelWorker) bool { return w.addressInUse(address) })
}

// modelOptions are the options for opening the model.
func (c *Controller) modelOptions() model.Options {
	return model.Options{
		Controller: c.config.Controller, CharmDir: filepath.Join(c.config.State, "charms"),
		Clock: c.clock, Logger: c.log, Domain: c.plan.Domain,
	}
}

// isAbsent reports whether an object was not there.
func isAbsent(err error) bool { return apierrors.IsNotFound(err) }
