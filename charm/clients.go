// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package charm

import (
	"context"
	"maps"
	"slices"

	"github.com/drawbridge-k8s/drawbridge/database"
	"github.com/drawbridge-k8s/drawbridge/hooks"
	"github.com/drawbridge-k8s/drawbridge/hooks/hooktool"
	"github.com/drawbridge-k8s/drawbridge/k8sservice"
	"github.com/drawbridge-k8s/drawbridge/relation"
)

// client is one relation on `database`.
type client struct {
	relation.Client
	// id is the relation, such as "database:7", number the same without the endpoint.
	id     string
	number int
	app    string
	units  []string
	// bag is the client's application databag.
	bag map[string]string
	// elsewhere says that the client lives in another model.
	elsewhere bool
}

// observeClients reads every client relation that is not being broken: its members, its request, and our databag in it.
// One that goes away meanwhile is left out.
func (p *pass) observeClients(ctx context.Context) error {
	ids, err := p.relationIDs(ctx, endpointClients)
	if err != nil {
		return err
	}
	for _, id := range ids {
		c := &client{id: id}
		c.number, _ = hooks.ParseRelationID(id) // relationIDs has parsed it before
		if err := p.observeClient(ctx, c); err != nil {
			if refusedByTool(err) {
				p.log.Info("leaving out a relation that cannot be read", "relation", id, "error", err)
				continue
			}
			return err
		}
		p.clients = append(p.clients, c)
	}
	return nil
}

func (p *pass) observeClient(ctx context.Context, c *client) error {
	var err error
	if c.app, c.units, err = p.members(ctx, c.id); err != nil {
		return err
	}
	if c.Own, err = p.tools.RelationGetApp(ctx, c.id, p.event.App); err != nil {
		return err
	}
	if c.bag, err = p.tools.RelationGetApp(ctx, c.id, c.app); err != nil {
		return err
	}
	if p.config.Mode == k8sservice.False {
		model, err := p.tools.RelationModel(ctx, c.id)
		if err != nil {
			return err
		}
		c.elsewhere = model != "" && p.event.ModelUUID != "" && model != p.event.ModelUUID
	}
	c.Request, c.RequestErr = relation.ParseRequest(c.bag)
	if c.RequestErr == nil && c.Request.Asked() {
		c.RequestErr = servable(c.Request)
	}
	return p.observeMirrors(ctx, c)
}

// servable says why a request cannot be served here, though it is well formed.
func servable(r relation.Request) error {
	if r.ExtraUserRoles != "" {
		return &relation.BadData{Key: "extra-user-roles", Problem: "is not supported"}
	}
	return database.ValidDatabase(r.Database)
}

// observeMirrors reads what the client's units have last seen of our databag. A mirror that changes wakes us with its
// unit's own hook, so a client that is served needs the mirror of that unit alone; one without credentials needs all
// before it may be given new ones; and a new leader looks at all once.
func (p *pass) observeMirrors(ctx context.Context, c *client) error {
	var units []string
	switch {
	case !relation.HoldsCredentials(c.Own) && c.Request.Asked() && c.RequestErr == nil, p.fresh:
		units = c.units
	case p.event.Relation() == c.id && slices.Contains(c.units, p.event.RemoteUnit):
		units = []string{p.event.RemoteUnit}
	}
	for _, unit := range units {
		bag, err := p.tools.RelationGet(ctx, c.id, unit)
		if err != nil && !refusedByTool(err) {
			return err
		}
		c.AddMirror(bag)
	}
	return nil
}

// inClients are the addresses that stand in some client's databag.
func (p *pass) inClients() map[relation.Address]bool {
	in := map[relation.Address]bool{}
	for _, c := range p.clients {
		for _, address := range relation.BagAddresses(c.Own) {
			in[address] = true
		}
	}
	return in
}

// holding reports whether some client holds credentials.
func (p *pass) holding() bool {
	return slices.ContainsFunc(p.clients, func(c *client) bool { return relation.HoldsCredentials(c.Own) })
}

// withdrawAll takes back what every client was given (row A2).
func (p *pass) withdrawAll(ctx context.Context) error {
	for _, c := range p.clients {
		if len(relation.Diff(c.Own, relation.WithdrawnBag(c.Own))) == 0 {
			continue
		}
		if p.spent(ctx) {
			break
		}
		if err := p.withdraw(ctx, c); err != nil {
			return err
		}
	}
	if !p.holding() && !p.dry {
		// The users went with the backend, which drops them itself; what is left are secrets.
		for _, number := range p.gone() {
			if err := p.dropSecrets(ctx, number, p.peer.Backend); err != nil {
				return err
			}
		}
		p.state.Made = nil
	}
	p.peer = p.peer.Withdraw(p.holding())
	p.state.Silent, p.state.Stalled = nil, false
	return nil
}

// withdraw takes back what one client was given: the keys and the secrets, together.
func (p *pass) withdraw(ctx context.Context, c *client) error {
	if p.dry {
		return nil
	}
	bag := relation.WithdrawnBag(c.Own)
	for _, uri := range relation.SecretURIs(c.Own) {
		if err := p.tools.SecretRemove(ctx, uri); err != nil && !refusedByTool(err) {
			return err
		}
	}
	return p.write(ctx, c, relation.Diff(c.Own, bag))
}

// write changes our databag in a client relation. A relation that has just gone is no error.
func (p *pass) write(ctx context.Context, c *client, changes map[string]string) error {
	if len(changes) == 0 || p.dry {
		return nil
	}
	if err := p.tools.RelationSetApp(ctx, c.id, changes); err != nil {
		if hooktool.IsNotFound(err) {
			p.log.Info("leaving out a relation that has gone", "relation", c.id)
			return nil
		}
		return err
	}
	p.told = true
	own := maps.Clone(c.Own)
	if own == nil {
		own = map[string]string{}
	}
	for key, value := range changes {
		own[key] = value
		if value == "" {
			delete(own, key)
		}
	}
	c.Own = own
	return nil
}

// serveClients does for each client what the client table says.
func (p *pass) serveClients(ctx context.Context) error {
	if p.right != relation.RightFull || p.backend.state == relation.BackendUnknown {
		return nil
	}
	for _, c := range p.clients {
		if err := p.checkCurrent(ctx, c); err != nil {
			return err
		}
		if err := p.serve(ctx, c); err != nil {
			return err
		}
		if c.RequestErr != nil {
			p.blocked("%s: cannot serve %s: %v", c.id, c.app, c.RequestErr)
		}
	}
	p.settleBackend()
	return nil
}

// serve does for one client what the client table says. When the time is spent nothing more is begun.
func (p *pass) serve(ctx context.Context, c *client) error {
	publish := p.seen.exposure.Publish
	step := c.Decide()
	switch {
	case step == relation.ClientHold:
		p.waiting("%s: giving new credentials once %s has noticed that the old ones are gone", c.id, c.app)
	case step == relation.ClientWithdraw && c.Replaced() && !p.dropReplaced(c):
		p.waiting("%s: %s asks anew; taking back what it has first", c.id, c.app)
	case step == relation.ClientWithdraw:
		p.waiting("%s: took back old credentials; giving new ones once %s has noticed", c.id, c.app)
		if p.spent(ctx) {
			return nil
		}
		return p.withdraw(ctx, c)
	case !publish || p.spent(ctx):
	case step == relation.ClientFollow:
		return p.follows(ctx, c)
	case step == relation.ClientGrant:
		return p.grant(ctx, c)
	}
	return nil
}

// dropReplaced drops the user of a client that makes another request now, so that it keeps no rights on what it asked for
// before, and reports whether that is done.
func (p *pass) dropReplaced(c *client) bool {
	if p.dry || p.backend.state != relation.BackendReady || p.spent(p.ext) {
		return false
	}
	sql, err := p.sql()
	if err == nil {
		err = sql.DropUser(p.ext, database.UserName(p.backend.data.Username, c.number))
	}
	if err != nil {
		p.waiting("%s: cannot drop its user on the backend: %v", c.id, err)
		p.retryLater(dropUsers)
	}
	return err == nil
}

// checkCurrent looks up whether the credentials of a client are those of the current backend, where the peer databag does
// not say so.
func (p *pass) checkCurrent(ctx context.Context, c *client) error {
	if p.peer.Backend == p.backend.number() || !relation.HoldsCredentials(c.Own) || p.backend.id == "" {
		return nil
	}
	if !relation.UsesSecrets(c.Own) {
		made := p.backend.data.Username // not known yet: nothing can be said
		c.Foreign = made != "" && c.Own["username"] != database.UserName(made, c.number)
		return nil
	}
	label := relation.ClientSecretLabel(c.number, p.backend.key(), relation.GroupUser)
	info, err := p.tools.SecretInfo(ctx, hooktool.SecretRef{Label: label})
	if err != nil && !refusedByTool(err) {
		return err
	}
	c.Foreign = err != nil || !relation.NamesSecret(c.Own, info.ID)
	return nil
}

// settleBackend keeps `backend` as long as some client holds credentials.
func (p *pass) settleBackend() {
	switch {
	case p.backend.id == "":
	case p.holding():
		p.peer.Backend = p.backend.number()
	case !p.hiddenClients():
		p.peer.Backend = ""
	}
}

// follows brings the databag of a client up to date that holds credentials.
func (p *pass) follows(ctx context.Context, c *client) error {
	wanted := c.Follow(c.bag, p.seen.exposure.Addresses, p.backend.data)
	changes := relation.Diff(c.Own, wanted)
	if p.repair {
		if err := p.repairUser(ctx, c); err != nil {
			return err
		}
	}
	if len(changes) == 0 {
		return nil
	}
	if err := p.refreshTLS(ctx, c); err != nil {
		return err
	}
	return p.write(ctx, c, changes)
}
