// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"context"
	"slices"
	"strings"
)

// maxState bounds the sum of a unit's state-set, in bytes.
const maxState = 2 << 20

// CommitHook applies what a successful hook, action or command has buffered,
// together with the agent's new state, in one transaction with a fresh check of
// leadership. If it fails nothing has been applied.
func (m *Model) CommitHook(_ context.Context, unit string, c HookCommit) (JournalEntry, error) {
	e := c.Journal
	e.Unit = unit
	err := m.update(func(t *txn) error {
		u, err := t.unit(unit)
		if err != nil {
			return err
		}
		if err := t.flush(u, &c, &e); err != nil {
			return err
		}
		if err := t.finish(u, &c); err != nil {
			return err
		}
		return t.writeJournal(&e)
	})
	return e, err
}

// flush applies the charm's own changes, secrets first.
func (t *txn) flush(u *unitDoc, c *HookCommit, e *JournalEntry) error {
	for _, op := range c.Secrets {
		if err := t.secretOp(u, op); err != nil {
			return err
		}
		if !slices.Contains(e.Secrets, op.ID) {
			e.Secrets = append(e.Secrets, op.ID)
		}
	}
	if c.Network {
		if err := t.refreshNetwork(u); err != nil {
			return err
		}
	}
	for _, w := range c.Relations {
		if err := t.relationWrite(u, w, e); err != nil {
			return err
		}
	}
	if len(c.StateSet)+len(c.StateDelete) > 0 {
		if err := t.writeState(u.Name, c); err != nil {
			return err
		}
		e.State = true
	}
	changed, err := t.writePorts(u, c)
	if err != nil {
		return err
	}
	e.State = e.State || changed
	return nil
}

// finish applies the agent's own changes.
func (t *txn) finish(u *unitDoc, c *HookCommit) error {
	if c.State != nil {
		if err := put(t, bucketAgents, u.Name, c.State); err != nil {
			return err
		}
	}
	if err := t.leaveAll(u, c.Leave); err != nil {
		return err
	}
	if c.DetachStorage != "" {
		if err := t.detachStorage(u, c.DetachStorage); err != nil {
			return err
		}
	}
	if c.ClearResolve {
		u.Resolve = ResolveNone
	}
	if c.Agent != nil {
		if err := t.setAgentStatus(u, *c.Agent); err != nil {
			return err
		}
	}
	if c.SecretFired != nil {
		if err := t.secretFired(c.SecretFiredKind, *c.SecretFired); err != nil {
			return err
		}
	}
	if c.ActionDone != nil {
		if err := t.finishAction(*c.ActionDone); err != nil {
			return err
		}
	}
	return put(t, bucketUnits, u.Name, u)
}

// relationWrite writes one databag, with the rule that only the leader writes an
// application's.
func (t *txn) relationWrite(u *unitDoc, w RelationWrite, e *JournalEntry) error {
	r, err := t.relation(w.Relation)
	if err != nil {
		return err
	}
	end, ok := r.end(u.App)
	if !ok {
		return errf(Permission, "permission denied")
	}
	bag, owner := u.Name, "unit"
	if w.App {
		if err := t.checkLeader(u); err != nil {
			return err
		}
		bag, owner = u.App, "app"
	}
	changed, err := t.writeBag(r.ID, bag, w.Values)
	if err != nil || len(changed) == 0 {
		return err
	}
	for _, k := range sortedKeys(changed) {
		e.Writes = append(e.Writes, JournalWrite{
			Relation: r.ID, Endpoint: end.Name, Owner: owner, Bag: bag,
			Key: k, Value: changed[k], Deleted: changed[k] == "",
		})
	}
	t.touch(r.apps()...)
	return nil
}

// refreshNetwork writes Juju's own keys into the unit's databags again.
func (t *txn) refreshNetwork(u *unitDoc) error {
	a, err := t.app(u.App)
	if err != nil {
		return err
	}
	rels, err := t.relations(u.App)
	if err != nil {
		return err
	}
	for _, r := range rels {
		if !r.InScope[u.Name] {
			continue
		}
		changed, err := t.writeBag(r.ID, u.Name, networkKeys(a))
		if err != nil {
			return err
		}
		if len(changed) > 0 {
			t.touch(r.apps()...)
		}
	}
	return nil
}

func (t *txn) charmState(unit string) (map[string]string, error) {
	s, err := get[map[string]string](t, bucketState, unit)
	if err != nil || s == nil || *s == nil {
		return map[string]string{}, err
	}
	return *s, nil
}

func (t *txn) writeState(unit string, c *HookCommit) error {
	state, err := t.charmState(unit)
	if err != nil {
		return err
	}
	for _, k := range c.StateDelete {
		delete(state, k)
	}
	for k, v := range c.StateSet {
		state[k] = v
	}
	size := 0
	for k, v := range state {
		size += len(k) + len(v)
	}
	if size > maxState {
		return errf(Quota, "max allowed charm state size (%d) exceeded", maxState)
	}
	return put(t, bucketState, unit, state)
}

func (t *txn) writePorts(u *unitDoc, c *HookCommit) (bool, error) {
	changed := false
	for _, p := range c.OpenPorts {
		if strings.HasSuffix(p, "icmp") {
			return false, errf(Invalid, "protocol \"icmp\" is not supported for k8s applications")
		}
		if !slices.Contains(u.Ports, p) {
			u.Ports = append(u.Ports, p)
			changed = true
		}
	}
	for _, p := range c.ClosePorts {
		if i := slices.Index(u.Ports, p); i >= 0 {
			u.Ports = slices.Delete(u.Ports, i, i+1)
			changed = true
		}
	}
	slices.Sort(u.Ports)
	if changed {
		t.touch(u.App)
	}
	return changed, nil
}

// FailHook records a failed hook: the agent's state and status, and an entry in
// the journal without writes.
func (m *Model) FailHook(_ context.Context, unit string, e JournalEntry, s Save) error {
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
		if _, err := t.saveStatuses(u, s); err != nil {
			return err
		}
		if err := put(t, bucketUnits, u.Name, u); err != nil {
			return err
		}
		e.Unit, e.Writes, e.Secrets, e.State = unit, nil, nil, false
		return t.writeJournal(&e)
	})
}
