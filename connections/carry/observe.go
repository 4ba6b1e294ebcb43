// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package carry

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/drawbridge-k8s/drawbridge/connections"
	"github.com/drawbridge-k8s/drawbridge/hooks"
	"github.com/drawbridge-k8s/drawbridge/hooks/hooktool"
	"github.com/drawbridge-k8s/drawbridge/k8sservice"
)

// read reads the ConfigMaps, one after the other, and keeps no more of them than may be in a document.
func (p *Pass) read(ctx context.Context) map[string]connections.Seen {
	ctx, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	seen := map[string]connections.Seen{}
	total := 0
	for _, n := range p.options.ConfigMaps {
		s := p.readOne(ctx, n.Name)
		if total += s.Size; total > connections.MaxTotal {
			s.Map = connections.ConfigMap{}
			for name, other := range seen {
				other.Map = connections.ConfigMap{}
				seen[name] = other
			}
		}
		seen[n.Name] = s
	}
	return seen
}

func (p *Pass) readOne(ctx context.Context, name string) connections.Seen {
	if p.kubeErr != nil || ctx.Err() != nil {
		return connections.Seen{State: connections.Stale}
	}
	m, err := p.kube.ConfigMap(ctx, name)
	if failure := k8sservice.Classify(err); failure.Kind == k8sservice.Forbidden {
		return connections.Seen{State: connections.Forbidden, Verb: failure.Verb}
	}
	switch {
	case err != nil:
		return connections.Seen{State: connections.Stale}
	case m == nil:
		return connections.Seen{State: connections.Missing}
	}
	content := connections.ConfigMap{Name: name, Labels: m.Labels, Data: m.Data, Binary: m.BinaryData}
	return connections.Seen{State: connections.OK, Map: content, Size: content.Size()}
}

// observe reads the relations.
func (p *Pass) observe(ctx context.Context) error {
	ids, err := p.relationIDs(ctx, connections.EndpointRequired)
	if err != nil {
		return err
	}
	for _, id := range ids {
		r := required{id: id}
		if err := p.observeRequired(ctx, &r); err != nil {
			if !refused(err) {
				return err
			}
			p.h.Log.Info("leaving out a relation that cannot be read", "relation", id, "error", err)
			continue
		}
		p.required = append(p.required, r)
	}
	if p.h.Leader {
		p.provided, err = p.relationIDs(ctx, connections.EndpointProvided)
	}
	return err
}

func (p *Pass) observeRequired(ctx context.Context, r *required) error {
	var err error
	if r.app, err = p.h.Tools.RelationApp(ctx, r.id); err != nil {
		return err
	}
	bag, err := p.h.Tools.RelationGetApp(ctx, r.id, r.app)
	if err != nil {
		return err
	}
	r.metadata = bag[connections.KeyMetadata]
	if p.h.Leader {
		r.own, err = p.h.Tools.RelationGetApp(ctx, r.id, p.h.Event.App)
	}
	return err
}

// relationIDs returns an endpoint's relations without the one that is being broken. Juju is asked only where the goal
// state, or the hook itself, knows of one: the usual hook has none.
func (p *Pass) relationIDs(ctx context.Context, endpoint string) ([]string, error) {
	if len(p.h.Goal.Relations[endpoint]) == 0 && p.h.Event.Endpoint != endpoint {
		return nil, nil
	}
	ids, err := p.h.Tools.RelationIDs(ctx, endpoint)
	if err != nil {
		return nil, err
	}
	breaking, broken := p.h.Event.Breaking()
	return slices.DeleteFunc(ids, func(id string) bool {
		number, err := hooks.ParseRelationID(id)
		return err != nil || broken && number == breaking && p.h.Event.Endpoint == endpoint
	}), nil
}

// observeUnits reads what the other units have recorded; the leader counts them.
func (p *Pass) observeUnits(ctx context.Context, own connections.Applied) error {
	if p.h.PeerID == "" {
		return nil
	}
	units, err := p.h.Tools.RelationUnits(ctx, p.h.PeerID)
	if err != nil {
		return err
	}
	for _, unit := range append(units, p.h.Event.Unit) {
		record := connections.UnitRecord{Name: unit, Applied: own}
		if unit != p.h.Event.Unit {
			if status, known := p.h.Goal.Units[unit]; known && status == "dying" {
				continue
			}
			bag, err := p.h.Tools.RelationGet(ctx, p.h.PeerID, unit)
			if err != nil {
				if refused(err) {
					continue
				}
				return err
			}
			record.Applied = connections.ParseApplied(bag[connections.KeyApplied])
		}
		if record.Applied.Hash == "" {
			record.Applied.Hash = connections.EmptyHash()
		}
		p.report.Units = append(p.report.Units, record)
	}
	slices.SortFunc(p.report.Units, func(a, b connections.UnitRecord) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// units are the application's units, for its metadata.
func (p *Pass) units() []connections.Unit {
	var units []connections.Unit
	for _, name := range slices.Sorted(maps.Keys(p.h.Goal.Units)) {
		if p.h.Goal.Units[name] != "dying" {
			units = append(units, p.unit(name))
		}
	}
	return units
}

// unit names a unit and its pod's name in DNS (Juju: the headless Service <app>-endpoints).
func (p *Pass) unit(name string) connections.Unit {
	pod := strings.ReplaceAll(name, "/", "-")
	return connections.Unit{Name: name, FQDN: fmt.Sprintf("%s.%s-endpoints.%s.svc.%s", pod, p.h.Event.App, p.h.Event.Model, p.h.Domain)}
}

// refused reports whether a hook tool ran and said no, as against tools that cannot be reached.
func refused(err error) bool {
	var e *hooktool.Error
	return errors.As(err, &e)
}
