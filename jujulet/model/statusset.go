// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"context"
	"slices"
	"strconv"
)

// historyLength bounds the history of one status.
const historyLength = 200

func itoa(n int) string { return strconv.Itoa(n) }

// record adds a status to an entity's history.
func (t *txn) record(entity, kind string, v StatusValue) error {
	key := entity + "\x00" + kind
	old, err := get[[]StatusValue](t, bucketHistory, key)
	if err != nil {
		return err
	}
	var list []StatusValue
	if old != nil {
		list = *old
	}
	list = append(list, v)
	if len(list) > historyLength {
		list = list[len(list)-historyLength:]
	}
	return put(t, bucketHistory, key, list)
}

// setAgentStatus sets the agent's status in the document; the caller stores it.
func (t *txn) setAgentStatus(u *unitDoc, v StatusValue) error {
	if v.Since.IsZero() {
		v.Since = t.now
	}
	u.PodLost = false
	if u.Agent.Status == v.Status && u.Agent.Message == v.Message {
		return nil
	}
	u.Agent = v
	return t.record(u.Name, "agent", v)
}

func (t *txn) setWorkload(u *unitDoc, v StatusValue) error {
	if v.Since.IsZero() {
		v.Since = t.now
	}
	same := u.Workload.Status == v.Status && u.Workload.Message == v.Message
	u.Workload = v
	if same {
		return nil
	}
	return t.record(u.Name, "workload", v)
}

// SetUnitStatus is status-set: at once, whatever becomes of the hook.
func (m *Model) SetUnitStatus(_ context.Context, unit string, v StatusValue) error {
	return m.update(func(t *txn) error {
		u, err := t.unit(unit)
		if err != nil {
			return err
		}
		u.CharmStatus = true
		if err := t.setWorkload(u, v); err != nil {
			return err
		}
		return put(t, bucketUnits, u.Name, u)
	})
}

// SetAppStatus is status-set --application: the leader only.
func (m *Model) SetAppStatus(_ context.Context, unit string, v StatusValue) error {
	return m.update(func(t *txn) error {
		u, err := t.unit(unit)
		if err != nil {
			return err
		}
		a, err := t.app(u.App)
		if err != nil {
			return err
		}
		if a.leader(t.now) != unit {
			return errf(NotLeader, "this unit is not the leader")
		}
		if v.Since.IsZero() {
			v.Since = t.now
		}
		a.Status = &v
		if err := t.record(a.Name, "application", v); err != nil {
			return err
		}
		return put(t, bucketApps, a.Name, a)
	})
}

// UnitStatusValue is what status-get prints.
func (m *Model) UnitStatusValue(_ context.Context, unit string) (StatusValue, error) {
	var v StatusValue
	err := m.view(func(t *txn) error {
		u, err := t.unit(unit)
		if err == nil {
			v = u.Workload
		}
		return err
	})
	return v, err
}

// AppStatusValue is what status-get --application prints: the application's
// status and its units'. The leader only.
func (m *Model) AppStatusValue(_ context.Context, unit string) (StatusValue, map[string]StatusValue, error) {
	var v StatusValue
	units := map[string]StatusValue{}
	err := m.view(func(t *txn) error {
		u, err := t.unit(unit)
		if err != nil {
			return err
		}
		a, err := t.app(u.App)
		if err != nil {
			return err
		}
		if a.leader(t.now) != unit {
			return errf(NotLeader, "this unit is not the leader")
		}
		all, err := t.units(u.App)
		if err != nil {
			return err
		}
		shown := map[string]UnitStatus{}
		for _, o := range all {
			units[o.Name] = o.Workload
			shown[o.Name] = UnitStatus{Workload: o.Workload}
		}
		v = deriveApp(a, all, shown)
		return nil
	})
	return v, units, err
}

// SetVersion is application-version-set: at once.
func (m *Model) SetVersion(_ context.Context, unit, version string) error {
	return m.update(func(t *txn) error {
		u, err := t.unit(unit)
		if err != nil {
			return err
		}
		u.Version, u.VersionSet = version, t.now
		return put(t, bucketUnits, u.Name, u)
	})
}

// StatusHistory returns the last n statuses of a unit (kind "workload", "agent",
// or "" for both) or an application, oldest first.
func (m *Model) StatusHistory(entity, kind string, n int) ([]StatusValue, error) {
	var out []StatusValue
	err := m.view(func(t *txn) error {
		for _, k := range keys(t, bucketHistory, entity+"\x00") {
			if kind != "" && k != kind {
				continue
			}
			list, err := get[[]StatusValue](t, bucketHistory, entity+"\x00"+k)
			if err != nil {
				return err
			}
			out = append(out, *list...)
		}
		return nil
	})
	slices.SortStableFunc(out, func(a, b StatusValue) int { return a.Since.Compare(b.Since) })
	if n > 0 && len(out) > n {
		out = out[len(out)-n:]
	}
	return out, err
}
