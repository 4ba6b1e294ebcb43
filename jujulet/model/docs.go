// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"fmt"
	"strconv"
	"time"
)

// appDoc is an application as stored.
type appDoc struct {
	Name     string `json:"name"`
	Charm    string `json:"charm"`
	CharmRev int    `json:"charm-rev"`
	// Modified counts the changes of charm and resources, from 1: pods of an
	// earlier count are replaced.
	Modified int `json:"modified"`
	// OldSettings are the settings by the hash of the charm that units in pods of
	// an earlier count still run.
	OldSettings map[string]map[string]any `json:"old-settings,omitempty"`
	// Storage are the complete directives; Claim tells the claims of this
	// application from those of an earlier one of its name.
	Storage   map[string]StorageSpec `json:"storage,omitempty"`
	Claim     string                 `json:"claim,omitempty"`
	Life      Life                   `json:"life"`
	Scale     int                    `json:"scale"`
	Settings  map[string]any         `json:"settings"` // what users have set
	Trust     bool                   `json:"trust"`
	Resources map[string]string      `json:"resources,omitempty"`
	// Files maps a file resource to the hash of its content.
	Files   map[string]string `json:"files,omitempty"`
	Address string            `json:"address,omitempty"`
	// ServiceID is the uid of its Service.
	ServiceID string `json:"service-id,omitempty"`
	// Token is in the name that other models know the application by.
	Token  string    `json:"token,omitempty"`
	Leader string    `json:"leader,omitempty"`
	Lease  time.Time `json:"lease"` // its end
	// LeaderSettings are those of the legacy tools leader-get and leader-set.
	LeaderSettings map[string]string `json:"leader-settings,omitempty"`
	LeaderVersion  int64             `json:"leader-version,omitempty"`
	// Status is set once a leader has used status-set --application.
	Status  *StatusValue `json:"status,omitempty"`
	Created time.Time    `json:"created"`
}

// leader returns the leader while its lease lasts.
func (a *appDoc) leader(now time.Time) string {
	if a.Leader != "" && now.Before(a.Lease) {
		return a.Leader
	}
	return ""
}

// unitDoc is a unit as stored.
type unitDoc struct {
	Name     string      `json:"name"`
	App      string      `json:"app"`
	Ordinal  int         `json:"ordinal"`
	Life     Life        `json:"life"`
	Workload StatusValue `json:"workload"`
	// CharmStatus says that the charm itself has used status-set.
	CharmStatus bool        `json:"charm-status,omitempty"`
	Agent       StatusValue `json:"agent"`
	Version     string      `json:"version,omitempty"`
	VersionSet  time.Time   `json:"version-set"`
	Ports       []string    `json:"ports,omitempty"`
	Pod         PodStatus   `json:"pod"`
	// PodLost says that what the agent last said was said in a pod that is gone.
	PodLost bool        `json:"pod-lost,omitempty"`
	Resolve ResolveMode `json:"resolve,omitempty"`
	Fires   []Fire      `json:"fires,omitempty"`
	Created time.Time   `json:"created"`
}

// relationDoc is a relation as stored.
type relationDoc struct {
	ID      int             `json:"id"`
	Ends    []EndpointRef   `json:"ends"` // provider first; one for a peer relation
	Life    Life            `json:"life"`
	InScope map[string]bool `json:"in-scope"`
	Created time.Time       `json:"created"`
	// Cross is set in a relation across models.
	Cross *crossEnd `json:"cross,omitempty"`
}

// end returns the application's own end.
func (r *relationDoc) end(app string) (EndpointRef, bool) {
	for _, e := range r.Ends {
		if e.App == app {
			return e, true
		}
	}
	return EndpointRef{}, false
}

// remote returns the other end; for a peer relation the same.
func (r *relationDoc) remote(app string) EndpointRef {
	for _, e := range r.Ends {
		if e.App != app {
			return e
		}
	}
	return r.Ends[0]
}

func (r *relationDoc) isPeer() bool { return len(r.Ends) == 1 }

func (r *relationDoc) apps() []string {
	out := make([]string, len(r.Ends))
	for i, e := range r.Ends {
		out[i] = e.App
	}
	return out
}

// String is Juju's relation key: requirer first.
func (r *relationDoc) String() string {
	if r.isPeer() {
		return r.Ends[0].String()
	}
	return r.Ends[1].String() + " " + r.Ends[0].String()
}

func unitName(app string, ordinal int) string { return app + "/" + strconv.Itoa(ordinal) }

func (t *txn) app(name string) (*appDoc, error) {
	a, err := get[appDoc](t, bucketApps, name)
	if err == nil && a == nil {
		err = notFound("application", name)
	}
	return a, err
}

func (t *txn) putApp(a *appDoc) error {
	t.touch(a.Name)
	return put(t, bucketApps, a.Name, a)
}

func (t *txn) unit(name string) (*unitDoc, error) {
	u, err := get[unitDoc](t, bucketUnits, name)
	if err == nil && u == nil {
		err = notFound("unit", name)
	}
	return u, err
}

func (t *txn) putUnit(u *unitDoc) error {
	t.touch(u.App)
	return put(t, bucketUnits, u.Name, u)
}

// units returns the units of an application by ordinal.
func (t *txn) units(app string) ([]*unitDoc, error) {
	var out []*unitDoc
	err := each(t, bucketUnits, app+"/", func(_ string, u *unitDoc) error {
		out = append(out, u)
		return nil
	})
	sortBy(out, func(u *unitDoc) int { return u.Ordinal })
	return out, err
}

// charm returns a charm of the model. Charms do not change: each is decoded once,
// and nobody writes to what is returned.
func (t *txn) charm(hash string) (*Charm, error) {
	if c, ok := t.m.charms.Load(hash); ok {
		return c.(*Charm), nil
	}
	c, err := get[Charm](t, bucketCharms, hash)
	if err == nil && c == nil {
		err = fmt.Errorf("cannot read charm %q: not in the model", hash)
	}
	if err != nil {
		return nil, err
	}
	t.m.charms.Store(hash, c)
	return c, nil
}

func (t *txn) relation(id int) (*relationDoc, error) {
	r, err := get[relationDoc](t, bucketRelations, idKey(uint64(id)))
	if err == nil && r == nil {
		err = errf(NotFound, "relation not found")
	}
	return r, err
}

func (t *txn) putRelation(r *relationDoc) error {
	t.touch(r.apps()...)
	return put(t, bucketRelations, idKey(uint64(r.ID)), r)
}

// relations returns an application's relations by id.
func (t *txn) relations(app string) ([]*relationDoc, error) {
	var out []*relationDoc
	for _, k := range keys(t, bucketByApp, app+"\x00") {
		r, err := t.relation(int(keyID(k)))
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}
