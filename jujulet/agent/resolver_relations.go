// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package agent

import (
	"cmp"
	"maps"
	"slices"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

func sorted[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// relationOrder lists the relations in the order in which they are looked at:
// Juju's is random. With peersLast, peer relations come after the others.
func (v *view) relationOrder(peersLast bool) []int {
	var regular, peers []int
	for _, id := range sorted(v.snap.Relations) {
		if peersLast && v.snap.Relations[id].Role == model.Peer {
			peers = append(peers, id)
		} else {
			regular = append(regular, id)
		}
	}
	if v.order != nil {
		v.order(regular)
		v.order(peers)
	}
	return append(regular, peers...)
}

// relations picks the next hook of the first relation that owes one.
func (v *view) relations() (model.HookInfo, bool) {
	if v.state.Kind != model.OpContinue {
		return model.HookInfo{}, false
	}
	for _, id := range v.relationOrder(true) {
		r := v.snap.Relations[id]
		st := v.state.Relations[id]
		if st == nil || !st.Created || st.Broken || !v.known(r) {
			continue
		}
		broken := v.snap.Life != model.Alive || r.Life != model.Alive
		if h, ok := v.nextRelationHook(r, st, broken); ok {
			return h, true
		}
	}
	return model.HookInfo{}, false
}

// nextRelationHook applies the rules of one relation, in Juju's order. In a
// relation that ends, every member counts as gone.
func (v *view) nextRelationHook(r model.RelationSnapshot, st *model.RelationState, broken bool) (model.HookInfo, bool) {
	hook := func(kind, unit string, version int64) (model.HookInfo, bool) {
		return model.HookInfo{
			Kind: kind, Endpoint: r.Endpoint, RelationID: r.ID, RemoteUnit: unit, RemoteApp: r.RemoteApp, Version: version,
		}, true
	}
	members := r.Members
	if broken {
		members = nil
	}
	if u := st.ChangedPending; u != "" {
		version, ok := members[u]
		if !ok {
			version = st.Members[u]
		}
		return hook("relation-changed", u, version)
	}
	for _, u := range sorted(st.Members) {
		if _, ok := members[u]; ok {
			continue
		}
		h, ok := hook("relation-departed", u, 0)
		h.DepartingUnit = u
		if v.snap.Life != model.Alive || v.snap.AppLife != model.Alive {
			h.DepartingUnit = v.snap.Unit
		}
		return h, ok
	}
	if broken {
		if r.Role == model.Peer {
			return model.HookInfo{}, false
		}
		return hook("relation-broken", "", 0)
	}
	if r.AppVersion != 0 && st.Apps[r.RemoteApp] != r.AppVersion {
		return hook("relation-changed", "", r.AppVersion)
	}
	for _, u := range sorted(members) {
		if _, ok := st.Members[u]; !ok {
			return hook("relation-joined", u, members[u])
		}
	}
	for _, u := range sorted(members) {
		if st.Members[u] != members[u] {
			return hook("relation-changed", u, members[u])
		}
	}
	return model.HookInfo{}, false
}

// commitHook returns the persisted state after the hook's success (or skip); it
// changes nothing of its argument.
func commitHook(s *model.UnitState, h model.HookInfo, snap *model.Snapshot) *model.UnitState {
	n := cloneState(s)
	n.Kind, n.Step, n.Hook = model.OpContinue, model.StepPending, nil
	queue := func(kind string) {
		n.Kind, n.Step, n.Hook = model.OpRunHook, model.StepQueued, &model.HookInfo{Kind: kind}
	}
	for id := range n.Relations {
		if _, ok := snap.Relations[id]; !ok {
			delete(n.Relations, id)
		}
	}
	if h.Fired {
		return n
	}
	switch h.Kind {
	case "install":
		n.Installed, n.Removed = true, false
	case "start":
		n.Started, n.Stopped = true, false
	case "stop":
		n.Stopped = true
	case "remove":
		n.Removed = true
	case "upgrade-charm":
		queue("config-changed")
	case "config-changed":
		n.ConfigHash, n.TrustHash, n.AddressHash = snap.ConfigHash, snap.TrustHash, snap.AddressHash
		if !n.Started {
			queue("start")
		}
	case "storage-attached":
		if !slices.Contains(n.Storage, h.StorageID) {
			n.Storage = append(slices.Clone(n.Storage), h.StorageID)
		}
	case "storage-detaching":
		n.Storage = slices.DeleteFunc(slices.Clone(n.Storage), func(id string) bool { return id == h.StorageID })
	case "secret-changed":
		if n.Secrets == nil {
			n.Secrets = map[string]int{}
		}
		n.Secrets[h.SecretID] = int(h.Version)
	case "secret-remove":
		if n.Obsolete == nil {
			n.Obsolete = map[string][]int{}
		}
		n.Obsolete[h.SecretID] = append(slices.Clone(n.Obsolete[h.SecretID]), h.SecretRevision)
	}
	if h.Endpoint != "" {
		commitRelation(n, h)
	}
	return n
}

// commitRelation records what a relation hook has delivered. It is idempotent.
func commitRelation(n *model.UnitState, h model.HookInfo) {
	if n.Relations == nil {
		n.Relations = map[int]*model.RelationState{}
	}
	st := n.Relations[h.RelationID]
	if st == nil {
		st = &model.RelationState{}
		n.Relations[h.RelationID] = st
	}
	switch h.Kind {
	case "relation-created":
		st.Created = true
	case "relation-joined":
		set(&st.Members, h.RemoteUnit, h.Version)
		st.ChangedPending = h.RemoteUnit
	case "relation-changed":
		if h.RemoteUnit == "" {
			set(&st.Apps, h.RemoteApp, h.Version)
			return
		}
		set(&st.Members, h.RemoteUnit, h.Version)
		if st.ChangedPending == h.RemoteUnit {
			st.ChangedPending = ""
		}
	case "relation-departed":
		delete(st.Members, h.RemoteUnit)
		if st.ChangedPending == h.RemoteUnit {
			st.ChangedPending = ""
		}
	case "relation-broken":
		st.Broken, st.Members, st.ChangedPending = true, nil, ""
	}
}

func set(m *map[string]int64, k string, v int64) {
	if *m == nil {
		*m = map[string]int64{}
	}
	(*m)[k] = v
}

// cloneState copies a state deeply enough to change it.
func cloneState(s *model.UnitState) *model.UnitState {
	n := *s
	n.Relations = map[int]*model.RelationState{}
	for id, r := range s.Relations {
		c := *r
		c.Members, c.Apps = maps.Clone(r.Members), maps.Clone(r.Apps)
		n.Relations[id] = &c
	}
	n.Storage = slices.Clone(s.Storage)
	n.Secrets, n.Obsolete = maps.Clone(s.Secrets), maps.Clone(s.Obsolete)
	if s.Hook != nil {
		h := *s.Hook
		n.Hook = &h
	}
	return &n
}
