// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package charm

import (
	"context"
	"errors"
	"maps"
	"strconv"

	"github.com/drawbridge-k8s/drawbridge/database"
	"github.com/drawbridge-k8s/drawbridge/hooks/hooktool"
	"github.com/drawbridge-k8s/drawbridge/relation"
)

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
		p.retryLater(makeUsers)
		return nil
	}
	readWrite, readOnly := relation.SplitAddresses(p.seen.exposure.Addresses)
	answer := relation.Answer{
		Request: c.Request, RequestBag: c.bag, Database: c.Request.Database, Endpoints: readWrite, ReadOnlyEndpoints: readOnly,
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
	p.remember(c.number)
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
		p.retryLater(makeUsers)
	}
	return nil
}

// ensureUser makes the client's database and user.
func (p *pass) ensureUser(c *client, user, password string) error {
	sql, err := p.sql()
	if err != nil {
		return err
	}
	name := orSelf(c.Given()["database"], c.Request.Database)
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

// tlsContent is what the backend says of TLS, as a client's secret holds it; empty if it says nothing. In v1 `tls` is JSON.
func (p *pass) tlsContent(v1 bool) map[string]string {
	content := map[string]string{}
	switch {
	case p.backend.data.TLSText == "":
	case v1:
		content["tls"] = strconv.FormatBool(p.backend.data.TLS)
	default:
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
	for field, value := range p.tlsContent(c.Request.V1()) {
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
	if p.dry || c.Given()["secret-tls"] == "" || c.RequestErr != nil || c.Request.ID != relation.GivenID(c.Own) {
		return nil
	}
	var answer relation.Answer
	if len(p.tlsContent(false)) == 0 {
		return nil
	}
	return p.grantTLS(ctx, c, &answer)
}
