// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package charm

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"

	"github.com/drawbridge-k8s/drawbridge/database"
	"github.com/drawbridge-k8s/drawbridge/hooks"
	"github.com/drawbridge-k8s/drawbridge/hooks/hooktool"
	"github.com/drawbridge-k8s/drawbridge/relation"
)

// codeSelectDenied is the server's error for a SELECT without the right to it.
const codeSelectDenied = 1142

// users is the connection to the backend on which users are made, opened when the first one is due.
type users struct {
	admin Admin
	err   error
}

func (u *users) close() {
	if u.admin != nil {
		u.admin.Close()
	}
}

// sql returns the connection.
func (p *pass) sql() (Admin, error) {
	if p.users == nil {
		p.users = &users{err: errors.New("no endpoint")}
		for _, endpoint := range p.backend.data.Endpoints {
			p.users.admin, p.users.err = p.o.OpenAdmin(p.ext, p.backend.credentials(), endpoint)
			if p.users.err == nil {
				break
			}
			p.users.admin = nil
		}
	}
	return p.users.admin, p.users.err
}

// grant gives a client that holds nothing its credentials and the addresses, in one flush. Every step is safe to repeat:
// an existing secret's password is the truth, and the user is altered to it.
func (p *pass) grant(ctx context.Context, c *client) error {
	if p.dry {
		return nil
	}
	name := database.UserName(p.backend.data.Username, c.number)
	secret, err := p.findSecret(ctx, c, relation.GroupUser)
	if err != nil {
		return err
	}
	password := secret.content["password"]
	if password == "" {
		password = c.Own["password"]
	}
	if password == "" {
		password = database.NewPassword()
	}
	if err := p.ensureUser(c, name, password); err != nil {
		p.waiting("%s: cannot make its user on the backend: %v", c.id, err)
		p.retryLater("make users")
		return nil
	}
	readWrite, readOnly := relation.SplitAddresses(p.seen.exposure.Addresses)
	answer := relation.Answer{
		RequestBag: c.bag, Database: c.Request.Database, Endpoints: readWrite, ReadOnlyEndpoints: readOnly,
		Version: p.backend.data.Version,
	}
	if c.Request.WantsSecret("username") || c.Request.WantsSecret("password") {
		content := map[string]string{"username": name, "password": password}
		if answer.SecretUser, err = p.keepSecret(ctx, c, relation.GroupUser, secret, content); err != nil {
			return err
		}
	} else {
		answer.Username, answer.Password = name, password
	}
	if err := p.grantTLS(ctx, c, &answer); err != nil {
		return err
	}
	if !slices.Contains(p.state.Made, c.number) {
		p.state.Made = append(p.state.Made, c.number)
		slices.Sort(p.state.Made)
	}
	return p.write(ctx, c, relation.Diff(c.Own, answer.Bag()))
}

// repairUser makes the user of a client again that holds credentials, as its secret or its databag says: a backend that
// lost its data lost the users too.
func (p *pass) repairUser(ctx context.Context, c *client) error {
	name, password := c.Own["username"], c.Own["password"]
	if relation.UsesSecrets(c.Own) {
		secret, err := p.findSecret(ctx, c, relation.GroupUser)
		if err != nil {
			return err
		}
		name, password = secret.content["username"], secret.content["password"]
	}
	if name == "" || password == "" {
		return nil
	}
	if err := p.ensureUser(c, name, password); err != nil {
		p.waiting("%s: cannot make its user on the backend: %v", c.id, err)
		p.retryLater("make users")
	}
	return nil
}

// ensureUser makes the client's database and user.
func (p *pass) ensureUser(c *client, user, password string) error {
	sql, err := p.sql()
	if err != nil {
		return err
	}
	name := orSelf(c.Own["database"], c.Request.Database)
	if err := sql.EnsureDatabase(p.ext, name); err != nil {
		return err
	}
	return sql.EnsureUser(p.ext, user, password, name)
}

// ownSecret is a secret of ours as it was found.
type ownSecret struct {
	id      string
	content map[string]string
}

// findSecret looks a client's secret up by its label; the zero ownSecret means that there is none.
func (p *pass) findSecret(ctx context.Context, c *client, group string) (ownSecret, error) {
	label := relation.ClientSecretLabel(c.number, p.backend.key(), group)
	info, err := p.tools.SecretInfo(ctx, hooktool.SecretRef{Label: label})
	if hooktool.IsNotFound(err) {
		return ownSecret{}, nil
	}
	if err != nil {
		return ownSecret{}, err
	}
	content, err := p.tools.SecretGet(ctx, hooktool.SecretRef{Label: label, Peek: true})
	if err != nil {
		return ownSecret{}, err
	}
	return ownSecret{id: "secret:" + relation.SecretID(info.ID), content: content}, nil
}

// keepSecret makes a client's secret, or updates it in place where its content differs, grants it, and returns its URI.
func (p *pass) keepSecret(ctx context.Context, c *client, group string, found ownSecret, content map[string]string) (string, error) {
	uri := found.id
	switch {
	case uri == "":
		var err error
		uri, err = p.tools.SecretAdd(ctx, hooktool.Secret{
			Label:   relation.ClientSecretLabel(c.number, p.backend.key(), group),
			Content: content,
		})
		if err != nil {
			return "", err
		}
	case !maps.Equal(found.content, content):
		if err := p.tools.SecretSet(ctx, uri, content); err != nil {
			return "", err
		}
	}
	return uri, p.tools.SecretGrant(ctx, uri, c.id)
}

// tlsContent is what the backend says of TLS, as a secret holds it; empty if it says nothing.
func (p *pass) tlsContent() map[string]string {
	content := map[string]string{}
	if p.backend.data.TLSText != "" {
		content["tls"] = p.backend.data.TLSText
	}
	if p.backend.data.TLSCA != "" {
		content["tls-ca"] = p.backend.data.TLSCA
	}
	return content
}

// grantTLS adds what the backend says of TLS to a client's answer, each field as the client asked for it.
func (p *pass) grantTLS(ctx context.Context, c *client, answer *relation.Answer) error {
	secret := map[string]string{}
	for field, value := range p.tlsContent() {
		switch {
		case c.Request.WantsSecret(field):
			secret[field] = value
		case field == "tls":
			answer.TLS = value
		default:
			answer.TLSCA = value
		}
	}
	if len(secret) == 0 {
		return nil
	}
	found, err := p.findSecret(ctx, c, relation.GroupTLS)
	if err != nil {
		return err
	}
	answer.SecretTLS, err = p.keepSecret(ctx, c, relation.GroupTLS, found, secret)
	return err
}

// refreshTLS brings a client's TLS secret up to date, in place, while its databag is being changed anyway.
func (p *pass) refreshTLS(ctx context.Context, c *client) error {
	if p.dry || c.Own["secret-tls"] == "" || c.RequestErr != nil {
		return nil
	}
	var answer relation.Answer
	if len(p.tlsContent()) == 0 {
		return nil
	}
	return p.grantTLS(ctx, c, &answer)
}

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
	if p.dry || p.right != relation.RightFull || p.backend.state != relation.BackendReady || !p.orphans() || p.spent(ctx) {
		return nil
	}
	hidden := p.hiddenClients()
	breaking, broken := p.event.Breaking()
	for _, number := range p.gone() {
		if hidden && !(broken && number == breaking) {
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

// dropClient drops the user and the secrets of a client relation that is gone.
func (p *pass) dropClient(ctx context.Context, number int) error {
	sql, err := p.sql()
	if err == nil {
		err = sql.DropUser(p.ext, database.UserName(p.backend.data.Username, number))
	}
	if err != nil {
		p.log.Warn("cannot drop a user; trying again", "relation", number, "error", err)
		p.retryLater("drop users")
		if !slices.Contains(p.state.Made, number) {
			p.state.Made = append(p.state.Made, number)
			slices.Sort(p.state.Made)
		}
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
// and makes again what a backend lost with its data. It runs once in a leader's term, and after each time that the
// backend has not answered.
func (p *pass) sweep(ctx context.Context) error {
	sql, err := p.sql()
	var found map[int]string
	if err == nil {
		found, err = sql.ClientUsers(p.ext, p.backend.data.Username)
	}
	for _, number := range slices.Sorted(maps.Keys(found)) {
		if err == nil && !p.shown(number) {
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
		p.retryLater("drop users")
		return nil
	}
	for _, c := range p.clients {
		if !relation.HoldsCredentials(c.Own) {
			continue
		}
		if !slices.Contains(p.state.Made, c.number) {
			p.state.Made = append(p.state.Made, c.number)
		}
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
	slices.Sort(p.state.Made)
	if err := p.sweepSecrets(ctx); err != nil {
		return err
	}
	p.state.Sweep = len(p.refusals) > 0
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
