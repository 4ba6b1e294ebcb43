// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package interop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience bounds what has no bound of its own; Python's hooks take a second or two on a busy machine.
const patience = 3 * time.Minute

// cluster is jujulet, run by its command line as a person runs it.
type cluster struct {
	t     *testing.T
	state string
}

// newCluster starts one. It ends with the test.
func newCluster(t *testing.T, name string) *cluster {
	t.Helper()
	c := &cluster{t: t, state: state(t, name)}
	t.Cleanup(c.end)
	c.must("up", "--update-status=off")
	return c
}

// end says what a person would look at first if the test failed, and ends the cluster.
func (c *cluster) end() {
	if c.t.Failed() {
		for _, args := range [][]string{{"status", "--relations"}, {"debug-log", "--no-tail", "--replay", "-l", "INFO"}} {
			out, _, _ := c.jujulet(args...)
			c.t.Logf("$ jujulet %v\n%s", args, out[max(0, len(out)-12000):])
		}
		log, _ := os.ReadFile(filepath.Join(c.state, "jujulet.log"))
		c.t.Logf("end of jujulet.log:\n%s", log[max(0, len(log)-3000):])
	}
	out, errs, code := c.jujulet("down", "--destroy")
	if code != 0 {
		c.t.Errorf("jujulet down: %s%s", out, errs)
	}
}

// jujulet runs a command line.
func (c *cluster) jujulet(args ...string) (stdout, stderr string, code int) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience) // also when the test has ended
	defer cancel()
	var out, errs strings.Builder
	cmd := exec.CommandContext(ctx, built.jujulet, args...)
	cmd.Env = append(os.Environ(), "JUJULET_STATE="+c.state, "NO_COLOR=1")
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &errs, 5*time.Second
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		c.t.Fatalf("cannot run jujulet %v: %v", args, err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// integrate relates two endpoints, once an earlier relation between them has gone.
func (c *cluster) integrate(one, other string) {
	c.t.Helper()
	c.await("related", func() error {
		if out, errs, code := c.jujulet("integrate", one, other); code != 0 {
			return fmt.Errorf("jujulet integrate: %s%s", out, errs)
		}
		return nil
	})
}

// must runs a command line that has to succeed and returns its output.
func (c *cluster) must(args ...string) string {
	c.t.Helper()
	out, errs, code := c.jujulet(args...)
	require.Zero(c.t, code, "jujulet %v: %s%s", args, out, errs)
	return out
}

// await polls until check is content.
func (c *cluster) await(what string, check func() error) {
	c.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := check()
		if err == nil {
			return
		}
		require.True(c.t, time.Now().Before(deadline), "%s: %v", what, err)
		time.Sleep(200 * time.Millisecond)
	}
}

// saw counts how often a unit's charm has said in its log that it saw this. It costs the unit nothing, as against an action.
func (c *cluster) saw(unit, what string) int {
	c.t.Helper()
	return strings.Count(c.must("debug-log", "--no-tail", "--replay", "-l", "INFO", "-i", unit), "saw "+what+".\n")
}

// until waits until a unit's charm has seen this once more than before do.
func (c *cluster) until(unit, what string, do func()) {
	c.t.Helper()
	before := c.saw(unit, what)
	do()
	c.await(fmt.Sprintf("%s sees %q", unit, what), func() error {
		if n := c.saw(unit, what); n <= before {
			return fmt.Errorf("seen %d times", n)
		}
		return nil
	})
}

// unit is what status says of one unit.
type unit struct {
	Workload struct {
		Current string `json:"current"`
		Message string `json:"message"`
	} `json:"workload-status"`
	Agent struct {
		Current string `json:"current"`
		Message string `json:"message"`
	} `json:"juju-status"`
	Leader  bool   `json:"leader"`
	Address string `json:"address"`
}

// units returns the units of all applications.
func (c *cluster) units() map[string]unit {
	c.t.Helper()
	var status struct {
		Applications map[string]struct {
			Units map[string]unit `json:"units"`
		} `json:"applications"`
	}
	require.NoError(c.t, json.Unmarshal([]byte(c.must("status", "--format", "json")), &status))
	all := map[string]unit{}
	for _, app := range status.Applications {
		for name, u := range app.Units {
			all[name] = u
		}
	}
	return all
}

// settled waits until each of these units is idle, with this workload status.
func (c *cluster) settled(status string, names ...string) {
	c.t.Helper()
	c.await(fmt.Sprintf("%v are %s and idle", names, status), func() error {
		units := c.units()
		for _, name := range names {
			u := units[name]
			if u.Workload.Current != status || u.Agent.Current != "idle" {
				return fmt.Errorf("%s is %s (%s), its agent %s (%s)", name, u.Workload.Current, u.Workload.Message, u.Agent.Current, u.Agent.Message)
			}
		}
		return nil
	})
}

// run runs an action that has to succeed and returns its results.
func (c *cluster) run(unit, action string, params ...string) map[string]any {
	c.t.Helper()
	task := c.task(unit, action, params...)
	require.Equal(c.t, "completed", task.Status, "%s on %s: %v", action, unit, task)
	return task.Results
}

// task is what an action gave back.
type task struct {
	Status  string         `json:"status"`
	Message string         `json:"message"`
	Results map[string]any `json:"results"`
}

// task runs an action, whatever becomes of it.
func (c *cluster) task(unit, action string, params ...string) task {
	c.t.Helper()
	out, errs, _ := c.jujulet(append([]string{"run", unit, action, "--format", "json"}, params...)...)
	var tasks map[string]task
	require.NoError(c.t, json.Unmarshal([]byte(out), &tasks), "%s%s", out, errs)
	return tasks[unit]
}

// into reads a result that is JSON text.
func into[T any](t *testing.T, results map[string]any, key string) (value T) {
	t.Helper()
	text, ok := results[key].(string)
	require.True(t, ok, "no result %s in %v", key, results)
	require.NoError(t, json.Unmarshal([]byte(text), &value), text)
	return value
}
