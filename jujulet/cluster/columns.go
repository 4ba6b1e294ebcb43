// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
)

const none = "<none>"

func orNone(parts []string) string {
	if len(parts) == 0 {
		return none
	}
	return strings.Join(parts, ",")
}

func orWord(v, word string) string {
	if v == "" {
		return word
	}
	return v
}

func configMapColumns() []column {
	return []column{nameColumn(), col("Data", func(o *corev1.ConfigMap) any { return len(o.Data) + len(o.BinaryData) }), ageColumn()}
}

func secretColumns() []column {
	return []column{nameColumn(), col("Type", func(o *corev1.Secret) any { return string(o.Type) }),
		col("Data", func(o *corev1.Secret) any { return len(o.Data) }), ageColumn()}
}

func namespaceColumns() []column {
	return []column{nameColumn(), col("Status", func(o *corev1.Namespace) any { return string(o.Status.Phase) }), ageColumn()}
}

func eventColumns() []column {
	seen := column{name: "Last Seen", cell: func(o Object, now time.Time) any {
		e := o.(*corev1.Event)
		at := e.LastTimestamp
		if at.IsZero() {
			at.Time = e.EventTime.Time
		}
		return since(at, now)
	}}
	return []column{seen,
		col("Type", func(o *corev1.Event) any { return o.Type }),
		col("Reason", func(o *corev1.Event) any { return o.Reason }),
		col("Object", func(o *corev1.Event) any {
			return strings.ToLower(o.InvolvedObject.Kind) + "/" + o.InvolvedObject.Name
		}),
		wide(col("Source", func(o *corev1.Event) any { return orWord(o.Source.Component, o.ReportingController) })),
		col("Message", func(o *corev1.Event) any { return strings.TrimSpace(o.Message) }),
		wide(col("Count", func(o *corev1.Event) any { return o.Count })),
		wide(nameColumn()),
	}
}

func serviceColumns() []column {
	return []column{nameColumn(),
		col("Type", func(o *corev1.Service) any { return string(o.Spec.Type) }),
		col("Cluster-IP", func(o *corev1.Service) any { return orWord(o.Spec.ClusterIP, none) }),
		col("External-IP", func(o *corev1.Service) any { return externalIP(o) }),
		col("Port(s)", func(o *corev1.Service) any { return portList(o) }),
		ageColumn(),
		wide(col("Selector", func(o *corev1.Service) any { return labelList(o.Spec.Selector) })),
	}
}

func labelList(m map[string]string) string {
	if len(m) == 0 {
		return none
	}
	return labels.FormatLabels(m)
}

// externalIP is how a Service is reached from outside, as kubectl shows it.
func externalIP(s *corev1.Service) string {
	switch {
	case s.Spec.Type == corev1.ServiceTypeExternalName:
		return s.Spec.ExternalName
	case !isLoadBalancer(s):
		return orNone(s.Spec.ExternalIPs)
	}
	found := map[string]bool{}
	for _, in := range s.Status.LoadBalancer.Ingress {
		if v := orWord(in.IP, in.Hostname); v != "" {
			found[v] = true
		}
	}
	all := append(slices.Sorted(maps.Keys(found)), s.Spec.ExternalIPs...)
	if len(all) == 0 {
		return "<pending>"
	}
	return strings.Join(all, ",")
}

func portList(s *corev1.Service) string {
	var out []string
	for _, p := range s.Spec.Ports {
		text := fmt.Sprintf("%d/%s", p.Port, p.Protocol)
		if p.NodePort > 0 {
			text = fmt.Sprintf("%d:%d/%s", p.Port, p.NodePort, p.Protocol)
		}
		out = append(out, text)
	}
	return orNone(out)
}

func podColumns() []column {
	return []column{nameColumn(),
		col("Ready", func(o *corev1.Pod) any {
			ready := 0
			for _, c := range o.Status.ContainerStatuses {
				if c.Ready {
					ready++
				}
			}
			return fmt.Sprintf("%d/%d", ready, len(o.Spec.Containers))
		}),
		col("Status", func(o *corev1.Pod) any { return podStatus(o) }),
		col("Restarts", func(o *corev1.Pod) any {
			n := int32(0)
			for _, c := range o.Status.ContainerStatuses {
				n += c.RestartCount
			}
			return fmt.Sprint(n)
		}),
		ageColumn(),
		wide(col("IP", func(o *corev1.Pod) any { return orWord(o.Status.PodIP, none) })),
		wide(col("Node", func(o *corev1.Pod) any { return orWord(o.Spec.NodeName, none) })),
		wide(col("Nominated Node", func(o *corev1.Pod) any { return orWord(o.Status.NominatedNodeName, none) })),
		wide(col("Readiness Gates", func(o *corev1.Pod) any { return none })),
	}
}

// podStatus is the one word that says how a Pod is.
func podStatus(p *corev1.Pod) string {
	if p.DeletionTimestamp != nil {
		return "Terminating"
	}
	for _, c := range p.Status.ContainerStatuses {
		if w := c.State.Waiting; w != nil && w.Reason != "" {
			return w.Reason
		}
		if t := c.State.Terminated; t != nil && t.Reason != "" {
			return t.Reason
		}
	}
	return orWord(p.Status.Reason, string(p.Status.Phase))
}

func nodeColumns() []column {
	return []column{nameColumn(),
		col("Status", func(o *corev1.Node) any { return nodeStatus(o) }),
		col("Roles", func(o *corev1.Node) any {
			var roles []string
			for _, k := range slices.Sorted(maps.Keys(o.Labels)) {
				if role, ok := strings.CutPrefix(k, "node-role.kubernetes.io/"); ok {
					roles = append(roles, role)
				}
			}
			return orNone(roles)
		}),
		ageColumn(),
		col("Version", func(o *corev1.Node) any { return o.Status.NodeInfo.KubeletVersion }),
		wide(col("Internal-IP", func(o *corev1.Node) any { return nodeAddress(o, corev1.NodeInternalIP) })),
		wide(col("External-IP", func(o *corev1.Node) any { return nodeAddress(o, corev1.NodeExternalIP) })),
		wide(col("OS-Image", func(o *corev1.Node) any { return orWord(o.Status.NodeInfo.OSImage, "<unknown>") })),
		wide(col("Kernel-Version", func(o *corev1.Node) any { return orWord(o.Status.NodeInfo.KernelVersion, "<unknown>") })),
		wide(col("Container-Runtime", func(o *corev1.Node) any { return orWord(o.Status.NodeInfo.ContainerRuntimeVersion, "<unknown>") })),
	}
}

func nodeStatus(n *corev1.Node) string {
	word := "Unknown"
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			word = "NotReady"
			if c.Status == corev1.ConditionTrue {
				word = "Ready"
			}
		}
	}
	if n.Spec.Unschedulable {
		word += ",SchedulingDisabled"
	}
	return word
}

func nodeAddress(n *corev1.Node, typ corev1.NodeAddressType) string {
	for _, a := range n.Status.Addresses {
		if a.Type == typ {
			return a.Address
		}
	}
	return none
}

func statefulSetColumns() []column {
	return []column{nameColumn(),
		col("Ready", func(o *appsv1.StatefulSet) any { return fmt.Sprintf("%d/%d", o.Status.ReadyReplicas, *o.Spec.Replicas) }),
		ageColumn(),
		wide(col("Containers", func(o *appsv1.StatefulSet) any {
			var names []string
			for _, c := range o.Spec.Template.Spec.Containers {
				names = append(names, c.Name)
			}
			return orNone(names)
		})),
		wide(col("Images", func(o *appsv1.StatefulSet) any {
			var images []string
			for _, c := range o.Spec.Template.Spec.Containers {
				images = append(images, c.Image)
			}
			return orNone(images)
		})),
	}
}

func endpointSliceColumns() []column {
	return []column{nameColumn(),
		col("AddressType", func(o *discoveryv1.EndpointSlice) any { return string(o.AddressType) }),
		col("Ports", func(o *discoveryv1.EndpointSlice) any {
			var ports []string
			for _, p := range o.Ports {
				if p.Port != nil {
					ports = append(ports, fmt.Sprint(*p.Port))
				}
			}
			return orWord(strings.Join(ports, ","), "<unset>")
		}),
		col("Endpoints", func(o *discoveryv1.EndpointSlice) any {
			var all []string
			for _, e := range o.Endpoints {
				all = append(all, e.Addresses...)
			}
			return orWord(strings.Join(all, ","), "<unset>")
		}),
		ageColumn(),
	}
}
