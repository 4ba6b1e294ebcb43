// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"slices"
	"strconv"
	"strings"
)

// SetPodStatus reports a unit's pod. Pods report their address before their
// agent starts.
func (m *Model) SetPodStatus(unit string, p PodStatus) error {
	return m.update(func(t *txn) error {
		u, err := t.unit(unit)
		if err != nil {
			return err
		}
		if u.Pod == p {
			return nil
		}
		if u.Pod.UID != "" && u.Pod.UID != p.UID {
			u.PodLost = true
		}
		u.Pod = p
		if p.Address != "" {
			if err := t.mountStorage(unit); err != nil {
				return err
			}
		}
		return t.putUnit(u)
	})
}

// SetServiceAddress reports the address of the application's Service: its
// ClusterIP, or its load-balancer address.
func (m *Model) SetServiceAddress(app, address string) error {
	return m.update(func(t *txn) error {
		a, err := t.app(app)
		if err != nil {
			return err
		}
		if a.Address == address {
			return nil
		}
		a.Address = address
		return t.putApp(a)
	})
}

// SetServiceID reports the uid of the application's Service.
func (m *Model) SetServiceID(app, id string) error {
	return m.update(func(t *txn) error {
		a, err := t.app(app)
		if err != nil {
			return err
		}
		a.ServiceID = id
		return put(t, bucketApps, a.Name, a)
	})
}

// Resolve resolves the failed hook of a unit: ResolveRetry runs it now,
// ResolveSkip takes it for successful.
func (m *Model) Resolve(unit string, mode ResolveMode) error {
	return m.update(func(t *txn) error {
		u, err := t.unit(unit)
		if err != nil {
			return err
		}
		if u.Agent.Status != "error" {
			return errf(Invalid, "unit %q is not in an error state", unit)
		}
		if u.Resolve != ResolveNone {
			return errf(Invalid, "already resolved")
		}
		u.Resolve = mode
		return t.putUnit(u)
	})
}

// Fire makes the unit run a hook once more, as soon as nothing else is queued. (A
// verb that Juju has not.) args may give "relation" ("db:3"), "remote" (a unit or
// an application), "departing", "notice-id", "notice-key", "notice-type",
// "check", "secret", "label", "revision" and "storage".
func (m *Model) Fire(unit, hook string, args map[string]string) error {
	return m.update(func(t *txn) error {
		u, err := t.unit(unit)
		if err != nil {
			return err
		}
		a, err := t.app(u.App)
		if err != nil {
			return err
		}
		c, err := t.charm(a.Charm)
		if err != nil {
			return err
		}
		h, err := t.fireHook(u, c, hook, args)
		if err != nil {
			return err
		}
		d, err := t.model()
		if err != nil {
			return err
		}
		d.NextFire++
		if err := t.putModel(d); err != nil {
			return err
		}
		u.Fires = append(u.Fires, Fire{ID: d.NextFire, Hook: h})
		return t.putUnit(u)
	})
}

// The kinds of hooks, by what their names start with.
var (
	unitKinds     = []string{"install", "start", "config-changed", "upgrade-charm", "stop", "remove", "leader-elected", "leader-settings-changed", "update-status"}
	relationKinds = []string{"relation-created", "relation-joined", "relation-changed", "relation-departed", "relation-broken"}
	workloadKinds = []string{"pebble-ready", "pebble-custom-notice", "pebble-check-failed", "pebble-check-recovered"}
	storageKinds  = []string{"storage-attached", "storage-detaching"}
	secretKinds   = []string{"secret-changed", "secret-expired", "secret-remove", "secret-rotate"}
)

func (t *txn) fireHook(u *unitDoc, c *Charm, hook string, args map[string]string) (HookInfo, error) {
	if slices.Contains(unitKinds, hook) {
		return HookInfo{Kind: hook}, nil
	}
	if slices.Contains(secretKinds, hook) {
		revision, _ := strconv.Atoi(args["revision"])
		id := strings.TrimPrefix(args["secret"], "secret:")
		if _, err := t.secret(id); err != nil {
			return HookInfo{}, err
		}
		return HookInfo{Kind: hook, SecretID: id, SecretLabel: args["label"], SecretRevision: revision}, nil
	}
	for _, kind := range workloadKinds {
		name, ok := strings.CutSuffix(hook, "-"+kind)
		if _, known := c.Meta.Containers[name]; ok && known {
			h := HookInfo{Kind: kind, Workload: name, CheckName: args["check"]}
			if kind == "pebble-custom-notice" {
				h.NoticeID, h.NoticeKey, h.NoticeType = args["notice-id"], args["notice-key"], "custom"
			}
			return h, nil
		}
	}
	for _, kind := range storageKinds {
		name, ok := strings.CutSuffix(hook, "-"+kind)
		if _, known := c.Meta.Storage[name]; ok && known {
			return t.fireStorage(u, name, kind, args["storage"])
		}
	}
	for _, kind := range relationKinds {
		name, ok := strings.CutSuffix(hook, "-"+kind)
		if _, known := c.Meta.Endpoints[name]; ok && known {
			return t.fireRelation(u, name, kind, args)
		}
	}
	return HookInfo{}, errf(NotFound, "charm of unit %q has no hook %q", u.Name, hook)
}

// fireStorage completes a storage hook; without an id the unit's only instance of
// that name is meant.
func (t *txn) fireStorage(u *unitDoc, name, kind, id string) (HookInfo, error) {
	docs, err := t.unitStorage(u.Name)
	if err != nil {
		return HookInfo{}, err
	}
	for _, d := range docs {
		if d.Name == name && (id == "" || d.ID == id) {
			return HookInfo{Kind: kind, StorageID: d.ID}, nil
		}
	}
	return HookInfo{}, errf(NotFound, "unit %q has no such storage of %q", u.Name, name)
}

// fireRelation completes a relation hook; without "relation" the only relation of
// the endpoint is meant.
func (t *txn) fireRelation(u *unitDoc, endpoint, kind string, args map[string]string) (HookInfo, error) {
	rels, err := t.relations(u.App)
	if err != nil {
		return HookInfo{}, err
	}
	_, number, _ := strings.Cut(args["relation"], ":")
	var hit *relationDoc
	for _, r := range rels {
		own, _ := r.end(u.App)
		if own.Name != endpoint || (number != "" && itoa(r.ID) != number) {
			continue
		}
		if hit != nil {
			return HookInfo{}, errf(Invalid, "endpoint %q has several relations: name one", endpoint)
		}
		hit = r
	}
	if hit == nil {
		return HookInfo{}, errf(NotFound, "endpoint %q has no such relation", endpoint)
	}
	h := HookInfo{Kind: kind, Endpoint: endpoint, RelationID: hit.ID, RemoteApp: hit.remote(u.App).App}
	if strings.Contains(args["remote"], "/") {
		h.RemoteUnit = args["remote"]
	}
	needsUnit := kind == "relation-joined" || kind == "relation-departed"
	if needsUnit && h.RemoteUnit == "" {
		return HookInfo{}, errf(Invalid, "hook %q needs a remote unit", endpoint+"-"+kind)
	}
	if kind == "relation-departed" {
		if h.DepartingUnit = args["departing"]; h.DepartingUnit == "" {
			h.DepartingUnit = h.RemoteUnit
		}
	}
	return h, nil
}
