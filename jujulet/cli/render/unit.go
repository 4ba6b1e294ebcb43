// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package render

import (
	"maps"
	"slices"
	"strings"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// Unit is one unit in the document of `juju show-unit`.
type Unit struct {
	WorkloadVersion string     `json:"workload-version,omitempty" yaml:"workload-version,omitempty"`
	OpenedPorts     []string   `json:"opened-ports" yaml:"opened-ports"`
	Charm           string     `json:"charm" yaml:"charm"`
	Leader          bool       `json:"leader" yaml:"leader"`
	Life            string     `json:"life,omitempty" yaml:"life,omitempty"`
	RelationInfo    []UnitView `json:"relation-info,omitempty" yaml:"relation-info,omitempty"`
	ProviderID      string     `json:"provider-id,omitempty" yaml:"provider-id,omitempty"`
	Address         string     `json:"address,omitempty" yaml:"address,omitempty"`
}

// UnitView is one relation as a unit sees it. ApplicationData is the other application's databag, and the own one in a
// peer relation.
type UnitView struct {
	RelationID      int                 `json:"relation-id" yaml:"relation-id"`
	Endpoint        string              `json:"endpoint" yaml:"endpoint"`
	CrossModel      bool                `json:"cross-model,omitempty" yaml:"cross-model,omitempty"`
	RelatedEndpoint string              `json:"related-endpoint" yaml:"related-endpoint"`
	ApplicationData map[string]string   `json:"application-data" yaml:"application-data"`
	LocalUnit       *Member             `json:"local-unit,omitempty" yaml:"local-unit,omitempty"`
	RelatedUnits    map[string]UnitData `json:"related-units,omitempty" yaml:"related-units,omitempty"`
}

// Member and UnitData are a unit's databag in a relation.
type (
	// Member is the unit that is shown.
	Member = UnitData
	// UnitData is a databag, and whether its unit takes part now.
	UnitData struct {
		InScope bool              `json:"in-scope" yaml:"in-scope"`
		Data    map[string]string `json:"data" yaml:"data"`
	}
)

// UnitOptions select what is shown of a unit's relations.
type UnitOptions struct {
	// Endpoint and RelatedUnit, if set, select relations and units.
	Endpoint    string
	RelatedUnit string
	// App leaves the units' databags out.
	App bool
}

// ShowUnit returns the document of one unit; ok is false if the model has no such unit. "app/leader" is the leader.
func ShowUnit(s model.Status, unit string, o UnitOptions) (name string, out Unit, ok bool) {
	for _, a := range s.Applications {
		if unit == a.Name+"/leader" && a.Leader != "" {
			unit = a.Leader
		}
		u, found := a.Units[unit]
		if !found {
			continue
		}
		out = Unit{
			WorkloadVersion: u.Version, OpenedPorts: u.Ports, Charm: a.Charm, Leader: u.Leader, Life: string(u.Life),
			ProviderID: podName(u.Name), Address: u.Pod.Address,
		}
		if out.OpenedPorts == nil {
			out.OpenedPorts = []string{}
		}
		for _, r := range s.Relations {
			out.RelationInfo = append(out.RelationInfo, views(s, r, a.Name, u.Name, o)...)
		}
		return unit, out, true
	}
	return unit, out, false
}

// views is a relation as seen from each of the application's endpoints in it; empty relations are left out, as in juju.
func views(s model.Status, r model.RelationStatus, app, unit string, o UnitOptions) []UnitView {
	var out []UnitView
	for i, end := range r.Ends {
		if end.App != app || (o.Endpoint != "" && o.Endpoint != end.Name) {
			continue
		}
		other := r.Ends[len(r.Ends)-1-i]
		view := UnitView{
			RelationID: r.ID, Endpoint: end.Name, CrossModel: r.Cross, RelatedEndpoint: other.Name, ApplicationData: bag(r, other.App),
		}
		if !o.App {
			view.LocalUnit = &Member{slices.Contains(r.InScope, unit), bag(r, unit)}
			view.RelatedUnits = relatedUnits(s, r, other.App, unit, o.RelatedUnit)
		}
		if len(view.ApplicationData) > 0 || view.LocalUnit != nil || len(view.RelatedUnits) > 0 {
			out = append(out, view)
		}
	}
	return out
}

func relatedUnits(s model.Status, r model.RelationStatus, app, self, only string) map[string]UnitData {
	out := map[string]UnitData{}
	for _, name := range append(slices.Collect(maps.Keys(r.Bags)), r.InScope...) {
		inScope := slices.Contains(r.InScope, name)
		data := r.Bags[name]
		if of, _, unit := strings.Cut(name, "/"); !unit || of != app || name == self || (only != "" && name != only) {
			continue
		}
		if _, known := s.Applications[app].Units[name]; !known && !r.Cross {
			continue
		}
		if data == nil {
			data = map[string]string{}
		}
		out[name] = UnitData{inScope, data}
	}
	return out
}

func bag(r model.RelationStatus, owner string) map[string]string {
	if data := r.Bags[owner]; data != nil {
		return data
	}
	return map[string]string{}
}

// ApplicationInfo is one application in the document of `juju show-application`.
type ApplicationInfo struct {
	Charm            string            `json:"charm,omitempty" yaml:"charm,omitempty"`
	Base             string            `json:"base,omitempty" yaml:"base,omitempty"`
	Constraints      struct{}          `json:"constraints" yaml:"constraints,omitempty"`
	Principal        bool              `json:"principal" yaml:"principal"`
	Exposed          bool              `json:"exposed" yaml:"exposed"`
	Remote           bool              `json:"remote" yaml:"remote"`
	Life             string            `json:"life,omitempty" yaml:"life,omitempty"`
	EndpointBindings map[string]string `json:"endpoint-bindings,omitempty" yaml:"endpoint-bindings,omitempty"`
}

// ShowApplication returns the document of one application. Juju 3.6: it names the charm, not its URL.
func ShowApplication(a model.ApplicationStatus) ApplicationInfo {
	out := ApplicationInfo{
		Charm: a.CharmName, Principal: true, Life: string(a.Life), EndpointBindings: map[string]string{"": defaultSpace},
	}
	if a.Base.Name != "" {
		out.Base = a.Base.Name + "@" + strings.TrimSuffix(a.Base.Channel, "/stable")
	}
	for name := range a.Endpoints {
		out.EndpointBindings[name] = defaultSpace
	}
	return out
}
