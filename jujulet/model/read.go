// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"context"
	"maps"
	"strings"
)

// viewUnit runs f on a unit and its application.
func (m *Model) viewUnit(unit string, f func(t *txn, u *unitDoc, a *appDoc) error) error {
	return m.view(func(t *txn) error {
		u, err := t.unit(unit)
		if err != nil {
			return err
		}
		a, err := t.app(u.App)
		if err != nil {
			return err
		}
		return f(t, u, a)
	})
}

// ContextInfo returns what a hook context of the unit needs at its start.
func (m *Model) ContextInfo(_ context.Context, unit string) (*ContextInfo, error) {
	c := &ContextInfo{Info: m.info}
	err := m.viewUnit(unit, func(t *txn, u *unitDoc, a *appDoc) error {
		charm, _, _, err := t.unitCharm(u, a)
		if err != nil {
			return err
		}
		c.App, c.PodAddress, c.Trust, c.Resources = u.App, u.Pod.Address, a.Trust, a.Resources
		c.Endpoints = charm.Meta.Endpoints
		c.Base = Base{Name: "ubuntu", Channel: "22.04/stable"}
		if len(charm.Bases) > 0 {
			c.Base = charm.Bases[0]
		}
		config, err := t.modelSettings()
		if err != nil {
			return err
		}
		c.Proxies = config.proxies
		c.Declared, c.StorageMeta = charm.Meta.Resources, charm.Meta.Storage
		if len(a.Storage) > 0 {
			docs, err := t.unitStorage(unit)
			if err != nil {
				return err
			}
			c.Storage = map[string]StorageView{}
			for _, d := range docs {
				c.Storage[d.ID] = StorageView{Kind: "filesystem", Location: d.Location}
			}
		}
		if a.Address != "" {
			c.Ingress = []string{a.Address}
		}
		rels, err := t.relations(u.App)
		if err != nil {
			return err
		}
		for _, r := range rels {
			own, _ := r.end(u.App)
			c.Relations = append(c.Relations, RelationView{
				ID: r.ID, Key: r.String(), Endpoint: own.Name, Role: own.Role, RemoteApp: r.remote(u.App).App,
				Life: r.Life, InScope: r.InScope[unit], Model: t.modelOf(r),
			})
		}
		return nil
	})
	return c, err
}

// Config returns the charm's options with their values; nil for those unset.
func (m *Model) Config(_ context.Context, unit string) (map[string]any, error) {
	var out map[string]any
	err := m.viewUnit(unit, func(t *txn, u *unitDoc, a *appDoc) error {
		c, set, _, err := t.unitCharm(u, a)
		if err != nil {
			return err
		}
		out = settings(set, c)
		return nil
	})
	return out, err
}

// ReadBag returns a databag of a relation, as far as the unit may read it: owner
// is a unit or an application.
func (m *Model) ReadBag(_ context.Context, unit string, relation int, owner string) (map[string]string, error) {
	var out map[string]string
	err := m.viewUnit(unit, func(t *txn, u *unitDoc, a *appDoc) error {
		r, err := t.relation(relation)
		if err != nil {
			return err
		}
		if err := checkRead(t, r, u, a, owner); err != nil {
			return err
		}
		b, ok, err := t.bag(relation, owner)
		if err != nil {
			return err
		}
		if !ok && strings.Contains(owner, "/") && owner != unit {
			return errf(NotFound, "cannot read settings for unit %q in relation %q: unit %q: settings not found", owner, r, owner)
		}
		out = b.values
		return nil
	})
	return out, err
}

// checkRead is the table of juju's rights on databags.
func checkRead(t *txn, r *relationDoc, u *unitDoc, a *appDoc, owner string) error {
	denied := errf(Permission, "permission denied")
	app, _, isUnit := strings.Cut(owner, "/")
	if _, in := r.end(u.App); !in {
		return denied
	}
	if _, in := r.end(app); !in {
		return denied
	}
	if !isUnit && app == u.App && !r.isPeer() && a.leader(t.now) != u.Name {
		return denied
	}
	return nil
}

// CharmState returns what the unit has kept with state-set.
func (m *Model) CharmState(_ context.Context, unit string) (map[string]string, error) {
	var out map[string]string
	err := m.view(func(t *txn) (err error) {
		out, err = t.charmState(unit)
		return err
	})
	return out, err
}

// OpenedPorts returns the unit's opened ports, "80/tcp", sorted.
func (m *Model) OpenedPorts(_ context.Context, unit string) ([]string, error) {
	var out []string
	err := m.viewUnit(unit, func(_ *txn, u *unitDoc, _ *appDoc) error {
		out = u.Ports
		return nil
	})
	return out, err
}

// CharmArchive is a charm as an agent unpacks it.
type CharmArchive struct {
	Hash string `json:"hash"`
	Data []byte `json:"data"`
}

// CharmArchive returns the archive of the unit's charm.
func (m *Model) CharmArchive(_ context.Context, unit string) (*CharmArchive, error) {
	var hash string
	err := m.viewUnit(unit, func(_ *txn, _ *unitDoc, a *appDoc) error {
		hash = a.Charm
		return nil
	})
	if err != nil {
		return nil, err
	}
	data, err := m.Archive(hash)
	if err != nil {
		return nil, err
	}
	return &CharmArchive{Hash: hash, Data: data}, nil
}

// CharmOf returns the charm of an application.
func (m *Model) CharmOf(app string) (*Charm, error) {
	var c *Charm
	err := m.view(func(t *txn) error {
		a, err := t.app(app)
		if err != nil {
			return err
		}
		c, err = t.charm(a.Charm)
		return err
	})
	return c, err
}

// GoalState returns the unit's goal state: the own application's units, itself
// included, and the other side of each relation that is not a peer relation,
// under the endpoint names of both sides.
func (m *Model) GoalState(_ context.Context, unit string) (GoalState, error) {
	g := GoalState{Units: map[string]GoalStatus{}, Relations: map[string]map[string]GoalStatus{}}
	err := m.viewUnit(unit, func(t *txn, u *unitDoc, _ *appDoc) error {
		if err := t.goalUnits(u.App, g.Units); err != nil {
			return err
		}
		rels, err := t.relations(u.App)
		if err != nil {
			return err
		}
		for _, r := range rels {
			if r.isPeer() {
				continue
			}
			own, _ := r.end(u.App)
			remote := r.remote(u.App)
			name, show, err := t.goalName(remote.App)
			if err != nil {
				return err
			}
			if !show {
				continue
			}
			side := map[string]GoalStatus{}
			status := "joined"
			if r.Life != Alive {
				status = "dying"
			}
			side[name] = GoalStatus{Status: status, Since: r.Created}
			if err := t.goalUnits(remote.App, side); err != nil {
				return err
			}
			for _, name := range []string{own.Name, remote.Name} {
				if g.Relations[name] == nil {
					g.Relations[name] = map[string]GoalStatus{}
				}
				maps.Copy(g.Relations[name], side)
			}
		}
		return nil
	})
	return g, err
}

func (t *txn) goalUnits(app string, into map[string]GoalStatus) error {
	all, err := t.units(app)
	if err != nil {
		return err
	}
	for _, u := range all {
		switch u.Life {
		case Dead:
			continue
		case Dying:
			into[u.Name] = GoalStatus{Status: "dying", Since: u.Workload.Since}
		default:
			into[u.Name] = GoalStatus{Status: displayWorkload(u).Status, Since: u.Workload.Since}
		}
	}
	return nil
}
