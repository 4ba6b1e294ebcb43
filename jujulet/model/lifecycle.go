// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"context"
	"slices"
)

// Scale sets the number of units of an application. Surplus units, the highest
// ordinals first, begin to die; missing ones are made.
func (m *Model) Scale(app string, units int) error {
	if units < 0 {
		return errf(Invalid, "scale must be a positive integer")
	}
	return m.update(func(t *txn) error {
		a, err := t.scaledApp(app)
		if err != nil {
			return err
		}
		return t.scale(a, units)
	})
}

// ChangeScale adds to the number of units, or takes from it, and returns the new one.
func (m *Model) ChangeScale(app string, change int) (int, error) {
	units := 0
	err := m.update(func(t *txn) error {
		a, err := t.scaledApp(app)
		if err != nil {
			return err
		}
		if units = a.Scale + change; units < 0 {
			return errf(Invalid, "cannot remove more units than currently exist not valid")
		}
		return t.scale(a, units)
	})
	return units, err
}

// scaledApp is an application that is to be scaled; Juju 3.6 has its own words for one that is not there.
func (t *txn) scaledApp(name string) (*appDoc, error) {
	a, err := t.app(name)
	if KindOf(err) == NotFound {
		return nil, errf(NotFound, "application %q does not exist", name)
	}
	return a, err
}

func (t *txn) scale(a *appDoc, units int) error {
	if a.Life != Alive {
		return errf(Invalid, "application %q is no longer alive", a.Name)
	}
	a.Scale = units
	if err := t.putApp(a); err != nil {
		return err
	}
	all, err := t.units(a.Name)
	if err != nil {
		return err
	}
	slices.Reverse(all)
	for _, u := range all {
		if u.Ordinal >= units && u.Life == Alive {
			u.Life = Dying
			if err := t.putUnit(u); err != nil {
				return err
			}
		}
	}
	return t.addUnits(a)
}

// RemoveApplication begins the removal of an application: its relations and
// units die, and it goes with the last of them. Its storage is detached and stays.
// One with an offer that is in use is refused.
func (m *Model) RemoveApplication(app string) error {
	return m.RemoveApplicationWith(app, RemoveArgs{})
}

// RemoveArgs say how an application is removed.
type RemoveArgs struct {
	// Force ends the use of its offers.
	Force bool
	// DestroyStorage destroys its storage with its units.
	DestroyStorage bool
}

// RemoveApplicationWith is RemoveApplication in other ways.
func (m *Model) RemoveApplicationWith(app string, args RemoveArgs) error {
	return m.update(func(t *txn) error {
		a, err := t.app(app)
		if err != nil {
			return err
		}
		if err := t.checkOffers(app, args.Force); err != nil {
			return err
		}
		a.Life, a.Scale = Dying, 0
		if err := t.putApp(a); err != nil {
			return err
		}
		if args.DestroyStorage {
			if err := t.destroyStorage(a); err != nil {
				return err
			}
		}
		all, err := t.units(app)
		if err != nil {
			return err
		}
		for _, u := range all {
			if u.Life == Alive {
				u.Life = Dying
				if err := t.putUnit(u); err != nil {
					return err
				}
			}
		}
		rels, err := t.relations(app)
		if err != nil {
			return err
		}
		for _, r := range rels {
			if r.isPeer() {
				continue
			}
			if err := t.killRelation(r); err != nil {
				return err
			}
		}
		return t.reap(app)
	})
}

// MarkDead records that a dying unit has run its last hook: it leaves every
// relation and gives up leadership. Its pod can go; then comes UnitGone.
func (m *Model) MarkDead(_ context.Context, unit string) error {
	return m.update(func(t *txn) error {
		u, err := t.unit(unit)
		if err != nil {
			return err
		}
		if u.Life == Alive {
			return errf(Invalid, "unit %q is alive", unit)
		}
		return t.markDead(u)
	})
}

func (t *txn) markDead(u *unitDoc) error {
	if u.Life == Dead {
		return nil
	}
	u.Life = Dead
	if err := t.putUnit(u); err != nil {
		return err
	}
	a, err := t.app(u.App)
	if err != nil {
		return err
	}
	if a.Leader == u.Name {
		a.Leader = ""
		if err := t.putApp(a); err != nil {
			return err
		}
	}
	rels, err := t.relations(u.App)
	if err != nil {
		return err
	}
	for _, r := range rels {
		if err := t.leaveScope(u.Name, r); err != nil {
			return err
		}
	}
	return nil
}

// UnitGone removes a dead unit whose pod has ended, and with the last one of a
// dying application the application. It is harmless for a unit that is not dead.
// If the scale has grown again meanwhile, a new unit takes the name.
func (m *Model) UnitGone(unit string) error {
	return m.update(func(t *txn) error {
		u, err := get[unitDoc](t, bucketUnits, unit)
		if err != nil || u == nil || u.Life != Dead {
			return err
		}
		return t.removeUnit(u)
	})
}

// RemoveUnitNow forgets a unit without its hooks: its pod will never be back.
func (m *Model) RemoveUnitNow(unit string) error {
	return m.update(func(t *txn) error {
		u, err := t.unit(unit)
		if err != nil {
			return err
		}
		if err := t.markDead(u); err != nil {
			return err
		}
		return t.removeUnit(u)
	})
}

func (t *txn) removeUnit(u *unitDoc) error {
	t.touch(u.App)
	for _, b := range []string{bucketUnits, bucketAgents, bucketState} {
		if err := del(t, b, u.Name); err != nil {
			return err
		}
	}
	if err := delPrefix(t, bucketHistory, u.Name+"\x00"); err != nil {
		return err
	}
	if err := t.dropUnitSecrets(u.Name); err != nil {
		return err
	}
	if err := t.cancelActions(u.Name); err != nil {
		return err
	}
	if err := t.releaseStorage(u.Name); err != nil {
		return err
	}
	a, err := t.app(u.App)
	if err != nil {
		return err
	}
	if a.Life == Alive {
		return t.addUnits(a)
	}
	return t.reap(u.App)
}

// reap removes dying applications that have no unit and no regular relation left.
func (t *txn) reap(apps ...string) error {
	for _, name := range apps {
		a, err := get[appDoc](t, bucketApps, name)
		if err != nil {
			return err
		}
		if err := t.reapRemote(name); err != nil {
			return err
		}
		if a == nil || a.Life == Alive || len(keys(t, bucketUnits, name+"/")) > 0 {
			continue
		}
		rels, err := t.relations(name)
		if err != nil {
			return err
		}
		busy := false
		for _, r := range rels {
			busy = busy || !r.isPeer()
		}
		if busy {
			continue
		}
		if err := t.removeApp(a, rels); err != nil {
			return err
		}
	}
	return nil
}

func (t *txn) removeApp(a *appDoc, peers []*relationDoc) error {
	t.touch(a.Name)
	if err := del(t, bucketApps, a.Name); err != nil {
		return err
	}
	if err := delPrefix(t, bucketHistory, a.Name+"\x00"); err != nil {
		return err
	}
	for _, r := range peers {
		r.Life, r.InScope = Dying, nil
		if err := t.dropIfEmpty(r); err != nil {
			return err
		}
	}
	if err := t.dropGrants(func(g grantDoc) bool { return g.Relation == noRelation && g.Subject == a.Name }); err != nil {
		return err
	}
	return t.dropAppSecrets(a.Name)
}
