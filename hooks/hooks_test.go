// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package hooks_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "github.com/drawbridge-k8s/drawbridge/hooks"
	"github.com/drawbridge-k8s/drawbridge/hooks/hooktool"
)

// environment makes a getenv of pairs, over what every hook has.
func environment(pairs ...string) func(string) string {
	env := map[string]string{"JUJU_UNIT_NAME": "app/10", "JUJU_MODEL_NAME": "dev", "JUJU_MODEL_UUID": "uuid", "JUJU_VERSION": "3.6.11",
		"JUJU_CHARM_DIR": "/charm"}
	for i := 0; i < len(pairs); i += 2 {
		env[pairs[i]] = pairs[i+1]
	}
	return func(key string) string { return env[key] }
}

func TestParseEvent(t *testing.T) {
	t.Parallel()
	base := Event{Unit: "app/10", App: "app", Model: "dev", ModelUUID: "uuid", JujuVersion: "3.6.11", CharmDir: "/charm", RelationID: -1}
	with := func(change func(*Event)) Event {
		e := base
		change(&e)
		return e
	}
	hook := func(name string, more ...string) []string {
		return append([]string{"JUJU_HOOK_NAME", name, "JUJU_DISPATCH_PATH", "hooks/" + name}, more...)
	}
	cases := map[string]struct {
		env  []string
		want Event
	}{
		"plain": {hook("config-changed"), with(func(e *Event) { e.Kind, e.Name = ConfigChanged, "config-changed" })},
		"relation, application level": {hook("database-relation-changed", "JUJU_RELATION", "database", "JUJU_RELATION_ID", "database:7",
			"JUJU_REMOTE_APP", "c", "JUJU_REMOTE_UNIT", ""),
			with(func(e *Event) {
				e.Kind, e.Name, e.Endpoint, e.RelationID, e.RemoteApp = RelationChanged, "database-relation-changed", "database", 7, "c"
			})},
		"relation with a dash": {hook("backend-database-relation-departed", "JUJU_RELATION_ID", "backend-database:4",
			"JUJU_REMOTE_UNIT", "m/0", "JUJU_REMOTE_APP", "m", "JUJU_DEPARTING_UNIT", "m/0"),
			with(func(e *Event) {
				e.Kind, e.Name, e.Endpoint, e.RelationID = RelationDeparted, "backend-database-relation-departed", "backend-database", 4
				e.RemoteUnit, e.RemoteApp, e.DepartingUnit = "m/0", "m", "m/0"
			})},
		"notice": {hook("gateway-pebble-custom-notice", "JUJU_WORKLOAD_NAME", "gateway", "JUJU_NOTICE_ID", "3", "JUJU_NOTICE_TYPE", "custom",
			"JUJU_NOTICE_KEY", "a.b/c"),
			with(func(e *Event) {
				e.Kind, e.Name, e.Workload = PebbleCustomNotice, "gateway-pebble-custom-notice", "gateway"
				e.NoticeID, e.NoticeType, e.NoticeKey = "3", "custom", "a.b/c"
			})},
		"secret": {hook("secret-remove", "JUJU_SECRET_ID", "secret:x", "JUJU_SECRET_LABEL", "", "JUJU_SECRET_REVISION", "2"),
			with(func(e *Event) {
				e.Kind, e.Name, e.SecretID, e.SecretRevision = SecretRemove, "secret-remove", "secret:x", 2
			})},
		"action": {[]string{"JUJU_HOOK_NAME", "", "JUJU_DISPATCH_PATH", "actions/explain", "JUJU_ACTION_NAME", "explain", "JUJU_ACTION_UUID", "4"},
			with(func(e *Event) { e.Kind, e.Name, e.Action, e.ActionID = Action, "explain", "explain", "4" })},
		"storage":                {hook("data-storage-attached", "JUJU_STORAGE_ID", "data/0"), with(func(e *Event) { e.Kind, e.Name, e.Storage = StorageAttached, "data-storage-attached", "data/0" })},
		"unknown":                {hook("something-new"), with(func(e *Event) { e.Kind, e.Name = Unknown, "something-new" })},
		"a hook run by a person": {hook("update-status", "JUJU_ACTION_NAME", "juju-exec"), with(func(e *Event) { e.Kind, e.Name = UpdateStatus, "update-status" })},
		"juju exec":              {[]string{"JUJU_ACTION_NAME", "juju-exec"}, with(func(e *Event) { e.Kind = Commands })},
		"commands":               {nil, with(func(e *Event) { e.Kind = Commands })},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			event, err := ParseEvent(environment(c.env...))
			require.NoError(t, err)
			require.Equal(t, c.want, event)
		})
	}
}

func TestParseEvent_Malformed(t *testing.T) {
	t.Parallel()
	for name, env := range map[string][]string{
		"no unit":     {"JUJU_UNIT_NAME", ""},
		"no number":   {"JUJU_UNIT_NAME", "app"},
		"relation id": {"JUJU_HOOK_NAME", "database-relation-changed", "JUJU_RELATION_ID", "database:x"},
		"no relation": {"JUJU_HOOK_NAME", "database-relation-changed"},
		"revision":    {"JUJU_HOOK_NAME", "secret-remove", "JUJU_SECRET_REVISION", "x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ParseEvent(environment(env...))
			require.ErrorContains(t, err, "cannot read the hook's environment")
		})
	}
}

func TestEvent_Relation(t *testing.T) {
	t.Parallel()
	require.Equal(t, "database:7", Event{Endpoint: "database", RelationID: 7}.Relation())
	require.Empty(t, Event{RelationID: -1}.Relation())
	id, breaking := Event{Kind: RelationBroken, RelationID: 7}.Breaking()
	require.True(t, breaking)
	require.Equal(t, 7, id)
}

// recorder is a Runner that keeps the calls.
type recorder struct {
	mu    sync.Mutex
	calls []string
	err   error
}

func (r *recorder) Run(_ context.Context, call hooktool.Call) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, call.Tool+" "+strings.Join(call.Args, " "))
	return nil, r.err
}

func dispatch(t *testing.T, r *recorder, stderr *bytes.Buffer, handler Handler, env ...string) int {
	t.Helper()
	return Dispatch(t.Context(), Env{
		Getenv: environment(env...), Handler: handler, Stderr: stderr, Budget: time.Second,
		Connect: func(context.Context, func(string) string) (*hooktool.Client, error) { return hooktool.New(r), r.err },
	})
}

func TestDispatch_ExitCodes(t *testing.T) {
	t.Parallel()
	fail := func(context.Context, *Hook) error { return errors.New("tools are gone") }
	fine := func(context.Context, *Hook) error { return nil }
	breaks := func(context.Context, *Hook) error { panic("internal error: x") }
	update := []string{"JUJU_HOOK_NAME", "update-status"}
	notice := []string{"JUJU_HOOK_NAME", "gateway-pebble-custom-notice", "JUJU_WORKLOAD_NAME", "gateway"}
	for name, c := range map[string]struct {
		handler Handler
		env     []string
		want    int
		log     string
	}{
		"fine":                   {fine, update, 0, ""},
		"failed":                 {fail, update, 1, "tools are gone"},
		"failed workload hook":   {fail, notice, 0, "tools are gone"},
		"broken invariant":       {breaks, update, 1, "internal error: x"},
		"environment is no hook": {fine, []string{"JUJU_UNIT_NAME", ""}, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &recorder{}
			require.Equal(t, c.want, dispatch(t, r, &bytes.Buffer{}, c.handler, c.env...))
			require.Contains(t, strings.Join(r.calls, "\n"), c.log)
			if c.log == "" {
				require.Empty(t, r.calls)
			}
		})
	}
}

func TestDispatch_NoTools(t *testing.T) {
	t.Parallel()
	var stderr bytes.Buffer
	called := false
	code := dispatch(t, &recorder{err: errors.New("no socket")}, &stderr, func(context.Context, *Hook) error { called = true; return nil },
		"JUJU_HOOK_NAME", "update-status")
	require.Equal(t, 1, code)
	require.False(t, called)
	require.Contains(t, stderr.String(), "cannot reach the hook tools: no socket")
}

func TestDispatch_EndsWithItsBudget(t *testing.T) {
	t.Parallel()
	r := &recorder{}
	code := Dispatch(t.Context(), Env{
		Getenv: environment("JUJU_HOOK_NAME", "update-status"), Budget: 10 * time.Millisecond,
		Handler: func(ctx context.Context, _ *Hook) error { <-ctx.Done(); return context.Cause(ctx) },
		Connect: func(context.Context, func(string) string) (*hooktool.Client, error) { return hooktool.New(r), nil },
	})
	require.Equal(t, 1, code)
	require.Len(t, r.calls, 1, "the failure can still be logged")
}

func TestLogHandler(t *testing.T) {
	t.Parallel()
	r := &recorder{}
	log := slog.New(NewLogHandler(t.Context(), hooktool.New(r), slog.LevelInfo, &bytes.Buffer{}))
	log.Debug("not shown")
	log.Info("plain")
	log.With("unit", "a/0").Warn("two words", "relation", "database:7", "text", "a b")
	log.WithGroup("g").Error("-dashed", "k", 1)
	require.Equal(t, []string{
		"juju-log --log-level INFO -- plain",
		`juju-log --log-level WARNING -- two words unit=a/0 relation=database:7 text="a b"`,
		"juju-log --log-level ERROR -- -dashed g.k=1",
	}, r.calls)
}

func TestLogHandler_FallsBack(t *testing.T) {
	t.Parallel()
	var stderr bytes.Buffer
	log := slog.New(NewLogHandler(t.Context(), hooktool.New(&recorder{err: errors.New("gone")}), slog.LevelInfo, &stderr))
	log.Info("said anyway")
	require.Contains(t, stderr.String(), "said anyway")
}
