// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

// Package network is the network of the embedded cluster: the pod network, two nodes, a host
// outside of the cluster, cluster DNS, a proxy that makes the addresses of Services connect, and a
// load balancer.
//
// All of it lives in the network namespace of the cluster process, which has no way out: what is not an address of the
// cluster is unreachable, and an address of the load balancer that does not answer refuses.
//
//	outside host 192.168.100.2 --- 192.168.100.1 [cluster process] 10.1.0.1 --- br0 --- pods 10.1.0.0/16
//	                                               nodes, Services and load balancer
//	                                               addresses on lo
//
// The proxy and DNS are a function of what the API holds: at each change all is listed again and the
// difference is applied. A Service's address exists only while the Service does, and its
// port is open only while an endpoint is ready.
package network

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// API is what the network needs of the cluster's API. All reads are cheap and return copies.
type API interface {
	// Services, EndpointSlices and Nodes list the objects of all namespaces.
	Services(ctx context.Context) ([]corev1.Service, error)
	EndpointSlices(ctx context.Context) ([]discoveryv1.EndpointSlice, error)
	Nodes(ctx context.Context) ([]corev1.Node, error)
	// Changes returns a channel that receives a value soon after any of those objects changed; several
	// changes may give one value. It ends with the context.
	Changes(ctx context.Context) <-chan struct{}
	// UpdateServiceStatus writes the status of a Service that Services returned. A conflict is an
	// error; the caller comes again.
	UpdateServiceStatus(ctx context.Context, s *corev1.Service) error
	// AnnotateService sets annotations of a Service and leaves all else as it is.
	AnnotateService(ctx context.Context, namespace, name string, annotations map[string]string) error
	// CreateEvent records an event.
	CreateEvent(ctx context.Context, e *corev1.Event) error
}

// Plan is the layout of the network.
type Plan struct {
	// Domain is the cluster domain, "cluster.local".
	Domain string
	// Pods is the pod network; its first address is the gateway.
	Pods netip.Prefix
	// APIServer and DNS are addresses of Services that are served by the cluster process itself and
	// not by the proxy.
	APIServer, DNS netip.Addr
	// NodeRange and LBRange are what the outside host has a route to. No other addresses may lie in LBRange than the load
	// balancer's.
	NodeRange, LBRange netip.Prefix
	// Outside is the outside host's address and prefix; OutsideGateway is the cluster's end of it.
	Outside        netip.Prefix
	OutsideGateway netip.Addr
}

// DefaultPlan returns the plan that jujulet uses.
func DefaultPlan() Plan {
	return Plan{
		Domain:         "cluster.local",
		Pods:           netip.MustParsePrefix("10.1.0.0/16"),
		APIServer:      netip.MustParseAddr("10.152.183.1"),
		DNS:            netip.MustParseAddr("10.152.183.10"),
		NodeRange:      netip.MustParsePrefix("10.10.0.0/24"),
		LBRange:        netip.MustParsePrefix("10.64.140.0/24"),
		Outside:        netip.MustParsePrefix("192.168.100.2/24"),
		OutsideGateway: netip.MustParseAddr("192.168.100.1"),
	}
}

// LBKind is a kind of load balancer.
type LBKind string

// The kinds of load balancer.
const (
	// LBVIP hands out an IP that the nodes answer themselves, also to pods.
	LBVIP LBKind = "vip"
	// LBProxy hands out an IP with ipMode Proxy: the balancer itself is always passed.
	LBProxy LBKind = "proxy"
	// LBHostname hands out a host name, which resolves after DNSDelay.
	LBHostname LBKind = "hostname"
	// LBMetalLB is LBVIP that also sets an annotation of its own on the Service.
	LBMetalLB LBKind = "metallb"
)

// LBSettings are the settings of the load balancer. They can be changed while it runs.
type LBSettings struct {
	// Kind is the kind of balancer for Services that get an address from now on.
	Kind LBKind `json:"kind"`
	// AssignDelay is the time from the Service's request to its address in the status.
	AssignDelay time.Duration `json:"assignDelay"`
	// AnswerDelay is the time from then until the address answers; before, it refuses everybody, pods
	// included.
	AnswerDelay time.Duration `json:"answerDelay"`
	// DNSDelay is the time from the assignment of a host name until it resolves.
	DNSDelay time.Duration `json:"dnsDelay"`
	// Pool lists the addresses to give, in this order; empty means DefaultPool.
	Pool []netip.Addr `json:"pool,omitempty"`
	// Hold keeps any address from being assigned.
	Hold bool `json:"hold"`
	// Break has all assigned addresses refuse connections.
	Break bool `json:"break"`
	// Class is a spec.loadBalancerClass that this balancer serves besides Services without a class.
	Class string `json:"class,omitempty"`
}

// DefaultPool returns the addresses 10.64.140.43 to 10.64.140.62.
func DefaultPool() []netip.Addr {
	var pool []netip.Addr
	a := netip.MustParseAddr("10.64.140.43")
	for len(pool) < 20 {
		pool = append(pool, a)
		a = a.Next()
	}
	return pool
}

// Options configure a [Network].
type Options struct {
	// Plan is the layout; its zero value means DefaultPlan.
	Plan Plan
	// API is the cluster's API.
	API API
	// LB are the first settings of the load balancer.
	LB LBSettings
	// Clock tells the time; nil means time.Now.
	Clock func() time.Time
	// Logger receives what goes wrong; nil discards it.
	Logger *slog.Logger
}

// Network is the network of a cluster.
type Network struct {
	plan  Plan
	api   API
	log   *slog.Logger
	links *links
	dns   *dnsServer
	proxy *proxy
	lb    *LoadBalancer
	wake  chan struct{}
}

// New makes the network in the namespace of this process, which must be the cluster process: bridge, routes, DNS
// already listening (but knowing no names before Run). One process can have one network.
func New(o Options) (*Network, error) {
	if o.Plan == (Plan{}) {
		o.Plan = DefaultPlan()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if err := tuneNamespace(); err != nil {
		return nil, err
	}
	n := &Network{plan: o.Plan, api: o.API, log: o.Logger, wake: make(chan struct{}, 1)}
	var err error
	if n.links, err = newLinks(o.Plan); err != nil {
		return nil, err
	}
	if n.lb, err = newLoadBalancer(o, n.poke); err != nil {
		return nil, err
	}
	n.proxy = newProxy(n.links, o.Logger)
	if n.dns, err = newDNSServer(o.Plan, o.Logger); err != nil {
		return nil, err
	}
	return n, nil
}

// poke makes Run look again.
func (n *Network) poke() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// LB returns the load balancer.
func (n *Network) LB() *LoadBalancer { return n.lb }

// Plan returns the layout.
func (n *Network) Plan() Plan { return n.plan }

// Attach connects the network namespace of a process: to the outside network if the address is the outside host's, else
// to the pod network.
func (n *Network) Attach(pid int, a netip.Addr) error {
	if a == n.plan.Outside.Addr() {
		return n.AttachOutside(pid)
	}
	return n.AttachPod(pid, a)
}

// AttachPod gives the network namespace of a process an interface eth0 in the pod network.
func (n *Network) AttachPod(pid int, a netip.Addr) error { return n.links.attachPod(pid, a) }

// AttachOutside makes the network namespace of a process the outside host. It has routes to the nodes, external
// addresses included, and the load balancer only, and a name server at Plan.OutsideGateway that knows the host names of the load balancer.
func (n *Network) AttachOutside(pid int) error {
	if err := n.links.attachOutside(pid); err != nil {
		return err
	}
	n.poke() // for its routes
	return n.dns.listenOutside()
}

// Detach removes a pod's link, if its namespace has not taken it away already.
func (n *Network) Detach(a netip.Addr) { n.links.detach(podLink(a)) }

// Close takes bridge, addresses and routes away again. It is needed only in a process that makes another network; else they
// go with the process.
func (n *Network) Close() error {
	n.dns.close()
	n.proxy.close()
	return n.links.close()
}

// retryDelay is when Run comes again after an error of the API.
const retryDelay = 200 * time.Millisecond

// Run keeps DNS, proxy and load balancer in step with the API until ctx ends. Then it closes all listeners and
// connections and returns.
func (n *Network) Run(ctx context.Context) error {
	defer n.dns.close()
	defer n.proxy.close()
	changes := n.api.Changes(ctx)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case _, ok := <-changes:
			if !ok {
				changes = nil
			}
		case <-n.wake:
		case <-timer.C:
		}
		next, err := n.sync(ctx)
		if err != nil && ctx.Err() == nil {
			n.log.Warn("cannot bring the network up to date", "error", err)
			next = retryDelay
		}
		if next <= 0 {
			next = time.Hour
		}
		timer.Reset(next)
	}
}

// sync reads the API and applies what it holds. It returns when it wants to be called again at the latest; 0 means at
// a change only.
func (n *Network) sync(ctx context.Context) (time.Duration, error) {
	services, err1 := n.api.Services(ctx)
	slices, err2 := n.api.EndpointSlices(ctx)
	nodes, err3 := n.api.Nodes(ctx)
	if err := errors.Join(err1, err2, err3); err != nil {
		return 0, err
	}
	next, lbErr := n.lb.sync(ctx, services)
	s := newState(n.plan, services, slices, nodes)
	s.balancers = n.lb.frontends()
	n.dns.set(s.zone(n.lb.names()))
	return next, errors.Join(lbErr, n.proxy.set(s.listeners(), s.addresses()), n.links.routeOutside(s.nodeAddresses()))
}
