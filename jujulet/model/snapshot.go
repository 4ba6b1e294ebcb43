// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"context"
	"slices"
	"strings"
	"time"
)

// Snapshot reads what the unit's resolver needs: versions, no contents.
func (m *Model) Snapshot(_ context.Context, unit string) (*Snapshot, error) {
	app, _, _ := strings.Cut(unit, "/")
	generation, _ := m.generation(app)
	var s *Snapshot
	err := m.view(func(t *txn) (err error) {
		s, err = t.snapshot(unit)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.Generation = generation
	return s, nil
}

func (t *txn) snapshot(unit string) (*Snapshot, error) {
	u, err := t.unit(unit)
	if err != nil {
		return nil, err
	}
	a, err := t.app(u.App)
	if err != nil {
		return nil, err
	}
	c, settings, outdated, err := t.unitCharm(u, a)
	if err != nil {
		return nil, err
	}
	s := &Snapshot{
		Unit: unit, App: u.App, Life: u.Life, AppLife: a.Life,
		Leader: a.leader(t.now) == unit, Holder: a.leader(t.now), LeaseExpires: a.Lease,
		Charm: c.Hash, Outdated: outdated, ConfigHash: hashOf(settings), TrustHash: hashOf(a.Trust),
		AddressHash: hashOf(a.Address), LeaderSettings: a.LeaderVersion, Resolve: u.Resolve,
		Relations: map[int]RelationSnapshot{}, Fires: u.Fires,
		Containers: sortedKeys(c.Meta.Containers), Endpoints: c.Meta.Endpoints,
	}
	config, err := t.modelSettings()
	if err != nil {
		return nil, err
	}
	s.UpdateStatus, s.NoRetry = config.updateStatus, config.noRetry
	if len(a.Storage) > 0 {
		docs, err := t.unitStorage(unit)
		if err != nil {
			return nil, err
		}
		for _, d := range docs {
			s.Storage = append(s.Storage, d.ID)
		}
	}
	rels, err := t.relations(u.App)
	if err != nil {
		return nil, err
	}
	for _, r := range rels {
		s.Relations[r.ID] = t.relationSnapshot(r, u)
	}
	if err := t.secretSnapshot(s, u, a); err != nil {
		return nil, err
	}
	s.Actions = t.pendingActions(unit)
	return s, nil
}

func (t *txn) relationSnapshot(r *relationDoc, u *unitDoc) RelationSnapshot {
	own, _ := r.end(u.App)
	remote := r.remote(u.App)
	s := RelationSnapshot{
		ID: r.ID, Endpoint: own.Name, Role: own.Role, RemoteApp: remote.App, Life: r.Life,
		InScope: r.InScope[u.Name], Members: map[string]int64{},
		AppVersion: t.bagVersion(r.ID, remote.App),
	}
	for name := range r.InScope {
		app, _, _ := strings.Cut(name, "/")
		if name != u.Name && app == remote.App {
			s.Members[name] = t.bagVersion(r.ID, name)
		}
	}
	return s
}

// earlier keeps the earlier of two moments, a zero one meaning never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}

// LoadState returns the persisted state of the unit's agent; that of an agent
// that has never run is the zero value.
func (m *Model) LoadState(_ context.Context, unit string) (*UnitState, error) {
	var s *UnitState
	err := m.view(func(t *txn) (err error) {
		if _, err = t.unit(unit); err != nil {
			return err
		}
		s, err = get[UnitState](t, bucketAgents, unit)
		return err
	})
	if err == nil && s == nil {
		s = &UnitState{}
	}
	return s, err
}

// Save is what an agent records outside of a hook's commit.
type Save struct {
	State *UnitState `json:"state,omitempty"`
	// Agent and Workload, if set, are the unit's new statuses.
	Agent    *StatusValue `json:"agent,omitempty"`
	Workload *StatusValue `json:"workload,omitempty"`
	// OnlyUnset keeps Workload from replacing what the charm has set.
	OnlyUnset bool `json:"only-unset,omitempty"`
	// Enter are relations whose scope the unit enters.
	Enter []int `json:"enter,omitempty"`
	// Leave are relations whose scope the unit leaves without a hook.
	Leave []int `json:"leave,omitempty"`
	// ClearResolve forgets the operator's `resolved`.
	ClearResolve bool `json:"clear-resolve,omitempty"`
	// FireDone removes a Fire: its hook is pending now.
	FireDone uint64 `json:"fire-done,omitempty"`
	// StartAction marks an action as running.
	StartAction string `json:"start-action,omitempty"`
}

// Save records an agent's state, statuses and scopes in one transaction.
func (m *Model) Save(_ context.Context, unit string, s Save) error {
	return m.update(func(t *txn) error {
		u, err := t.unit(unit)
		if err != nil {
			return err
		}
		if s.State != nil {
			if err := put(t, bucketAgents, unit, s.State); err != nil {
				return err
			}
		}
		if s.StartAction != "" {
			if err := t.startAction(s.StartAction); err != nil {
				return err
			}
		}
		if err := t.enterAll(u, s.Enter); err != nil {
			return err
		}
		if err := t.leaveAll(u, s.Leave); err != nil {
			return err
		}
		changed, err := t.saveStatuses(u, s)
		if err != nil {
			return err
		}
		if s.ClearResolve && u.Resolve != ResolveNone {
			u.Resolve, changed = ResolveNone, true
		}
		if s.FireDone != 0 {
			u.Fires = slices.DeleteFunc(u.Fires, func(f Fire) bool { return f.ID == s.FireDone })
			changed = true
		}
		if !changed {
			return nil
		}
		return put(t, bucketUnits, u.Name, u)
	})
}

func (t *txn) enterAll(u *unitDoc, ids []int) error {
	if len(ids) == 0 {
		return nil
	}
	a, err := t.app(u.App)
	if err != nil {
		return err
	}
	for _, id := range ids {
		r, err := t.relation(id)
		if KindOf(err) == NotFound {
			continue
		}
		if err != nil {
			return err
		}
		if r.Life != Alive {
			continue
		}
		if err := t.enterScope(a, u.Name, r); err != nil {
			return err
		}
	}
	return nil
}

// leaveAll takes a unit out of relations; those that are gone are no error.
func (t *txn) leaveAll(u *unitDoc, ids []int) error {
	for _, id := range ids {
		r, err := t.relation(id)
		if KindOf(err) == NotFound {
			continue
		}
		if err != nil {
			return err
		}
		if err := t.leaveScope(u.Name, r); err != nil {
			return err
		}
	}
	return nil
}

func (t *txn) saveStatuses(u *unitDoc, s Save) (bool, error) {
	changed := false
	if s.Agent != nil {
		if err := t.setAgentStatus(u, *s.Agent); err != nil {
			return false, err
		}
		changed = true
	}
	if s.Workload != nil && !(s.OnlyUnset && u.CharmStatus) {
		if err := t.setWorkload(u, *s.Workload); err != nil {
			return false, err
		}
		changed = true
	}
	return changed, nil
}
