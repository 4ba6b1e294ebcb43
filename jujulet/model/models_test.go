// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
)

func TestStore_ModelsAreApart(t *testing.T) {
	f := newModel(t)
	f.deploy("foo", "peers: {mates: m}\n", 1)
	other, err := f.Store().AddModel("other", map[string]string{"development": "true"})
	require.NoError(t, err)
	require.NotEqual(t, f.Info().UUID, other.Info().UUID)
	status, err := other.Status()
	require.NoError(t, err)
	require.Empty(t, status.Applications)
	second := &fixture{t: t, Model: other, path: f.path}
	second.deploy("foo", "peers: {mates: m}\n", 3)
	require.NoError(t, other.Save(t.Context(), "foo/2", Save{Enter: []int{0}}))
	status, err = f.Status()
	require.NoError(t, err)
	require.Len(t, status.Applications["foo"].Units, 1)
	require.Empty(t, status.Relations[0].InScope)

	_, err = f.Store().AddModel("other", nil)
	require.EqualError(t, err, `model "other" already exists`)
	_, err = f.Store().AddModel("No Name", nil)
	require.ErrorContains(t, err, "model names may only contain lowercase letters, digits and hyphens")
	_, err = f.Store().AddModel("third", map[string]string{"development": "perhaps"})
	require.EqualError(t, err, `development: expected bool, got string("perhaps")`)

	// All is there again after a restart.
	require.NoError(t, f.Close())
	store, err := OpenStore(f.path, Options{NoSync: true})
	require.NoError(t, err)
	defer store.Close()
	require.Len(t, store.Models(), 2)
	again, err := store.Model("other")
	require.NoError(t, err)
	require.Equal(t, other.Info(), again.Info())
	config, err := again.ModelConfig()
	require.NoError(t, err)
	require.Equal(t, ModelConfigValue{Value: true, Source: "model"}, config["development"])

	// A removed model's handle does nothing to one that has its name.
	wake := again.Watch(t.Context())
	<-wake
	require.NoError(t, store.RemoveModel("other"))
	_, open := <-wake
	require.False(t, open)
	_, err = store.AddModel("other", nil)
	require.NoError(t, err)
	require.ErrorContains(t, again.Scale("foo", 1), "it was removed")
	_, err = again.Status()
	require.ErrorContains(t, err, "it was removed")
}

func TestStore_RefusesTheFormOfBefore(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "model.db")
	db, err := bbolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucket([]byte("juju-meta"))
		return err
	}))
	require.NoError(t, db.Close())
	_, err = OpenStore(path, Options{NoSync: true})
	require.ErrorContains(t, err, `"jujulet down --destroy" removes it`)
}

func TestDestroyModel(t *testing.T) {
	for _, c := range []struct {
		name string
		args DestroyModelArgs
		late time.Duration
		left int
	}{
		{"in order", DestroyModelArgs{}, time.Hour, 2},
		{"by force", DestroyModelArgs{Force: true}, time.Second, 1},
		{"by force, later", DestroyModelArgs{Force: true}, time.Hour, 0},
		{"by force, in a given time", DestroyModelArgs{Force: true, Wait: 5 * time.Second}, 6 * time.Second, 0},
		{"without waiting", DestroyModelArgs{Force: true, Wait: -1}, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newModel(t)
			f.deploy("foo", "", 2)
			failed := &StatusValue{Status: "error", Message: `hook failed: "install"`, Data: map[string]any{"hook": "install"}}
			require.NoError(t, f.Save(t.Context(), "foo/0", Save{Agent: failed}))
			require.NoError(t, f.Destroy(c.args))
			f.now = f.now.Add(c.late)
			empty, _, err := f.DestroyStep()
			require.NoError(t, err)
			require.False(t, empty)
			status, err := f.Status()
			require.NoError(t, err)
			require.Equal(t, Dying, status.Life)
			require.Equal(t, "destroying", status.ModelStatus.Status)
			require.Len(t, status.Applications["foo"].Units, c.left)
			if c.left == 0 {
				empty, _, err = f.DestroyStep()
				require.NoError(t, err)
				require.True(t, empty)
			}
		})
	}
}

func TestModelConfig(t *testing.T) {
	f := newModel(t)
	f.deploy("foo", "", 1)
	before, err := f.Snapshot(t.Context(), "foo/0")
	require.NoError(t, err)
	require.Zero(t, before.UpdateStatus)
	unknown, err := f.SetModelConfig(map[string]string{
		"update-status-hook-interval": "10s", "automatically-retry-hooks": "false", "juju-http-proxy": "http://p:1", "what-is-this": "1",
	}, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"what-is-this"}, unknown)
	after, err := f.Snapshot(t.Context(), "foo/0")
	require.NoError(t, err)
	require.Equal(t, 10*time.Second, after.UpdateStatus)
	require.True(t, after.NoRetry)
	require.Greater(t, after.Generation, before.Generation, "agents look again")
	info, err := f.ContextInfo(t.Context(), "foo/0")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"HTTP": "http://p:1"}, info.Proxies)
	_, err = f.SetModelConfig(nil, []string{"update-status-hook-interval"})
	require.NoError(t, err)
	config, err := f.ModelConfig()
	require.NoError(t, err)
	require.Equal(t, ModelConfigValue{Value: "5m", Source: "default"}, config["update-status-hook-interval"])
	for _, c := range []struct{ key, value, want string }{
		{"update-status-hook-interval", "often", "invalid update status hook interval in model configuration"},
		{"update-status-hook-interval", "1ms", "cannot be less than 1s"},
		{"logging-config", "unit", "config value expected '=', found \"unit\""},
		{"logging-config", "unit=LOUD", `unknown severity level "LOUD"`},
		{"num-provision-workers", "x", "num-provision-workers: expected number"},
		{"agent-version", "3.6.12", `"agent-version" must be set via "upgrade-model"`},
	} {
		_, err := f.SetModelConfig(map[string]string{c.key: c.value}, nil)
		require.ErrorContains(t, err, c.want)
	}
}

func TestLoggingConfig(t *testing.T) {
	f := newModel(t)
	add := func(module, level string) {
		f.AddLog(LogLine{Module: module, Level: level, Message: module + " " + level})
	}
	said := func() []string {
		var out []string
		for _, l := range f.Logs(0, 0) {
			out = append(out, l.Message)
		}
		return out
	}
	add("unit.foo/0.juju-log", "DEBUG")
	require.Empty(t, said())
	_, err := f.SetModelConfig(map[string]string{"logging-config": "<root>=WARNING;unit.foo=DEBUG"}, nil)
	require.NoError(t, err)
	add("unit.foo/0.juju-log", "DEBUG")
	add("unit.food/0.juju-log", "INFO")
	add("juju.worker", "INFO")
	add("juju.worker", "ERROR")
	require.Equal(t, []string{"unit.foo/0.juju-log DEBUG", "juju.worker ERROR"}, said())
}
