// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package halves

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/rpc"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drawbridge-k8s/drawbridge/database/databasetest"
	"github.com/drawbridge-k8s/drawbridge/hooks"
	"github.com/drawbridge-k8s/drawbridge/hooks/hooktool"
	"github.com/drawbridge-k8s/drawbridge/jujulet/agent"
	"github.com/drawbridge-k8s/drawbridge/jujulet/cluster"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
	"github.com/drawbridge-k8s/drawbridge/probe"
	"github.com/drawbridge-k8s/drawbridge/relation"
	"github.com/drawbridge-k8s/drawbridge/workload/workloadtest"
)

const (
	leader   = "drawbridge-k8s/0"
	follower = "drawbridge-k8s/1"
	inModel  = "drawbridge-k8s-service." + namespace + ".svc.cluster.local."
)

// host is a machine with a model: two units of drawbridge-k8s as real processes
// in roots of their own, a backend and a client whose hooks run in process.
type host struct {
	t        *testing.T
	dir      string
	model    *model.Model
	server   *cluster.Server
	db       *databasetest.Server
	pebble   *workloadtest.Pebble
	requests atomic.Int64
	agents   map[string]*agent.Agent
	last     map[string]measured
}

// measured is what one hook of a real process took.
type measured struct {
	hook                                       string
	exit, memory, calls, connections, requests int
	tools                                      []string
	wall, cpu                                  time.Duration
}

func newHost(t *testing.T, program string) *host {
	t.Helper()
	dir, err := os.MkdirTemp("", "h")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	h := &host{
		t: t, dir: dir, db: databasetest.Start(t), pebble: workloadtest.StartPebble(t, workloadtest.Options{}),
		agents: map[string]*agent.Agent{}, last: map[string]measured{},
	}
	h.model, err = model.Open(filepath.Join(dir, "model.db"), model.Options{NoSync: true, Name: namespace})
	require.NoError(t, err)
	t.Cleanup(func() { h.model.Close() })
	h.server, err = cluster.New(cluster.Options{})
	require.NoError(t, err)
	t.Cleanup(h.server.Close)
	_, err = h.server.Admin().Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	require.NoError(t, err)
	require.NoError(t, h.server.SetAccount(namespace, "drawbridge-k8s", bearer, cluster.TrustedRules()))
	web := httptest.NewTLSServer(h.counting(h.server.Handler()))
	t.Cleanup(func() {
		for _, unit := range []string{leader, follower} {
			_ = probe.StopWatch(context.Background(), h.watchDir(unit)) // the test's end ends it in any case
		}
		web.CloseClientConnections()
		web.Close()
	})

	h.deploy("mariadb-k8s", "examples/mariadb-k8s", "", 1)
	h.deploy("client-k8s", "examples/client-k8s", "", 1)
	h.deploy("drawbridge-k8s", ".", program, 2)
	h.inProcess("mariadb-k8s/0", h.backend)
	h.inProcess("client-k8s/0", requirer)
	h.process(leader, web)
	h.process(follower, web)
	for _, pair := range [][2]string{
		{"drawbridge-k8s:backend-database", "mariadb-k8s:database"}, {"drawbridge-k8s:database", "client-k8s:database"},
	} {
		_, err := h.model.Integrate(pair[0], pair[1])
		require.NoError(t, err)
	}
	return h
}

// counting counts requests, watches apart: those are the watch's.
func (h *host) counting(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "" {
			h.requests.Add(1)
		}
		next.ServeHTTP(w, r)
	})
}

// deploy packs a charm from the repository with this program as its dispatch.
func (h *host) deploy(app, source, program string, units int) {
	h.t.Helper()
	dir := filepath.Join(h.dir, "charm-"+app)
	require.NoError(h.t, os.MkdirAll(dir, 0o755))
	for _, name := range []string{"metadata.yaml", "config.yaml", "actions.yaml"} {
		text, err := os.ReadFile(filepath.Join("../..", source, name))
		if os.IsNotExist(err) {
			continue
		}
		require.NoError(h.t, err)
		require.NoError(h.t, os.WriteFile(filepath.Join(dir, name), text, 0o644))
	}
	dispatch := []byte("#!/bin/sh\nexit 3\n")
	if program != "" {
		var err error
		dispatch, err = os.ReadFile(program)
		require.NoError(h.t, err)
	}
	require.NoError(h.t, os.WriteFile(filepath.Join(dir, "dispatch"), dispatch, 0o755))
	manifest := "bases:\n- {name: ubuntu, channel: '22.04', architectures: [amd64]}\n"
	require.NoError(h.t, os.WriteFile(filepath.Join(dir, "manifest.yaml"), []byte(manifest), 0o644))
	charm, err := model.ReadCharm(dir)
	require.NoError(h.t, err)
	resources := map[string]string{}
	for name := range charm.Meta.Resources {
		resources[name] = "host"
	}
	require.NoError(h.t, h.model.Deploy(model.DeployArgs{App: app, Charm: charm, Units: units, Resources: resources, Trust: true}))
	labels := map[string]string{"app.kubernetes.io/name": app}
	set, err := h.server.Admin().Create(&appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: app, Labels: labels},
		Spec: appsv1.StatefulSetSpec{
			ServiceName: app + "-endpoints", Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "charm", Image: "charm"}}},
			},
		},
	})
	require.NoError(h.t, err)
	controller := true
	for i := range units {
		_, err := h.server.Admin().Create(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: fmt.Sprintf("%s-%d", app, i), Labels: labels,
				OwnerReferences: []metav1.OwnerReference{{
					APIVersion: "apps/v1", Kind: "StatefulSet", Name: app, UID: set.(*appsv1.StatefulSet).UID, Controller: &controller,
				}},
			},
			Spec: corev1.PodSpec{NodeName: "node-0", Containers: []corev1.Container{{Name: "charm", Image: "charm"}}},
		})
		require.NoError(h.t, err)
		require.NoError(h.t, h.model.SetPodStatus(fmt.Sprintf("%s/%d", app, i), model.PodStatus{Address: "127.0.0.1", Ready: true}))
	}
}

func (h *host) inProcess(unit string, handler hooks.Handler) {
	h.agent(unit, "", nil, func(ctx context.Context, c agent.Command) (int, error) {
		return hooks.Dispatch(ctx, hooks.Env{Getenv: getenv(c), Handler: handler, Stderr: os.Stderr}), nil
	})
}

func (h *host) agent(unit, root string, env func(string) string, run agent.Runner) {
	h.t.Helper()
	if root == "" {
		root = h.root(unit)
	}
	a, err := agent.New(agent.Options{
		Controller: h.model, Unit: unit, Root: root, NoPebble: true, Seed: 1, Tools: "-", Runner: run, Getenv: env,
	})
	require.NoError(h.t, err)
	h.agents[unit] = a
}

func (h *host) root(unit string) string {
	return filepath.Join(h.dir, strings.ReplaceAll(unit, "/", "-"))
}

func (h *host) watchDir(unit string) string {
	return filepath.Join(h.root(unit), "var/lib/juju/agents", model.Tag(unit), "drawbridge")
}

// process makes a unit whose hooks are processes, in a root with what a pod has.
func (h *host) process(unit string, api *httptest.Server) {
	h.t.Helper()
	root := h.root(unit)
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.Certificate().Raw})
	for name, text := range map[string]string{
		"var/run/secrets/kubernetes.io/serviceaccount/token":     bearer,
		"var/run/secrets/kubernetes.io/serviceaccount/namespace": namespace,
		"var/run/secrets/kubernetes.io/serviceaccount/ca.crt":    string(certificate),
		"etc/resolv.conf": "search " + namespace + ".svc.cluster.local svc.cluster.local cluster.local\nnameserver 127.0.0.1\n",
		"etc/hosts":       "127.0.0.78 " + strings.TrimSuffix(inModel, ".") + "\n",
		"dev/null":        "", "tmp/x": "", "proc/x": "", "charm/containers/gateway/x": "",
	} {
		path := filepath.Join(root, name)
		require.NoError(h.t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(h.t, os.WriteFile(path, []byte(text), 0o600))
	}
	require.NoError(h.t, syscall.Mount("proc", filepath.Join(root, "proc"), "proc", 0, ""))
	require.NoError(h.t, syscall.Mount("/dev/null", filepath.Join(root, "dev/null"), "", syscall.MS_BIND, ""))
	// The agent reads files that the charm names, such as those with the content of secrets.
	require.NoError(h.t, syscall.Mount("/tmp", filepath.Join(root, "tmp"), "", syscall.MS_BIND, ""))
	h.t.Cleanup(func() {
		syscall.Unmount(filepath.Join(root, "dev/null"), syscall.MNT_DETACH)
		syscall.Unmount(filepath.Join(root, "tmp"), syscall.MNT_DETACH)
		syscall.Unmount(filepath.Join(root, "proc"), syscall.MNT_DETACH)
	})
	h.relay(filepath.Join(root, "charm/containers/gateway/pebble.socket"), h.pebble.Socket)
	address, port, err := net.SplitHostPort(api.Listener.Addr().String())
	require.NoError(h.t, err)
	env := map[string]string{"KUBERNETES_SERVICE_HOST": address, "KUBERNETES_SERVICE_PORT": port}
	h.agent(unit, root, func(key string) string { return env[key] }, func(ctx context.Context, c agent.Command) (int, error) {
		return h.runProcess(ctx, unit, root, c)
	})
}

// relay passes connections on from one unix socket to another.
func (h *host) relay(from, to string) {
	h.t.Helper()
	l, err := net.Listen("unix", from)
	require.NoError(h.t, err)
	h.t.Cleanup(func() { l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer in.Close()
				out, err := net.Dial("unix", to)
				if err != nil {
					return
				}
				defer out.Close()
				go func() {
					io.Copy(out, in)
					out.(*net.UnixConn).CloseWrite()
				}()
				io.Copy(in, out)
			}()
		}
	}()
}

// runProcess runs one hook in the unit's root and measures it.
func (h *host) runProcess(ctx context.Context, unit, root string, c agent.Command) (int, error) {
	get := getenv(c)
	tools, err := newCounter(get("JUJU_AGENT_SOCKET_ADDRESS"))
	if err != nil {
		return 1, err
	}
	defer tools.close()
	program := strings.TrimPrefix(c.Path, root)
	cmd := exec.CommandContext(ctx, program, c.Args...)
	for _, pair := range c.Env {
		pair = strings.ReplaceAll(pair, get("JUJU_AGENT_SOCKET_ADDRESS"), tools.address)
		cmd.Env = append(cmd.Env, strings.ReplaceAll(pair, root, ""))
	}
	cmd.Dir = strings.TrimPrefix(c.Dir, root)
	cmd.Stdout, cmd.Stderr = c.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
	requests := h.requests.Load()
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 1, err
	}
	follow, stop := context.WithCancel(ctx)
	peak := make(chan int, 1)
	go func() { peak <- peakOf(follow, cmd.Process.Pid, "dispatch") }()
	err = cmd.Wait()
	m := measured{
		hook: get("JUJU_HOOK_NAME"), wall: time.Since(began), exit: cmd.ProcessState.ExitCode(),
		cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(),
	}
	stop()
	m.memory, m.requests = <-peak, int(h.requests.Load()-requests)
	m.tools, m.connections = tools.seen()
	m.calls = len(m.tools)
	h.last[unit] = m
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		return 1, err
	}
	return m.exit, nil
}

// settle lets all units run hooks until none has anything to do.
func (h *host) settle() {
	h.t.Helper()
	for range 200 {
		busy := false
		for _, unit := range []string{"mariadb-k8s/0", "client-k8s/0", leader, follower} {
			ran, err := h.agents[unit].Step(h.t.Context())
			require.NoError(h.t, err)
			require.NotContains(h.t, ran, "failed", "%s: %s", unit, h.log())
			busy = busy || ran != ""
		}
		if !busy {
			return
		}
	}
	h.t.Fatal("the units do not settle")
}

func (h *host) fire(unit string) {
	h.t.Helper()
	require.NoError(h.t, h.model.Fire(unit, "update-status", nil))
}

func (h *host) config(name, value string) {
	h.t.Helper()
	require.NoError(h.t, h.model.SetConfig("drawbridge-k8s", map[string]string{name: value}))
}

// published is what the client was given.
func (h *host) published() map[string]string {
	h.t.Helper()
	status, err := h.model.Status()
	require.NoError(h.t, err)
	for _, r := range status.Relations {
		for _, end := range r.Ends {
			if end.String() == "client-k8s:database" {
				return r.Bags["drawbridge-k8s"]
			}
		}
	}
	return nil
}

// backend answers each request with root's own credentials.
func (h *host) backend(ctx context.Context, hook *hooks.Hook) error {
	ids, err := hook.Tools.RelationIDs(ctx, "database")
	if err != nil {
		return err
	}
	for _, id := range ids {
		asked, err := hook.Tools.RelationGetApp(ctx, id, "drawbridge-k8s")
		if err != nil {
			return err
		}
		own, err := hook.Tools.RelationGetApp(ctx, id, hook.Event.App)
		if err != nil || asked["database"] == "" || own["secret-user"] != "" {
			return err
		}
		secret, err := hook.Tools.SecretAdd(ctx, hooktool.Secret{Label: "user", Content: map[string]string{
			"username": h.db.Root.Username, "password": h.db.Root.Password,
		}})
		if err != nil {
			return err
		}
		if err := hook.Tools.SecretGrant(ctx, secret, id); err != nil {
			return err
		}
		answer := relation.Answer{
			RequestBag: asked, Database: asked["database"], Endpoints: []string{h.db.Address},
			ReadOnlyEndpoints: []string{h.db.Address}, SecretUser: secret,
		}
		if err := hook.Tools.RelationSetApp(ctx, id, relation.Diff(own, answer.Bag())); err != nil {
			return err
		}
	}
	return hook.Tools.StatusSet(ctx, hooktool.Active, "")
}

// requirer asks for a database and mirrors what it is given, as the
// data_interfaces library does.
func requirer(ctx context.Context, hook *hooks.Hook) error {
	ids, err := hook.Tools.RelationIDs(ctx, "database")
	if err != nil || len(ids) == 0 {
		return err
	}
	request := relation.Request{Database: "orders", RequestedSecrets: relation.DefaultRequestedSecrets()}
	own, err := hook.Tools.RelationGetApp(ctx, ids[0], hook.Event.App)
	if err != nil {
		return err
	}
	if err := hook.Tools.RelationSetApp(ctx, ids[0], relation.Diff(own, request.Bag())); err != nil {
		return err
	}
	given, err := hook.Tools.RelationGetApp(ctx, ids[0], "drawbridge-k8s")
	if err != nil {
		return err
	}
	mine, err := hook.Tools.RelationGet(ctx, ids[0], hook.Event.Unit)
	if err != nil {
		return err
	}
	return hook.Tools.RelationSet(ctx, ids[0], relation.Diff(mine, map[string]string{"data": relation.Mirror(given)}))
}

// counter stands between a hook and its agent, passes every call on, and counts.
type counter struct {
	address  string
	listener net.Listener
	agent    *rpc.Client

	mu          sync.Mutex
	tools       []string
	connections int
}

// Request and Response are Juju's; gob matches them by the names of fields.
type (
	Request struct {
		ContextId, Dir, CommandName string //nolint:revive // Juju's spelling
		Args                        []string
		StdinSet                    bool
		Stdin                       []byte
		Token                       string
	}
	Response struct {
		Code           int
		Stdout, Stderr []byte
	}
)

// Jujuc is the service of the agent's socket.
type Jujuc struct{ c *counter }

// Main passes one call on.
func (j *Jujuc) Main(request Request, response *Response) error {
	j.c.mu.Lock()
	j.c.tools = append(j.c.tools, request.CommandName)
	j.c.mu.Unlock()
	return j.c.agent.Call("Jujuc.Main", request, response)
}

func newCounter(socket string) (*counter, error) {
	client, err := rpc.Dial("unix", socket)
	if err != nil {
		return nil, err
	}
	c := &counter{address: socket + "2", agent: client}
	os.Remove(c.address)
	c.listener, err = net.Listen("unix", c.address)
	if err != nil {
		client.Close()
		return nil, err
	}
	server := rpc.NewServer()
	if err := server.Register(&Jujuc{c}); err != nil {
		return nil, err
	}
	go func() {
		for {
			conn, err := c.listener.Accept()
			if err != nil {
				return
			}
			c.mu.Lock()
			c.connections++
			c.mu.Unlock()
			go server.ServeConn(conn)
		}
	}()
	return c, nil
}

func (c *counter) seen() ([]string, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tools, c.connections
}

func (c *counter) close() {
	c.listener.Close()
	c.agent.Close()
}

// log is the last that the hooks have said.
func (h *host) log() string {
	lines := h.model.Logs(0, 0)
	var text strings.Builder
	for _, line := range lines[max(0, len(lines)-15):] {
		fmt.Fprintf(&text, "%s %s %s\n", line.Entity, line.Level, line.Message)
	}
	return text.String()
}
