// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package control

import "time"

// LBKind is a behaviour of the load balancer.
type LBKind string

// The load balancers.
const (
	LBVIP      LBKind = "vip"      // an address that nodes answer themselves, as kube-proxy does
	LBProxy    LBKind = "proxy"    // an address in front of node ports
	LBHostname LBKind = "hostname" // a name, known to DNS after DNSDelay
	LBMetalLB  LBKind = "metallb"  // vip, and its own annotation on the Service
)

// LBSettings is how the load balancer behaves.
type LBSettings struct {
	Kind        LBKind        `json:"kind"`
	AssignDelay time.Duration `json:"assign-delay"` // from the wish to the address in the status
	AnswerDelay time.Duration `json:"answer-delay"` // from the assignment until the address takes connections
	DNSDelay    time.Duration `json:"dns-delay"`    // from the assignment until the name resolves (hostname)
	Pool        string        `json:"pool"`         // "10.64.140.43-10.64.140.62", addresses and ranges with commas; "none"
	Hold        bool          `json:"hold"`         // assign nothing more while set
	Break       bool          `json:"break"`        // addresses stay in statuses and take no connections
}

// LBChange changes some settings; nil is "as it was".
type LBChange struct {
	Kind        *LBKind        `json:"kind,omitempty"`
	AssignDelay *time.Duration `json:"assign-delay,omitempty"`
	AnswerDelay *time.Duration `json:"answer-delay,omitempty"`
	DNSDelay    *time.Duration `json:"dns-delay,omitempty"`
	Pool        *string        `json:"pool,omitempty"`
	Hold        *bool          `json:"hold,omitempty"`
	Break       *bool          `json:"break,omitempty"`
	Move        string         `json:"move,omitempty"`    // give this Service another address now
	MoveTo      string         `json:"move-to,omitempty"` // which one; "" is the next of the pool
	Vanish      string         `json:"vanish,omitempty"`  // take this Service's address from its status
	Restore     string         `json:"restore,omitempty"` // let a Service that lost its address have one again
}

// Node is a machine of the embedded cluster.
type Node struct {
	Name       string   `json:"name"`
	InternalIP string   `json:"internal-ip"`
	ExternalIP string   `json:"external-ip,omitempty"`
	Ready      bool     `json:"ready"`
	Units      []string `json:"units,omitempty"`
}

// NodeChange changes a node; nil is "as it was". ExternalIP "" removes it.
type NodeChange struct {
	Name       string  `json:"name"`
	ExternalIP *string `json:"external-ip,omitempty"`
	Ready      *bool   `json:"ready,omitempty"`
}

// Cluster is a view of the embedded cluster.
type Cluster struct {
	LoadBalancer LBSettings `json:"load-balancer"`
	Nodes        []Node     `json:"nodes"`
	Services     []Service  `json:"services"`
}

// Service is one line of a [Cluster] view.
type Service struct {
	Name      string   `json:"name"`
	Type      string   `json:"type"`
	ClusterIP string   `json:"cluster-ip"`
	Addresses []string `json:"addresses,omitempty"` // load balancer addresses and names
	Ports     []string `json:"ports,omitempty"`     // "6446:30123/TCP"
}

// Event is a Kubernetes event.
type Event struct {
	Time    time.Time `json:"time"` // last seen
	Type    string    `json:"type"` // Normal or Warning
	Reason  string    `json:"reason"`
	Object  string    `json:"object"` // "Service/foo"
	Message string    `json:"message"`
	Count   int       `json:"count"`
}
