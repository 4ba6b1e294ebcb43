// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package k8sservice

import (
	"net"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// DefaultClusterDomain is the DNS domain of most clusters.
const DefaultClusterDomain = "cluster.local"

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
func (a AddressSet) Equal(b AddressSet) bool {
	return slices.Equal(a.ReadWrite, b.ReadWrite) && slices.Equal(a.ReadOnly, b.ReadOnly)
}

// Addresses returns the pairs at which Kubernetes says that the live Service
// is reached, by the live Service's own type. It is empty when the Service is
// missing, terminating, on its way between two load balancer classes, or has
// no address yet.
func Addresses(live *corev1.Service, o AddressOptions) AddressSet {
	if live == nil || ServiceTerminating(live) {
		return AddressSet{}
	}
	if _, step := live.Annotations[AnnotationStep]; step {
		return AddressSet{}
	}
	rw, ro := portNumbers(live)
	var rwHosts, roHosts []string
	switch live.Spec.Type {
	case corev1.ServiceTypeClusterIP:
		if live.Spec.ClusterIP == "" {
			return AddressSet{}
		}
		domain := strings.TrimSuffix(o.Domain, ".")
		if domain == "" {
			domain = DefaultClusterDomain
		}
		host := live.Name + "." + live.Namespace + ".svc." + domain + "."
		return pairs([]string{host}, []string{host}, rw.Port, ro.Port)
	case corev1.ServiceTypeNodePort:
		hosts := nodeHosts(o.Nodes)
		return external(hosts, hosts, rw.NodePort, ro.NodePort, o)
	case corev1.ServiceTypeLoadBalancer:
		rwHosts = ingressHosts(live, rw.Port)
		roHosts = ingressHosts(live, ro.Port)
		return external(rwHosts, roHosts, rw.Port, ro.Port, o)
	}
	return AddressSet{} // ExternalName has none of ours
}

// ClusterIPs returns the pairs at which the Service is reached inside the
// cluster, whatever its type; empty as long as it has no cluster IP.
func ClusterIPs(live *corev1.Service) AddressSet {
	if live == nil || ServiceTerminating(live) || net.ParseIP(live.Spec.ClusterIP) == nil {
		return AddressSet{}
	}
	rw, ro := portNumbers(live)
	host := []string{live.Spec.ClusterIP}
	return pairs(host, host, rw.Port, ro.Port)
}

// external puts the hostname of the option, if there is one, in the place of
// the hosts found; without any found, there is no address all the same.
func external(rwHosts, roHosts []string, rw, ro int32, o AddressOptions) AddressSet {
	if o.ExternalHostname != "" {
		if len(rwHosts) > 0 {
			rwHosts = []string{o.ExternalHostname}
		}
		if len(roHosts) > 0 {
			roHosts = []string{o.ExternalHostname}
		}
	}
	return pairs(rwHosts, roHosts, rw, ro)
}

// pairs joins hosts and ports; the port 0 is not allocated yet. As long as
// one of the two lists is empty there is no address.
func pairs(rwHosts, roHosts []string, rw, ro int32) AddressSet {
	set := AddressSet{ReadWrite: join(rwHosts, rw), ReadOnly: join(roHosts, ro)}
	if set.Empty() {
		return AddressSet{}
	}
	return set
}

func join(hosts []string, port int32) []string {
	if port == 0 {
		return nil
	}
	joined := make([]string, 0, len(hosts))
	for _, host := range hosts {
		joined = append(joined, net.JoinHostPort(host, strconv.Itoa(int(port))))
	}
	return sortedSet(joined)
}

// portNumbers finds our two ports by name: a foreign port may stand anywhere
// in the list.
func portNumbers(live *corev1.Service) (rw, ro corev1.ServicePort) {
	for _, p := range live.Spec.Ports {
		switch p.Name {
		case PortNameReadWrite:
			rw = p
		case PortNameReadOnly:
			ro = p
		}
	}
	return rw, ro
}

// ingressHosts returns the load balancer's addresses. An entry may be empty,
// and may say that the balancer failed to open a port.
func ingressHosts(live *corev1.Service, port int32) []string {
	var hosts []string
	for _, entry := range live.Status.LoadBalancer.Ingress {
		failed := slices.ContainsFunc(entry.Ports, func(s corev1.PortStatus) bool {
			return s.Port == port && s.Error != nil && *s.Error != ""
		})
		host := entry.IP
		if host == "" {
			host = strings.TrimSuffix(entry.Hostname, ".")
		}
		if host != "" && !failed {
			hosts = append(hosts, host)
		}
	}
	return sortedSet(hosts)
}

// nodeHosts returns one address of each node.
func nodeHosts(nodes []*corev1.Node) []string {
	var hosts []string
	for _, node := range nodes {
		if node != nil {
			hosts = append(hosts, nodeHost(node)) // sortedSet drops an empty one
		}
	}
	return sortedSet(hosts)
}

// nodeHost prefers what is reachable from farthest away.
func nodeHost(node *corev1.Node) string {
	for _, kind := range []corev1.NodeAddressType{corev1.NodeExternalIP, corev1.NodeInternalIP, corev1.NodeHostName} {
		for _, a := range node.Status.Addresses {
			if a.Type == kind && a.Address != "" {
				return a.Address
			}
		}
	}
	return ""
}

// ReadyNodes returns the names of the nodes that ready pods, not terminating,
// run on: sorted, without duplicates.
func ReadyNodes(pods []corev1.Pod) []string {
	var names []string
	for i := range pods {
		if PodReady(&pods[i]) {
			names = append(names, pods[i].Spec.NodeName)
		}
	}
	return sortedSet(names)
}

// PodReady reports whether a pod is ready and not terminating.
func PodReady(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil {
		return false
	}
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

const ownerKind = "StatefulSet"

// OwnerOf returns the StatefulSet that owns a pod.
func OwnerOf(pod *corev1.Pod) (Owner, bool) {
	if pod == nil {
		return Owner{}, false
	}
	for _, r := range pod.OwnerReferences {
		if r.Kind == ownerKind && r.Name != "" && r.UID != "" {
			return Owner{Name: r.Name, UID: string(r.UID)}, true
		}
	}
	return Owner{}, false
}

// ClusterDomain returns the cluster's DNS domain from the text of a pod's
// resolv.conf, or DefaultClusterDomain.
func ClusterDomain(resolvConf, namespace string) string {
	for line := range strings.Lines(resolvConf) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] != "search" {
			continue
		}
		for _, prefix := range []string{namespace + ".svc.", "svc."} {
			for _, word := range words[1:] {
				if domain, ok := strings.CutPrefix(strings.TrimSuffix(word, "."), prefix); ok && domain != "" {
					return domain
				}
			}
		}
	}
	return DefaultClusterDomain
}
