// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"maps"
	"slices"
	"time"
)

// severities orders workload statuses, as Juju derives an application's.
var severities = map[string]int{
	"error": 100, "blocked": 90, "maintenance": 80, "waiting": 70, "active": 60, "terminated": 50, "unknown": 40,
}

// Status reads everything that status verbs print.
func (m *Model) Status() (Status, error) {
	s := Status{
		Model: m.info, Applications: map[string]ApplicationStatus{}, Relations: []RelationStatus{}, Storage: []StorageStatus{},
	}
	err := m.view(func(t *txn) error {
		d, err := t.model()
		if err != nil {
			return err
		}
		s.ModelStatus = StatusValue{Status: "available", Since: d.Created}
		if d.Life != Alive {
			s.ModelStatus = StatusValue{Status: "destroying", Since: d.Destroy.Since}
		}
		s.Life = d.Life
		err = each(t, bucketApps, "", func(_ string, a *appDoc) error {
			v, err := t.appStatus(a)
			s.Applications[a.Name] = v
			return err
		})
		if err != nil {
			return err
		}
		if err := t.crossStatus(&s); err != nil {
			return err
		}
		stored, err := t.storageStatus()
		if err != nil {
			return err
		}
		s.Storage = append(s.Storage, stored...)
		return each(t, bucketRelations, "", func(_ string, r *relationDoc) error {
			v, err := t.relationStatus(r)
			s.Relations = append(s.Relations, v)
			return err
		})
	})
	return s, err
}

func (t *txn) appStatus(a *appDoc) (ApplicationStatus, error) {
	c, err := t.charm(a.Charm)
	if err != nil {
		return ApplicationStatus{}, err
	}
	s := ApplicationStatus{
		Name: a.Name, Life: a.Life, Scale: a.Scale, Charm: charmURL(c, a.CharmRev), CharmRev: a.CharmRev,
		CharmVersion: a.Modified, CharmHash: a.Charm, CharmName: c.Meta.Name, Address: a.Address, ProviderID: a.ServiceID, Trust: a.Trust,
		Resources: a.Resources, Leader: a.leader(t.now), Endpoints: c.Meta.Endpoints,
		Containers: c.Meta.Containers, Units: map[string]UnitStatus{}, Config: configValues(a, c),
	}
	if len(c.Bases) > 0 {
		s.Base = c.Bases[0]
	} else {
		s.Base = Base{Name: "ubuntu", Channel: "22.04/stable"}
	}
	units, err := t.units(a.Name)
	if err != nil {
		return s, err
	}
	var versionSet time.Time
	ports := map[string]bool{}
	for _, u := range units {
		v, err := t.unitStatus(u)
		if err != nil {
			return s, err
		}
		v.Leader = u.Name == s.Leader
		s.Units[u.Name] = v
		if slices.Contains([]string{"executing", "idle", "running"}, v.Agent.Status) {
			s.Current++
		}
		if u.Version != "" && !u.VersionSet.Before(versionSet) {
			s.Version, versionSet = u.Version, u.VersionSet
		}
		for _, p := range u.Ports {
			ports[p] = true
		}
	}
	s.Ports = slices.Sorted(maps.Keys(ports))
	s.Status = displayApp(a, units, deriveApp(a, units, s.Units))
	return s, nil
}

func charmURL(c *Charm, rev int) string {
	return "local:" + c.Meta.Name + "-" + itoa(rev)
}

func (t *txn) unitStatus(u *unitDoc) (UnitStatus, error) {
	agent, err := get[UnitState](t, bucketAgents, u.Name)
	if err != nil {
		return UnitStatus{}, err
	}
	if agent == nil {
		agent = &UnitState{}
	}
	s := UnitStatus{
		Name: u.Name, Ordinal: u.Ordinal, Life: u.Life, Agent: u.Agent, RawWorkload: u.Workload,
		Version: u.Version, Ports: u.Ports, Pod: u.Pod, Started: agent.Started, Dead: u.Life == Dead,
	}
	s.Idle = u.Agent.Status == "idle" && !u.PodLost
	s.Workload = displayWorkload(u)
	if endpoint, ok := u.Agent.Data["endpoint"].(string); ok && u.Agent.Status == "error" {
		s.Workload.Message += " for " + u.App + ":" + endpoint
	}
	if u.Agent.Status == "error" {
		s.Error, _ = u.Agent.Data["hook"].(string)
		s.Agent = StatusValue{Status: "idle", Since: u.Agent.Since}
	}
	return s, nil
}

// displayWorkload shows a hook error as the workload's status, and lets the pod's
// state override what the unit claims, as Juju does on Kubernetes.
func displayWorkload(u *unitDoc) StatusValue {
	if u.Agent.Status == "error" {
		return u.Agent
	}
	w := u.Workload
	override := StatusValue{Status: u.Pod.State, Message: u.Pod.Message, Data: w.Data, Since: w.Since}
	switch u.Pod.State {
	case "error", "blocked", "allocating":
		if slices.Contains([]string{"active", "waiting", "blocked"}, w.Status) {
			if u.Pod.State == "allocating" {
				override.Status = "waiting"
			}
			return override
		}
	case "waiting":
		if w.Status == "active" {
			return override
		}
	}
	return w
}

// deriveApp derives the application's status from its units by severity, unless a
// leader has ever set it.
func deriveApp(a *appDoc, units []*unitDoc, shown map[string]UnitStatus) StatusValue {
	if a.Status != nil {
		return *a.Status
	}
	derived := StatusValue{Status: "unknown", Since: a.Created}
	best := -1
	for _, u := range units {
		w := shown[u.Name].Workload
		if s := severities[w.Status]; s > best {
			best, derived = s, w
		}
	}
	return derived
}

// displayApp shows "installing agent" while no unit's agent has begun.
func displayApp(a *appDoc, units []*unitDoc, derived StatusValue) StatusValue {
	derived.Data = nil
	for _, u := range units {
		if u.Agent.Status != "allocating" {
			return derived
		}
	}
	if a.Scale > 0 && severities[derived.Status] < severities["waiting"] {
		return StatusValue{Status: "waiting", Message: "installing agent", Since: derived.Since}
	}
	return derived
}

func (t *txn) relationStatus(r *relationDoc) (RelationStatus, error) {
	s := RelationStatus{
		ID: r.ID, Life: r.Life, Status: "joined", Ends: r.Ends,
		InScope: slices.Sorted(maps.Keys(r.InScope)), Bags: map[string]map[string]string{},
	}
	if r.Life != Alive {
		s.Status = "removing"
	}
	if r.Cross != nil {
		remote, err := t.remote(r.Cross.Remote)
		if err != nil {
			return s, err
		}
		s.Cross, s.Proxy = true, remote != nil && remote.Proxy
	}
	prefix := idKey(uint64(r.ID))
	for _, owner := range keys(t, bucketSettings, prefix) {
		b, _, err := t.bag(r.ID, owner)
		if err != nil {
			return s, err
		}
		s.Bags[owner] = b.values
	}
	return s, nil
}
