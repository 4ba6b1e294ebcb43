// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/jujulet/agent"
)

// TestHooksAcrossModels is a relation across models as its two charms live it: the hooks of one within a model, under the
// names that each model has for the other side.
func TestHooksAcrossModels(t *testing.T) {
	dev := newWorld(t)
	m, err := dev.model.Store().AddModel("apps", nil)
	require.NoError(t, err)
	apps := &world{
		t: t, dir: filepath.Join(dev.dir, "apps"), model: m, clock: dev.clock, agents: map[string]*agent.Agent{},
		roots: map[string]string{}, seen: map[string][]string{}, taken: map[string]int{},
	}
	require.NoError(t, os.Mkdir(apps.dir, 0o755))
	dev.deploy(charm{name: "db", meta: "provides:\n  database: {interface: sql}\n", script: `
case "$hook" in
database-relation-created) id="$(secret-add pass=word)"; secret-grant "$id" -r "$JUJU_RELATION_ID"; relation-set --app secret="$id";;
database-relation-changed) say "$(relation-get - "$JUJU_REMOTE_APP" --app) $(relation-list)";;
esac`}, 1)
	apps.deploy(charm{name: "client", meta: "requires:\n  database: {interface: sql}\n", script: `
case "$hook" in
database-relation-joined) relation-set --app want=app; say "$(relation-model-get)";;
database-relation-changed) s="$(relation-get --app secret)"; [ -z "$s" ] || say "$(secret-get "$s" pass) ${s%/*}";;
esac`}, 1)
	dev.settle("db/0")
	apps.settle("client/0")
	dev.trace("db/0")
	apps.trace("client/0")

	_, err = dev.model.Offer("db", []string{"database"}, "")
	require.NoError(t, err)
	_, err = m.Consume("dev", "db", "mysql")
	require.NoError(t, err)
	_, err = m.Integrate("client", "mysql")
	require.NoError(t, err)
	for range 4 {
		dev.settle("db/0")
		apps.settle("client/0")
	}
	require.Equal(t, []string{
		"database-relation-created [,mysql]", "database-relation-changed [,mysql]", "database-relation-joined [mysql/0,mysql]",
		"database-relation-changed [mysql/0,mysql]",
	}, apps.trace("client/0"))
	require.Contains(t, apps.said("client/0"), "word secret://"+dev.model.Info().UUID)
	proxy := ""
	hooks := dev.trace("db/0")
	for _, line := range hooks {
		if _, name, ok := strings.Cut(line, "created [,"); ok {
			proxy = strings.TrimSuffix(name, "]")
		}
	}
	require.Regexp(t, "^remote-[0-9a-f]{32}$", proxy)
	require.Contains(t, hooks, "database-relation-joined ["+proxy+"/0,"+proxy+"]")
	require.Contains(t, hooks, "database-relation-changed [,"+proxy+"]")
	require.Contains(t, dev.said("db/0"), "want: app "+proxy+"/0")

	require.NoError(t, m.RemoveSAAS("mysql"))
	for range 2 {
		apps.settle("client/0")
		dev.settle("db/0")
	}
	require.Equal(t, []string{
		"database-relation-departed [mysql/0,mysql] departing=mysql/0", "database-relation-broken [,mysql]",
	}, normal(apps.trace("client/0")))
	last := dev.trace("db/0")
	require.Equal(t, "database-relation-broken [,"+proxy+"]", last[len(last)-1])
	for _, w := range []*world{dev, apps} {
		s, err := w.model.Status()
		require.NoError(t, err)
		require.Empty(t, s.Relations)
		require.Empty(t, s.Remotes)
	}
}

// normal leaves out which unit Juju names as departing.
func normal(lines []string) []string {
	for i, line := range lines {
		if at := strings.Index(line, " departing="); at >= 0 {
			lines[i] = line[:at] + " departing=mysql/0"
		}
	}
	return lines
}
