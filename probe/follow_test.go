// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package probe

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drawbridge-k8s/drawbridge/k8sservice"
)

// stage is a Kubernetes API that shows objects and streams their changes.
type stage struct {
	mu      sync.Mutex
	version int
	objects map[string]any      // "services/db-service"
	streams map[string][]stream // by kind
	reads   []string
	broken  map[string]int // kind -> status of every request
}

type stream struct {
	name   string // "" for all
	events chan map[string]any
}

func newStage() *stage {
	return &stage{objects: map[string]any{}, streams: map[string][]stream{}, broken: map[string]int{}}
}

// put stores an object, nil to delete it, and tells the streams.
func (s *stage) put(path string, object metav1.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind, name, _ := strings.Cut(path, "/")
	verb := "MODIFIED"
	if s.objects[path] == nil {
		verb = "ADDED"
	}
	s.version++
	if object == nil {
		verb = "DELETED"
		object = s.objects[path].(metav1.Object)
		delete(s.objects, path)
	} else {
		s.objects[path] = object
	}
	object.SetName(name)
	object.SetResourceVersion(strconv.Itoa(s.version))
	for _, stream := range s.streams[kind] {
		if stream.name == "" || stream.name == name {
			stream.events <- map[string]any{"type": verb, "object": object}
		}
	}
}

// cut ends the streams of a kind.
func (s *stage) cut(kind string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, stream := range s.streams[kind] {
		close(stream.events)
	}
	s.streams[kind] = nil
}

func (s *stage) open(kind string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.streams[kind])
}

func (s *stage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/api/v1/"), "namespaces/dev/")
	kind, _, one := strings.Cut(path, "/")
	w.Header().Set("Content-Type", "application/json")
	s.mu.Lock()
	if code := s.broken[kind]; code != 0 {
		s.mu.Unlock()
		w.WriteHeader(code)
		return
	}
	switch {
	case r.URL.Query().Get("watch") == "true":
		s.stream(w, r, kind)
		return
	case one && s.objects[path] == nil:
		w.WriteHeader(404)
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "code": 404, "reason": "NotFound"})
	case one:
		s.reads = append(s.reads, path)
		_ = json.NewEncoder(w).Encode(s.objects[path])
	default:
		var items []any
		for name, object := range s.objects {
			if strings.HasPrefix(name, kind+"/") {
				items = append(items, object)
			}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "PodList", "apiVersion": "v1", "items": items})
	}
	s.mu.Unlock()
}

// stream sends the present state and what changes; s.mu is held.
func (s *stage) stream(w http.ResponseWriter, r *http.Request, kind string) {
	name := strings.TrimPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
	events := make(chan map[string]any, 100)
	for path, object := range s.objects {
		if k, n, _ := strings.Cut(path, "/"); k == kind && (name == "" || name == n) {
			events <- map[string]any{"type": "ADDED", "object": object}
		}
	}
	s.streams[kind] = append(s.streams[kind], stream{name, events})
	s.mu.Unlock()
	w.WriteHeader(200)
	w.(http.Flusher).Flush()
	for {
		select {
		case <-r.Context().Done():
			s.mu.Lock()
			s.streams[kind] = slices.DeleteFunc(s.streams[kind], func(t stream) bool { return t.events == events })
			s.mu.Unlock()
			return
		case e, ok := <-events:
			if !ok {
				return
			}
			_ = json.NewEncoder(w).Encode(e)
			w.(http.Flusher).Flush()
		}
	}
}

func typeMeta(kind string) metav1.TypeMeta { return metav1.TypeMeta{Kind: kind, APIVersion: "v1"} }

func liveService(kind corev1.ServiceType, uid string) *corev1.Service {
	return &corev1.Service{TypeMeta: typeMeta("Service"), ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), Namespace: "dev"},
		Spec: corev1.ServiceSpec{Type: kind, ClusterIP: "10.152.183.7", Ports: []corev1.ServicePort{
			{Name: "mysql-rw", Port: 6446, NodePort: 30001}, {Name: "mysql-ro", Port: 6447, NodePort: 30002}}}}
}

func livePod(node string, ready bool) *corev1.Pod {
	p := &corev1.Pod{TypeMeta: typeMeta("Pod"), Spec: corev1.PodSpec{NodeName: node}}
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}
	return p
}

func liveNode(ip string) *corev1.Node {
	return &corev1.Node{TypeMeta: typeMeta("Node"), Status: corev1.NodeStatus{
		Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: ip}}}}
}

// following runs a follower of a stage and returns what its addresses are, or
// why there are none.
func following(t *testing.T, s *stage) (f *follower, shows func(want string)) {
	t.Helper()
	server := httptest.NewServer(s)
	f = newFollower(func() (*k8sservice.Client, error) {
		return k8sservice.NewClient(k8sservice.Options{Host: server.URL, Namespace: "dev", Transport: http.DefaultTransport, Timeout: time.Second})
	}, "db", "db-service", discard())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); f.run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended; server.CloseClientConnections(); server.Close() })
	return f, func(want string) {
		t.Helper()
		var got string
		require.Eventually(t, func() bool {
			l, read := f.look()
			switch {
			case !read:
				got = "unread"
			case l.live == nil:
				got = "absent"
			case !l.complete:
				got = "incomplete"
			default:
				got = strings.Join(k8sservice.Addresses(l.live, k8sservice.AddressOptions{Nodes: l.nodes}).ReadWrite, ",")
			}
			return got == want
		}, 20*time.Second, 5*time.Millisecond, "want %s", want)
	}
}

func TestFollower_Service(t *testing.T) {
	t.Parallel()
	s := newStage()
	f, shows := following(t, s)
	shows("absent")
	<-f.changes()
	s.put("services/db-service", liveService("LoadBalancer", "1"))
	shows("")
	with := liveService("LoadBalancer", "1")
	with.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "10.64.140.43"}}
	s.put("services/db-service", with)
	shows("10.64.140.43:6446")
	s.put("services/db-service", nil)
	shows("absent")
	require.Zero(t, s.open("pods"), "pods matter for a NodePort only")
}

// Streams that end, or are missed, are made up for by reading again.
func TestFollower_LostStream(t *testing.T) {
	t.Parallel()
	s := newStage()
	s.put("services/db-service", liveService("ClusterIP", "1"))
	f, shows := following(t, s)
	shows("db-service.dev.svc.cluster.local.:6446")
	s.mu.Lock()
	s.broken["services"] = 500
	s.mu.Unlock()
	s.cut("services")
	with := liveService("LoadBalancer", "1")
	with.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "10.64.140.43"}}
	s.put("services/db-service", with)
	s.mu.Lock()
	delete(s.broken, "services")
	s.mu.Unlock()
	shows("10.64.140.43:6446")

	s.mu.Lock()
	s.objects["services/db-service"] = liveService("ClusterIP", "2") // nobody tells
	s.mu.Unlock()
	f.reread()
	shows(".dev.svc.cluster.local.:6446")
}

func TestFollower_NodePort(t *testing.T) {
	t.Parallel()
	s := newStage()
	s.put("services/db-service", liveService("NodePort", "1"))
	s.put("nodes/a", liveNode("10.10.0.10"))
	s.put("nodes/b", liveNode("10.10.0.11"))
	s.put("pods/db-0", livePod("a", true))
	s.put("pods/db-1", livePod("b", false))
	_, shows := following(t, s)
	shows("10.10.0.10:30001")
	s.put("pods/db-1", livePod("b", true))
	shows("10.10.0.10:30001,10.10.0.11:30001")
	s.put("nodes/b", liveNode("10.10.0.99"))
	shows("10.10.0.10:30001,10.10.0.99:30001")
	s.put("pods/db-0", nil)
	shows("10.10.0.99:30001")
	require.Eventually(t, func() bool { return s.open("nodes") == 1 }, 20*time.Second, 5*time.Millisecond, "only nodes in use")
	s.put("nodes/b", nil)
	shows("")
	s.put("services/db-service", liveService("ClusterIP", "1"))
	shows("db-service.dev.svc.cluster.local.:6446")
	require.Eventually(t, func() bool { return s.open("nodes")+s.open("pods") == 0 }, 20*time.Second, 5*time.Millisecond)
}

func TestFollower_NodesAreForbidden(t *testing.T) {
	t.Parallel()
	s := newStage()
	s.broken["nodes"] = 403
	s.put("services/db-service", liveService("NodePort", "1"))
	s.put("pods/db-0", livePod("a", true))
	s.put("nodes/a", liveNode("10.10.0.10"))
	_, shows := following(t, s)
	shows("incomplete")
	s.mu.Lock()
	delete(s.broken, "nodes")
	s.mu.Unlock()
	shows("10.10.0.10:30001")
}
