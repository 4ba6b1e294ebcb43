// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package pods

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/controller"
)

// reportedTour is tour.json as it is promised: every key there, and no other.
type reportedTour struct {
	Passed bool           `json:"passed"`
	Steps  []reportedStep `json:"steps"`
}

type reportedStep struct {
	Name                       string  `json:"name"`
	Passed                     bool    `json:"passed"`
	Seconds                    float64 `json:"seconds"`
	PublishedAfterAnswerMS     *int64  `json:"published_after_answer_ms"`
	DocumentAfterChangeMS      *int64  `json:"document_after_change_ms"`
	Rows                       *int    `json:"rows"`
	DatabagChangedWhilePending bool    `json:"databag_changed_while_pending"`
}

// tourRun is `jujulet tour` as a process, with what it is doing.
type tourRun struct {
	cmd   *exec.Cmd
	out   string
	state string
	foot  *footprint

	mu   sync.Mutex
	text bytes.Buffer
}

// Write takes the story.
func (r *tourRun) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(p)
}

func (r *tourRun) story() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

// startTour begins a tour. It is killed with the test if it still runs, and its cluster ended.
func startTour(t *testing.T, who account) *tourRun {
	t.Helper()
	out := filepath.Join(who.folder, strings.ReplaceAll(t.Name(), "/", "-"))
	state, err := controller.StateFolder(filepath.Join(out, "tour"), os.Getenv)
	require.NoError(t, err)
	r := &tourRun{out: out, state: state, foot: newFootprint(state)}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute) // its promise
	r.cmd = exec.CommandContext(ctx, built.jujulet, "tour", "--charms", built.charms, "--out", out)
	who.become(r.cmd)
	r.cmd.Env = append(r.cmd.Env, "NO_COLOR=1")
	r.cmd.Stdout, r.cmd.Stderr = r, r
	r.cmd.Cancel = func() error { return r.cmd.Process.Signal(unix.SIGINT) }
	r.cmd.WaitDelay = 30 * time.Second
	require.NoError(t, r.cmd.Start())
	t.Cleanup(func() {
		cancel()
		_ = r.cmd.Wait() // for the second time, if all is well
		if t.Failed() {
			t.Logf("the story:\n%s", r.story())
		}
		require.NoError(t, controller.Down(context.Background(), controller.DownOptions{State: state, Purge: true}))
	})
	return r
}

// watch collects the namespaces of the tour's cluster until the process ends or enough holds.
func (r *tourRun) watch(t *testing.T, ended <-chan struct{}, enough func(units int) bool) {
	t.Helper()
	ticker := time.NewTicker(250 * time.Millisecond)
	defer ticker.Stop()
	for {
		// Where the socket is shows when the cluster is up.
		client := control.New(control.SocketPath(controller.RuntimeFolder(r.state)))
		defer client.Close()
		if info, err := client.Info(t.Context()); err == nil {
			r.foot.collect(info.PID)
			running := 0
			if status, err := client.Status(t.Context()); err == nil {
				for _, app := range status.Applications {
					running += app.Current
				}
			}
			if enough(running) {
				return
			}
		}
		select {
		case <-ended:
			return
		case <-ticker.C:
		}
	}
}

// ended waits for the process in the background.
func (r *tourRun) ended() (<-chan struct{}, *error) {
	done, err := make(chan struct{}), new(error)
	go func() {
		defer close(done)
		*err = r.cmd.Wait()
	}()
	return done, err
}

// requireNothingLeft checks the machine and the output folder.
func (r *tourRun) requireNothingLeft(t *testing.T) {
	t.Helper()
	r.foot.requireGone(t)
	entries, err := os.ReadDir(r.out)
	require.NoError(t, err)
	for _, entry := range entries {
		require.Equal(t, "tour.json", entry.Name(), "left in the output folder")
	}
}

func TestTour(t *testing.T) { testTour(t, asRoot()) }

// testTour makes the tour as some user, and checks what is promised of it.
func testTour(t *testing.T, who account) *tourRun {
	began := time.Now()
	r := startTour(t, who)
	done, failure := r.ended()
	r.watch(t, done, func(int) bool { return false })
	<-done
	require.NoError(t, *failure, "exit code")
	require.Less(t, time.Since(began), 3*time.Minute)
	t.Logf("the tour took %.1f s", time.Since(began).Seconds())

	raw, err := os.ReadFile(filepath.Join(r.out, "tour.json"))
	require.NoError(t, err)
	var report reportedTour
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&report), "%s", raw)
	again, err := json.Marshal(report) // a missing key shows as an additional one
	require.NoError(t, err)
	require.JSONEq(t, string(again), string(raw))

	require.True(t, report.Passed)
	var names []string
	for _, s := range report.Steps {
		names = append(names, s.Name)
		require.True(t, s.Passed, s.Name)
		require.Positive(t, s.Seconds, s.Name)
		require.False(t, s.DatabagChangedWhilePending, s.Name)
		require.NotNil(t, s.Rows, s.Name)
		require.Positive(t, *s.Rows, s.Name)
		if s.Name == "deploy" {
			require.Nil(t, s.PublishedAfterAnswerMS, "no switch")
			continue
		}
		if s.Name == "connections" {
			require.NotNil(t, s.DocumentAfterChangeMS)
			t.Logf("%s: %.1f s, every document followed within %d ms", s.Name, s.Seconds, *s.DocumentAfterChangeMS)
			require.LessOrEqual(t, *s.DocumentAfterChangeMS, int64(2000))
			continue
		}
		require.NotNil(t, s.PublishedAfterAnswerMS, s.Name)
		t.Logf("%s: %.1f s, told %d ms after the first answer", s.Name, s.Seconds, *s.PublishedAfterAnswerMS)
		require.GreaterOrEqual(t, *s.PublishedAfterAnswerMS, int64(0), s.Name)
		require.LessOrEqual(t, *s.PublishedAfterAnswerMS, int64(2000), s.Name)
	}
	require.Equal(t, []string{"deploy", "loadbalancer", "nodeport", "kill-leader", "address-moves", "off", "connections"}, names)
	r.requireNothingLeft(t)
	return r
}

// TestTour_Interrupted sends what Ctrl-C sends, with pods running.
func TestTour_Interrupted(t *testing.T) {
	r := startTour(t, asRoot())
	done, failure := r.ended()
	r.watch(t, done, func(running int) bool { return running >= 3 })
	require.NoError(t, *failure, "the tour has ended before it could be interrupted")
	interrupted := time.Now()
	require.NoError(t, r.cmd.Process.Signal(unix.SIGINT))
	select {
	case <-done:
	case <-time.After(45 * time.Second):
		require.FailNow(t, "the tour does not end")
	}
	t.Logf("ended %.1f s after the interrupt", time.Since(interrupted).Seconds())
	require.Equal(t, 130, r.cmd.ProcessState.ExitCode(), "the exit code of an interrupted program")
	require.Contains(t, r.story(), "interrupted")
	r.requireNothingLeft(t)
}
