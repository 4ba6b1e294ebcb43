// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

// Deploy adds an application with its peer relations and units.
func (m *Model) Deploy(a DeployArgs) error {
	if a.Charm == nil {
		return errf(Invalid, "cannot deploy: no charm")
	}
	if a.App == "" {
		a.App = a.Charm.Meta.Name
	}
	settings, specs, err := checkDeploy(a)
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
		revision, err := t.nextRevision(a.Charm)
		if err != nil {
			return err
		}
		app := &appDoc{
			Name: a.App, Charm: a.Charm.Hash, CharmRev: revision, Modified: 1, Life: Alive, Scale: a.Units,
			Settings: settings, Trust: a.Trust, Resources: a.Resources, Files: files, Storage: specs,
			Claim: newClaim(), Created: t.now,
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

// nextRevision numbers a local charm. Juju 3.6: one sequence for all charms of a
// name in a model, which begins with what the charm's file "revision" says.
func (t *txn) nextRevision(c *Charm) (int, error) {
	d, err := t.model()
	if err != nil {
		return 0, err
	}
	if d.CharmRevs == nil {
		d.CharmRevs = map[string]int{}
	}
	revision := max(d.CharmRevs[c.Meta.Name], c.Revision)
	d.CharmRevs[c.Meta.Name] = revision + 1
	return revision, t.putModel(d)
}

// checkDeploy refuses what Juju refuses, and returns the parsed settings and the
// complete storage directives.
func checkDeploy(a DeployArgs) (map[string]any, map[string]StorageSpec, error) {
	if !validName.MatchString(a.App) {
		return nil, nil, errf(Invalid, "invalid application name %q", a.App)
	}
	if a.Units < 0 {
		return nil, nil, errf(Invalid, "cannot deploy %d units", a.Units)
	}
	if unmet, err := assumesUnmet(a.Charm.Meta.Assumes); err != nil {
		return nil, nil, err
	} else if unmet != "" {
		return nil, nil, errf(Invalid, "charm cannot be deployed: it requires %s", unmet)
	}
	specs, err := completeSpecs(a.Charm.Meta, a.Storage)
	if err != nil {
		return nil, nil, err
	}
	if err := checkContainers(a.Charm.Meta); err != nil {
		return nil, nil, err
	}
	if err := checkResources(a.Charm, a.Resources); err != nil {
		return nil, nil, err
	}
	settings, err := parseOptions(a.Charm, a.Config)
	return settings, specs, err
}

// checkContainers refuses containers that cannot be made. Juju 3.6 accepts one
// without a resource and never makes it.
func checkContainers(meta Meta) error {
	for _, name := range sortedKeys(meta.Containers) {
		if meta.Containers[name].Resource == "" {
			return errf(Invalid, "container %q of charm %q names no resource: it cannot be made", name, meta.Name)
		}
	}
	return nil
}

// checkResources refuses resources that the charm does not have. That an image is missing is refused by Juju's client,
// not by its controller; here containers without one run on this machine's files.
func checkResources(c *Charm, given map[string]string) error {
	for _, name := range sortedKeys(given) {
		if _, ok := c.Meta.Resources[name]; !ok {
			return errf(Invalid, "unrecognized resource %q", name)
		}
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
		if err := t.addStorage(app, u); err != nil {
			return err
		}
	}
	return nil
}
