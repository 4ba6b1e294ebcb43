// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"crypto/rand"
	"encoding/hex"
	"time"

	"github.com/google/uuid"
)

// storageDoc is a storage instance as stored, with its filesystem and volume.
type storageDoc struct {
	ID     string `json:"id"` // data/0
	Number int    `json:"number"`
	Name   string `json:"name"`
	// App, Claim and Ordinal are whose claim it is: as with the claims of a
	// StatefulSet, the unit of that ordinal gets it back after scaling down and up,
	// an application of the same name that was deployed anew does not.
	App     string `json:"app"`
	Claim   string `json:"claim"`
	Ordinal int    `json:"ordinal"`
	// Unit is what it is attached to, "" if it is detached.
	Unit     string `json:"unit,omitempty"`
	Pool     string `json:"pool"`
	Size     uint64 `json:"size"`
	Location string `json:"location"`
	ReadOnly bool   `json:"read-only,omitempty"`
	UID      string `json:"uid"` // of the claim
	Life     Life   `json:"life"`
	// Status is pending, attached or detached.
	Status string    `json:"status"`
	Since  time.Time `json:"since"`
}

// volume is the name of the volume, and of its folder.
func (d *storageDoc) volume() string { return "pvc-" + d.UID }

func (d *storageDoc) set(status string, now time.Time) {
	if d.Status != status {
		d.Status, d.Since = status, now
	}
}

func (t *txn) storage(id string) (*storageDoc, error) {
	d, err := get[storageDoc](t, bucketStorage, id)
	if err == nil && d == nil {
		err = errf(NotFound, "storage instance %q not found", id)
	}
	return d, err
}

func (t *txn) putStorage(d *storageDoc) error {
	t.touch(d.App)
	return put(t, bucketStorage, d.ID, d)
}

// storages returns the storage instances that fit, by id.
func (t *txn) storages(fits func(d *storageDoc) bool) ([]*storageDoc, error) {
	var out []*storageDoc
	err := each(t, bucketStorage, "", func(_ string, d *storageDoc) error {
		if fits(d) {
			out = append(out, d)
		}
		return nil
	})
	return out, err
}

// unitStorage returns what is attached to a unit.
func (t *txn) unitStorage(unit string) ([]*storageDoc, error) {
	return t.storages(func(d *storageDoc) bool { return d.Unit == unit })
}

// newClaim makes the part of the claims' names that is the application's own.
func newClaim() string {
	var raw [4]byte
	rand.Read(raw[:])
	return hex.EncodeToString(raw[:])
}

// addStorage gives a new unit its storage: that of its ordinal if there is any
// left from an earlier unit of the same application, else new.
func (t *txn) addStorage(a *appDoc, u *unitDoc) error {
	if len(a.Storage) == 0 {
		return nil
	}
	c, err := t.charm(a.Charm)
	if err != nil {
		return err
	}
	left, err := t.storages(func(d *storageDoc) bool {
		return d.Unit == "" && d.App == a.Name && d.Claim == a.Claim && d.Ordinal == u.Ordinal && d.Life == Alive
	})
	if err != nil {
		return err
	}
	have := map[string]bool{}
	for _, d := range left {
		d.Unit, have[d.Name] = u.Name, true
		d.set("pending", t.now)
		if err := t.putStorage(d); err != nil {
			return err
		}
	}
	for _, name := range sortedKeys(a.Storage) {
		if a.Storage[name].Count == 0 || have[name] {
			continue
		}
		if err := t.newStorage(a, u, c.Meta.Storage[name]); err != nil {
			return err
		}
	}
	return nil
}

// newStorage makes an instance. Juju 3.6: one sequence numbers the instances of
// all storage of a model.
func (t *txn) newStorage(a *appDoc, u *unitDoc, declared Storage) error {
	m, err := t.model()
	if err != nil {
		return err
	}
	spec := a.Storage[declared.Name]
	d := &storageDoc{
		ID: declared.Name + "/" + itoa(m.NextStorage), Number: m.NextStorage, Name: declared.Name,
		App: a.Name, Claim: a.Claim, Ordinal: u.Ordinal, Unit: u.Name, Pool: spec.Pool, Size: spec.Size,
		Location: declared.mountPoint(), ReadOnly: declared.ReadOnly, UID: uuid.NewString(), Life: Alive,
		Status: "pending", Since: t.now,
	}
	m.NextStorage++
	if err := t.putModel(m); err != nil {
		return err
	}
	return t.putStorage(d)
}

// mountStorage records that the pod of a unit has its storage.
func (t *txn) mountStorage(unit string) error {
	docs, err := t.unitStorage(unit)
	if err != nil {
		return err
	}
	for _, d := range docs {
		if d.Status != "pending" {
			continue
		}
		d.set("attached", t.now)
		if err := t.putStorage(d); err != nil {
			return err
		}
	}
	return nil
}

// detachStorage takes an instance from its unit, after storage-detaching. What
// is to be destroyed stays until the pod is gone.
func (t *txn) detachStorage(u *unitDoc, id string) error {
	d, err := get[storageDoc](t, bucketStorage, id)
	if err != nil || d == nil || d.Unit != u.Name || d.Life != Alive {
		return err
	}
	d.Unit = ""
	d.set("detached", t.now)
	return t.putStorage(d)
}

// releaseStorage is called when a unit and its pod are gone: what was to be
// destroyed is, the rest stays, detached.
func (t *txn) releaseStorage(unit string) error {
	docs, err := t.unitStorage(unit)
	if err != nil {
		return err
	}
	for _, d := range docs {
		if d.Life != Alive {
			if err := del(t, bucketStorage, d.ID); err != nil {
				return err
			}
			continue
		}
		d.Unit = ""
		d.set("detached", t.now)
		if err := t.putStorage(d); err != nil {
			return err
		}
	}
	return nil
}

// destroyStorage marks all storage of an application: it goes with the units,
// what is detached at once.
func (t *txn) destroyStorage(a *appDoc) error {
	docs, err := t.storages(func(d *storageDoc) bool { return d.App == a.Name && d.Claim == a.Claim })
	if err != nil {
		return err
	}
	for _, d := range docs {
		if d.Unit == "" {
			if err := del(t, bucketStorage, d.ID); err != nil {
				return err
			}
			continue
		}
		d.Life = Dying
		if err := t.putStorage(d); err != nil {
			return err
		}
	}
	return nil
}

// RemoveStorage removes detached storage with its content. Juju 3.6: what is
// attached is refused.
func (m *Model) RemoveStorage(id string) error {
	return m.update(func(t *txn) error {
		d, err := t.storage(id)
		if err != nil {
			return err
		}
		if d.Unit != "" {
			return errf(Invalid, "storage is attached")
		}
		t.touch(d.App)
		return del(t, bucketStorage, id)
	})
}

// storageStatus lists all storage as status shows it, by number.
func (t *txn) storageStatus() ([]StorageStatus, error) {
	var out []StorageStatus
	err := each(t, bucketStorage, "", func(_ string, d *storageDoc) error {
		s := StorageStatus{
			ID: d.ID, Number: d.Number, Name: d.Name, Kind: "filesystem", Unit: d.Unit, Life: d.Life, Pool: d.Pool,
			Size: d.Size, Location: d.Location, ReadOnly: d.ReadOnly, Volume: d.volume(), ClaimUID: d.UID,
			Claim:  d.App + "-" + d.Name + "-" + d.Claim + "-" + d.App + "-" + itoa(d.Ordinal),
			Status: StatusValue{Status: d.Status, Since: d.Since},
		}
		if d.Status == "attached" {
			s.Status.Message = "Successfully provisioned volume " + d.volume()
		}
		out = append(out, s)
		return nil
	})
	sortBy(out, func(s StorageStatus) int { return s.Number })
	return out, err
}
