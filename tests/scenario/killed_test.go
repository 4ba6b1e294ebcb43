// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package scenario

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
	"github.com/drawbridge-k8s/drawbridge/tests/world"
)

// The tests of this file kill the controller. The test's own binary, run with
// childFolder in its environment, is the controller, the agents and the charms of
// a short tour in a folder. It says on its standard output what is acknowledged, a
// line each, after the call that did it has returned. Whatever was said before the
// SIGKILL has to be there after it; and a new process goes on in the same folder
// and ends the tour.

const childFolder = "SCENARIO_TOUR_FOLDER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childFolder); dir != "" {
		tourChild(dir)
	}
	os.Exit(m.Run())
}

// killSeed makes the moments repeatable; killMoments is how many there are.
const (
	killSeed    = 20261130
	killMoments = 50
)

// ack is one line of the child: what is acknowledged from then on.
type ack struct {
	// Step is the number of tour steps that are done.
	Step int
	// Journal is the last entry of the journal, with its unit and hook.
	Journal uint64
	Hook    string
	// App was deployed, Relation made, Option set to Value.
	App, Relation string
	Option, Value string
	// Service is what the Service keeps.
	Service *kept
	// Done ends the tour.
	Done bool
}

// kept is what a Service never loses.
type kept struct {
	UID, ClusterIP string
	Type           corev1.ServiceType
	NodePorts      []int32
}

func keptOf(s *corev1.Service) *kept {
	if s == nil {
		return nil
	}
	k := &kept{UID: string(s.UID), ClusterIP: s.Spec.ClusterIP, Type: s.Spec.Type}
	for _, p := range s.Spec.Ports {
		k.NodePorts = append(k.NodePorts, p.NodePort)
	}
	return k
}

// childT is the testing.TB of a process that is no test: what fails ends it.
type childT struct{ testing.TB }

func (childT) Helper()                  {}
func (childT) Name() string             { return "child" }
func (childT) Cleanup(func())           {}
func (childT) Context() context.Context { return context.Background() }
func (childT) Errorf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}
func (c childT) Fatalf(format string, args ...any) { c.Errorf(format, args...); c.FailNow() }
func (childT) FailNow()                            { os.Exit(3) }

// tour is the child's script. Each of its steps may be begun again at any point.
type tour struct {
	*world.World
	progress string
	said     uint64
}

// say acknowledges.
func (c *tour) say(a ack) {
	line, err := json.Marshal(a)
	require.NoError(c.T, err)
	_, err = os.Stdout.Write(append(line, '\n'))
	require.NoError(c.T, err)
}

// settle runs the hooks and acknowledges each of them, and the Service.
func (c *tour) settle() {
	for busy := true; busy; {
		busy = false
		for _, unit := range c.Units() {
			if c.Step(unit) == "" {
				continue
			}
			busy = true
			entries, err := c.Model.Journal(c.said, 0)
			require.NoError(c.T, err)
			for _, e := range entries {
				c.said = e.Seq
				c.say(ack{Journal: e.Seq, Hook: e.Unit + " " + e.Hook})
			}
		}
		if !busy && c.failed() {
			// A hook that was killed with its process is tried again after a while.
			c.Clock.Add(10 * time.Second)
			busy = true
		}
	}
	c.say(ack{Service: keptOf(c.Live())})
}

// failed reports whether a unit waits with a failed hook.
func (c *tour) failed() bool {
	status, err := c.Model.Status()
	require.NoError(c.T, err)
	for _, app := range status.Applications {
		for _, unit := range app.Units {
			if unit.Error != "" {
				return true
			}
		}
	}
	return false
}

func (c *tour) set(option, value string) {
	c.Config(option, value)
	c.say(ack{Option: option, Value: value})
}

// deploy is the first step.
func (c *tour) deploy() {
	for _, app := range []string{world.Backend, world.Gateway, world.Client} {
		units, config := 1, map[string]string{}
		switch app {
		case world.Gateway:
			units = 2
		case world.Client:
			config["database"] = world.Database
		}
		c.Deploy(app, app, units, config)
		c.say(ack{App: app})
	}
	for _, ends := range [][2]string{
		{world.Gateway + ":backend-database", world.Backend + ":database"},
		{world.Gateway + ":database", world.Client + ":database"},
	} {
		c.Integrate(ends[0], ends[1])
		c.say(ack{Relation: ends[0] + " " + ends[1]})
	}
	c.settle()
}

// balancer switches to a load balancer that gives this address.
func (c *tour) balancer(host string) func() {
	return func() {
		c.set("expose-external", "loadbalancer")
		c.settle()
		c.Ingress(host)
		c.Answer(ports(host)...)
		c.wake()
	}
}

// wake is the notice of the watch.
func (c *tour) wake() {
	c.Notice(c.Leader())
	c.settle()
}

func (c *tour) nodePorts() {
	c.set("expose-external", "nodeport")
	c.settle()
	c.Answer(c.NodePorts()...)
	c.wake()
}

func (c *tour) killLeader() {
	c.set("loadbalancer-extra-annotations", `{"example.com/a":"1"}`)
	c.KillPod(c.Leader())
	c.balancer(lbSecond)()
}

func (c *tour) off() {
	c.set("expose-external", "false")
	c.settle()
}

// tourChild is the child's main.
func tourChild(dir string) {
	w := world.New(childT{}, world.Options{Dir: dir, Sync: true, Seed: 1})
	c := &tour{World: w, progress: filepath.Join(dir, "progress")}
	steps := []struct {
		do   func()
		want func() string
	}{
		{c.deploy, func() string { return world.InModel + ":6446" }},
		{c.balancer(lbFirst), func() string { return lbFirst + ":6446" }},
		{c.nodePorts, func() string { return c.NodeEndpoints("mysql-rw", "node-0", "node-1") }},
		{c.killLeader, func() string { return lbSecond + ":6446" }},
		{c.off, func() string { return world.InModel + ":6446" }},
	}
	done := 0
	if text, err := os.ReadFile(c.progress); err == nil {
		_, err = fmt.Sscan(string(text), &done)
		require.NoError(w.T, err)
		c.settle() // every unit has a fresh pod
	}
	for i, step := range steps {
		if i < done {
			continue
		}
		step.do()
		require.Equal(w.T, step.want(), c.Endpoints(), "after step %d", i)
		require.NoError(w.T, os.WriteFile(c.progress+".new", fmt.Append(nil, i+1), 0o600))
		require.NoError(w.T, os.Rename(c.progress+".new", c.progress))
		c.say(ack{Step: i + 1})
	}
	w.Quiet(1)
	require.Contains(w.T, c.Status(c.Leader()), "active ")
	require.Len(w.T, w.SQL.Users, 1)
	c.say(ack{Done: true})
	os.Exit(0)
}

// child runs the tour in a folder until the line with this number has been read,
// and a little longer; then it is killed. A negative number lets it end.
func child(t *testing.T, dir string, lines int, longer time.Duration) (acks []ack, ended bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), childFolder+"="+dir, "GOGC=400") // short lives need little collecting
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var once sync.Once
	kill := func() {
		once.Do(func() { time.AfterFunc(longer, func() { _ = cmd.Process.Kill() }) })
	}
	if lines == 0 {
		kill()
	}
	reader := bufio.NewReader(out)
	for {
		line, err := reader.ReadBytes('\n')
		if err != nil {
			break // what has no end of line was not said
		}
		var a ack
		require.NoError(t, json.Unmarshal(line, &a), "%s", line)
		acks = append(acks, a)
		if len(acks) == lines {
			kill()
		}
	}
	err = cmd.Wait()
	ended = len(acks) > 0 && acks[len(acks)-1].Done
	if lines < 0 || ended {
		require.NoError(t, err, "%s", stderr.String())
		require.True(t, ended, "%s", stderr.String())
		return acks, ended
	}
	require.Equal(t, -1, cmd.ProcessState.ExitCode(), "it ended by itself: %s", stderr.String())
	return acks, false
}

// requireKept requires that everything acknowledged is in the folder.
func requireKept(t *testing.T, dir string, acks []ack) {
	t.Helper()
	w := world.New(t, world.Options{Dir: dir})
	status, err := w.Model.Status()
	require.NoError(t, err)
	entries, err := w.Model.Journal(0, 0)
	require.NoError(t, err)
	journal := map[uint64]string{}
	for _, e := range entries {
		journal[e.Seq] = e.Unit + " " + e.Hook
	}
	config := map[string]string{}
	var service *kept
	for _, a := range acks {
		switch {
		case a.App != "":
			require.Contains(t, status.Applications, a.App)
		case a.Relation != "":
			one, other, _ := strings.Cut(a.Relation, " ")
			w.Relation(one, other)
		case a.Journal != 0:
			require.Equal(t, a.Hook, journal[a.Journal])
		case a.Option != "":
			config[a.Option] = a.Value
		case a.Service != nil:
			service = a.Service
		}
	}
	requireConfig(t, status, config, acks)
	if service == nil {
		return
	}
	live := keptOf(w.Live())
	require.NotNil(t, live)
	require.Equal(t, service.UID, live.UID)
	require.Equal(t, service.ClusterIP, live.ClusterIP)
	if service.Type != corev1.ServiceTypeClusterIP && live.Type != corev1.ServiceTypeClusterIP {
		require.Equal(t, service.NodePorts, live.NodePorts)
	}
}

// requireConfig requires that each option has the value that was acknowledged last,
// or the one that the next step of the tour was about to set.
func requireConfig(t *testing.T, status model.Status, config map[string]string, acks []ack) {
	t.Helper()
	values := map[string]any{}
	for _, option := range status.Applications[world.Gateway].Config {
		values[option.Name] = option.Value
	}
	steps := 0
	for _, a := range acks {
		steps = max(steps, a.Step)
	}
	next := []string{"false", "loadbalancer", "nodeport", "loadbalancer", "false", "false"}[steps]
	for option, value := range config {
		allowed := []any{value}
		if option == "expose-external" {
			allowed = append(allowed, next)
		}
		require.True(t, slices.Contains(allowed, values[option]), "%s is %v, acknowledged was %v", option, values[option], value)
	}
}

// TestKilled kills the controller at seeded moments of a tour, spread over what it
// acknowledges, and ends each tour with a new process.
func TestKilled(t *testing.T) {
	began := time.Now()
	whole, _ := child(t, folder(t), -1, 0)
	took := time.Since(began)
	between := took / time.Duration(len(whole))
	t.Logf("seed %d: a tour takes %s and acknowledges %d times", killSeed, took.Round(time.Millisecond), len(whole))
	var wg sync.WaitGroup
	var mu sync.Mutex
	killed := 0
	slots := make(chan struct{}, 2)
	for i := range killMoments {
		random := rand.New(rand.NewPCG(killSeed, uint64(i)))
		line := (i*len(whole) + random.IntN(len(whole))) / killMoments
		longer := time.Duration(random.Int64N(int64(2 * between)))
		slots <- struct{}{}
		wg.Add(1)
		go func() {
			defer func() { <-slots; wg.Done() }()
			t.Run(fmt.Sprintf("after %d and %s", line, longer.Round(time.Microsecond)), func(t *testing.T) {
				dir := folder(t)
				acks, ended := child(t, dir, line, longer)
				if !ended {
					mu.Lock()
					killed++
					mu.Unlock()
				}
				// A test of its own closes the folder again.
				if !t.Run("kept", func(t *testing.T) { requireKept(t, dir, acks) }) {
					return
				}
				last, _ := child(t, dir, -1, 0)
				t.Run("ended", func(t *testing.T) { requireKept(t, dir, append(acks, last...)) })
			})
		}()
	}
	wg.Wait()
	t.Logf("%d of %d were killed in the middle; all of it took %s", killed, killMoments, time.Since(began).Round(time.Second))
	require.Greater(t, killed, killMoments*8/10)
}

// folder is a short folder for a world, whose sockets have bounded names.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "k")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
