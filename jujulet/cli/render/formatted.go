// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package render

import (
	"strings"
	"time"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// Status is the document of `juju status --format json|yaml`.
type Status struct {
	Model        Model                        `json:"model" yaml:"model"`
	Machines     map[string]any               `json:"machines" yaml:"machines"`
	Applications map[string]Application       `json:"applications" yaml:"applications"`
	Remotes      map[string]RemoteApplication `json:"application-endpoints,omitempty" yaml:"application-endpoints,omitempty"`
	Offers       map[string]Offer             `json:"offers,omitempty" yaml:"offers,omitempty"`
	Storage      *Storage                     `json:"storage,omitempty" yaml:"storage,omitempty"`
	Controller   Controller                   `json:"controller" yaml:"controller"`
}

// Model is the model's part of [Status].
type Model struct {
	Name       string `json:"name" yaml:"name"`
	Type       string `json:"type" yaml:"type"`
	Controller string `json:"controller" yaml:"controller"`
	Cloud      string `json:"cloud" yaml:"cloud"`
	Region     string `json:"region,omitempty" yaml:"region,omitempty"`
	Version    string `json:"version" yaml:"version"`
	Status     Value  `json:"model-status" yaml:"model-status"`
	SLA        string `json:"sla,omitempty" yaml:"sla,omitempty"`
}

// Controller has the moment of a [Status].
type Controller struct {
	Timestamp string `json:"timestamp" yaml:"timestamp"`
}

// Value is one status.
type Value struct {
	Current string `json:"current,omitempty" yaml:"current,omitempty"`
	Message string `json:"message,omitempty" yaml:"message,omitempty"`
	Since   string `json:"since,omitempty" yaml:"since,omitempty"`
	Version string `json:"version,omitempty" yaml:"version,omitempty"`
}

// Application is one application of a [Status].
type Application struct {
	Charm            string                `json:"charm" yaml:"charm"`
	Base             *Base                 `json:"base,omitempty" yaml:"base,omitempty"`
	CharmOrigin      string                `json:"charm-origin" yaml:"charm-origin"`
	CharmName        string                `json:"charm-name" yaml:"charm-name"`
	CharmRev         int                   `json:"charm-rev" yaml:"charm-rev"`
	Scale            int                   `json:"scale,omitempty" yaml:"scale,omitempty"`
	ProviderID       string                `json:"provider-id,omitempty" yaml:"provider-id,omitempty"`
	Address          string                `json:"address,omitempty" yaml:"address,omitempty"`
	Exposed          bool                  `json:"exposed" yaml:"exposed"`
	Life             string                `json:"life,omitempty" yaml:"life,omitempty"`
	Status           Value                 `json:"application-status" yaml:"application-status"`
	Relations        map[string][]Related  `json:"relations,omitempty" yaml:"relations,omitempty"`
	Units            map[string]UnitStatus `json:"units,omitempty" yaml:"units,omitempty"`
	Version          string                `json:"version,omitempty" yaml:"version,omitempty"`
	EndpointBindings map[string]string     `json:"endpoint-bindings,omitempty" yaml:"endpoint-bindings,omitempty"`
}

// Base is the operating system of a charm.
type Base struct {
	Name    string `json:"name" yaml:"name"`
	Channel string `json:"channel" yaml:"channel"`
}

// Related is the other side of a relation.
type Related struct {
	Application string `json:"related-application" yaml:"related-application"`
	Interface   string `json:"interface" yaml:"interface"`
	Scope       string `json:"scope" yaml:"scope"`
}

// UnitStatus is one unit of an [Application].
type UnitStatus struct {
	Workload   Value    `json:"workload-status" yaml:"workload-status"`
	Agent      Value    `json:"juju-status" yaml:"juju-status"`
	Leader     bool     `json:"leader,omitempty" yaml:"leader,omitempty"`
	OpenPorts  []string `json:"open-ports,omitempty" yaml:"open-ports,omitempty"`
	Address    string   `json:"address,omitempty" yaml:"address,omitempty"`
	ProviderID string   `json:"provider-id,omitempty" yaml:"provider-id,omitempty"`
}

// defaultSpace is where juju binds endpoints that nobody bound.
const defaultSpace = "alpha"

// Formatted returns the document of a status.
func Formatted(s model.Status, o Options) Status {
	cloud, region, _ := strings.Cut(s.Model.CloudRegion, "/")
	out := Status{
		Model: Model{
			Name: s.Model.Name, Type: "caas", Controller: s.Model.Controller, Cloud: cloud, Region: region,
			Version: s.Model.Version, Status: o.value(s.ModelStatus), SLA: sla,
		},
		Machines:     map[string]any{},
		Applications: map[string]Application{},
		Controller:   Controller{Timestamp: o.timestamp()},
	}
	for name, a := range s.Applications {
		out.Applications[name] = o.application(s, a)
	}
	for name, r := range s.Remotes {
		if out.Remotes == nil {
			out.Remotes = map[string]RemoteApplication{}
		}
		out.Remotes[name] = o.remote(r)
	}
	for name, of := range s.Offers {
		if out.Offers == nil {
			out.Offers = map[string]Offer{}
		}
		out.Offers[name] = offer(of)
	}
	if o.Storage {
		out.Storage = StorageDocument(s.Storage, o)
	}
	return out
}

func (o Options) application(s model.Status, a model.ApplicationStatus) Application {
	out := Application{
		Charm: a.Charm, CharmOrigin: "local", CharmName: a.CharmName, CharmRev: a.CharmRev, Scale: a.Scale,
		ProviderID: a.ProviderID, Address: a.Address, Life: life(a.Life), Status: o.value(a.Status), Version: a.Version,
		EndpointBindings: map[string]string{"": defaultSpace},
		Relations:        map[string][]Related{},
		Units:            map[string]UnitStatus{},
	}
	if a.Base.Name != "" {
		// Juju 3.6: the risk is left out if it is stable.
		out.Base = &Base{a.Base.Name, strings.TrimSuffix(a.Base.Channel, "/stable")}
	}
	for name := range a.Endpoints {
		out.EndpointBindings[name] = defaultSpace
	}
	for _, r := range shownRelations(s) {
		for i, end := range r.Ends {
			if end.App != a.Name {
				continue
			}
			other := r.Ends[len(r.Ends)-1-i]
			out.Relations[end.Name] = append(out.Relations[end.Name], Related{other.App, end.Interface, "global"})
		}
	}
	for name, u := range a.Units {
		out.Units[name] = o.unit(s, u)
	}
	return out
}

func (o Options) unit(s model.Status, u model.UnitStatus) UnitStatus {
	agent := o.value(u.Agent)
	agent.Version = s.Model.Version
	return UnitStatus{
		Workload: o.value(u.Workload), Agent: agent, Leader: u.Leader, OpenPorts: u.Ports, Address: u.Pod.Address,
		ProviderID: podName(u.Name),
	}
}

func (o Options) value(v model.StatusValue) Value {
	return Value{Current: v.Status, Message: v.Message, Since: o.since(v.Since)}
}

func (o Options) since(t time.Time) string {
	switch {
	case t.IsZero():
		return ""
	case o.UTC:
		return t.UTC().Format("2006-01-02 15:04:05Z")
	default:
		return t.In(o.zone()).Format("02 Jan 2006 15:04:05Z07:00")
	}
}

// life is shown only of what is being removed.
func life(l model.Life) string {
	if l == model.Alive {
		return ""
	}
	return string(l)
}

func podName(unit string) string { return strings.ReplaceAll(unit, "/", "-") }
