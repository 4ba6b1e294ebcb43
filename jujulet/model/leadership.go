// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"context"
	"time"
)

// Leadership is the answer to a claim.
type Leadership struct {
	Leader bool `json:"leader"`
	// Holder is the unit that leads, "" if none.
	Holder string `json:"holder"`
	// Expires is the end of the lease.
	Expires time.Time `json:"expires"`
}

// leaseGuarantee is how long leadership must still last for is-leader to say
// True without asking for more.
const leaseGuarantee = 30 * time.Second

// ClaimLeadership asks for leadership, or for more of it: the unit leads until
// 60 s from now unless another unit's lease still lasts.
func (m *Model) ClaimLeadership(_ context.Context, unit string) (Leadership, error) {
	return m.claim(unit, LeaseDuration)
}

// IsLeader says whether the unit leads for 30 s more at least; a lease that is
// shorter is renewed for it.
func (m *Model) IsLeader(_ context.Context, unit string) (bool, error) {
	l, err := m.claim(unit, leaseGuarantee)
	return l.Leader, err
}

// claim renews only when less than want is left.
func (m *Model) claim(unit string, want time.Duration) (Leadership, error) {
	var l Leadership
	settled := false
	err := m.view(func(t *txn) error {
		u, err := t.unit(unit)
		if err != nil {
			return err
		}
		a, err := t.app(u.App)
		if err != nil {
			return err
		}
		holder := a.leader(t.now)
		l = Leadership{Leader: holder == unit, Holder: holder, Expires: a.Lease}
		settled = holder != "" && holder != unit || l.Leader && a.Lease.Sub(t.now) >= want || u.Life == Dead
		return nil
	})
	if err != nil || settled {
		return l, err
	}
	err = m.update(func(t *txn) error {
		u, err := t.unit(unit)
		if err != nil {
			return err
		}
		a, err := t.app(u.App)
		if err != nil {
			return err
		}
		if holder := a.leader(t.now); holder != "" && holder != unit {
			l = Leadership{Holder: holder, Expires: a.Lease}
			return nil
		}
		changed := a.leader(t.now) != unit
		a.Leader, a.Lease = unit, t.now.Add(LeaseDuration)
		l = Leadership{Leader: true, Holder: unit, Expires: a.Lease}
		if changed {
			return t.putApp(a)
		}
		return put(t, bucketApps, a.Name, a)
	})
	return l, err
}

// SetLeader moves leadership to the unit at once, with a fresh lease. (A verb
// that Juju has not.)
func (m *Model) SetLeader(unit string) error {
	return m.update(func(t *txn) error {
		u, err := t.unit(unit)
		if err != nil {
			return err
		}
		if u.Life != Alive {
			return errf(Invalid, "unit %q is not alive", unit)
		}
		a, err := t.app(u.App)
		if err != nil {
			return err
		}
		a.Leader, a.Lease = unit, t.now.Add(LeaseDuration)
		return t.putApp(a)
	})
}

// checkLeader fails unless the unit leads now; the text is Juju's.
func (t *txn) checkLeader(u *unitDoc) error {
	a, err := t.app(u.App)
	if err != nil {
		return err
	}
	if a.leader(t.now) != u.Name {
		return errf(NotLeader, "checking leadership continuity: prerequisites failed: %q is not leader of %q", u.Name, u.App)
	}
	return nil
}

// LeaderSettings returns the legacy leader settings.
func (m *Model) LeaderSettings(_ context.Context, unit string) (map[string]string, error) {
	out := map[string]string{}
	err := m.view(func(t *txn) error {
		u, err := t.unit(unit)
		if err != nil {
			return err
		}
		a, err := t.app(u.App)
		if err != nil {
			return err
		}
		for k, v := range a.LeaderSettings {
			out[k] = v
		}
		return nil
	})
	return out, err
}

// SetLeaderSettings changes the legacy leader settings at once; "" deletes.
func (m *Model) SetLeaderSettings(_ context.Context, unit string, values map[string]string) error {
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
			return errf(NotLeader, "cannot write leadership settings: cannot write settings: not the leader")
		}
		changed := false
		if a.LeaderSettings == nil {
			a.LeaderSettings = map[string]string{}
		}
		for k, v := range values {
			old, had := a.LeaderSettings[k]
			if v == "" {
				delete(a.LeaderSettings, k)
				changed = changed || had
			} else {
				a.LeaderSettings[k] = v
				changed = changed || old != v
			}
		}
		if !changed {
			return nil
		}
		a.LeaderVersion++
		return t.putApp(a)
	})
}
