// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package world

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cluster"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
	"github.com/drawbridge-k8s/drawbridge/k8sservice"
)

// nodeAddresses are the cluster's nodes with their internal addresses.
var nodeAddresses = map[string]string{"node-0": "10.10.0.10", "node-1": "10.10.0.11", "node-2": "10.10.0.12"}

// makeCluster makes the namespace and the nodes.
func (w *World) makeCluster() {
	w.T.Helper()
	_, err := cluster.Ensure(w.Admin, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Model}})
	require.NoError(w.T, err)
	for name, address := range nodeAddresses {
		_, err := cluster.Ensure(w.Admin, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		require.NoError(w.T, err)
		w.NodeAddresses(name, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: address})
	}
}

// NodeAddresses sets what a node reports.
func (w *World) NodeAddresses(name string, addresses ...corev1.NodeAddress) {
	w.T.Helper()
	_, err := cluster.ChangeStatus(w.Admin, "", name, func(n *corev1.Node) error {
		n.Status.Addresses = addresses
		return nil
	})
	require.NoError(w.T, err)
}

// makeApplication makes what Juju makes in Kubernetes for an application: the
// service account and the StatefulSet.
func (w *World) makeApplication(app string, trusted bool) {
	w.T.Helper()
	w.account(app, trusted)
	_, err := w.Admin.Create(&appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: Model, Name: app, Labels: map[string]string{"app.kubernetes.io/name": app}},
		Spec: appsv1.StatefulSetSpec{
			ServiceName: app + "-endpoints",
			Selector:    &metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/name": app}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app.kubernetes.io/name": app}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "charm", Image: "charm"}}},
			},
		},
	})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(w.T, err)
	}
}

func (w *World) account(app string, trusted bool) {
	w.T.Helper()
	rules := cluster.UntrustedRules(Model)
	if trusted {
		rules = cluster.TrustedRules()
	}
	require.NoError(w.T, w.Cluster.SetAccount(Model, app, token(app), rules))
}

func token(app string) string { return "token-of-" + app }

// Trust gives an application the rights of `juju trust`, or takes them.
func (w *World) Trust(app string, trust bool) {
	w.T.Helper()
	require.NoError(w.T, w.Model.SetTrust(app, trust))
	w.account(app, trust)
}

// Rights gives an application exactly these rules.
func (w *World) Rights(app string, rules ...cluster.Rule) {
	w.T.Helper()
	require.NoError(w.T, w.Cluster.SetAccount(Model, app, token(app), rules))
}

// Node moves a unit to another node; its pod is made again there.
func (w *World) Node(unit, node string) {
	w.T.Helper()
	w.nodes[unit] = node
	w.KillPod(unit)
}

func podName(unit string) string { return strings.ReplaceAll(unit, "/", "-") }

// makePod makes a unit's pod: running, ready, on a node of its own as far as
// there are nodes.
func (w *World) makePod(unit string) {
	w.T.Helper()
	app, number, _ := strings.Cut(unit, "/")
	set, err := cluster.Get[*appsv1.StatefulSet](w.Admin, Model, app)
	require.NoError(w.T, err)
	var ordinal int
	_, err = fmt.Sscan(number, &ordinal)
	require.NoError(w.T, err)
	node := w.nodes[unit]
	if node == "" {
		node = fmt.Sprintf("node-%d", ordinal%len(nodeAddresses))
	}
	w.pods[unit]++
	address := fmt.Sprintf("10.1.%d.%d", len(app)%250, 10+ordinal*20+w.pods[unit]%20)
	controller := true
	_, err = w.Admin.Create(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: Model, Name: podName(unit), Labels: map[string]string{"app.kubernetes.io/name": app},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "StatefulSet", Name: app, UID: set.UID, Controller: &controller,
			}},
		},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "charm", Image: "charm"}}},
	})
	require.NoError(w.T, err)
	w.podStatus(unit, address, true)
	require.NoError(w.T, w.Model.SetPodStatus(unit, model.PodStatus{Address: address, Ready: true}))
}

// PodReady says whether a unit's pod is ready.
func (w *World) PodReady(unit string, ready bool) {
	w.T.Helper()
	pod, err := cluster.Get[*corev1.Pod](w.Admin, Model, podName(unit))
	require.NoError(w.T, err)
	w.podStatus(unit, pod.Status.PodIP, ready)
}

func (w *World) podStatus(unit, address string, ready bool) {
	w.T.Helper()
	condition := corev1.ConditionFalse
	if ready {
		condition = corev1.ConditionTrue
	}
	_, err := cluster.ChangeStatus(w.Admin, Model, podName(unit), func(pod *corev1.Pod) error {
		pod.Status.Phase = corev1.PodRunning
		pod.Status.PodIP, pod.Status.PodIPs = address, []corev1.PodIP{{IP: address}}
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: condition}}
		return nil
	})
	require.NoError(w.T, err)
}

func (w *World) removePod(unit string) {
	w.T.Helper()
	if err := w.Admin.Delete(cluster.Pod, Model, podName(unit)); !apierrors.IsNotFound(err) {
		require.NoError(w.T, err)
	}
}

// removeApplicationIfGone deletes what Juju deletes with an application, and lets
// the garbage collector work.
func (w *World) removeApplicationIfGone(unit string) {
	w.T.Helper()
	app, _, _ := strings.Cut(unit, "/")
	status, err := w.Model.Status()
	require.NoError(w.T, err)
	if _, there := status.Applications[app]; there {
		return
	}
	require.NoError(w.T, w.Admin.Delete(cluster.StatefulSet, Model, app))
	require.NoError(w.T, w.Cluster.Settle())
}

// fillRoot makes the files that a pod finds: the service account and
// resolv.conf.
func (w *World) fillRoot(unit, root string) {
	w.T.Helper()
	app, _, _ := strings.Cut(unit, "/")
	files := map[string]string{
		"var/run/secrets/kubernetes.io/serviceaccount/token":     token(app),
		"var/run/secrets/kubernetes.io/serviceaccount/namespace": Model,
		"etc/resolv.conf": "search " + Model + ".svc.cluster.local svc.cluster.local cluster.local\n",
	}
	for name, text := range files {
		path := filepath.Join(root, name)
		require.NoError(w.T, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(w.T, os.WriteFile(path, []byte(text), 0o600))
	}
}

// Live returns the gateway's Service, nil when there is none.
func (w *World) Live() *corev1.Service {
	w.T.Helper()
	service, err := cluster.Get[*corev1.Service](w.Admin, Model, Service)
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(w.T, err)
	return service
}

// ChangeService edits the gateway's Service as a person would.
func (w *World) ChangeService(change func(*corev1.Service)) {
	w.T.Helper()
	_, err := cluster.Change(w.Admin, Model, Service, func(s *corev1.Service) error {
		change(s)
		return nil
	})
	require.NoError(w.T, err)
}

// Ingress is the load balancer: it sets the addresses of the Service, each an IP
// or a host name.
func (w *World) Ingress(hosts ...string) {
	w.T.Helper()
	var entries []corev1.LoadBalancerIngress
	for _, host := range hosts {
		entry := corev1.LoadBalancerIngress{Hostname: host}
		if strings.ContainsAny(host, ":") || strings.Trim(host, "0123456789.") == "" {
			entry = corev1.LoadBalancerIngress{IP: host}
		}
		entries = append(entries, entry)
	}
	w.IngressEntries(entries...)
}

// IngressEntries sets the load balancer's entries of the Service as they are.
func (w *World) IngressEntries(entries ...corev1.LoadBalancerIngress) {
	w.T.Helper()
	_, err := cluster.ChangeStatus(w.Admin, Model, Service, func(s *corev1.Service) error {
		s.Status.LoadBalancer.Ingress = entries
		return nil
	})
	require.NoError(w.T, err)
}

// Event tells something of the Service, as a controller does.
func (w *World) Event(kind, reason, message string) {
	w.T.Helper()
	service := w.Live()
	require.NotNil(w.T, service)
	now := metav1.NewTime(w.Clock.Now())
	_, err := w.Admin.Create(&corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: Model, GenerateName: Service + "-"},
		InvolvedObject: corev1.ObjectReference{
			Kind: "Service", Namespace: Model, Name: Service, UID: service.UID, APIVersion: "v1",
		},
		Type: kind, Reason: reason, Message: message, FirstTimestamp: now, LastTimestamp: now, Count: 1,
		Source: corev1.EventSource{Component: "load-balancer"},
	})
	require.NoError(w.T, err)
}

// Kubernetes is the charm's own client with an application's rights.
func (w *World) Kubernetes(app string) *k8sservice.Client {
	w.T.Helper()
	options, err := k8sservice.InClusterOptions(getenv, w.roots[app+"/0"])
	require.NoError(w.T, err)
	options.Transport = w.Cluster.RoundTripper()
	client, err := k8sservice.NewClient(options)
	require.NoError(w.T, err)
	w.T.Cleanup(client.Close)
	return client
}
