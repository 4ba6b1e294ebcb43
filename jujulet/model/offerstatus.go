// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

// crossStatus fills in offers and consumed offers.
func (t *txn) crossStatus(s *Status) error {
	err := each(t, bucketRemotes, "", func(name string, r *remoteDoc) error {
		if r.Proxy {
			return nil
		}
		v, err := t.remoteStatus(r)
		if s.Remotes == nil {
			s.Remotes = map[string]RemoteStatus{}
		}
		s.Remotes[name] = v
		return err
	})
	if err != nil {
		return err
	}
	return each(t, bucketOffers, "", func(name string, o *offerDoc) error {
		v, err := t.offerStatus(o)
		if s.Offers == nil {
			s.Offers = map[string]OfferStatus{}
		}
		s.Offers[name] = v
		return err
	})
}

// remoteStatus shows the application with the status that it has in its model.
// Juju 3.6: terminated, when the offer has gone.
func (t *txn) remoteStatus(r *remoteDoc) (RemoteStatus, error) {
	v := RemoteStatus{URL: r.URL, Life: r.Life, Endpoints: shown(r.Endpoints)}
	rels, err := t.relations(r.Name)
	if err != nil {
		return v, err
	}
	v.Relations = related(rels, r.Name)
	v.Status = StatusValue{Status: "terminated", Message: "offer has been removed", Since: t.now}
	o := t.other(r.Model)
	if o == nil {
		return v, nil
	}
	d, err := get[offerDoc](o, bucketOffers, r.Offer)
	if err != nil || d == nil || d.UUID != r.OfferUUID {
		return v, err
	}
	a, err := o.app(d.App)
	if err != nil {
		return v, err
	}
	app, err := o.appStatus(a)
	v.Status = app.Status
	return v, err
}

func (t *txn) offerStatus(o *offerDoc) (OfferStatus, error) {
	v := OfferStatus{
		Name: o.Name, URL: OfferURL(t.m.info.Name, o.Name), Application: o.App, Description: o.Description, Endpoints: shown(o.Endpoints),
	}
	a, err := t.app(o.App)
	if err != nil {
		return v, err
	}
	c, err := t.charm(a.Charm)
	if err != nil {
		return v, err
	}
	v.Charm, v.CharmName, v.CharmRev = charmURL(c, a.CharmRev), c.Meta.Name, a.CharmRev
	rels, err := t.connections(o.Name)
	if err != nil {
		return v, err
	}
	for _, r := range rels {
		own, _ := r.end(o.App)
		connection := OfferConnection{Model: t.modelOf(r), Relation: r.ID, Endpoint: own.Name, Status: "joined", Since: r.Created}
		if r.Life != Alive {
			connection.Status = "removing"
		}
		v.Connections = append(v.Connections, connection)
	}
	return v, nil
}
