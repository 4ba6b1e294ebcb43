// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cluster"
	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
)

// defaultNodes are the machines of the cluster.
func defaultNodes() []node { return []node{{"node-0", "10.10.0.10"}, {"node-1", "10.10.0.11"}} }

// adminAccount is the service account of the operator.
const adminAccount = "jujulet-admin"

// ensureCluster makes the objects that are there before any application.
func (c *Controller) ensureCluster() error {
	for _, n := range c.nodes {
		if err := c.ensureNode(n); err != nil {
			return fmt.Errorf("cannot make node %q: %w", n.Name, err)
		}
	}
	if _, err := cluster.Get[*corev1.Service](c.admin, metav1.NamespaceSystem, dnsService); isAbsent(err) {
		if _, err := c.admin.Create(c.dnsObject()); err != nil {
			return fmt.Errorf("cannot make the Service of DNS: %w", err)
		}
	}
	token, err := c.adminToken()
	if err != nil {
		return err
	}
	return c.api.SetAccount(metav1.NamespaceSystem, adminAccount, token, cluster.TrustedRules())
}

// adminToken is the operator's token.
func (c *Controller) adminToken() (string, error) {
	return c.keys.token(metav1.NamespaceSystem + "/" + adminAccount)
}

// dnsService is the name of the Service of cluster DNS, as Kubernetes has it.
const dnsService = "kube-dns"

// dnsObject is the Service of cluster DNS; the network serves its address.
func (c *Controller) dnsObject() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: dnsService, Namespace: metav1.NamespaceSystem, Labels: map[string]string{"k8s-app": dnsService}},
		Spec: corev1.ServiceSpec{
			Type:      corev1.ServiceTypeClusterIP,
			ClusterIP: c.plan.DNS.String(),
			Ports: []corev1.ServicePort{
				{Name: "dns", Protocol: corev1.ProtocolUDP, Port: 53},
				{Name: "dns-tcp", Protocol: corev1.ProtocolTCP, Port: 53},
			},
		},
	}
}

// ensureNode makes a node; one that is there stays as the operator left it.
func (c *Controller) ensureNode(n node) error {
	if _, err := cluster.Get[*corev1.Node](c.admin, "", n.Name); !isAbsent(err) {
		return err
	}
	now := metav1.NewTime(c.clock())
	object := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: map[string]string{corev1.LabelHostname: n.Name}}}
	status := corev1.NodeStatus{
		Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: n.Address},
			{Type: corev1.NodeHostName, Address: n.Name},
		},
		Conditions: []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
			LastHeartbeatTime: now, LastTransitionTime: now,
		}},
	}
	object.Status = status
	if _, err := c.admin.Create(object); err != nil {
		return err
	}
	_, err := cluster.ChangeStatus(c.admin, "", n.Name, func(o *corev1.Node) error {
		o.Status = status
		return nil
	})
	return err
}

// clusterHandlers serves what shows and changes the embedded cluster.
func (c *modelWorker) clusterHandlers(mux *http.ServeMux) {
	plain(c, mux, "cluster", c.getCluster)
	plain(c, mux, "set-load-balancer", c.postLoadBalancer)
	plain(c, mux, "set-node", c.postNode)
	plain(c, mux, "set-fault", c.postFault)
	plain(c, mux, "events", c.getEvents)
	plain(c, mux, "objects", c.getObjects)
	plain(c, mux, "apply-objects", c.postObjects)
	plain(c, mux, "delete-object", c.deleteObject)
	plain(c, mux, "kubeconfig", c.getKubeconfig)
}

// objectRequest is control's request for objects.
type objectRequest struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// getCluster describes the cluster.
func (c *modelWorker) getCluster(context.Context, none) (control.Cluster, error) {
	view := control.Cluster{LoadBalancer: c.loadBalancer()}
	nodes, err := cluster.List[*corev1.Node](c.admin, "", "")
	if err != nil {
		return view, err
	}
	pods, err := cluster.List[*corev1.Pod](c.admin, c.info.Name, "")
	if err != nil {
		return view, err
	}
	for _, n := range nodes {
		view.Nodes = append(view.Nodes, nodeView(n, pods))
	}
	services, err := cluster.List[*corev1.Service](c.admin, c.info.Name, "")
	for _, s := range services {
		view.Services = append(view.Services, serviceView(s))
	}
	return view, err
}

// nodeView is one line about a node.
func nodeView(n *corev1.Node, pods []*corev1.Pod) control.Node {
	view := control.Node{Name: n.Name}
	for _, address := range n.Status.Addresses {
		switch address.Type {
		case corev1.NodeInternalIP:
			view.InternalIP = address.Address
		case corev1.NodeExternalIP:
			view.ExternalIP = address.Address
		case corev1.NodeHostName, corev1.NodeInternalDNS, corev1.NodeExternalDNS:
		}
	}
	for _, condition := range n.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			view.Ready = condition.Status == corev1.ConditionTrue
		}
	}
	for _, p := range pods {
		if p.Spec.NodeName == n.Name {
			view.Units = append(view.Units, p.Annotations[annotationUnit])
		}
	}
	slices.Sort(view.Units)
	return view
}

// serviceView is one line about a Service.
func serviceView(s *corev1.Service) control.Service {
	view := control.Service{Name: s.Name, Type: string(s.Spec.Type), ClusterIP: s.Spec.ClusterIP}
	for _, ingress := range s.Status.LoadBalancer.Ingress {
		view.Addresses = append(view.Addresses, ingress.IP+ingress.Hostname)
	}
	for _, port := range s.Spec.Ports {
		text := fmt.Sprintf("%d/%s", port.Port, port.Protocol)
		if port.NodePort != 0 {
			text = fmt.Sprintf("%d:%d/%s", port.Port, port.NodePort, port.Protocol)
		}
		view.Ports = append(view.Ports, text)
	}
	return view
}

// postNode changes a node.
func (c *Controller) postNode(_ context.Context, r control.NodeChange) (none, error) {
	if r.ExternalIP != nil && *r.ExternalIP != "" {
		if err := c.checkNodeAddress(*r.ExternalIP); err != nil {
			return none{}, err
		}
	}
	_, err := cluster.ChangeStatus(c.admin, "", r.Name, func(n *corev1.Node) error {
		if r.ExternalIP != nil {
			n.Status.Addresses = slices.DeleteFunc(n.Status.Addresses, func(a corev1.NodeAddress) bool { return a.Type == corev1.NodeExternalIP })
			if *r.ExternalIP != "" {
				n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeExternalIP, Address: *r.ExternalIP})
			}
		}
		if r.Ready != nil {
			setNodeReady(n, *r.Ready, metav1.NewTime(c.clock()))
		}
		return nil
	})
	return none{}, err
}

// checkNodeAddress refuses an external address that this network cannot have: one of no IPv4 host, or in a range that
// has another use.
func (c *Controller) checkNodeAddress(text string) error {
	a, err := netip.ParseAddr(text)
	if err != nil || !a.Is4() || !a.IsGlobalUnicast() {
		return invalid("invalid address %q: expected the IPv4 address of a host", text)
	}
	for _, used := range []netip.Prefix{c.plan.Pods, netip.PrefixFrom(c.plan.DNS, 24).Masked(), c.plan.LBRange, c.plan.Outside.Masked()} {
		if used.Contains(a) {
			return invalid("invalid address %q: %s has another use", text, used)
		}
	}
	return nil
}

// setNodeReady sets the condition of a node.
func setNodeReady(n *corev1.Node, ready bool, now metav1.Time) {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	for i := range n.Status.Conditions {
		condition := &n.Status.Conditions[i]
		if condition.Type == corev1.NodeReady && condition.Status != status {
			condition.Status, condition.LastTransitionTime = status, now
		}
	}
}

// getEvents lists events, oldest first.
func (c *modelWorker) getEvents(_ context.Context, r objectRequest) ([]control.Event, error) {
	list, err := cluster.List[*corev1.Event](c.admin, c.info.Name, "")
	events := []control.Event{}
	for _, e := range list {
		object := e.InvolvedObject.Kind + "/" + e.InvolvedObject.Name
		if r.Name != "" && !strings.EqualFold(r.Name, object) {
			continue
		}
		events = append(events, control.Event{
			Time: eventTime(e), Type: e.Type, Reason: e.Reason, Object: object, Message: e.Message, Count: int(max(e.Count, 1)),
		})
	}
	slices.SortStableFunc(events, func(a, b control.Event) int { return a.Time.Compare(b.Time) })
	return events, err
}

// objectPaths are the API's paths of kinds, by the names that kubectl takes.
var objectPaths = []struct {
	path  string
	names []string
}{
	{"/api/v1/namespaces/%s/services", []string{"service", "services", "svc"}},
	{"/api/v1/namespaces/%s/pods", []string{"pod", "pods", "po"}},
	{"/api/v1/namespaces/%s/configmaps", []string{"configmap", "configmaps", "cm"}},
	{"/api/v1/namespaces/%s/secrets", []string{"secret", "secrets"}},
	{"/api/v1/namespaces/%s/events", []string{"event", "events", "ev"}},
	{"/apis/apps/v1/namespaces/%s/statefulsets", []string{"statefulset", "statefulsets", "sts"}},
	{"/apis/discovery.k8s.io/v1/namespaces/%s/endpointslices", []string{"endpointslice", "endpointslices"}},
	{"/api/v1/nodes", []string{"node", "nodes", "no"}},
	{"/api/v1/namespaces", []string{"namespace", "namespaces", "ns"}},
}

// getObjects reads objects as the API shows them.
func (c *modelWorker) getObjects(ctx context.Context, r objectRequest) (json.RawMessage, error) {
	var path string
	for _, known := range objectPaths {
		if slices.Contains(known.names, strings.ToLower(r.Kind)) {
			path = known.path
		}
	}
	if path == "" {
		return nil, invalid("the server doesn't have a resource type %q", r.Kind)
	}
	if strings.Contains(path, "%s") {
		path = fmt.Sprintf(path, c.info.Name)
	}
	if r.Name != "" {
		path += "/" + r.Name
	}
	return c.readAPI(ctx, path)
}

// readAPI gets a path of the API as the operator.
func (c *Controller) readAPI(ctx context.Context, path string) (json.RawMessage, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://cluster"+path, nil)
	if err != nil {
		return nil, invalid("cannot read %s: %v", path, err)
	}
	token, err := c.adminToken()
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := c.api.RoundTripper().RoundTrip(req)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", path, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", path, err)
	}
	if resp.StatusCode == http.StatusOK {
		return data, nil
	}
	var status metav1.Status
	_ = json.Unmarshal(data, &status)
	if resp.StatusCode == http.StatusNotFound {
		return nil, notFound("%s", status.Message)
	}
	return nil, invalid("%s", status.Message)
}
