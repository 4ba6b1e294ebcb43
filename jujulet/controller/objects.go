// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package controller

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
	"github.com/drawbridge-k8s/drawbridge/jujulet/pod"
)

// Labels and annotations that Juju 3.6 sets.
const (
	labelName      = "app.kubernetes.io/name"
	labelManagedBy = "app.kubernetes.io/managed-by"
	managedByJuju  = "juju"
	labelModelName = "model.juju.is/name"
	labelModelID   = "model.juju.is/id"
	annotationUnit = "unit.juju.is/id"
)

// placeholderPort is the port of an application's Service while no unit has
// opened one: a Service with a cluster address needs at least one.
// Juju 3.6: name and number.
const (
	placeholderName = "placeholder"
	placeholderPort = 65535
)

// placeholderImage stands in pod specs where Kubernetes would name an image.
const placeholderImage = "jujulet.local/host"

// selectorOf is what Juju selects an application's pods by: the name alone.
func selectorOf(app string) map[string]string { return map[string]string{labelName: app} }

// labelsOf are the labels of an application's objects other than pods.
func labelsOf(app string) map[string]string {
	return map[string]string{labelName: app, labelManagedBy: managedByJuju}
}

// podName is the pod of a unit: "app-0" for "app/0".
func podName(unit string) string { return strings.Replace(unit, "/", "-", 1) }

// endpointsName is the headless Service of an application.
func endpointsName(app string) string { return app + "-endpoints" }

// namespaceObject is the namespace of a model.
func namespaceObject(info model.Info) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name:   info.Name,
		Labels: map[string]string{labelModelName: info.Name, labelModelID: info.UUID, labelManagedBy: managedByJuju},
	}}
}

// statefulSet is the StatefulSet of an application.
func statefulSet(namespace string, app model.ApplicationStatus) *appsv1.StatefulSet {
	replicas := int32(app.Scale)
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: app.Name, Namespace: namespace, Labels: labelsOf(app.Name)},
		Spec: appsv1.StatefulSetSpec{
			Replicas:            &replicas,
			ServiceName:         endpointsName(app.Name),
			PodManagementPolicy: appsv1.ParallelPodManagement,
			Selector:            &metav1.LabelSelector{MatchLabels: selectorOf(app.Name)},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: selectorOf(app.Name)},
				Spec:       podSpec(app),
			},
		},
	}
}

// applicationService is the Service that Juju makes for an application.
func applicationService(namespace string, app model.ApplicationStatus) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: app.Name, Namespace: namespace, Labels: labelsOf(app.Name)},
		Spec: corev1.ServiceSpec{
			Type:     corev1.ServiceTypeClusterIP,
			Selector: selectorOf(app.Name),
			Ports:    servicePorts(nil, app.Ports),
		},
	}
}

// endpointsService is the headless Service that gives pods their names.
func endpointsService(namespace string, app model.ApplicationStatus) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: endpointsName(app.Name), Namespace: namespace, Labels: labelsOf(app.Name)},
		Spec: corev1.ServiceSpec{
			Type:                     corev1.ServiceTypeClusterIP,
			ClusterIP:                corev1.ClusterIPNone,
			PublishNotReadyAddresses: true,
			Selector:                 selectorOf(app.Name),
		},
	}
}

// servicePorts returns the ports of an application's Service: those that Juju
// did not name stay, "juju-<port>-<protocol>" follow what the units opened, and
// the placeholder is there exactly while nothing else is. Juju 3.6:
// application.UpdatePorts. Opened ports that cannot be read are left out.
func servicePorts(live []corev1.ServicePort, opened []string) []corev1.ServicePort {
	known := map[string]corev1.ServicePort{}
	var ports []corev1.ServicePort
	for _, port := range live {
		switch {
		case port.Name == placeholderName:
		case strings.HasPrefix(port.Name, "juju-"):
			known[port.Name] = port
		default:
			ports = append(ports, port)
		}
	}
	for _, text := range opened {
		wanted, ok := openedPort(text)
		if !ok {
			continue
		}
		if port, ok := known[wanted.Name]; ok {
			wanted = port
		}
		ports = append(ports, wanted)
	}
	if len(ports) == 0 {
		ports = append(ports, corev1.ServicePort{
			Name: placeholderName, Protocol: corev1.ProtocolTCP, Port: placeholderPort, TargetPort: intstr.FromInt32(placeholderPort),
		})
	}
	return ports
}

// openedPort reads "8080/tcp".
func openedPort(text string) (corev1.ServicePort, bool) {
	number, protocol, _ := strings.Cut(text, "/")
	n, err := strconv.ParseInt(number, 10, 32)
	if err != nil || n < 1 || n > 65535 {
		return corev1.ServicePort{}, false
	}
	port := corev1.ServicePort{
		Name:       fmt.Sprintf("juju-%d-%s", n, protocol),
		Port:       int32(n),
		TargetPort: intstr.FromInt32(int32(n)),
	}
	switch protocol {
	case "tcp":
		port.Protocol = corev1.ProtocolTCP
	case "udp":
		port.Protocol = corev1.ProtocolUDP
	default:
		return corev1.ServicePort{}, false
	}
	return port, true
}

// containerNames are the workload containers of an application, sorted: the
// order in which their Pebbles get their ports.
func containerNames(app model.ApplicationStatus) []string {
	names := make([]string, 0, len(app.Containers))
	for name := range app.Containers {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// healthPorts are the ports of the Pebbles of workload containers, by name.
func healthPorts(app model.ApplicationStatus) map[string]int {
	ports := map[string]int{}
	for i, name := range containerNames(app) {
		ports[name] = pod.FirstWorkloadPort + i
	}
	return ports
}

// podSpec is what can be told of a pod of an application before it is placed.
func podSpec(app model.ApplicationStatus) corev1.PodSpec {
	grace := int64(30)
	spec := corev1.PodSpec{
		ServiceAccountName:            app.Name,
		RestartPolicy:                 corev1.RestartPolicyAlways,
		TerminationGracePeriodSeconds: &grace,
		Containers:                    []corev1.Container{{Name: pod.CharmContainer, Image: placeholderImage}},
	}
	ports := healthPorts(app)
	for _, name := range containerNames(app) {
		spec.Containers = append(spec.Containers, corev1.Container{
			Name:           name,
			Image:          placeholderImage,
			StartupProbe:   pebbleProbe("alive", ports[name], startPeriod, startFailures),
			ReadinessProbe: pebbleProbe("ready", ports[name], readyPeriod, 1),
		})
	}
	return spec
}

// startFailures is how many startup probes may fail. Nothing is restarted for
// it here: a container that does not start stays unready.
const startFailures = 30

// pebbleProbe is a probe of Pebble's health.
func pebbleProbe(level string, port int, period, failures int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
			Path: "/v1/health?level=" + level,
			Port: intstr.FromInt(port),
		}},
		PeriodSeconds:    period,
		TimeoutSeconds:   1,
		SuccessThreshold: 1,
		FailureThreshold: failures,
	}
}

// podObject is the Pod of a unit on a node, as it is before it runs.
func podObject(owner *appsv1.StatefulSet, app model.ApplicationStatus, unit, node string) *corev1.Pod {
	spec := podSpec(app)
	spec.NodeName = node
	spec.Hostname = podName(unit)
	spec.Subdomain = endpointsName(app.Name)
	yes := true
	labels := selectorOf(app.Name)
	labels[appsv1.StatefulSetPodNameLabel] = podName(unit)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:        podName(unit),
			Namespace:   owner.Namespace,
			Labels:      labels,
			Annotations: map[string]string{annotationUnit: unit},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "StatefulSet", Name: owner.Name, UID: owner.UID,
				Controller: &yes, BlockOwnerDeletion: &yes,
			}},
		},
		Spec:   spec,
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
}
