// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package scenario

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drawbridge-k8s/drawbridge/connections"
	"github.com/drawbridge-k8s/drawbridge/jujulet/cluster"
	"github.com/drawbridge-k8s/drawbridge/tests/world"
	"github.com/drawbridge-k8s/drawbridge/workload"
)

// The tests of this file are the cases of endpoints and of the Service that need
// something between the charm and the API, or an API that answers otherwise.

var nodePortText = regexp.MustCompile(`,"nodePort":\d+`)

func TestField_16_NodePortNotAllocatedYet(t *testing.T) {
	t.Parallel()
	w := world.New(t, world.Options{})
	w.Standard(1)
	late := true
	w.API = func(request *http.Request, next http.RoundTripper) (*http.Response, error) {
		answer, err := next.RoundTrip(request)
		if err != nil || !late || !strings.Contains(request.URL.Path, "/services") {
			return answer, err
		}
		body, err := io.ReadAll(answer.Body)
		body = nodePortText.ReplaceAll(body, nil)
		answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		return answer, err
	}
	w.Config("expose-external", "nodeport")
	w.Settle()
	w.Answer(w.NodePorts()...)
	for range 2 {
		w.Round()
		require.Equal(t, world.InModel+":6446", w.Endpoints())
		require.Contains(t, w.Status(w.Leader()), "waiting no address yet for the NodePort Service")
	}
	late = false
	w.Notice(w.Leader())
	require.Equal(t, w.NodeEndpoints("mysql-rw", "node-0"), w.Endpoints())
	for _, value := range w.ValuesOf("endpoints", "read-only-endpoints") {
		require.NotContains(t, value+",", ":0,")
	}
}

func TestField_34_InClusterNamesAreAbsolute(t *testing.T) {
	t.Parallel()
	w := world.New(t, world.Options{})
	w.Standard(1)
	for _, key := range []string{"endpoints", "read-only-endpoints"} {
		host, _, found := strings.Cut(w.Published(world.Client)[key], ":")
		require.True(t, found)
		require.True(t, strings.HasSuffix(host, ".svc.cluster.local."), "a final dot keeps the search list out of it: %s", host)
	}
	w.Probes()
	w.Notice(w.Leader())
	for _, address := range w.Probes() {
		require.Contains(t, address, ".:", "what is probed is absolute as well")
	}
}

func TestField_35_DriversAndTheFinalDot(t *testing.T) {
	t.Skip("needs a backend with TLS and two client drivers; the names keep their final dot as mysql-router publishes " +
		"them, and docs/operations.md says that the names in the backend's certificate do not cover external addresses")
}

func TestField_43_BlockedMeansAPerson(t *testing.T) {
	t.Parallel()
	w := pending(t)
	w.Round()
	require.True(t, strings.HasPrefix(w.Status(w.Leader()), "waiting "), "only time is needed")
	w.Config("node-port", "70000")
	w.Settle()
	require.True(t, strings.HasPrefix(w.Status(w.Leader()), "blocked "))
	require.NoError(t, w.Model.ResetConfig(world.Gateway, []string{"node-port"}))
	w.Settle()
	require.True(t, strings.HasPrefix(w.Status(w.Leader()), "waiting "))
	w.Rights(world.Gateway) // none at all
	w.Round()
	require.True(t, strings.HasPrefix(w.Status(w.Leader()), "blocked "))
}

func TestField_55_LeavingAndComingBack(t *testing.T) {
	t.Parallel()
	w := published(t, 1)
	w.Config("loadbalancer-extra-annotations", `{"example.com/ours":"1"}`)
	w.Settle()
	w.ChangeService(func(s *corev1.Service) { s.Annotations["cloud.example.com/lb-id"] = "lb-7" })
	for _, mode := range []string{"false", "loadbalancer", "false"} {
		w.Config("expose-external", mode)
		noneFailed(t, w.Settle())
		require.Equal(t, mode == "loadbalancer", w.Live().Annotations["example.com/ours"] == "1", mode)
		require.Equal(t, "lb-7", w.Live().Annotations["cloud.example.com/lb-id"], "the cloud's own key is not ours to remove")
	}
}

func TestField_61_AnnotationThatMakesAnotherBalancer(t *testing.T) {
	t.Parallel()
	w := published(t, 1)
	w.Silence(ports(lbFirst)...)
	w.Config("loadbalancer-extra-annotations", `{"example.com/kind":"internal"}`)
	w.Settle()
	require.Equal(t, "true", w.Peer()["service-pending"], "another Service than the one that answered")
	require.Contains(t, w.Status(w.Leader()), "waiting loadbalancer "+lbFirst+" does not answer yet")
	require.Equal(t, lbFirst+":6446", w.Endpoints(), "clients keep it until another answers")
	w.Ingress(lbSecond)
	w.Answer(ports(lbSecond)...)
	w.Notice(w.Leader())
	require.Equal(t, lbSecond+":6446", w.Endpoints())
}

// hookRuns is with what the workload's hook is run after a connection has changed: its path and its timeout.
func hookRuns(w *world.World) string {
	ran := ""
	w.BoxOf(units[0]).Hook = func(c workload.Command) workload.Outcome {
		ran = c.Args[0] + " " + c.Timeout.Round(time.Second).String()
		return workload.Outcome{}
	}
	p3(w)
	w.Config(connections.OptConfigMaps, "model-prediction")
	w.Settle()
	p4(w)
	w.ConfigMapChanged(units[0])
	w.Config(connections.OptConfigMaps, "")
	w.Settle()
	return ran
}

func TestField_62_EveryOptionHasAnEffect(t *testing.T) {
	t.Parallel()
	port := func(s *corev1.Service, name string) int32 {
		for _, p := range s.Spec.Ports {
			if p.Name == name {
				return p.NodePort
			}
		}
		return 0
	}
	// effects are what differs after the option was set, by option.
	effects := map[string]struct {
		value string
		see   func(*world.World) any
	}{
		"expose-external":                {"nodeport", func(w *world.World) any { return w.Live().Spec.Type }},
		"loadbalancer-extra-annotations": {`{"a":"1"}`, func(w *world.World) any { return w.Live().Annotations["a"] }},
		"loadbalancer-source-ranges":     {"10.1.0.0/16", func(w *world.World) any { return w.Live().Spec.LoadBalancerSourceRanges }},
		"loadbalancer-class":             {"example.com/x", func(w *world.World) any { return w.Live().Spec.LoadBalancerClass }},
		"external-traffic-policy":        {"Local", func(w *world.World) any { return w.Live().Spec.ExternalTrafficPolicy }},
		"node-port":                      {"31001", func(w *world.World) any { return port(w.Live(), "mysql-rw") }},
		"read-only-node-port":            {"31002", func(w *world.World) any { return port(w.Live(), "mysql-ro") }},
		"external-hostname":              {"db.example.com", func(w *world.World) any { return w.Endpoints() }},
		"probe-mode": {"none", func(w *world.World) any {
			w.Probes()
			w.Notice(w.Leader())
			return strings.Contains(strings.Join(w.Probes(), " "), lbFirst)
		}},
		"pending-timeout": {"1s", func(w *world.World) any {
			w.Silence(ports(lbFirst)...)
			w.Round()
			w.Clock.Add(time.Minute)
			w.Round()
			status, _, _ := strings.Cut(w.Status(w.Leader()), " ")
			return status
		}},
		"connected-configmaps": {"model-prediction", func(w *world.World) any {
			p3(w)
			w.Round()
			return w.Document(units[0]).Connections.Hash
		}},
		"connectable-to": {"db", func(w *world.World) any {
			if w.Handlers["spark"] == nil {
				provider(w, "spark", func() string { return text(t, spark("e")) })
				w.Integrate(world.Gateway+":connections", "spark:connection")
			}
			w.Settle()
			return len(w.Document(units[0]).Connections.Clusters)
		}},
		"connection-category": {"other", func(w *world.World) any { return w.Document(units[0]).App.Category }},
		"connections-hook": {"/opt/hook", func(w *world.World) any {
			return hookRuns(w)
		}},
		"connections-hook-timeout": {"7", func(w *world.World) any {
			w.Config(connections.OptHook, "/opt/hook")
			w.Settle()
			return hookRuns(w)
		}},
		"backend-role": {"charmed_router", func(w *world.World) any { return strings.Contains(w.Status(w.Leader()), "backend-role") }},
	}
	w := world.New(t, world.Options{})
	w.Standard(1)
	status, err := w.Model.Status()
	require.NoError(t, err)
	for _, option := range status.Applications[world.Gateway].Config {
		effect, known := effects[option.Name]
		require.True(t, known, "the option %s has no effect here", option.Name)
		t.Run(option.Name, func(t *testing.T) {
			t.Parallel()
			changed, same := published(t, 1), published(t, 1)
			changed.Answer(ports("db.example.com")...)
			changed.Config(option.Name, effect.value)
			noneFailed(t, changed.Settle())
			require.NotEqual(t, effect.see(same), effect.see(changed))
		})
	}
}

func TestField_64_AnnotationValuesAreFree(t *testing.T) {
	t.Parallel()
	w := published(t, 1)
	for name, value := range map[string]string{
		"a URL": "https://example.com/a?b=c&d=%20#e", "JSON": `{\"a\":[1,2]}`, "nothing": "", "much": strings.Repeat("x", 250<<10),
	} {
		w.Config("loadbalancer-extra-annotations", `{"example.com/a":"`+value+`"}`)
		noneFailed(t, w.Settle())
		require.Contains(t, w.Status(w.Leader()), "active ", name)
		require.Equal(t, strings.ReplaceAll(value, `\`, ""), w.Live().Annotations["example.com/a"], name)
	}
	w.Config("loadbalancer-extra-annotations", `{"example.com/a":"`+strings.Repeat("x", 300<<10)+`"}`)
	noneFailed(t, w.Settle())
	require.Contains(t, w.Status(w.Leader()), "blocked cannot use loadbalancer-extra-annotations")
	require.Less(t, len(w.Status(w.Leader())), 1000)
}

// byHand is a Service that a person made before the charm came.
func byHand(kind corev1.ServiceType, nodePort int32) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: world.Model, Name: world.Service, Labels: map[string]string{"by": "hand"}},
		Spec: corev1.ServiceSpec{
			Type: kind, Selector: map[string]string{"app.kubernetes.io/name": world.Gateway},
			Ports: []corev1.ServicePort{
				{Name: "mysql-rw", Port: 6446, NodePort: nodePort}, {Name: "mysql-ro", Port: 6447, NodePort: nodePort + 1},
			},
		},
	}
}

func TestField_67_ServiceMadeByHandIsAdopted(t *testing.T) {
	t.Parallel()
	w := world.New(t, world.Options{})
	made, err := w.Admin.Create(byHand(corev1.ServiceTypeNodePort, 31100))
	require.NoError(t, err)
	w.Deploy(world.Gateway, world.Gateway, 1, map[string]string{"expose-external": "loadbalancer"})
	noneFailed(t, w.Settle())
	live := w.Live()
	require.Equal(t, made.(*corev1.Service).UID, live.UID)
	require.Equal(t, corev1.ServiceTypeLoadBalancer, live.Spec.Type)
	require.Equal(t, made.(*corev1.Service).Spec.ClusterIP, live.Spec.ClusterIP)
	for i, p := range live.Spec.Ports {
		require.Equal(t, int32(31100+i), p.NodePort, "its node ports survive")
	}
	require.Equal(t, "hand", live.Labels["by"])
	require.Len(t, live.OwnerReferences, 1)
}

func TestField_68_TwoLeadersMakeIt(t *testing.T) {
	t.Parallel()
	w := world.New(t, world.Options{})
	raced := false
	w.API = func(request *http.Request, next http.RoundTripper) (*http.Response, error) {
		if request.Method == http.MethodPatch && !raced {
			raced = true // another unit that still thinks it leads was first
			_, err := w.Admin.Apply(byHandTyped(31200), "drawbridge-k8s", true)
			require.NoError(t, err)
		}
		return next.RoundTrip(request)
	}
	w.Deploy(world.Gateway, world.Gateway, 1, map[string]string{
		"expose-external": "nodeport", "node-port": "31200", "read-only-node-port": "31201",
	})
	noneFailed(t, w.Settle())
	require.True(t, raced)
	require.NotContains(t, w.Status(world.Gateway+"/0"), "Service")
	require.Equal(t, int32(31200), w.Live().Spec.Ports[0].NodePort)
}

func byHandTyped(nodePort int32) *corev1.Service {
	service := byHand(corev1.ServiceTypeNodePort, nodePort)
	service.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}
	return service
}

func TestField_77_NeverDeletedToUpdate(t *testing.T) {
	t.Parallel()
	w := world.New(t, world.Options{})
	var added, modified, deleted atomic.Int32
	events := w.Admin.Watch(t.Context(), cluster.ListOptions{Namespace: world.Model}, cluster.Service)
	go func() {
		for event := range events {
			switch event.Type {
			case cluster.Added:
				added.Add(1)
			case cluster.Modified:
				modified.Add(1)
			case cluster.Deleted:
				deleted.Add(1)
			}
		}
	}()
	w.Standard(1)
	for _, mode := range []string{"loadbalancer", "nodeport", "loadbalancer", "false"} {
		w.Config("expose-external", mode)
		w.Settle()
	}
	w.Config("loadbalancer-class", "example.com/x", "expose-external", "loadbalancer")
	w.Settle()
	w.Config("loadbalancer-class", "example.com/y")
	w.Settle()
	require.Eventually(t, func() bool { return modified.Load() >= 5 }, 10*time.Second, 10*time.Millisecond)
	require.Equal(t, int32(1), added.Load())
	require.Zero(t, deleted.Load())
}

func TestField_S10_FirstEntryIsEmpty(t *testing.T) {
	t.Parallel()
	w := pending(t)
	w.IngressEntries(corev1.LoadBalancerIngress{}, corev1.LoadBalancerIngress{IP: lbFirst}, corev1.LoadBalancerIngress{Hostname: "lb.example.com"})
	w.Answer(append(ports(lbFirst), ports("lb.example.com")...)...)
	w.Notice(w.Leader())
	require.Equal(t, lbFirst+":6446,lb.example.com:6446", w.Endpoints())
}

func TestField_S11_TwentyBlackHoles(t *testing.T) {
	t.Parallel()
	w := pending(t)
	var hosts []string
	for i := range 20 {
		host := fmt.Sprintf("10.64.141.%d", i+1)
		hosts = append(hosts, host)
		w.Hang(ports(host)...)
	}
	w.Ingress(hosts...)
	began := time.Now()
	noneFailed(t, w.Notice(w.Leader()))
	require.Less(t, time.Since(began), 12*time.Second, "3 s for all of them together, in each of the one or two hooks")
	require.Contains(t, w.Status(w.Leader()), "timed out after 3s")
	require.Equal(t, world.InModel+":6446", w.Endpoints())
}

func TestField_S20_OneSpelling(t *testing.T) {
	t.Parallel()
	w := world.New(t, world.Options{})
	w.Standard(1)
	w.Config("expose-external", "none")
	w.Settle()
	require.Contains(t, w.Status(w.Leader()), `blocked cannot use expose-external="none": allowed: false, nodeport, loadbalancer`)
}
