// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

// Package world runs the charm's real code against the runner's real model and
// API, all in one process: hooks are chosen by the agents' own rules and
// dispatched in process, the Kubernetes API is the embedded one. Only what would
// need a network is made of plain values: which address answers, the backend's
// users, the gateway's workload, the kubelet and the load balancer.
//
// Nothing happens by itself. A test changes the world, calls Settle (every unit
// runs hooks until none has anything to do) and looks. What the watch does in
// production, Notice does here.
package world

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/hooks"
	"github.com/drawbridge-k8s/drawbridge/hooks/hooktool"
	"github.com/drawbridge-k8s/drawbridge/jujulet/agent"
	"github.com/drawbridge-k8s/drawbridge/jujulet/cluster"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// Names that Standard deploys.
const (
	Gateway  = "drawbridge-k8s"
	Backend  = "mariadb-k8s"
	Client   = "client-k8s"
	Model    = "dev"
	Service  = Gateway + "-service"
	InModel  = Service + "." + Model + ".svc.cluster.local."
	Database = "orders"
)

// BackendAddress is where the backend of Standard answers a direct session.
const BackendAddress = Backend + "-0." + Backend + "-endpoints." + Model + ".svc.cluster.local.:3306"

// Options make a World. The zero value is usable.
type Options struct {
	// Dir keeps the model and the objects; "" means a folder that is removed
	// with the test. A World made again on the same folder goes on from there.
	Dir string
	// Sync makes every commit durable, for tests that kill the process.
	Sync bool
	// Seed makes the agents' random choices repeatable.
	Seed uint64
	// Untrusted keeps applications from the rights of `juju trust`.
	Untrusted bool
	// Pebble gives the gateway its real workload, behind the Pebble socket of
	// PebbleSocket, in place of the one made of values.
	Pebble bool
}

// World is a model, a cluster and everything in it.
type World struct {
	T       testing.TB
	Model   *model.Model
	Cluster *cluster.Server
	Admin   *cluster.Admin
	Clock   *Clock
	SQL     *SQL

	options Options
	dir     string

	mu        sync.Mutex
	answers   map[string]bool
	reasons   map[string]error
	hangs     map[string]bool
	probes    []string
	agents    map[string]*agent.Agent
	roots     map[string]string
	pods      map[string]int // incarnations of a unit's pod
	log       []string
	charms    map[string]string // application to charm
	revisions int               // of charms that were refreshed
	workloads map[string]*Workload
	nodes     map[string]string // unit to node, where a test moved it
	boxes     map[string]*Box
	// Dispatch, when set, may take a hook in the charm's place: it says so with
	// true.
	Dispatch func(unit, hook string, run func() int) (exit int, taken bool)
	// Handlers are charms of a test's own, by application, in place of this
	// package's.
	Handlers map[string]hooks.Handler
	// Tools, when set, stands before a unit's hook tools: next runs the tool.
	Tools func(unit string, call hooktool.Call, next ToolRunner) ([]byte, error)
	// API, when set, stands before the Kubernetes API of the gateway's units.
	API func(request *http.Request, next http.RoundTripper) (*http.Response, error)
}

// ToolRunner runs a hook tool.
type ToolRunner func() ([]byte, error)

// New makes an empty world.
func New(t testing.TB, o Options) *World {
	t.Helper()
	w := &World{
		T: t, options: o, dir: o.Dir, Clock: &Clock{now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)},
		SQL: newSQL(), boxes: map[string]*Box{}, workloads: map[string]*Workload{}, answers: map[string]bool{}, reasons: map[string]error{}, hangs: map[string]bool{},
		Handlers: map[string]hooks.Handler{}, charms: map[string]string{}, agents: map[string]*agent.Agent{}, roots: map[string]string{}, pods: map[string]int{}, nodes: map[string]string{},
	}
	if w.dir == "" {
		dir, err := os.MkdirTemp("", "w") // short: socket paths are bounded
		require.NoError(t, err)
		t.Cleanup(func() { os.RemoveAll(dir) })
		w.dir = dir
	}
	var err error
	w.Model, err = model.Open(filepath.Join(w.dir, "model.db"), model.Options{NoSync: !o.Sync, Clock: w.Clock.Now})
	require.NoError(t, err)
	w.Cluster, err = cluster.New(cluster.Options{DB: w.Model.DB(), Clock: w.Clock.Now})
	require.NoError(t, err)
	w.Admin = w.Cluster.Admin()
	if o.Dir != "" {
		w.SQL.keep(filepath.Join(w.dir, "sql.json"))
	}
	t.Cleanup(func() {
		w.Cluster.Close()
		w.Model.Close()
	})
	w.Answer(BackendAddress, InModel+":6446", InModel+":6447")
	w.makeCluster()
	return w
}

// Standard deploys a backend, the gateway with that many units, and a client,
// relates them, and settles.
func (w *World) Standard(units int) {
	w.T.Helper()
	w.Deploy(Backend, Backend, 1, nil)
	w.Deploy(Gateway, Gateway, units, nil)
	w.Deploy(Client, Client, 1, map[string]string{"database": Database})
	w.Integrate(Gateway+":backend-database", Backend+":database")
	w.Integrate(Gateway+":database", Client+":database")
	w.Settle()
}

// Deploy deploys one of this package's charms under a name. In a World made again
// on its folder, what is deployed already stays, and what a killed process left
// half done is completed.
func (w *World) Deploy(charm, app string, units int, config map[string]string) {
	w.T.Helper()
	if _, there := w.status().Applications[app]; there && w.options.Dir != "" {
		w.makeApplication(app, !w.options.Untrusted)
		return
	}
	c, err := model.ReadCharm(w.charmFolder(charm))
	require.NoError(w.T, err)
	resources := map[string]string{}
	for name := range c.Meta.Resources {
		resources[name] = "host"
	}
	require.NoError(w.T, w.Model.Deploy(model.DeployArgs{
		App: app, Charm: c, Units: units, Config: config, Resources: resources, Trust: !w.options.Untrusted,
	}))
	w.makeApplication(app, !w.options.Untrusted)
}

// Integrate relates two endpoints and returns the relation's number; in a World
// made again on its folder, also of a relation that is there already.
func (w *World) Integrate(a, b string) int {
	w.T.Helper()
	if id, there := w.related(a, b); there && w.options.Dir != "" {
		return id
	}
	id, err := w.Model.Integrate(a, b)
	require.NoError(w.T, err)
	return id
}

// RemoveRelation begins the end of a relation.
func (w *World) RemoveRelation(a, b string) {
	w.T.Helper()
	require.NoError(w.T, w.Model.RemoveRelation(a, b))
}

// Config sets options of the gateway, given as name, value pairs.
func (w *World) Config(pairs ...string) {
	w.T.Helper()
	values := map[string]string{}
	for i := 0; i+1 < len(pairs); i += 2 {
		values[pairs[i]] = pairs[i+1]
	}
	require.NoError(w.T, w.Model.SetConfig(Gateway, values))
}

// Scale sets the number of the gateway's units.
func (w *World) Scale(units int) {
	w.T.Helper()
	require.NoError(w.T, w.Model.Scale(Gateway, units))
}

// Settle lets every unit run hooks, in turns, until none has anything to do. It
// returns what ran, as "unit hook". It fails when that does not end.
func (w *World) Settle() []string {
	w.T.Helper()
	var ran []string
	for range 400 {
		busy := false
		for _, unit := range w.Units() {
			hook := w.Step(unit)
			if hook != "" {
				busy = true
				ran = append(ran, unit+" "+hook)
			}
		}
		if !busy {
			return ran
		}
	}
	w.T.Fatalf("the units do not settle; the last hooks: %q", ran[max(0, len(ran)-20):])
	return nil
}

// Units lists the units of all applications, in order.
func (w *World) Units() []string {
	w.T.Helper()
	status, err := w.Model.Status()
	require.NoError(w.T, err)
	var units []string
	for _, app := range status.Applications {
		for unit := range app.Units {
			units = append(units, unit)
		}
	}
	sort.Strings(units)
	return units
}

// Step lets one unit make one decision and returns what ran. A unit whose last
// hook has run is removed with its pod.
func (w *World) Step(unit string) string {
	w.T.Helper()
	hook, err := w.agent(unit).Step(w.T.Context())
	require.NoError(w.T, err, "step of %s", unit)
	if hook == "dead" {
		w.KillPod(unit)
		require.NoError(w.T, w.Model.UnitGone(unit))
		w.removeApplicationIfGone(unit)
	}
	return hook
}

// Round makes update-status due on every unit, and settles.
func (w *World) Round() []string {
	w.T.Helper()
	for _, unit := range w.Units() {
		w.agent(unit).Tick()
	}
	return w.Settle()
}

// Notice gives a unit the notice that the watch would give it, and settles.
func (w *World) Notice(unit string) []string {
	w.T.Helper()
	w.agent(unit).Post(model.HookInfo{
		Kind: "pebble-custom-notice", Workload: "gateway", NoticeID: "1", NoticeType: "custom",
		NoticeKey: "drawbridge-k8s.charm/exposure",
	})
	return w.Settle()
}

// Ready says that a container of a unit is up, and settles.
func (w *World) Ready(unit, container string) []string {
	w.T.Helper()
	w.agent(unit).Post(model.HookInfo{Kind: "pebble-ready", Workload: container})
	return w.Settle()
}

// Hook runs a hook of a unit now, and settles.
func (w *World) Hook(unit, hook string) []string {
	w.T.Helper()
	require.NoError(w.T, w.Model.Fire(unit, hook, nil))
	return w.Settle()
}

// Action runs an action on a unit and returns its end.
func (w *World) Action(unit, name string, params map[string]any) model.Action {
	w.T.Helper()
	_, tasks, err := w.Model.EnqueueAction([]string{unit}, name, params)
	require.NoError(w.T, err)
	w.Settle()
	action, err := w.Model.Action(tasks[0].ID)
	require.NoError(w.T, err)
	return action
}

// Answer makes addresses answer; Silence ends that.
func (w *World) Answer(addresses ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, address := range addresses {
		w.answers[address] = true
		delete(w.reasons, address)
	}
}

// Silence makes addresses refuse.
func (w *World) Silence(addresses ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, address := range addresses {
		delete(w.answers, address)
	}
}

// Refuse makes an address answer with an error.
func (w *World) Refuse(address string, reason error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reasons[address] = reason
}

// Probes returns the addresses that were probed since the last call.
func (w *World) Probes() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	probes := w.probes
	w.probes = nil
	return probes
}

// Hang makes addresses take every packet and say nothing.
func (w *World) Hang(addresses ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, address := range addresses {
		w.hangs[address] = true
	}
}

// session is what stands for a database session.
func (w *World) session(ctx context.Context, address string) error {
	w.mu.Lock()
	w.probes = append(w.probes, address)
	hangs := w.hangs[address]
	w.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.reasons[address]; err != nil {
		return err
	}
	if !w.answers[address] {
		return fmt.Errorf("connection refused")
	}
	return nil
}

// Fault makes API requests fail as f says (nil error: served); nil ends it.
func (w *World) Fault(f func(*http.Request) error) { w.Cluster.SetFault(f) }

// agent returns a unit's agent, in a pod.
func (w *World) agent(unit string) *agent.Agent {
	w.T.Helper()
	if a := w.agents[unit]; a != nil {
		return a
	}
	w.makePod(unit)
	root := filepath.Join(w.dir, fmt.Sprintf("%s.%d", strings.ReplaceAll(unit, "/", "-"), w.pods[unit]))
	w.roots[unit] = root
	require.NoError(w.T, os.RemoveAll(root)) // of a process that was killed
	w.fillRoot(unit, root)
	a, err := agent.New(agent.Options{
		Controller: w.Model, Unit: unit, Root: root, Runner: w.runner(unit), NoPebble: true, Clock: w.Clock.Now,
		Seed: w.options.Seed, Tools: "-", Getenv: getenv,
	})
	require.NoError(w.T, err)
	w.agents[unit] = a
	return a
}

// getenv is the agent's own environment: where the API is.
func getenv(key string) string {
	switch key {
	case "KUBERNETES_SERVICE_HOST":
		return "10.152.183.1"
	case "KUBERNETES_SERVICE_PORT":
		return "443"
	}
	return ""
}

// KillPod replaces a unit's pod: an empty disk, no stop hook, a fresh agent.
func (w *World) KillPod(unit string) {
	w.T.Helper()
	w.removePod(unit)
	delete(w.agents, unit)
	delete(w.workloads, unit)
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.boxes, unit)
}

// RestartAgent restarts a unit's agent alone.
func (w *World) RestartAgent(unit string) { delete(w.agents, unit) }

// runner dispatches a unit's hooks in process.
func (w *World) runner(unit string) agent.Runner {
	app, _, _ := strings.Cut(unit, "/")
	return func(ctx context.Context, c agent.Command) (int, error) {
		env := map[string]string{}
		for _, pair := range c.Env {
			key, value, _ := strings.Cut(pair, "=")
			env[key] = value
		}
		get := func(key string) string { return env[key] }
		handler, err := w.handler(app, unit)
		if err != nil {
			return 1, err
		}
		run := func() int {
			return hooks.Dispatch(ctx, hooks.Env{
				Getenv: get, Handler: handler, Stderr: io.MultiWriter(c.Stderr, logWriter{w}), Connect: w.connect(unit),
			})
		}
		if w.Dispatch != nil {
			if exit, taken := w.Dispatch(unit, env["JUJU_HOOK_NAME"], run); taken {
				return exit, nil
			}
		}
		return run(), nil
	}
}

// logWriter keeps what hooks say on stderr, for a failing test's message.
type logWriter struct{ w *World }

func (l logWriter) Write(p []byte) (int, error) {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	l.w.log = append(l.w.log, strings.TrimSpace(string(p)))
	return len(p), nil
}

// Clock is a clock that tests move.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// Now is the time of the world.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Add moves the time on.
func (c *Clock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
