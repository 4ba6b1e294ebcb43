// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"maps"
	"strings"
)

// A relation across models is two relations, one in each model, that are kept
// alike: what a unit writes, and which units are in scope, is written into both
// in one transaction, under the names that the other model uses. Agents and hook
// contexts know nothing of it.

// crossEnd ties a relation to its other half.
type crossEnd struct {
	Model    string `json:"model"`    // of the other half
	Relation int    `json:"relation"` // the other half's id
	Offer    string `json:"offer"`    // its name, in the offering model
	Local    string `json:"local"`    // this model's application
	Remote   string `json:"remote"`   // what stands here for the other model's application
}

// other returns the transaction in another model; nil if there is no such model.
func (t *txn) other(name string) *txn {
	if name == t.m.info.Name {
		return t
	}
	if known := t.all[name]; known != nil {
		return known
	}
	m, err := t.m.store.Model(name)
	if err != nil {
		return nil
	}
	root, err := m.root(t.tx)
	if err != nil {
		return nil
	}
	o := &txn{m: m, tx: t.tx, root: root, now: t.now, touched: map[string]bool{}, all: t.all}
	t.all[name] = o
	return o
}

// half returns the other half of a relation across models; nil if it is none, or
// if the other half is gone.
func (t *txn) half(r *relationDoc) (*txn, *relationDoc, error) {
	if r.Cross == nil {
		return nil, nil, nil
	}
	o := t.other(r.Cross.Model)
	if o == nil {
		return nil, nil, nil
	}
	h, err := o.relation(r.Cross.Relation)
	if KindOf(err) == NotFound || err == nil && h.Cross == nil {
		return nil, nil, nil
	}
	return o, h, err
}

// abroad is the name, in the other model, of an application or unit of this one:
// ok is false if the name is not of this model's end.
func (r *relationDoc) abroad(h *relationDoc, name string) (string, bool) {
	app, ordinal, isUnit := strings.Cut(name, "/")
	if app != r.Cross.Local {
		return "", false
	}
	if isUnit {
		return h.Cross.Remote + "/" + ordinal, true
	}
	return h.Cross.Remote, true
}

// mirrorBag writes a databag into the other half, too.
func (t *txn) mirrorBag(relation int, owner string, b databag) error {
	r, err := t.relation(relation)
	if err != nil || r.Cross == nil {
		return err
	}
	o, h, err := t.half(r)
	if err != nil || h == nil {
		return err
	}
	name, ok := r.abroad(h, owner)
	if !ok {
		return nil
	}
	values := maps.Clone(b.values)
	for key, value := range values {
		values[key] = withSource(value, t.m.info.UUID)
	}
	o.touch(h.apps()...)
	return o.storeBag(h.ID, name, databag{version: b.version, values: values})
}

// withSource names the model of a secret whose URI goes to another model. Juju
// 3.6: a URI without a model is of the reader's own.
func withSource(value, uuid string) string {
	id, ok := strings.CutPrefix(value, "secret:")
	if !ok || SecretID(value) == "" || strings.HasPrefix(id, "/") {
		return value
	}
	return "secret://" + uuid + "/" + id
}

// mirrorScope makes a unit enter or leave the other half.
func (t *txn) mirrorScope(r *relationDoc, unit string, in bool) error {
	o, h, err := t.half(r)
	if err != nil || h == nil {
		return err
	}
	name, ok := r.abroad(h, unit)
	if !ok || h.InScope[name] == in {
		return nil
	}
	if h.InScope == nil {
		h.InScope = map[string]bool{}
	}
	if in {
		h.InScope[name] = true
	} else {
		delete(h.InScope, name)
	}
	if err := o.putRelation(h); err != nil {
		return err
	}
	return o.dropIfEmpty(h)
}

// mirrorDeath makes the other half die.
func (t *txn) mirrorDeath(r *relationDoc) error {
	o, h, err := t.half(r)
	if err != nil || h == nil || h.Life != Alive {
		return err
	}
	return o.killRelation(h)
}

// touchReader wakes a reader of a secret: an application of this model, or the one
// of another model that the name stands for.
func (t *txn) touchReader(app string) {
	r, err := get[remoteDoc](t, bucketRemotes, app)
	if err != nil || r == nil {
		t.touch(app)
		return
	}
	if o := t.other(r.Model); o != nil {
		o.touch(r.App)
	}
}

// viewAbroad is how a unit of this model looks at secrets of another one.
type viewAbroad struct {
	t    *txn
	unit *unitDoc // as that model names it
}

// abroad lists the models whose secrets the unit may see by a relation, each once
// for every name that it has there.
func (t *txn) abroad(u *unitDoc) ([]viewAbroad, error) {
	rels, err := t.relations(u.App)
	if err != nil {
		return nil, err
	}
	var out []viewAbroad
	seen := map[string]bool{}
	for _, r := range rels {
		o, h, err := t.half(r)
		if err != nil {
			return nil, err
		}
		if h == nil || seen[r.Cross.Model+"\x00"+h.Cross.Remote] {
			continue
		}
		seen[r.Cross.Model+"\x00"+h.Cross.Remote] = true
		name, _ := r.abroad(h, u.Name)
		out = append(out, viewAbroad{o, &unitDoc{Name: name, App: h.Cross.Remote, Ordinal: u.Ordinal}})
	}
	return out, nil
}

// findAbroad finds a secret of another model that was granted to the unit.
func (t *txn) findAbroad(u *unitDoc, q SecretRead) (viewAbroad, *secretDoc, error) {
	views, err := t.abroad(u)
	if err != nil {
		return viewAbroad{}, nil, err
	}
	for _, v := range views {
		s, err := v.t.findSecret(v.unit, q)
		if KindOf(err) == NotFound {
			continue
		}
		if err != nil {
			return viewAbroad{}, nil, err
		}
		return v, s, nil
	}
	return viewAbroad{}, nil, nil
}

// secretsAbroad fills in the secrets of other models that the unit reads.
func (t *txn) secretsAbroad(snap *Snapshot, u *unitDoc) error {
	views, err := t.abroad(u)
	if err != nil {
		return err
	}
	for _, v := range views {
		for _, id := range v.t.secretsBy(readerKey(v.unit.Name, "")) {
			s, err := v.t.secret(id)
			if err != nil {
				return err
			}
			if !s.mayRead(v.unit) {
				continue
			}
			if snap.Secrets == nil {
				snap.Secrets = map[string]SecretSnapshot{}
			}
			snap.Secrets[s.ID] = SecretSnapshot{Latest: s.Latest, Label: s.Consumers[v.unit.Name].Label}
		}
	}
	return nil
}

// checkGrantAbroad refuses what Juju 3.6 cannot grant across models: it is for
// the offering side, and for applications.
func (t *txn) checkGrantAbroad(r *relationDoc, unit bool) error {
	if r.Cross == nil {
		return nil
	}
	remote, err := t.remote(r.Cross.Remote)
	switch {
	case err != nil || remote == nil:
		return err
	case unit:
		return errf(Invalid, "sharing secrets with a unit across a cross model relation not supported")
	case !remote.Proxy:
		return errf(Invalid, "sharing consumer secrets across a cross model relation not supported")
	}
	return nil
}

// modelOf is the id of the model of the other side.
func (t *txn) modelOf(r *relationDoc) string {
	if r.Cross != nil {
		if remote, err := t.remote(r.Cross.Remote); err == nil && remote != nil {
			return remote.ModelUUID
		}
	}
	return t.m.info.UUID
}

// goalName is the name of a related application in goal-state. Juju 3.6: the URL
// of a consumed offer; a consumer is not shown to what it consumes.
func (t *txn) goalName(app string) (name string, show bool, err error) {
	r, err := t.remote(app)
	switch {
	case err != nil || r == nil:
		return app, err == nil, err
	case r.Proxy:
		return "", false, nil
	default:
		return r.URL, true, nil
	}
}
