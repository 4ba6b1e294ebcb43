// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package render

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func tabular(t *testing.T, s model.Status, o Options) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, Tabular(&out, s, o))
	return out.String()
}

// TestTabular_AsJuju is the table of juju's own source with its columns, paddings and empty cells.
func TestTabular_AsJuju(t *testing.T) {
	t.Parallel()
	s := model.Status{
		Model: model.Info{Name: "dev", Controller: "ctl", CloudRegion: "microk8s/localhost", Version: "3.6.11"},
		Applications: map[string]model.ApplicationStatus{
			"foo": {
				Name: "foo", Version: "1.2", Scale: 1, Current: 1, CharmName: "foo", Address: "10.152.183.5",
				Status: model.StatusValue{Status: "active", Message: "ready"},
				Units: map[string]model.UnitStatus{"foo/0": {
					Name: "foo/0", Leader: true, Ports: []string{"8080/tcp"}, Pod: model.PodStatus{Address: "10.1.2.3"},
					Workload: model.StatusValue{Status: "active", Message: "ready"}, Agent: model.StatusValue{Status: "idle"},
				}},
			},
			"longer-name": {
				Name: "longer-name", Scale: 3, Current: 1, CharmName: "longer-name", CharmRev: 12, Address: "10.152.183.6",
				Status: model.StatusValue{Status: "waiting"},
				Units: map[string]model.UnitStatus{"longer-name/0": {
					Name: "longer-name/0", Pod: model.PodStatus{Address: "10.1.2.4"},
					Workload: model.StatusValue{Status: "error", Message: `hook failed: "install"`},
					Agent:    model.StatusValue{Status: "idle"},
				}},
			},
		},
		Relations: []model.RelationStatus{{
			ID: 1, Status: "joined", Ends: []model.EndpointRef{
				{App: "foo", Name: "db", Interface: "pg", Role: model.Provider},
				{App: "bar", Name: "db", Interface: "pg", Role: model.Requirer},
			},
		}},
	}
	want := "" +
		"Model  Controller  Cloud/Region        Version  SLA          Timestamp\n" +
		"dev    ctl         microk8s/localhost  3.6.11   unsupported  12:00:00Z\n" +
		"\n" +
		"App          Version  Status   Scale  Charm        Channel  Rev  Address       Exposed  Message\n" +
		"foo          1.2      active       1  foo                     0  10.152.183.5  no       ready\n" +
		"longer-name           waiting    1/3  longer-name            12  10.152.183.6  no       \n" +
		"\n" +
		"Unit           Workload  Agent  Address   Ports     Message\n" +
		"foo/0*         active    idle   10.1.2.3  8080/tcp  ready\n" +
		"longer-name/0  error     idle   10.1.2.4            hook failed: \"install\"\n" +
		"\n" +
		"Integration provider  Requirer  Interface  Type     Message\n" +
		"foo:db                bar:db    pg         regular  \n"
	require.Equal(t, want, tabular(t, s, Options{Now: noon, Relations: true}))
}

// sample is a model in the middle of its work, with names in an order that only natural sorting gets right.
func sample() model.Status {
	since := noon.Add(-90 * time.Second)
	client := model.EndpointRef{App: "client-k8s", Name: "database", Interface: "mysql_client", Role: model.Requirer}
	front := model.EndpointRef{App: "drawbridge-k8s", Name: "database", Interface: "mysql_client", Role: model.Provider}
	peers := model.EndpointRef{App: "drawbridge-k8s", Name: "drawbridge-peers", Interface: "drawbridge_peers", Role: model.Peer}
	units := map[string]model.UnitStatus{}
	for _, n := range []string{"drawbridge-k8s/0", "drawbridge-k8s/2", "drawbridge-k8s/10"} {
		units[n] = model.UnitStatus{
			Name: n, Leader: n == "drawbridge-k8s/2", Life: model.Alive, Version: "2.6.12", Pod: model.PodStatus{Address: "10.1.0.7", Ready: true},
			Workload: model.StatusValue{Status: "waiting", Message: "no address yet", Since: since},
			Agent:    model.StatusValue{Status: "idle", Since: since},
		}
	}
	busy := units["drawbridge-k8s/10"]
	busy.Agent = model.StatusValue{Status: "executing", Message: "running database-relation-changed hook for client-k8s/0", Since: since}
	busy.Workload.Message = strings.Repeat("long ", 30)
	units["drawbridge-k8s/10"] = busy
	return model.Status{
		Model:       model.Info{Name: "dev", UUID: "u", Controller: "jujulet", CloudRegion: "jujulet/localhost", Version: "3.6.11"},
		ModelStatus: model.StatusValue{Status: "available", Since: since},
		Applications: map[string]model.ApplicationStatus{
			"drawbridge-k8s": {
				Name: "drawbridge-k8s", Life: model.Alive, Scale: 3, Current: 3, Charm: "local:drawbridge-k8s-0", CharmName: "drawbridge-k8s",
				Base: model.Base{Name: "ubuntu", Channel: "24.04/stable"}, Version: "2.6.12", Address: "10.152.183.9", Leader: "drawbridge-k8s/2",
				Status: model.StatusValue{Status: "waiting", Message: "no address yet", Since: since}, Units: units,
				Endpoints: map[string]model.Endpoint{"database": {}, "drawbridge-peers": {}},
			},
			"client-k8s": {
				Name: "client-k8s", Life: model.Dying, Scale: 0, Charm: "local:client-k8s-0", CharmName: "client-k8s",
				Status:    model.StatusValue{Status: "unknown", Since: since},
				Endpoints: map[string]model.Endpoint{"database": {}},
			},
		},
		Relations: []model.RelationStatus{
			{ID: 0, Status: "joined", Ends: []model.EndpointRef{peers}, InScope: []string{"drawbridge-k8s/0", "drawbridge-k8s/2"},
				Bags: map[string]map[string]string{"drawbridge-k8s": {"schema": "1"}, "drawbridge-k8s/0": {"node": "node-0"}, "drawbridge-k8s/2": {"node": "node-0"}}},
			{ID: 4, Status: "removing", Ends: []model.EndpointRef{front, client}, InScope: []string{"client-k8s/0", "drawbridge-k8s/2"},
				Bags: map[string]map[string]string{"client-k8s": {"database": "app"}, "drawbridge-k8s": {"endpoints": "10.64.140.43:6446"}}},
		},
	}
}

func TestTabular(t *testing.T) {
	t.Parallel()
	vienna := time.FixedZone("CET", 3600)
	tests := map[string]Options{
		"tabular.txt":           {Now: noon, Zone: vienna},
		"tabular-relations.txt": {Now: noon, UTC: true, Relations: true},
		"tabular-colour.txt":    {Now: noon, Colour: true},
	}
	for name, options := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden(t, name, tabular(t, sample(), options))
		})
	}
}

func TestTabular_ColourChangesNoWidth(t *testing.T) {
	t.Parallel()
	coloured := tabular(t, sample(), Options{Now: noon, Colour: true})
	require.Contains(t, coloured, "\x1b[33mwaiting\x1b[0m")
	bare := coloured
	for _, code := range []colour{green, yellow, red, bold, "0"} {
		bare = strings.ReplaceAll(bare, "\x1b["+string(code)+"m", "")
	}
	require.Equal(t, tabular(t, sample(), Options{Now: noon}), bare)
}

func TestTabular_EmptyModel(t *testing.T) {
	t.Parallel()
	s := model.Status{Model: model.Info{Name: "dev", Controller: "jujulet", CloudRegion: "jujulet/localhost", Version: "3.6.11"}}
	require.Equal(t, "Model  Controller  Cloud/Region       Version  SLA          Timestamp\n"+
		"dev    jujulet     jujulet/localhost  3.6.11   unsupported  12:00:00\n", tabular(t, s, Options{Now: noon, UTC: true}))
}

func TestFormatted(t *testing.T) {
	t.Parallel()
	document := Formatted(sample(), Options{Now: noon, UTC: true})
	text, err := yaml.Marshal(document)
	require.NoError(t, err)
	golden(t, "formatted.yaml", string(text))
	data, err := json.MarshalIndent(document, "", "  ")
	require.NoError(t, err)
	golden(t, "formatted.json", string(data)+"\n")
}

func TestShowUnit(t *testing.T) {
	t.Parallel()
	name, view, ok := ShowUnit(sample(), "drawbridge-k8s/leader", UnitOptions{})
	require.True(t, ok)
	require.Equal(t, "drawbridge-k8s/2", name)
	text, err := yaml.Marshal(map[string]Unit{name: view})
	require.NoError(t, err)
	golden(t, "show-unit.yaml", string(text))

	_, view, ok = ShowUnit(sample(), "drawbridge-k8s/2", UnitOptions{Endpoint: "database", App: true})
	require.True(t, ok)
	require.Len(t, view.RelationInfo, 1)
	require.Nil(t, view.RelationInfo[0].LocalUnit)
	require.Equal(t, map[string]string{"database": "app"}, view.RelationInfo[0].ApplicationData)

	_, _, ok = ShowUnit(sample(), "drawbridge-k8s/7", UnitOptions{})
	require.False(t, ok)
}

func TestTruncate(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ message, want string }{
		"fits":                     {strings.Repeat("x", 120), strings.Repeat("x", 120)},
		"too long":                 {strings.Repeat("x", 121), strings.Repeat("x", 117) + "..."},
		"cut inside a character":   {strings.Repeat("x", 116) + "é" + strings.Repeat("x", 9), strings.Repeat("x", 116) + "..."},
		"a line break is no break": {"one\ntwo", "one two"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, truncate(test.message))
		})
	}
}

func TestNaturally(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"foo/2", "foo/10", "foo/010a", "foo2/1", "foo10/1"}, sortedNames(map[string]int{
		"foo10/1": 0, "foo/10": 0, "foo2/1": 0, "foo/2": 0, "foo/010a": 0,
	}))
}
