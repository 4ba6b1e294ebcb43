// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"maps"
	"slices"
	"time"
)

// forceAfter is how long units of a model that is destroyed by force may take.
// Juju 3.6: each step a minute.
const forceAfter = time.Minute

// DestroyModelArgs say how a model is destroyed.
type DestroyModelArgs struct {
	// Force removes units that cannot end in order: those in error, and after
	// Wait all of them.
	Force bool          `json:"force,omitempty"`
	Wait  time.Duration `json:"wait,omitempty"` // 0 is a minute, below 0 no wait at all
	Since time.Time     `json:"since,omitzero"` // set by Destroy
}

// Destroy begins the end of a model: its applications are removed, as by
// RemoveApplication, with their storage. What is left of it goes with DestroyStep.
func (m *Model) Destroy(a DestroyModelArgs) error {
	var apps []string
	err := m.update(func(t *txn) error {
		d, err := t.model()
		if err != nil {
			return err
		}
		a.Since = t.now
		if d.Life != Alive {
			a.Since = d.Destroy.Since
		}
		if err := t.endAbroad(); err != nil {
			return err
		}
		d.Life, d.Destroy = Dying, a
		apps = keys(t, bucketApps, "")
		return t.putModel(d)
	})
	if err != nil {
		return err
	}
	for _, app := range apps {
		args := RemoveArgs{Force: true, DestroyStorage: true}
		if err := m.RemoveApplicationWith(app, args); err != nil && KindOf(err) != NotFound {
			return err
		}
	}
	return nil
}

// DestroyStep goes on with the end of a dying model: by force, units are removed
// that cannot end in order. It says whether nothing is left in the model, and else
// after which time to look again if nothing changes; 0 is never.
func (m *Model) DestroyStep() (empty bool, again time.Duration, err error) {
	s, err := m.Status()
	if err != nil || s.Life == Alive {
		return false, 0, err
	}
	if len(s.Applications) == 0 {
		return true, 0, nil
	}
	var a DestroyModelArgs
	err = m.view(func(t *txn) error {
		d, err := t.model()
		a = d.Destroy
		return err
	})
	if err != nil || !a.Force {
		return false, 0, err
	}
	wait := a.Wait
	if wait == 0 {
		wait = forceAfter
	}
	left := a.Since.Add(wait).Sub(m.now())
	for _, app := range s.Applications {
		for _, name := range slices.Sorted(maps.Keys(app.Units)) {
			if u := app.Units[name]; left > 0 && u.Error == "" {
				continue
			}
			if err := m.RemoveUnitNow(name); err != nil && KindOf(err) != NotFound {
				return false, 0, err
			}
		}
	}
	return false, max(left, time.Second), nil
}

// checkAlive refuses additions to a dying model.
func (t *txn) checkAlive() error {
	d, err := t.model()
	if err == nil && d.Life != Alive {
		err = errf(Invalid, "model %q is no longer alive", t.m.info.Name)
	}
	return err
}
