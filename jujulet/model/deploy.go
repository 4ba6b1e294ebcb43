// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"maps"
	"strings"
)

// Deploy adds an application with its peer relations and units.
func (m *Model) Deploy(a DeployArgs) error {
	if a.Charm == nil {
		return errf(Invalid, "cannot deploy: no charm")
	}
	if a.App == "" {
		a.App = a.Charm.Meta.Name
	}
	settings, err := checkDeploy(a)
	if err != nil {
		return err
	}
	if err := m.keepArchive(a.Charm); err != nil {
		return err
	}
	files, err := m.keepFiles(a.Charm, a.Resources)
	if err != nil {
		return err
	}
	return m.update(func(t *txn) error {
		if err := t.checkAlive(); err != nil {
			return err
		}
		if old, err := get[appDoc](t, bucketApps, a.App); err != nil || old != nil {
			if err != nil {
				return err
			}
			return errf(Exists, "cannot add application %q: application already exists", a.App)
		}
		if r, err := t.remote(a.App); err != nil || r != nil {
			if err != nil {
				return err
			}
			return errf(Exists, "cannot add application %q: saas application with same name already exists", a.App)
		}
		if err := put(t, bucketCharms, a.Charm.Hash, a.Charm); err != nil {
			return err
		}
		app := &appDoc{
			Name: a.App, Charm: a.Charm.Hash, Life: Alive, Scale: a.Units, Settings: settings,
			Trust: a.Trust, Resources: a.Resources, Files: files, Created: t.now,
		}
		if err := t.putApp(app); err != nil {
			return err
		}
		if err := t.addPeers(a.App, a.Charm); err != nil {
			return err
		}
		return t.addUnits(app)
	})
}

// checkDeploy refuses what Juju refuses, and returns the parsed settings.
func checkDeploy(a DeployArgs) (map[string]any, error) {
	if !validName.MatchString(a.App) {
		return nil, errf(Invalid, "invalid application name %q", a.App)
	}
	if a.Units < 0 {
		return nil, errf(Invalid, "cannot deploy %d units", a.Units)
	}
	if unmet, err := assumesUnmet(a.Charm.Meta.Assumes); err != nil {
		return nil, err
	} else if unmet != "" {
		return nil, errf(Invalid, "charm cannot be deployed: it requires %s", unmet)
	}
	if err := checkMachinery(a.Charm.Meta); err != nil {
		return nil, err
	}
	if err := checkResources(a.Charm, a.Resources); err != nil {
		return nil, err
	}
	return parseOptions(a.Charm, a.Config)
}

// checkMachinery refuses what a charm needs and no pod of ours would have. Juju 3.6 refuses block storage too, and never
// makes a container without a resource; other storage is refused rather than left out, because the charm would wait for
// its hooks.
func checkMachinery(meta Meta) error {
	if names := sortedKeys(meta.Storage); len(names) > 0 {
		if meta.Storage[names[0]].Type == "block" {
			return errf(Invalid, "block storage %q is not supported for container charms", names[0])
		}
		return errf(Invalid, "charm %q needs storage %q: storage is not supported here yet", meta.Name, names[0])
	}
	for _, name := range sortedKeys(meta.Containers) {
		if meta.Containers[name].Resource == "" {
			return errf(Invalid, "container %q of charm %q names no resource: it cannot be made", name, meta.Name)
		}
	}
	return nil
}

func checkResources(c *Charm, given map[string]string) error {
	for _, name := range sortedKeys(given) {
		if _, ok := c.Meta.Resources[name]; !ok {
			return errf(Invalid, "unrecognized resource %q", name)
		}
	}
	var missing []string
	for _, name := range sortedKeys(c.Meta.Resources) {
		if c.Meta.Resources[name].Type == "oci-image" && given[name] == "" {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return errf(Invalid, "local charm missing OCI images for: %s", strings.Join(missing, ", "))
	}
	return nil
}

// addPeers makes the relations of the charm's peer endpoints that are missing.
func (t *txn) addPeers(app string, c *Charm) error {
	have := map[string]bool{}
	old, err := t.relations(app)
	if err != nil {
		return err
	}
	for _, r := range old {
		if r.isPeer() {
			have[r.Ends[0].Name] = true
		}
	}
	for _, name := range sortedKeys(c.Meta.Endpoints) {
		ep := c.Meta.Endpoints[name]
		if ep.Role != Peer || have[name] {
			continue
		}
		end := EndpointRef{App: app, Name: name, Interface: ep.Interface, Role: Peer}
		if _, err := t.addRelation(end); err != nil {
			return err
		}
	}
	return nil
}

// addUnits makes the units that the scale asks for and that are missing.
func (t *txn) addUnits(app *appDoc) error {
	for i := range app.Scale {
		name := unitName(app.Name, i)
		old, err := get[unitDoc](t, bucketUnits, name)
		if err != nil {
			return err
		}
		if old != nil {
			continue
		}
		u := &unitDoc{
			Name: name, App: app.Name, Ordinal: i, Life: Alive, Created: t.now,
			Workload: StatusValue{Status: "waiting", Message: "installing agent", Since: t.now},
			Agent:    StatusValue{Status: "allocating", Since: t.now},
		}
		if err := t.putUnit(u); err != nil {
			return err
		}
	}
	return nil
}

// Refresh replaces the charm of an application. Endpoints in use must stay.
func (m *Model) Refresh(app string, c *Charm, resources map[string]string) error {
	if err := m.keepArchive(c); err != nil {
		return err
	}
	files, err := m.keepFiles(c, resources)
	if err != nil {
		return err
	}
	return m.update(func(t *txn) error {
		a, err := t.app(app)
		if err != nil {
			return err
		}
		merged := map[string]string{}
		maps.Copy(merged, a.Resources)
		maps.Copy(merged, resources)
		for name := range merged {
			if _, ok := c.Meta.Resources[name]; !ok && resources[name] == "" {
				delete(merged, name)
			}
		}
		if err := checkResources(c, merged); err != nil {
			return err
		}
		if err := t.checkEndpointsKept(app, c); err != nil {
			return err
		}
		if err := put(t, bucketCharms, c.Hash, c); err != nil {
			return err
		}
		a.Charm, a.CharmRev, a.Resources = c.Hash, a.CharmRev+1, merged
		if a.Files == nil {
			a.Files = map[string]string{}
		}
		maps.Copy(a.Files, files)
		for name := range a.Settings {
			if _, ok := c.Config[name]; !ok {
				delete(a.Settings, name)
			}
		}
		if err := t.putApp(a); err != nil {
			return err
		}
		return t.addPeers(app, c)
	})
}

func (t *txn) checkEndpointsKept(app string, c *Charm) error {
	rels, err := t.relations(app)
	if err != nil {
		return err
	}
	for _, r := range rels {
		end, _ := r.end(app)
		ep, ok := c.Meta.Endpoints[end.Name]
		if !ok && end.Name == implicitEndpoint {
			continue
		}
		if !ok || ep.Role != end.Role || ep.Interface != end.Interface {
			return errf(Invalid, "cannot upgrade application %q to charm %q: would break relation %q", app, c.Meta.Name, r)
		}
	}
	return nil
}
