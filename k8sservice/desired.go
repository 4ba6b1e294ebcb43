// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package k8sservice

import (
	corev1 "k8s.io/api/core/v1"
)

// FieldManager is the name under which the charm applies.
const FieldManager = "drawbridge-k8s"

// Names and numbers of the Service's ports. They do not change.
const (
	PortNameReadWrite = "mysql-rw"
	PortNameReadOnly  = "mysql-ro"
	PortReadWrite     = 6446
	PortReadOnly      = 6447
)

// Labels and annotations of ours.
const (
	LabelApp       = "app.kubernetes.io/name"
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// AnnotationKeys lists, as a sorted JSON array, the annotations that
	// loadbalancer-extra-annotations brought, so that they can go again.
	AnnotationKeys = "drawbridge-k8s.charm/annotations"
	// AnnotationStep marks a Service that is a NodePort only on its way from
	// one load balancer class to another: it has no address.
	AnnotationStep = "drawbridge-k8s.charm/step"
)

// Mode is a value of the option expose-external.
type Mode string

// The modes.
const (
	False        Mode = "false"
	NodePort     Mode = "nodeport"
	LoadBalancer Mode = "loadbalancer"
)

// ServiceType returns the type that a Service has in a mode.
func (m Mode) ServiceType() corev1.ServiceType {
	switch m {
	case NodePort:
		return corev1.ServiceTypeNodePort
	case LoadBalancer:
		return corev1.ServiceTypeLoadBalancer
	default:
		return corev1.ServiceTypeClusterIP
	}
}

// Desired is the Service as the configuration wants it. Options that do not
// apply in its mode are ignored here, so they can be filled in always.
type Desired struct {
	App       string // the application, and the StatefulSet
	Name      string // of the Service: "<app>-service"
	Namespace string
	Mode      Mode

	Annotations      map[string]string // loadbalancer only
	SourceRanges     []string          // loadbalancer only; CIDRs, without spaces
	Class            string            // loadbalancer only
	TrafficPolicy    string            // nodeport and loadbalancer: "" (Kubernetes decides), "Cluster", "Local"
	NodePort         int32             // nodeport and loadbalancer; 0 is automatic
	ReadOnlyNodePort int32             // the same
}

// Owner is what the Service belongs to: the application's StatefulSet.
type Owner struct {
	Name string
	UID  string
}

// Hash returns a short hash of the Service desired, the owner apart. It is
// the same for the same content, whatever the order of lists that are sets.
func (d Desired) Hash() string { panic("unfinished") }

// Difference is one value of ours that the live Service does not have.
type Difference struct {
	Field string // "spec.type", "spec.ports[mysql-rw].nodePort", "metadata.annotations[a/b]"
	Want  string // "" when it must go
	Got   string // "" when it is missing
}

// Drift compares the live Service with the one desired and returns what
// differs, sorted by field; nothing when there is nothing to apply. A nil
// live Service differs in "metadata.name" alone. The owner's uid is not
// compared: it is read only when something is applied.
func Drift(live *corev1.Service, d Desired) []Difference { panic("unfinished") }

// Fingerprint returns a short hash of what is ours of a live Service, which
// changes whenever Drift could come out differently; "" for nil.
func Fingerprint(live *corev1.Service) string { panic("unfinished") }

// ServiceTerminating reports whether the live Service is being deleted.
func ServiceTerminating(live *corev1.Service) bool {
	return live != nil && live.DeletionTimestamp != nil
}

// OwnerOf returns the StatefulSet that owns a pod.
func OwnerOf(pod *corev1.Pod) (Owner, bool) { panic("unfinished") }

// AddressOptions is what Addresses needs beyond the Service.
type AddressOptions struct {
	Domain           string         // of the cluster: "cluster.local"
	Nodes            []*corev1.Node // those of ready units; read for NodePort only
	ExternalHostname string         // replaces the host outside of ClusterIP
}

// AddressSet holds host:port pairs, each list sorted and without duplicates.
// IPv6 addresses are in brackets.
type AddressSet struct {
	ReadWrite []string `json:"rw,omitempty"`
	ReadOnly  []string `json:"ro,omitempty"`
}

// Empty reports whether there is no complete address yet.
func (a AddressSet) Empty() bool { return len(a.ReadWrite) == 0 || len(a.ReadOnly) == 0 }

// All returns every pair, those for reading and writing first.
func (a AddressSet) All() []string {
	return append(append([]string{}, a.ReadWrite...), a.ReadOnly...)
}

// Equal reports whether both hold the same pairs.
func (a AddressSet) Equal(b AddressSet) bool { panic("unfinished") }

// Addresses returns the pairs at which Kubernetes says that the live Service
// is reached, by the live Service's own type. It is empty when the Service is
// missing, terminating, on its way between two load balancer classes, or has
// no address yet.
func Addresses(live *corev1.Service, o AddressOptions) AddressSet { panic("unfinished") }

// ClusterIPs returns the pairs at which the Service is reached inside the
// cluster, whatever its type; empty as long as it has no cluster IP.
func ClusterIPs(live *corev1.Service) AddressSet { panic("unfinished") }

// ReadyNodes returns the names of the nodes that ready pods, not terminating,
// run on: sorted, without duplicates.
func ReadyNodes(pods []corev1.Pod) []string { panic("unfinished") }

// ClusterDomain returns the cluster's DNS domain from the text of a pod's
// resolv.conf, or "cluster.local".
func ClusterDomain(resolvConf, namespace string) string { panic("unfinished") }
