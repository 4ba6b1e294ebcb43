// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package k8sservice

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"

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
func (d Desired) Hash() string { return hash(d.body()) }

// body is the Service as it is applied: our fields and nothing else. Kubernetes
// takes a field that is in it as ours, so what an option leaves alone must be
// absent. The encoding is stable: maps are written sorted.
type body struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   metadata `json:"metadata"`
	Spec       spec     `json:"spec"`
}

type metadata struct {
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Owners      []ownerReference  `json:"ownerReferences,omitempty"`
}

type ownerReference struct {
	APIVersion         string `json:"apiVersion"`
	Kind               string `json:"kind"`
	Name               string `json:"name"`
	UID                string `json:"uid"`
	BlockOwnerDeletion bool   `json:"blockOwnerDeletion"`
}

type spec struct {
	Type          corev1.ServiceType `json:"type"`
	Selector      map[string]string  `json:"selector"`
	Ports         []port             `json:"ports"`
	SourceRanges  []string           `json:"loadBalancerSourceRanges,omitempty"`
	Class         string             `json:"loadBalancerClass,omitempty"`
	TrafficPolicy string             `json:"externalTrafficPolicy,omitempty"`
}

type port struct {
	Name       string          `json:"name"`
	Port       int32           `json:"port"`
	Protocol   corev1.Protocol `json:"protocol"`
	TargetPort int32           `json:"targetPort"`
	NodePort   int32           `json:"nodePort,omitempty"`
}

// body returns what is applied, without the owner. Fields that the type
// forbids are left out: Kubernetes would refuse all of it.
func (d Desired) body() body {
	b := body{
		APIVersion: "v1",
		Kind:       "Service",
		Metadata: metadata{
			Name:      d.Name,
			Namespace: d.Namespace,
			Labels:    map[string]string{LabelApp: d.App, LabelManagedBy: FieldManager},
		},
		Spec: spec{
			Type:     d.Mode.ServiceType(),
			Selector: map[string]string{LabelApp: d.App},
			Ports: []port{
				{Name: PortNameReadWrite, Port: PortReadWrite, Protocol: corev1.ProtocolTCP, TargetPort: PortReadWrite},
				{Name: PortNameReadOnly, Port: PortReadOnly, Protocol: corev1.ProtocolTCP, TargetPort: PortReadOnly},
			},
		},
	}
	if d.Mode == NodePort || d.Mode == LoadBalancer {
		b.Spec.Ports[0].NodePort = d.NodePort
		b.Spec.Ports[1].NodePort = d.ReadOnlyNodePort
		b.Spec.TrafficPolicy = d.TrafficPolicy
	}
	if d.Mode == LoadBalancer {
		b.Spec.SourceRanges = sortedSet(d.SourceRanges)
		b.Spec.Class = d.Class
		if len(d.Annotations) > 0 {
			b.Metadata.Annotations = maps.Clone(d.Annotations)
			b.Metadata.Annotations[AnnotationKeys] = encodeKeys(d.Annotations)
		}
	}
	return b
}

// encodeKeys writes the value of AnnotationKeys.
func encodeKeys(annotations map[string]string) string {
	text, _ := json.Marshal(sortedKeys(annotations)) // strings always encode
	return string(text)
}

// hash returns a short hash of v's JSON.
func hash(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic("internal error: cannot encode a plain struct: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:6])
}

// sortedSet returns the trimmed texts, sorted, without duplicates and empty
// ones; nil when none is left.
func sortedSet(texts []string) []string {
	var set []string
	for _, text := range texts {
		if text = strings.TrimSpace(text); text != "" {
			set = append(set, text)
		}
	}
	slices.Sort(set)
	return slices.Compact(set)
}

func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}
