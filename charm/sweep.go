// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package charm

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/drawbridge-k8s/drawbridge/database"
	"github.com/drawbridge-k8s/drawbridge/hooks"
	"github.com/drawbridge-k8s/drawbridge/hooks/hooktool"
	"github.com/drawbridge-k8s/drawbridge/relation"
)

// What of the backend is tried again when it was refused.
const (
	makeUsers = "make users"
	dropUsers = "drop users"
)

// codeSelectDenied is the server's error for a SELECT without the right to it.
const codeSelectDenied = 1142

// hiddenClients reports whether Juju lists a client application that no relation seen here belongs to.
func (p *pass) hiddenClients() bool { return p.hidden(endpointClients) }

// orphans reports whether users may be left of relations that are gone.
func (p *pass) orphans() bool { return p.state.Sweep || len(p.gone()) > 0 }

// gone returns the ids of client relations that a user was made for and that are not seen any more.
func (p *pass) gone() []int {
	ids := slices.Clone(p.state.Made)
	if breaking, ok := p.event.Breaking(); ok && p.event.Endpoint == endpointClients && !slices.Contains(ids, breaking) {
		ids = append(ids, breaking)
	}
	return slices.DeleteFunc(ids, p.shown)
}

// shown reports whether a client relation is seen.
func (p *pass) shown(number int) bool {
	return slices.ContainsFunc(p.clients, func(c *client) bool { return c.number == number })
}

// cleanUp drops users and secrets of client relations that are gone, on a ready backend; databases never. What cannot be
// done now stays remembered.
func (p *pass) cleanUp(ctx context.Context) error {
	if err := p.withdrawBroken(ctx); err != nil {
		return err
	}
	if p.dry || p.right != relation.RightFull || p.backend.state != relation.BackendReady || !p.orphans() || p.spent(ctx) {
		return nil
	}
	hidden := p.hiddenClients()
	breaking, broken := p.event.Breaking()
	for _, number := range p.gone() {
		if hidden && !(broken && number == breaking) {
			continue
		}
		if p.spent(ctx) {
			p.remember(number)
			continue
		}
		if err := p.dropClient(ctx, number); err != nil {
			return err
		}
	}
	if p.state.Sweep && !hidden {
		return p.sweep(ctx)
	}
	return nil
}

// withdrawBroken takes back what the databag of the client relation says that is being broken. The client may have hooks
// to run in it still, and one that finds the id of a secret that is gone there fails for good.
func (p *pass) withdrawBroken(ctx context.Context) error {
	if _, broken := p.event.Breaking(); p.dry || !broken || p.event.Endpoint != endpointClients {
		return nil
	}
	c := &client{id: p.event.Relation()}
	var err error
	if c.Own, err = p.tools.RelationGetApp(ctx, c.id, p.event.App); err == nil {
		err = p.write(ctx, c, relation.Diff(c.Own, relation.WithdrawnBag(c.Own)))
	}
	if err != nil && !refusedByTool(err) {
		return err
	}
	return nil
}

// dropClient drops the user and the secrets of a client relation that is gone.
func (p *pass) dropClient(ctx context.Context, number int) error {
	sql, err := p.sql()
	if err == nil {
		err = sql.DropUser(p.ext, database.UserName(p.backend.data.Username, number))
	}
	if err != nil {
		p.log.Warn("cannot drop a user; trying again", "relation", number, "error", err)
		p.retryLater(dropUsers)
		p.remember(number)
		return nil
	}
	if err := p.dropSecrets(ctx, number, p.backend.number()); err != nil {
		return err
	}
	p.state.Made = slices.DeleteFunc(p.state.Made, func(made int) bool { return made == number })
	if len(p.state.Made) == 0 {
		p.state.Made = nil
	}
	return nil
}

// remember keeps that a user was made for a client relation and is not dropped yet.
func (p *pass) remember(number int) {
	if !slices.Contains(p.state.Made, number) {
		p.state.Made = append(p.state.Made, number)
		slices.Sort(p.state.Made)
	}
}

// dropSecrets removes the secrets that a client had on a backend.
func (p *pass) dropSecrets(ctx context.Context, number int, backendNumber string) error {
	backendID, err := strconv.Atoi(backendNumber)
	if err != nil {
		return nil // garbled, or none: the sweep finds them
	}
	for _, group := range []string{relation.GroupUser, relation.GroupTLS} {
		label := relation.ClientSecretLabel(number, backendID, group)
		info, err := p.tools.SecretInfo(ctx, hooktool.SecretRef{Label: label})
		if err == nil {
			err = p.tools.SecretRemove(ctx, "secret:"+relation.SecretID(info.ID))
		}
		if err != nil && !refusedByTool(err) {
			return err
		}
	}
	return nil
}

// sweep compares the users on the backend with the clients: it drops what relations left that ended under another leader,
// and makes again what a backend lost with its data. It runs once in a leader's term and in each of its pods,
// and after each time that the backend has not answered.
func (p *pass) sweep(ctx context.Context) error {
	sql, err := p.sql()
	var found map[int]string
	if err == nil {
		found, err = sql.ClientUsers(p.ext, p.backend.data.Username)
	}
	for _, number := range slices.Sorted(maps.Keys(found)) {
		if err == nil && !p.shown(number) {
			if p.spent(ctx) {
				return nil
			}
			err = sql.DropUser(p.ext, found[number])
		}
	}
	if database.Code(err) == codeSelectDenied {
		p.log.Warn("the role on the backend may not list users; those left behind stay", "error", err)
		p.state.Sweep = false
		return nil
	}
	if err != nil {
		p.log.Warn("cannot compare the backend's users with the clients; trying again", "error", err)
		p.retryLater(dropUsers)
		return nil
	}
	for _, c := range p.clients {
		if !relation.HoldsCredentials(c.Own) {
			continue
		}
		p.remember(c.number)
		if found[c.number] != "" {
			continue
		}
		if p.spent(ctx) {
			return nil
		}
		p.log.Info("making a user again that the backend has lost", "relation", c.id)
		if err := p.repairUser(ctx, c); err != nil {
			return err
		}
	}
	if err := p.sweepSecrets(ctx); err != nil {
		return err
	}
	_, p.state.Sweep = p.refusals[makeUsers]
	return nil
}

// pruneSecret removes a revision of a client's secret that nobody reads any more, when Juju says so. Without a label the
// secret may be one that is not ours, or not there (Juju issue 20794).
func (p *pass) pruneSecret(ctx context.Context) error {
	e := p.event
	if _, _, _, ours := relation.ParseClientSecretLabel(e.SecretLabel); p.dry || e.Kind != hooks.SecretRemove || !ours || e.SecretRevision == 0 {
		return nil
	}
	if err := p.tools.SecretRemoveRevision(ctx, e.SecretID, e.SecretRevision); err != nil && !refusedByTool(err) {
		return err
	}
	return nil
}

// sweepSecrets removes our secrets that belong to no client relation seen here, or to another backend.
func (p *pass) sweepSecrets(ctx context.Context) error {
	ids, err := p.tools.SecretIDs(ctx)
	if err != nil {
		return err
	}
	used := map[string]bool{}
	for _, c := range p.clients {
		for _, uri := range relation.SecretURIs(c.Own) {
			used[relation.SecretID(uri)] = true
		}
	}
	for _, id := range ids {
		if used[relation.SecretID(id)] {
			continue
		}
		info, err := p.tools.SecretInfo(ctx, hooktool.SecretRef{ID: id})
		if err != nil {
			if !refusedByTool(err) {
				return err
			}
			continue
		}
		number, backend, _, ours := relation.ParseClientSecretLabel(info.Label)
		if !ours || p.shown(number) && backend == p.backend.key() {
			continue
		}
		if err := p.tools.SecretRemove(ctx, "secret:"+relation.SecretID(id)); err != nil && !refusedByTool(err) {
			return err
		}
	}
	return nil
}
