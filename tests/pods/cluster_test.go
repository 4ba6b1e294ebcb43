// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package pods

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/controller"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// The applications that most tests deploy.
const (
	backend = "mariadb-k8s"
	bridge  = "drawbridge-k8s"
	service = bridge + "-service"
)

// patience bounds what has no bound of its own.
const patience = 60 * time.Second

// cluster is a cluster process of a test, started by the program as a user starts it.
type cluster struct {
	*control.Client
	who   account
	state string
	foot  *footprint

	mu      sync.Mutex
	entries []model.JournalEntry
	news    chan struct{} // closed at the next entry
}

// newCluster starts a cluster. It ends with the test, and must leave nothing behind.
func newCluster(t *testing.T, name string, who account) *cluster {
	t.Helper()
	state, err := controller.StateFolder(filepath.Join(who.folder, name), os.Getenv)
	require.NoError(t, err)
	c := &cluster{who: who, state: state, foot: newFootprint(state), news: make(chan struct{})}
	c.Client = control.New("")
	t.Cleanup(func() { c.end(t) })
	c.up(t)
	c.Client = control.New(control.SocketPath(controller.RuntimeFolder(state))) // the same in each of its lives
	ctx, cancel := context.WithCancel(context.Background())
	var following sync.WaitGroup
	following.Go(func() { c.follow(ctx) })
	t.Cleanup(func() { cancel(); following.Wait() })
	return c
}

func (c *cluster) up(t *testing.T) {
	t.Helper()
	out, err := c.jujulet("up", "--update-status=off")
	require.NoError(t, err, out)
}

func (c *cluster) end(t *testing.T) {
	if t.Failed() {
		c.dump(t)
	}
	if info, err := c.Info(context.Background()); err == nil {
		c.foot.collect(info.PID)
	}
	c.Close()
	out, err := c.jujulet("down", "--destroy")
	require.NoError(t, err, out)
	c.foot.requireGone(t)
	require.NoDirExists(t, c.state)
}

// jujulet runs the command line.
func (c *cluster) jujulet(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, built.jujulet, args...)
	c.who.become(cmd)
	cmd.Env = append(cmd.Env, "JUJULET_STATE="+c.state, "NO_COLOR=1")
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("jujulet %s: %w", strings.Join(args, " "), err)
	}
	return string(out), err
}

// dump shows what a person would look at first.
func (c *cluster) dump(t *testing.T) {
	for _, args := range [][]string{
		{"status", "--relations"}, {"cluster"}, {"cluster", "events"}, {"debug-log", "--replay", "--no-tail", "-l", "INFO"},
	} {
		out, err := c.jujulet(args...)
		t.Logf("$ jujulet %s\n%s(%v)", strings.Join(args, " "), out, err)
	}
	log, _ := os.ReadFile(filepath.Join(c.state, "jujulet.log"))
	t.Logf("end of jujulet.log:\n%s", log[max(0, len(log)-4000):])
}

// follow keeps the journal, over the ends of cluster processes, until ctx ends.
func (c *cluster) follow(ctx context.Context) {
	for ctx.Err() == nil {
		c.mu.Lock()
		var last uint64
		if n := len(c.entries); n > 0 {
			last = c.entries[n-1].Seq
		}
		c.mu.Unlock()
		err := c.Journal(ctx, control.JournalRequest{Since: last, Follow: true}, func(e model.JournalEntry) error {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.entries = append(c.entries, e)
			close(c.news)
			c.news = make(chan struct{})
			return nil
		})
		if err != nil { // between two cluster processes
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
}

// journal waits until look is content with the commits after a moment, or ctx ends.
func (c *cluster) journal(ctx context.Context, after time.Time, look func([]model.JournalEntry) bool) error {
	for {
		c.mu.Lock()
		var some []model.JournalEntry
		for _, e := range c.entries {
			if e.Time.After(after) {
				some = append(some, e)
			}
		}
		news := c.news
		c.mu.Unlock()
		if look(some) {
			return nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// recorded returns all commits that were seen.
func (c *cluster) recorded() []model.JournalEntry {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]model.JournalEntry(nil), c.entries...)
}

// await waits until check holds of the status.
func (c *cluster) await(t *testing.T, what string, check func(model.Status) bool) model.Status {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var last model.Status
	err := c.Wait(ctx, func(ctx context.Context) (bool, error) {
		var err error
		last, err = c.Status(ctx)
		return err == nil && check(last), err
	})
	require.NoError(t, err, what)
	return last
}

// awaitSettled waits until every unit of these applications is active and idle, and every client has the endpoints of
// the mode that the text belongs to (a part of the leader's message).
func (c *cluster) awaitSettled(t *testing.T, message string, apps ...string) model.Status {
	t.Helper()
	return c.await(t, "settled: "+message, func(s model.Status) bool { return settled(s, message, apps...) })
}

func settled(s model.Status, message string, apps ...string) bool {
	for _, name := range apps {
		app := s.Applications[name]
		if len(app.Units) == 0 || len(app.Units) != app.Scale {
			return false
		}
		for _, u := range app.Units {
			if u.Workload.Status != "active" || !u.Idle || u.Error != "" || !u.Pod.Ready {
				return false
			}
		}
	}
	leader := s.Applications[bridge].Leader
	return strings.Contains(s.Applications[bridge].Units[leader].Workload.Message, message)
}

// run runs a command in a unit's container and returns what it wrote.
func (c *cluster) run(t *testing.T, unit, container string, command ...string) (string, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var out bytes.Buffer
	code, err := c.Shell(ctx, control.ShellRequest{Unit: unit, Container: container, Command: command},
		control.Streams{Stdout: &out, Stderr: &out})
	require.NoError(t, err, "%s in %s of %s", strings.Join(command, " "), container, unit)
	return out.String(), code
}

// answer is what a query returned.
type answer struct {
	Rows  [][]string
	Error string
}

// query runs a statement with the client's own action, through the address that was published to it.
func (c *cluster) query(t *testing.T, unit, sql string) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	operation, err := c.Run(ctx, control.RunRequest{Units: []string{unit}, Action: "query", Params: map[string]any{"sql": sql}})
	require.NoError(t, err)
	for {
		task, err := c.WaitTask(ctx, operation.Tasks[0].ID, 1<<20)
		require.NoError(t, err, sql)
		switch {
		case !task.Status.Finished():
		case task.Status != model.ActionCompleted:
			return answer{Error: fmt.Sprintf("%s: %s", task.Status, task.Message)}
		default:
			var a answer
			rows, _ := task.Results["rows"].(string)
			require.NoError(t, json.Unmarshal([]byte(rows), &a.Rows), "%v", task.Results)
			return a
		}
	}
}

// mustQuery is query for a statement that must succeed.
func (c *cluster) mustQuery(t *testing.T, unit, sql string) [][]string {
	t.Helper()
	a := c.query(t, unit, sql)
	require.Empty(t, a.Error, "%s on %s", sql, unit)
	return a.Rows
}

// live returns the charm's Service, nil when there is none.
func (c *cluster) live(ctx context.Context) (*corev1.Service, error) {
	raw, err := c.Objects(ctx, "service", service)
	if control.KindOf(err) == control.KindNotFound && err != nil {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s := &corev1.Service{}
	return s, json.Unmarshal(raw, s)
}

// expose asks for a mode.
func (c *cluster) expose(t *testing.T, mode string) {
	t.Helper()
	require.NoError(t, c.SetConfig(t.Context(), control.ConfigChange{Application: bridge, Set: map[string]string{"expose-external": mode}}))
}

// balance sets the delays of the load balancer.
func (c *cluster) balance(t *testing.T, assign, answer time.Duration) {
	t.Helper()
	_, err := c.SetLoadBalancer(t.Context(), control.LBChange{AssignDelay: &assign, AnswerDelay: &answer})
	require.NoError(t, err)
}

// deploy makes an application of one of our charms.
func (c *cluster) deploy(t *testing.T, r control.DeployRequest) {
	t.Helper()
	_, err := c.Deploy(t.Context(), r)
	require.NoError(t, err)
}

// requests are the deployments of backend, bridge and one client.
func deployBackend() control.DeployRequest {
	return control.DeployRequest{Charm: charm(backend), Units: 1, Resources: map[string]string{"mariadb-image": "host"}}
}

func deployBridge(units int) control.DeployRequest {
	return control.DeployRequest{Charm: charm(bridge), Units: units, Trust: true, Resources: map[string]string{"gateway-image": "host"}}
}

func deployClient(name, database string) control.DeployRequest {
	return control.DeployRequest{Charm: charm("client-k8s"), Application: name, Units: 1, Config: map[string]string{"database": database},
		Resources: map[string]string{"app-image": "host"}}
}
