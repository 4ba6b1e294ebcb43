// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package controller

import (
	"context"
	"net/netip"
	"sync"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/pod"
)

// outsideContainer is the one container of the outside host.
const outsideContainer = "host"

// outside is the host outside the cluster: a sandbox that is started when it
// is first needed, and again if it has ended.
type outside struct {
	mu  sync.Mutex
	box sandbox
}

// get returns the running outside host.
func (o *outside) get(ctx context.Context, c *Controller) (sandbox, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.box != nil {
		select {
		case <-o.box.Done():
		default:
			return o.box, nil
		}
	}
	// The host outlives the session that first needs it.
	box, err := c.startSandbox(context.WithoutCancel(ctx), c.outsideSpec())
	if err != nil {
		return nil, err
	}
	o.box = box
	return box, nil
}

// stop ends the outside host if it runs.
func (o *outside) stop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.box != nil {
		o.box.Kill()
	}
}

// outsideSpec describes the outside host: it knows nothing of the cluster but
// routes to its nodes and load balancers, and a name server.
func (c *Controller) outsideSpec() pod.Spec {
	return pod.Spec{
		Name:     "outside",
		Hostname: "outside",
		IP:       c.plan.Outside.Addr(),
		Resolv:   pod.Resolv{Nameservers: []netip.Addr{c.plan.OutsideGateway}},
		Containers: []pod.Container{{
			Name:  outsideContainer,
			Binds: []pod.Bind{{Source: c.config.Jujulet, Target: control.BinaryInPod, ReadOnly: true}},
		}},
	}
}

// startOutside starts a command on the outside host.
func (c *Controller) startOutside(ctx context.Context, command pod.Command) (running, error) {
	box, err := c.outside.get(ctx, c)
	if err != nil {
		return nil, err
	}
	return box.Spawn(ctx, outsideContainer, command)
}
