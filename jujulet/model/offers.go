// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// offerDoc is an offer as stored, in the offering model.
type offerDoc struct {
	Name        string        `json:"name"`
	UUID        string        `json:"uuid"`
	App         string        `json:"app"`
	Description string        `json:"description"`
	Endpoints   []EndpointRef `json:"endpoints"` // by name
	Created     time.Time     `json:"created"`
}

// remoteDoc stands for an application of another model. In the consuming model it
// has the name that the user gave it; in the offering model, where it is a proxy,
// one that says nothing.
type remoteDoc struct {
	Name      string        `json:"name"`
	Proxy     bool          `json:"proxy,omitempty"`
	Model     string        `json:"model"`
	ModelUUID string        `json:"model-uuid"`
	App       string        `json:"app"`             // its name in its own model
	Offer     string        `json:"offer,omitempty"` // name; not of a proxy
	OfferUUID string        `json:"offer-uuid,omitempty"`
	URL       string        `json:"url,omitempty"`
	Endpoints []EndpointRef `json:"endpoints"`
	Life      Life          `json:"life"`
	Created   time.Time     `json:"created"`
}

// OfferURL is the URL of an offer: the only user's.
func OfferURL(model, offer string) string { return "admin/" + model + "." + offer }

// remote returns what stands for an application of another model, nil if the name
// is none.
func (t *txn) remote(name string) (*remoteDoc, error) {
	return get[remoteDoc](t, bucketRemotes, name)
}

// Offer offers endpoints of an application to other models. An offer that is there
// gets the endpoints, as in Juju 3.6. name "" is the application's.
func (m *Model) Offer(app string, endpoints []string, name string) (string, error) {
	if name == "" {
		name = app
	}
	if !isAppName(name) {
		return "", errf(Invalid, "offer name %q not valid", name)
	}
	err := m.update(func(t *txn) error {
		if err := t.checkAlive(); err != nil {
			return err
		}
		a, err := t.app(app)
		if err != nil {
			return err
		}
		if a.Life != Alive {
			return errf(Invalid, "cannot add application offer %q: application %q is not alive", name, app)
		}
		c, err := t.charm(a.Charm)
		if err != nil {
			return err
		}
		refs, err := offeredEndpoints(c, app, endpoints)
		if err != nil {
			return err
		}
		o, err := get[offerDoc](t, bucketOffers, name)
		if err != nil {
			return err
		}
		if o == nil {
			o = &offerDoc{Name: name, UUID: uuid.NewString(), Created: t.now}
		} else if o.App != app {
			return errf(Exists, "cannot add application offer %q: offer %q of application %q already exists", name, name, o.App)
		}
		o.App, o.Description, o.Endpoints = app, c.Meta.Description, refs
		return put(t, bucketOffers, name, o)
	})
	return name, err
}

func offeredEndpoints(c *Charm, app string, names []string) ([]EndpointRef, error) {
	var refs []EndpointRef
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		e, ok := c.Meta.Endpoints[name]
		if name == implicitEndpoint {
			e, ok = Endpoint{Interface: implicitEndpoint, Role: Provider}, true
		}
		if !ok {
			return nil, errf(NotFound, "application %q has no %q relation", app, name)
		}
		if e.Role == Peer {
			return nil, errf(Invalid, "cannot offer peer relation %q of application %q", name, app)
		}
		refs = append(refs, EndpointRef{App: app, Name: name, Interface: e.Interface, Role: e.Role})
	}
	return refs, nil
}

// RemoveOffer removes an offer. One that is in use is refused, unless force ends
// the relations too.
func (m *Model) RemoveOffer(name string, force bool) error {
	return m.update(func(t *txn) error { return t.removeOffer(name, force) })
}

func (t *txn) removeOffer(name string, force bool) error {
	o, err := get[offerDoc](t, bucketOffers, name)
	if err != nil {
		return err
	}
	if o == nil {
		return errf(NotFound, "application offer %q not found", name)
	}
	rels, err := t.connections(name)
	if err != nil {
		return err
	}
	if len(rels) > 0 && !force {
		return errf(Invalid, "cannot delete application offer %q: offer has %d relation%s", name, len(rels), plural(len(rels)))
	}
	for _, r := range rels {
		if err := t.killRelation(r); err != nil {
			return err
		}
	}
	t.touch(o.App)
	return del(t, bucketOffers, name)
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

// connections are the relations that were made by an offer.
func (t *txn) connections(offer string) ([]*relationDoc, error) {
	var out []*relationDoc
	err := each(t, bucketRelations, "", func(_ string, r *relationDoc) error {
		if r.Cross == nil || r.Cross.Offer != offer {
			return nil
		}
		remote, err := t.remote(r.Cross.Remote)
		if err == nil && remote != nil && remote.Proxy {
			out = append(out, r)
		}
		return err
	})
	return out, err
}

// offersOf lists the offers of an application.
func (t *txn) offersOf(app string) ([]*offerDoc, error) {
	var out []*offerDoc
	err := each(t, bucketOffers, "", func(_ string, o *offerDoc) error {
		if app == "" || o.App == app {
			out = append(out, o)
		}
		return nil
	})
	return out, err
}

// checkOffers refuses the removal of an application whose offers are in use, and
// removes the others. Juju 3.6: the text.
func (t *txn) checkOffers(app string, force bool) error {
	offers, err := t.offersOf(app)
	if err != nil {
		return err
	}
	used := 0
	for _, o := range offers {
		rels, err := t.connections(o.Name)
		if err != nil {
			return err
		}
		used += min(1, len(rels))
	}
	if used > 0 && !force {
		return errf(Invalid, "cannot destroy application %q: application is used by %d offer%s", app, len(offers), plural(len(offers)))
	}
	for _, o := range offers {
		if err := t.removeOffer(o.Name, true); err != nil {
			return err
		}
	}
	return nil
}

// Consume makes an offer of another model known under a name; "" is the offer's.
// To consume the same offer again changes nothing.
func (m *Model) Consume(from, offer, alias string) (string, error) {
	if alias == "" {
		alias = offer
	}
	if !isAppName(alias) {
		return "", errf(Invalid, "invalid application name %q", alias)
	}
	return alias, m.update(func(t *txn) error { return t.consume(from, offer, alias) })
}

func (t *txn) consume(from, offer, alias string) error {
	if err := t.checkAlive(); err != nil {
		return err
	}
	o := t.other(from)
	if o == nil {
		return notFound("model", from)
	}
	d, err := get[offerDoc](o, bucketOffers, offer)
	if err != nil {
		return err
	}
	if d == nil {
		return errf(NotFound, "application offer %q not found", OfferURL(from, offer))
	}
	if o == t {
		return errf(Invalid, "cannot consume application offer %q: it is of this model; integrate its application", OfferURL(from, offer))
	}
	if a, err := get[appDoc](t, bucketApps, alias); err != nil || a != nil {
		if err != nil {
			return err
		}
		return errf(Exists, "cannot add saas application %q: application already exists", alias)
	}
	known, err := t.remote(alias)
	if err != nil {
		return err
	}
	r := &remoteDoc{
		Name: alias, Model: from, ModelUUID: o.m.info.UUID, App: d.App, Offer: offer, OfferUUID: d.UUID,
		URL: o.m.info.Controller + ":" + OfferURL(from, offer), Life: Alive, Created: t.now,
	}
	if known != nil {
		switch {
		case known.OfferUUID != d.UUID:
			return errf(Exists, "saas application called %q from a different model already exists", alias)
		case known.Life != Alive:
			return errf(Exists, "saas application called %q exists but is terminating", alias)
		}
		r.Created = known.Created
	}
	for _, e := range d.Endpoints {
		e.App = alias
		r.Endpoints = append(r.Endpoints, e)
	}
	t.touch("")
	return put(t, bucketRemotes, alias, r)
}

// RemoveSAAS begins the end of a consumed offer: its relations die, and it goes
// with the last of them.
func (m *Model) RemoveSAAS(alias string) error {
	return m.update(func(t *txn) error {
		r, err := t.remote(alias)
		if err != nil {
			return err
		}
		if r == nil || r.Proxy {
			return errf(NotFound, "saas application %q not found", alias)
		}
		return t.removeSAAS(r)
	})
}

func (t *txn) removeSAAS(r *remoteDoc) error {
	r.Life = Dying
	if err := put(t, bucketRemotes, r.Name, r); err != nil {
		return err
	}
	rels, err := t.relations(r.Name)
	if err != nil {
		return err
	}
	for _, rel := range rels {
		if err := t.killRelation(rel); err != nil {
			return err
		}
	}
	return t.reapRemote(r.Name)
}

// reapRemote removes what stands for an application of another model when it is
// not needed any more.
func (t *txn) reapRemote(name string) error {
	r, err := t.remote(name)
	if err != nil || r == nil {
		return err
	}
	if !r.Proxy && r.Life == Alive || len(keys(t, bucketByApp, name+"\x00")) > 0 {
		return nil
	}
	t.touch("")
	return del(t, bucketRemotes, name)
}

// endAbroad ends what a dying model shares with others.
func (t *txn) endAbroad() error {
	offers, err := t.offersOf("")
	if err != nil {
		return err
	}
	for _, o := range offers {
		if err := t.removeOffer(o.Name, true); err != nil {
			return err
		}
	}
	var remotes []*remoteDoc
	err = each(t, bucketRemotes, "", func(_ string, r *remoteDoc) error {
		if !r.Proxy {
			remotes = append(remotes, r)
		}
		return nil
	})
	for _, r := range remotes {
		if err == nil {
			err = t.removeSAAS(r)
		}
	}
	return err
}

// connect makes both halves of a relation across models; here is the end of this
// model, there that of what stands for the offered application.
func (t *txn) connect(here, there EndpointRef) (int, error) {
	r, err := t.remote(there.App)
	if err != nil {
		return 0, err
	}
	o := t.other(r.Model)
	if o == nil {
		return 0, errf(NotFound, "model %q of saas application %q not found", r.Model, there.App)
	}
	d, err := get[offerDoc](o, bucketOffers, r.Offer)
	if err != nil {
		return 0, err
	}
	if d == nil || d.UUID != r.OfferUUID {
		return 0, errf(NotFound, "application offer %q not found", r.URL)
	}
	offered := EndpointRef{App: d.App, Name: there.Name, Interface: there.Interface, Role: there.Role}
	target, err := o.app(d.App)
	if err != nil {
		return 0, err
	}
	if target.Life != Alive {
		return 0, errf(NotFound, "local application for offer %v not found", d.UUID)
	}
	if err := o.checkLimit(target, offered); err != nil {
		return 0, err
	}
	a, err := t.app(here.App)
	if err != nil {
		return 0, err
	}
	if a.Token == "" {
		a.Token = strings.ReplaceAll(uuid.NewString(), "-", "")
		if err := t.putApp(a); err != nil {
			return 0, err
		}
	}
	proxy := here
	proxy.App = "remote-" + a.Token
	if err := o.addProxy(t, here, proxy); err != nil {
		return 0, err
	}
	id, err := t.addRelation(here, there)
	if err != nil {
		return 0, err
	}
	other, err := o.addRelation(offered, proxy)
	if err != nil {
		return 0, err
	}
	if err := t.tie(id, crossEnd{o.m.info.Name, other, r.Offer, here.App, there.App}); err != nil {
		return 0, err
	}
	return id, o.tie(other, crossEnd{t.m.info.Name, id, r.Offer, d.App, proxy.App})
}

// addProxy makes the proxy of a consuming application, or adds an endpoint to it.
func (t *txn) addProxy(consumer *txn, here, proxy EndpointRef) error {
	p, err := t.remote(proxy.App)
	if err != nil {
		return err
	}
	if p == nil {
		p = &remoteDoc{
			Name: proxy.App, Proxy: true, Model: consumer.m.info.Name, ModelUUID: consumer.m.info.UUID, App: here.App,
			Life: Alive, Created: t.now,
		}
	}
	if !slices.Contains(p.Endpoints, proxy) {
		p.Endpoints = append(p.Endpoints, proxy)
	}
	return put(t, bucketRemotes, p.Name, p)
}

// tie makes a relation one half of a relation across models.
func (t *txn) tie(id int, c crossEnd) error {
	r, err := t.relation(id)
	if err != nil {
		return err
	}
	r.Cross = &c
	return t.putRelation(r)
}

// isAppName says whether an application may have this name.
func isAppName(name string) bool { return validName.MatchString(name) }

// shown lists the endpoints by name.
func shown(refs []EndpointRef) map[string]Endpoint {
	out := map[string]Endpoint{}
	for _, e := range refs {
		out[e.Name] = Endpoint{Interface: e.Interface, Role: e.Role}
	}
	return out
}

// related lists, by endpoint, what an application of another model is related to.
func related(rels []*relationDoc, name string) map[string][]string {
	out := map[string][]string{}
	for _, r := range rels {
		own, _ := r.end(name)
		if other := r.remote(name).App; !slices.Contains(out[own.Name], other) {
			out[own.Name] = append(out[own.Name], other)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(out)) {
		slices.Sort(out[key])
	}
	return out
}
