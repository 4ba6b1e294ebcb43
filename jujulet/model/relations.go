// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"fmt"
	"strings"
)

// implicitEndpoint is what every charm provides without saying so.
const implicitEndpoint = "juju-info"

// Integrate relates two endpoints, each "app" or "app:endpoint", and returns
// the relation's id.
func (m *Model) Integrate(a, b string) (int, error) {
	var id int
	err := m.update(func(t *txn) error {
		ends, err := t.inferEnds(a, b)
		if err != nil {
			return err
		}
		id, err = t.integrate(ends)
		return err
	})
	return id, err
}

func (t *txn) integrate(ends [2]EndpointRef) (int, error) {
	var remote []int
	for i, e := range ends {
		r, err := t.remote(e.App)
		if err != nil {
			return 0, err
		}
		if r != nil {
			remote = append(remote, i)
			if r.Life != Alive {
				return 0, errf(Invalid, "cannot add relation %q: saas application %q is not alive", ends[0].String()+" "+ends[1].String(), e.App)
			}
		}
	}
	if len(remote) == 2 {
		return 0, errf(Invalid, "cannot add relation %q: both applications are of other models", ends[0].String()+" "+ends[1].String())
	}
	for i, e := range ends {
		if err := t.checkFree(e, ends, len(remote) == 0 || remote[0] != i); err != nil {
			return 0, err
		}
	}
	if len(remote) == 1 {
		return t.connect(ends[1-remote[0]], ends[remote[0]])
	}
	return t.addRelation(ends[:]...)
}

// checkFree refuses a relation that is there already, or that an application of
// this model cannot have.
func (t *txn) checkFree(e EndpointRef, ends [2]EndpointRef, local bool) error {
	key := ends[0].String() + " " + ends[1].String()
	rels, err := t.relations(e.App)
	if err != nil {
		return err
	}
	for _, r := range rels {
		if sameEnds(r.Ends, ends) {
			return errf(Exists, "cannot add relation %q: relation already exists", key)
		}
	}
	if !local {
		return nil
	}
	a, err := t.app(e.App)
	if err != nil {
		return err
	}
	if a.Life != Alive {
		return errf(Invalid, "cannot add relation %q: application %q is not alive", key, e.App)
	}
	return t.checkLimit(a, e)
}

// checkLimit refuses a relation above the endpoint's limit.
func (t *txn) checkLimit(a *appDoc, e EndpointRef) error {
	c, err := t.charm(a.Charm)
	if err != nil {
		return err
	}
	rels, err := t.relations(e.App)
	if err != nil {
		return err
	}
	count := 0
	for _, r := range rels {
		if own, _ := r.end(e.App); own.Name == e.Name {
			count++
		}
	}
	if limit := c.Meta.Endpoints[e.Name].Limit; limit > 0 && count >= limit {
		return errf(Quota, "establishing a new relation for %s would exceed its maximum relation limit of %d", e, limit)
	}
	return nil
}

func sameEnds(have []EndpointRef, want [2]EndpointRef) bool {
	if len(have) != 2 {
		return false
	}
	same := func(a, b EndpointRef) bool { return a.App == b.App && a.Name == b.Name }
	return same(have[0], want[0]) && same(have[1], want[1]) || same(have[0], want[1]) && same(have[1], want[0])
}

// addRelation stores a new relation with the next id.
func (t *txn) addRelation(ends ...EndpointRef) (int, error) {
	d, err := t.model()
	if err != nil {
		return 0, err
	}
	id := d.NextRelation
	d.NextRelation++
	if err := t.putModel(d); err != nil {
		return 0, err
	}
	if len(ends) == 2 && ends[0].Role == Requirer {
		ends[0], ends[1] = ends[1], ends[0]
	}
	r := &relationDoc{ID: id, Ends: ends, Life: Alive, InScope: map[string]bool{}, Created: t.now}
	for _, e := range ends {
		if err := t.bucket(bucketByApp).Put([]byte(e.App+"\x00"+idKey(uint64(id))), []byte{1}); err != nil {
			return 0, err
		}
	}
	return id, t.putRelation(r)
}

// candidates returns the endpoints that the text may mean.
func (t *txn) candidates(text string) ([]EndpointRef, error) {
	app, want, named := strings.Cut(text, ":")
	if r, err := t.remote(app); err != nil || r != nil && !r.Proxy {
		if err != nil {
			return nil, err
		}
		return remoteCandidates(r, want, named)
	}
	a, err := t.app(app)
	if err != nil {
		return nil, err
	}
	c, err := t.charm(a.Charm)
	if err != nil {
		return nil, err
	}
	var out []EndpointRef
	for _, name := range sortedKeys(c.Meta.Endpoints) {
		ep := c.Meta.Endpoints[name]
		if ep.Role != Peer && (!named || name == want) {
			out = append(out, EndpointRef{App: app, Name: name, Interface: ep.Interface, Role: ep.Role})
		}
	}
	if !named || want == implicitEndpoint {
		out = append(out, EndpointRef{App: app, Name: implicitEndpoint, Interface: implicitEndpoint, Role: Provider})
	}
	if named && len(out) == 0 {
		return nil, errf(NotFound, "application %q has no %q relation", app, want)
	}
	return out, nil
}

// remoteCandidates returns the offered endpoints that a text may mean.
func remoteCandidates(r *remoteDoc, want string, named bool) ([]EndpointRef, error) {
	var out []EndpointRef
	for _, e := range r.Endpoints {
		if !named || e.Name == want {
			out = append(out, e)
		}
	}
	if named && len(out) == 0 {
		return nil, errf(NotFound, "saas application %q has no %q relation", r.Name, want)
	}
	return out, nil
}

// inferEnds finds the one pair of endpoints that fits.
func (t *txn) inferEnds(a, b string) ([2]EndpointRef, error) {
	as, err := t.candidates(a)
	if err != nil {
		return [2]EndpointRef{}, err
	}
	bs, err := t.candidates(b)
	if err != nil {
		return [2]EndpointRef{}, err
	}
	var pairs, implicit [][2]EndpointRef
	for _, x := range as {
		for _, y := range bs {
			if x.App == y.App || x.Interface != y.Interface || x.Role == y.Role {
				continue
			}
			if x.Name == implicitEndpoint || y.Name == implicitEndpoint {
				implicit = append(implicit, [2]EndpointRef{x, y})
			} else {
				pairs = append(pairs, [2]EndpointRef{x, y})
			}
		}
	}
	if len(pairs) == 0 {
		pairs = implicit
	}
	switch len(pairs) {
	case 0:
		return [2]EndpointRef{}, errf(NotFound, "no relations found")
	case 1:
		return pairs[0], nil
	}
	options := make([]string, len(pairs))
	for i, p := range pairs {
		options[i] = fmt.Sprintf("%q", p[0].String()+" "+p[1].String())
	}
	return [2]EndpointRef{}, errf(Invalid, "ambiguous relation: %q could refer to %s", a+" "+b, strings.Join(options, "; "))
}

// RemoveRelation begins the end of the relation between two endpoints: each unit
// in scope is shown departures and relation-broken; the last to leave removes it.
func (m *Model) RemoveRelation(a, b string) error {
	return m.update(func(t *txn) error {
		r, err := t.findRelation(a, b)
		if err != nil {
			return err
		}
		return t.killRelation(r)
	})
}

// findRelation returns the only existing relation that the two texts mean.
func (t *txn) findRelation(a, b string) (*relationDoc, error) {
	appA, epA, _ := strings.Cut(a, ":")
	appB, epB, _ := strings.Cut(b, ":")
	for _, app := range []string{appA, appB} {
		if r, err := t.remote(app); err != nil || r != nil {
			if err != nil {
				return nil, err
			}
			continue
		}
		if _, err := t.app(app); err != nil {
			return nil, err
		}
	}
	rels, err := t.relations(appA)
	if err != nil {
		return nil, err
	}
	var hits []*relationDoc
	for _, r := range rels {
		x, _ := r.end(appA)
		y, ok := r.end(appB)
		if !ok || r.isPeer() || (epA != "" && x.Name != epA) || (epB != "" && y.Name != epB) {
			continue
		}
		hits = append(hits, r)
	}
	switch len(hits) {
	case 0:
		return nil, errf(NotFound, "relation %q not found", a+" "+b)
	case 1:
		return hits[0], nil
	}
	return nil, errf(Invalid, "ambiguous relation: %q could refer to %q; %q", a+" "+b, hits[0], hits[1])
}

// killRelation makes a relation die; without a unit in scope it is gone at once.
func (t *txn) killRelation(r *relationDoc) error {
	if r.Life == Alive {
		r.Life = Dying
		if err := t.putRelation(r); err != nil {
			return err
		}
		if err := t.mirrorDeath(r); err != nil {
			return err
		}
	}
	return t.dropIfEmpty(r)
}

// dropIfEmpty removes a dying relation that nobody is in, with its databags and
// the grants made for it.
func (t *txn) dropIfEmpty(r *relationDoc) error {
	if r.Life == Alive || len(r.InScope) > 0 {
		return nil
	}
	key := idKey(uint64(r.ID))
	for _, e := range r.Ends {
		if err := del(t, bucketByApp, e.App+"\x00"+key); err != nil {
			return err
		}
	}
	if err := delPrefix(t, bucketSettings, key); err != nil {
		return err
	}
	if err := t.dropGrants(func(g grantDoc) bool { return g.Relation == r.ID }); err != nil {
		return err
	}
	t.touch(r.apps()...)
	if err := del(t, bucketRelations, key); err != nil {
		return err
	}
	return t.reap(r.apps()...)
}
