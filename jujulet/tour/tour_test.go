// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package tour

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// excursion is a tour in a world, in a bubble with a clock of its own.
type excursion struct {
	report Report
	err    error
	story  string
	downs  int
	world  *world
	out    string
}

func travel(t *testing.T, spoil func(*world), change func(*Options)) excursion {
	t.Helper()
	return travelUntil(t, time.Hour, spoil, change)
}

func travelUntil(t *testing.T, end time.Duration, spoil func(*world), change func(*Options)) excursion {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	interrupt := time.AfterFunc(end, cancel)
	defer interrupt.Stop()
	e := excursion{world: newWorld(ctx), out: t.TempDir()}
	spoil(e.world)
	for _, name := range []string{backendCharm, bridgeCharm, clientCharm} {
		require.NoError(t, os.WriteFile(filepath.Join(e.out, name), nil, 0o644))
	}
	var story bytes.Buffer
	o := Options{
		Out: e.out, Charms: e.out, Units: 3, Story: &story,
		Render: func(s model.Status) string { return "Model  " + s.Model.Name + "\n" },
		Up:     func(context.Context, string) (Stage, error) { return e.world, nil },
		Down: func(ctx context.Context, _ string) error {
			e.downs++
			return ctx.Err()
		},
	}
	change(&o)
	e.report, e.err = Run(ctx, o)
	e.story = story.String()
	cancel()
	e.world.tasks.Wait()
	return e
}

func none(*world)       {}
func asIs(*Options)     {}
func ptr[T any](v T) *T { return &v }

func TestRun_AllStepsPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := travel(t, none, asIs)
		require.NoError(t, e.err)
		require.True(t, e.report.Passed, e.story)
		require.Equal(t, 2, e.downs, "once for what an earlier tour may have left, once at the end")
		require.Equal(t, []string{"pod drawbridge-k8s/leader"}, e.world.kills)

		rows := map[string]int{"deploy": 3, "loadbalancer": 3, "nodeport": 6, "kill-leader": 3, "address-moves": 3, "off": 3, "connections": 3}
		var names []string
		for _, s := range e.report.Steps {
			names = append(names, s.Name)
			require.Equal(t, ptr(rows[s.Name]), s.Rows, s.Name)
			require.False(t, s.DatabagChangedWhilePending)
			if s.Name == "connections" {
				require.Equal(t, ptr(int64(700)), s.DocumentAfterChangeMS)
				continue
			}
			require.Nil(t, s.DocumentAfterChangeMS)
			if s.Name == "deploy" {
				require.Nil(t, s.PublishedAfterAnswerMS)
				continue
			}
			require.NotNil(t, s.PublishedAfterAnswerMS, s.Name)
			require.LessOrEqual(t, *s.PublishedAfterAnswerMS, int64(150), s.Name)
			require.Greater(t, *s.PublishedAfterAnswerMS, int64(150-ProbeInterval.Milliseconds()-1), s.Name)
		}
		require.Equal(t, StepNames(), names)

		data, err := os.ReadFile(filepath.Join(e.out, "tour.json"))
		require.NoError(t, err)
		var document map[string]any
		require.NoError(t, json.Unmarshal(data, &document))
		require.Equal(t, true, document["passed"])
		deploy := document["steps"].([]any)[0].(map[string]any)
		require.Equal(t, map[string]any{
			"name": "deploy", "passed": true, "seconds": deploy["seconds"], "published_after_answer_ms": nil, "rows": 3.0,
			"document_after_change_ms":      nil,
			"databag_changed_while_pending": false,
		}, deploy)
		_, err = os.Stat(filepath.Join(e.out, "tour.lock"))
		require.ErrorIs(t, err, os.ErrNotExist)
		require.NotContains(t, e.story, "secret")
	})
}

func TestRun_BrokenPromises(t *testing.T) {
	tests := map[string]struct {
		spoil   func(*world)
		steps   []string
		failed  []string
		problem string
	}{
		"too late": {
			spoil:   func(w *world) { w.told = 2500 * time.Millisecond },
			steps:   []string{"loadbalancer", "off"},
			failed:  []string{"loadbalancer", "off"},
			problem: "after it answered, more than 2000 ms",
		},
		"before it answered": {
			spoil:   func(w *world) { w.early = true },
			steps:   []string{"loadbalancer", "off"},
			failed:  []string{"loadbalancer"},
			problem: "10.64.140.43:6446 was published 39",
		},
		"databag moves while pending": {
			spoil:   func(w *world) { w.restless = true },
			steps:   []string{"loadbalancer"},
			failed:  []string{"loadbalancer"},
			problem: "the client's databag changed while the switch was pending",
		},
		"active while pending": {
			spoil:   func(w *world) { w.lying = true },
			steps:   []string{"address-moves"},
			failed:  []string{"address-moves"},
			problem: `drawbridge-k8s/0 is "active" () while the switch is pending`,
		},
		"never told: what comes next is not run": {
			spoil:   func(w *world) { w.mute = true },
			steps:   []string{"loadbalancer", "nodeport", "off"},
			failed:  []string{"loadbalancer", "nodeport", "off"},
			problem: "nothing was published; not done after 1m0s",
		},
		"a document follows too late": {
			spoil:   func(w *world) { w.lags = 1500 * time.Millisecond },
			steps:   []string{"connections"},
			failed:  []string{"connections"},
			problem: "the last document followed 2200 ms after the change, more than 2000 ms",
		},
		"nothing is told on the ConfigMap": {
			spoil:   func(w *world) { w.untold = true },
			steps:   []string{"connections"},
			failed:  []string{"connections"},
			problem: "ConfigMap/model-prediction has no Event ConnectionPropagating",
		},
		"a row is missing": {
			spoil:   func(w *world) { w.rows = 2 },
			steps:   []string{"nodeport"},
			failed:  []string{"deploy", "nodeport"},
			problem: "4 rows were read from outside, want 6",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := travel(t, test.spoil, func(o *Options) { o.Steps = test.steps })
				require.NoError(t, e.err)
				require.False(t, e.report.Passed)
				require.Equal(t, test.failed, e.report.Failed(), e.story)
				require.Contains(t, e.story, test.problem)
				require.Equal(t, 2, e.downs)
			})
		})
	}
}

func TestRun_Interrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := travelUntil(t, 6*time.Second, none, asIs)
		require.ErrorIs(t, e.err, context.Canceled)
		require.False(t, e.report.Passed)
		require.Equal(t, []string{"loadbalancer", "nodeport", "kill-leader", "address-moves", "off", "connections"}, e.report.Failed())
		require.Equal(t, 2, e.downs)
		require.Contains(t, e.story, "interrupted: the cluster is being removed")
		_, err := os.Stat(filepath.Join(e.out, "tour.json"))
		require.NoError(t, err)
	})
}

func TestRun_Keep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := travel(t, none, func(o *Options) { o.Keep, o.Steps = true, []string{"off"} })
		require.NoError(t, e.err)
		require.Equal(t, 1, e.downs)
		require.Contains(t, e.story, "export JUJULET_STATE="+filepath.Join(e.out, "tour"))
	})
}

func TestRun_RefusesBeforeItStarts(t *testing.T) {
	t.Parallel()
	charms := t.TempDir()
	_, err := Run(t.Context(), Options{Out: t.TempDir(), Charms: charms, Steps: []string{"dance"}})
	require.EqualError(t, err, `cannot run step "dance": the steps are `+strings.Join(StepNames(), ", "))
	_, err = Run(t.Context(), Options{Out: t.TempDir(), Charms: charms})
	require.EqualError(t, err, `cannot find mariadb-k8s_amd64.charm in `+charms+` ("make charms" packs it)`)

	out := t.TempDir()
	unlock, err := lock(out)
	require.NoError(t, err)
	_, err = lock(out)
	require.EqualError(t, err, "cannot make a tour in "+out+": another one is being made there")
	unlock()
	unlock, err = lock(out)
	require.NoError(t, err)
	unlock()
}

func TestRun_UpFails(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	for _, name := range []string{backendCharm, bridgeCharm, clientCharm} {
		require.NoError(t, os.WriteFile(filepath.Join(out, name), nil, 0o644))
	}
	report, err := Run(t.Context(), Options{
		Out: out, Charms: out, Units: 1, Story: &bytes.Buffer{},
		Up:   func(context.Context, string) (Stage, error) { return nil, errors.New("cannot make namespaces") },
		Down: func(context.Context, string) error { return nil },
	})
	require.EqualError(t, err, "cannot make namespaces")
	require.False(t, report.Passed)
}
