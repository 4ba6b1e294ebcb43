// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"maps"
	"reflect"
)

// storageUpgradeText is Juju's word on a charm whose storage differs.
const storageUpgradeText = `Juju on containers does not support updating storage on a statefulset.
The new charm's metadata contains updated storage declarations.
You'll need to deploy a new charm rather than upgrading if you need this change.
 not supported`

// Refresh replaces the charm of an application and returns its revision. Juju
// 3.6: relations other than peer relations must stay possible, storage must stay
// as it is declared, containers and options may change. Pods made before are
// outdated from then on.
func (m *Model) Refresh(a RefreshArgs) (int, error) {
	if err := m.keepArchive(a.Charm); err != nil {
		return 0, err
	}
	files, err := m.keepFiles(a.Charm, a.Resources)
	if err != nil {
		return 0, err
	}
	revision := 0
	err = m.update(func(t *txn) error {
		app, err := t.app(a.App)
		if err != nil {
			return err
		}
		if err := t.checkRefresh(app, a); err != nil {
			return err
		}
		if revision, err = t.nextRevision(a.Charm); err != nil {
			return err
		}
		if err := t.checkEndpointsKept(app, a.Charm, revision); err != nil {
			return err
		}
		if err := t.changeSettings(app, a); err != nil {
			return err
		}
		if err := put(t, bucketCharms, a.Charm.Hash, a.Charm); err != nil {
			return err
		}
		app.Charm, app.CharmRev = a.Charm.Hash, revision
		app.giveResources(a.Resources, files)
		maps.DeleteFunc(app.Resources, func(name, _ string) bool { return a.Charm.Meta.Resources[name].Name == "" })
		if err := t.putApp(app); err != nil {
			return err
		}
		if err := t.dropPeers(app.Name, a.Charm); err != nil {
			return err
		}
		return t.addPeers(app.Name, a.Charm)
	})
	return revision, err
}

// AttachResource gives resources anew. Juju 3.6: the charm's revision stays, pods
// are replaced.
func (m *Model) AttachResource(app string, c *Charm, resources map[string]string) error {
	files, err := m.keepFiles(c, resources)
	if err != nil {
		return err
	}
	return m.update(func(t *txn) error {
		a, err := t.app(app)
		if err != nil {
			return err
		}
		for _, name := range sortedKeys(resources) {
			if _, ok := c.Meta.Resources[name]; !ok {
				return errf(NotFound, "resource %q not found", name)
			}
		}
		a.giveResources(resources, files)
		return t.putApp(a)
	})
}

// giveResources merges resources and makes the pods of before outdated.
func (a *appDoc) giveResources(resources, files map[string]string) {
	merge := func(into *map[string]string, from map[string]string) {
		if *into == nil {
			*into = map[string]string{}
		}
		maps.Copy(*into, from)
	}
	merge(&a.Resources, resources)
	merge(&a.Files, files)
	a.Modified++
}

// checkRefresh refuses what cannot follow the old charm.
func (t *txn) checkRefresh(app *appDoc, a RefreshArgs) error {
	old, err := t.charm(app.Charm)
	if err != nil {
		return err
	}
	if old.Meta.Name != a.Charm.Meta.Name {
		return errf(Invalid, "cannot refresh %q to %q", old.Meta.Name, a.Charm.Meta.Name)
	}
	if len(old.Meta.Storage)+len(a.Charm.Meta.Storage) > 0 && !reflect.DeepEqual(old.Meta.Storage, a.Charm.Meta.Storage) {
		return errf(Invalid, "%s", storageUpgradeText)
	}
	if unmet, err := assumesUnmet(a.Charm.Meta.Assumes); err != nil {
		return err
	} else if unmet != "" {
		return errf(Invalid, "charm cannot be deployed: it requires %s", unmet)
	}
	if len(old.Bases) > 0 && len(a.Charm.Bases) == 0 {
		return errf(Invalid, "cannot downgrade from v2 charm format to v1")
	}
	if err := checkContainers(a.Charm.Meta); err != nil {
		return err
	}
	if err := checkMounts(a.Charm.Meta); err != nil {
		return err
	}
	given := maps.Clone(a.Resources)
	if given == nil {
		given = map[string]string{}
	}
	for name, value := range app.Resources {
		if _, anew := given[name]; !anew && a.Charm.Meta.Resources[name].Name != "" {
			given[name] = value
		}
	}
	return checkResources(a.Charm, given)
}

// changeSettings keeps the settings that the new charm still knows, with those
// given anew over them, and those of before for units that still run the old one.
func (t *txn) changeSettings(app *appDoc, a RefreshArgs) error {
	given, err := parseOptions(a.Charm, a.Config)
	if err != nil {
		return err
	}
	units, err := t.units(app.Name)
	if err != nil {
		return err
	}
	old := map[string]map[string]any{}
	for _, u := range units {
		state, err := get[UnitState](t, bucketAgents, u.Name)
		if err != nil {
			return err
		}
		if state == nil || state.Charm == "" {
			continue
		}
		if kept, ok := app.OldSettings[state.Charm]; ok {
			old[state.Charm] = kept
		}
	}
	old[app.Charm] = app.Settings
	kept := map[string]any{}
	for name, value := range app.Settings {
		if o, ok := a.Charm.Config[name]; ok && fitsType(o.Type, value) {
			kept[name] = value
		}
	}
	maps.Copy(kept, given)
	app.Settings, app.OldSettings = kept, old
	if a.Trust != nil {
		app.Trust = *a.Trust
	}
	return nil
}

// fitsType says whether a stored value is of an option's type.
func fitsType(kind string, value any) bool {
	switch value.(type) {
	case string:
		return kind == "string" || kind == "secret"
	case bool:
		return kind == "boolean"
	case nil:
		return true
	}
	return kind == "int" || kind == "float"
}

func (t *txn) checkEndpointsKept(app *appDoc, c *Charm, revision int) error {
	rels, err := t.relations(app.Name)
	if err != nil {
		return err
	}
	for _, r := range rels {
		end, _ := r.end(app.Name)
		if r.isPeer() || end.Name == implicitEndpoint {
			continue
		}
		if ep, ok := c.Meta.Endpoints[end.Name]; !ok || ep.Role != end.Role || ep.Interface != end.Interface {
			return errf(Invalid, "updating charm config: cannot upgrade application %q to charm %q: would break relation %q",
				app.Name, charmURL(c, revision), r)
		}
	}
	return nil
}

// dropPeers removes the peer relations that the new charm does not know, without
// hooks.
func (t *txn) dropPeers(app string, c *Charm) error {
	rels, err := t.relations(app)
	if err != nil {
		return err
	}
	for _, r := range rels {
		end, _ := r.end(app)
		if ep, ok := c.Meta.Endpoints[end.Name]; !r.isPeer() || ok && ep.Role == Peer && ep.Interface == end.Interface {
			continue
		}
		r.Life, r.InScope = Dying, nil
		if err := t.dropIfEmpty(r); err != nil {
			return err
		}
	}
	return nil
}

// unitCharm returns the charm that a unit runs, or is to run, and the settings
// for it. Juju 3.6: the agent of a pod that was made before charm or resources
// changed goes on with what it has until the pod is replaced.
func (t *txn) unitCharm(u *unitDoc, a *appDoc) (c *Charm, settings map[string]any, outdated bool, err error) {
	settings = a.Settings
	hash := a.Charm
	outdated = u.Pod.CharmVersion != 0 && u.Pod.CharmVersion != a.Modified
	if outdated {
		state, err := get[UnitState](t, bucketAgents, u.Name)
		if err != nil {
			return nil, nil, false, err
		}
		if state != nil && state.Charm != "" && state.Charm != a.Charm {
			hash = state.Charm
			if old, ok := a.OldSettings[hash]; ok {
				settings = old
			}
		}
	}
	c, err = t.charm(hash)
	return c, settings, outdated, err
}
