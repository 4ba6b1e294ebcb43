// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package controller

import (
	"context"
	"log/slog"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cluster"
	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
	"github.com/drawbridge-k8s/drawbridge/jujulet/pod"
)

// fakeSandbox is a pod of nothing: its agent runs until it is killed.
type fakeSandbox struct {
	spec pod.Spec
	once sync.Once
	done chan struct{}
	// signals are those that the agent got; to be read when done is closed.
	signals []unix.Signal
}

func (f *fakeSandbox) Exec(ctx context.Context, _ string, _ pod.Command) (int, error) {
	select {
	case <-ctx.Done():
	case <-f.done:
	}
	return -1, context.Canceled
}
func (f *fakeSandbox) Spawn(context.Context, string, pod.Command) (running, error) {
	return &fakeAgent{box: f, ended: make(chan struct{})}, nil
}
func (f *fakeSandbox) StartContainer(context.Context, string) error { return nil }
func (f *fakeSandbox) ContainerDone(string) <-chan struct{}         { return nil }
func (f *fakeSandbox) Done() <-chan struct{}                        { return f.done }
func (f *fakeSandbox) Kill()                                        { f.once.Do(func() { close(f.done) }) }

// fakeAgent is an agent that runs until its pod is killed, or until SIGTERM.
type fakeAgent struct {
	box   *fakeSandbox
	once  sync.Once
	ended chan struct{}
}

func (f *fakeAgent) Wait(ctx context.Context) (int, error) {
	select {
	case <-ctx.Done():
	case <-f.box.done:
	case <-f.ended:
		return 0, nil
	}
	return -1, context.Canceled
}

func (f *fakeAgent) Signal(sig unix.Signal) error {
	f.once.Do(func() {
		f.box.signals = append(f.box.signals, sig)
		close(f.ended)
	})
	return nil
}

// kubelet is a controller over a real store whose pods are fake.
type kubelet struct {
	*modelWorker
	t   *testing.T
	ctx context.Context
	mu  sync.Mutex
	// pods are the sandboxes by name, oldest first.
	pods map[string][]*fakeSandbox
}

func newKubelet(t *testing.T, state string) *kubelet {
	t.Helper()
	k := &kubelet{t: t, pods: map[string][]*fakeSandbox{}}
	cfg := config{State: state, Runtime: t.TempDir(), Model: "dev", Controller: "jujulet"}
	c := newController(cfg, slog.New(slog.DiscardHandler), func(error) {})
	require.NoError(t, c.openStore())
	require.NoError(t, c.ensureCluster())
	var err error
	k.modelWorker, err = c.worker("dev")
	require.NoError(t, err)
	c.startSandbox = func(_ context.Context, s pod.Spec) (sandbox, error) {
		box := &fakeSandbox{spec: s, done: make(chan struct{})}
		k.mu.Lock()
		defer k.mu.Unlock()
		k.pods[s.Name] = append(k.pods[s.Name], box)
		return box, nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	k.ctx = ctx
	done := make(chan error, 2)
	go func() { done <- k.api.Run(ctx) }()
	go func() { done <- k.follow(ctx) }()
	t.Cleanup(func() {
		cancel()
		k.stopUnits()
		require.NoError(t, <-done)
		require.NoError(t, <-done)
		k.work.Wait()
		require.NoError(t, k.model.Close())
	})
	return k
}

// sandboxes returns a pod's sandboxes so far.
func (k *kubelet) sandboxes(name string) []*fakeSandbox {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.pods[name]
}

func (k *kubelet) deploy(units int) {
	k.t.Helper()
	charm, err := model.ReadCharm(filepath.Join("testdata", "trivial"))
	require.NoError(k.t, err)
	require.NoError(k.t, k.model.Deploy(model.DeployArgs{
		App: "trivial", Charm: charm, Units: units, Resources: map[string]string{"web-image": "host"},
	}))
}

// pod waits for a running Pod object that check accepts.
func (k *kubelet) pod(name string, check func(*corev1.Pod) bool) *corev1.Pod {
	k.t.Helper()
	var found *corev1.Pod
	require.Eventually(k.t, func() bool {
		p, err := cluster.Get[*corev1.Pod](k.admin, "dev", name)
		if err != nil || p.Status.Phase != corev1.PodRunning || !check(p) {
			return false
		}
		found = p
		return true
	}, 10*time.Second, 5*time.Millisecond)
	return found
}

func any1(*corev1.Pod) bool { return true }

func TestObjectsOfAnApplication(t *testing.T) {
	t.Parallel()
	k := newKubelet(t, t.TempDir())
	k.deploy(2)
	first := k.pod("trivial-0", any1)
	require.Equal(t, map[string]string{"app.kubernetes.io/name": "trivial", appsv1.StatefulSetPodNameLabel: "trivial-0"}, first.Labels)
	require.Equal(t, "node-0", first.Spec.NodeName)
	require.Equal(t, "10.10.0.10", first.Status.HostIP)
	require.Equal(t, "node-1", k.pod("trivial-1", any1).Spec.NodeName)
	set, err := cluster.Get[*appsv1.StatefulSet](k.admin, "dev", "trivial")
	require.NoError(t, err)
	require.True(t, metav1.IsControlledBy(first, set))
	headless, err := cluster.Get[*corev1.Service](k.admin, "dev", "trivial-endpoints")
	require.NoError(t, err)
	require.Equal(t, corev1.ClusterIPNone, headless.Spec.ClusterIP)
	require.True(t, headless.Spec.PublishNotReadyAddresses)
	box := k.sandboxes("trivial-0")[0]
	require.Equal(t, first.Status.PodIP, box.spec.IP.String())
	require.NotEmpty(t, box.spec.Token)
	require.Equal(t, []string{"charm", "web"}, []string{box.spec.Containers[0].Name, box.spec.Containers[1].Name})
	require.NotEmpty(t, box.spec.ControlDir)
	require.Eventually(t, func() bool {
		status, err := k.model.Status()
		return err == nil && status.Applications["trivial"].Address != "" &&
			status.Applications["trivial"].Units["trivial/0"].Pod.Address == first.Status.PodIP
	}, 10*time.Second, 5*time.Millisecond)
}

func TestPodIsMadeAgain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		end  func(k *kubelet)
	}{
		{"killed", func(k *kubelet) { k.sandboxes("trivial-0")[0].Kill() }},
		{"object deleted", func(k *kubelet) { require.NoError(k.t, k.admin.Delete(cluster.Pod, "dev", "trivial-0")) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			k := newKubelet(t, t.TempDir())
			k.deploy(1)
			first := k.pod("trivial-0", any1)
			began := time.Now()
			c.end(k)
			second := k.pod("trivial-0", func(p *corev1.Pod) bool { return p.UID != first.UID })
			require.GreaterOrEqual(t, time.Since(began), restartDelay)
			require.NotEqual(t, first.Status.PodIP, second.Status.PodIP)
			require.Len(t, k.sandboxes("trivial-0"), 2)
		})
	}
}

func TestTrustGivesRights(t *testing.T) {
	t.Parallel()
	k := newKubelet(t, t.TempDir())
	k.deploy(1)
	k.pod("trivial-0", any1)
	token, err := k.keys.token("dev/trivial")
	require.NoError(t, err)
	require.Equal(t, http.StatusForbidden, k.nodesStatus(token))
	require.NoError(t, k.model.SetTrust("trivial", true))
	require.Eventually(t, func() bool { return k.nodesStatus(token) == http.StatusOK }, 10*time.Second, 5*time.Millisecond)
}

func TestRemovalLeavesNothing(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	k := newKubelet(t, state)
	k.deploy(2)
	k.pod("trivial-1", any1)
	// What a charm made goes with the StatefulSet that owns it.
	set, err := cluster.Get[*appsv1.StatefulSet](k.admin, "dev", "trivial")
	require.NoError(t, err)
	_, err = k.admin.Create(&corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "trivial-service", Namespace: "dev", OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "apps/v1", Kind: "StatefulSet", Name: set.Name, UID: set.UID,
		}}},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	})
	require.NoError(t, err)
	_, err = k.postRemoveApplication(t.Context(), removeNow("trivial"))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		services, err1 := cluster.List[*corev1.Service](k.admin, "dev", "")
		pods, err2 := cluster.List[*corev1.Pod](k.admin, "dev", "")
		sets, err3 := cluster.List[*appsv1.StatefulSet](k.admin, "dev", "")
		return err1 == nil && err2 == nil && err3 == nil && len(services)+len(pods)+len(sets) == 0
	}, 10*time.Second, 5*time.Millisecond)
	for _, name := range []string{"trivial-0", "trivial-1"} {
		for _, box := range k.sandboxes(name) {
			<-box.Done()
		}
	}
	k.deploy(1)
	k.pod("trivial-0", any1) // a name can be used again
}

func removeNow(app string) control.RemoveRequest {
	return control.RemoveRequest{Application: app, Force: true}
}

// nodesStatus is the HTTP status of a request that only a trusted application may
// make.
func (k *kubelet) nodesStatus(token string) int {
	req, err := http.NewRequestWithContext(k.t.Context(), http.MethodGet, "http://cluster/api/v1/nodes", nil)
	require.NoError(k.t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := k.api.RoundTripper().RoundTrip(req)
	require.NoError(k.t, err)
	defer resp.Body.Close()
	return resp.StatusCode
}

// TestSeveralModels has the same application in two models: they share addresses and nothing else.
func TestSeveralModels(t *testing.T) {
	t.Parallel()
	k := newKubelet(t, t.TempDir())
	k.deploy(1)
	first := k.pod("trivial-0", any1)
	k.launch = func(w *modelWorker) {
		w.start(k.ctx, func(f func() error) { k.work.Go(func() { require.NoError(t, f()) }) })
	}
	_, err := k.postAddModel(t.Context(), control.AddModelRequest{Name: "prod"})
	require.NoError(t, err)
	for _, c := range []struct{ name, want string }{
		{"prod", `failed to create new model: model "prod" for admin already exists`},
		{"kube-system", `cannot create model "kube-system": a namespace called "kube-system" already exists on this k8s cluster. Please pick a different model name.`},
	} {
		_, err := k.postAddModel(t.Context(), control.AddModelRequest{Name: c.name})
		require.EqualError(t, err, c.want)
	}
	w, err := k.worker("")
	require.NoError(t, err)
	require.Equal(t, "prod", w.info.Name, "the new model is the current one")
	for _, ref := range []string{"prod", "admin/prod", ":prod", "jujulet:admin/prod"} {
		same, err := k.worker(ref)
		require.NoError(t, err, ref)
		require.Same(t, w, same)
	}
	for ref, want := range map[string]string{
		"none": "model jujulet:admin/none not found", "bob/prod": "model jujulet:bob/prod not found", "ctl:prod": "controller ctl not found",
	} {
		_, err := k.worker(ref)
		require.EqualError(t, err, want)
	}
	charm, err := model.ReadCharm(filepath.Join("testdata", "trivial"))
	require.NoError(t, err)
	require.NoError(t, w.model.Deploy(model.DeployArgs{App: "trivial", Charm: charm, Units: 1, Resources: map[string]string{"web-image": "host"}}))
	var second *corev1.Pod
	require.Eventually(t, func() bool {
		second, err = cluster.Get[*corev1.Pod](k.admin, "prod", "trivial-0")
		return err == nil && second.Status.Phase == corev1.PodRunning
	}, 10*time.Second, 5*time.Millisecond)
	require.NotEqual(t, first.Status.PodIP, second.Status.PodIP)
	boxes := k.sandboxes("trivial-0")
	require.Len(t, boxes, 2)
	require.NotEqual(t, boxes[0].spec.Token, boxes[1].spec.Token)
	require.NotEqual(t, boxes[0].spec.ControlDir, boxes[1].spec.ControlDir)
	require.Equal(t, "prod", boxes[1].spec.Namespace)

	_, err = k.postDestroyModel(t.Context(), control.DestroyModelRequest{Model: "prod", Force: true, NoWait: true})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		models, err := k.getModels(t.Context(), none{})
		_, absent := cluster.Get[*corev1.Namespace](k.admin, "", "prod")
		return err == nil && len(models.Models) == 1 && models.Current == "dev" && isAbsent(absent)
	}, 10*time.Second, 5*time.Millisecond)
	<-boxes[1].Done()
	require.Equal(t, first.UID, k.pod("trivial-0", any1).UID, "the other model's pod stays")
	_, err = k.postAddModel(t.Context(), control.AddModelRequest{Name: "prod"})
	require.NoError(t, err, "a name can be used again")
	again, err := k.worker("prod")
	require.NoError(t, err)
	require.NotEqual(t, w.info.UUID, again.info.UUID)
}
