// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/drawbridge-k8s/drawbridge/database"
	"github.com/drawbridge-k8s/drawbridge/hooks"
	"github.com/drawbridge-k8s/drawbridge/hooks/hooktool"
	"github.com/drawbridge-k8s/drawbridge/relation"
)

const (
	endpoint   = "database"
	userPrefix = "relation-" // and the relation's id; a router adds "-" and more
	routerRole = "mysqlrouter"
)

// provider brings the users on the server, and what the related applications
// are told, in line with the relations. What a databag or secret says is the
// truth: a server that has lost its data gets the same users again.
type provider struct {
	*hooks.Hook
	admin   *database.Admin
	address string
	version string
	users   []string // on the server
}

// answerAll returns what is wrong with a request, if anything; the others are
// served all the same.
func (p *provider) answerAll(ctx context.Context) (problem string, err error) {
	if p.users, err = p.admin.ListUsers(ctx, userPrefix); err != nil {
		return err.Error(), nil
	}
	ids, err := p.Tools.RelationIDs(ctx, endpoint)
	if err != nil {
		return "", err
	}
	if err := p.dropOthers(ctx, ids); err != nil {
		return err.Error(), nil
	}
	if id, broken := p.Event.Breaking(); broken {
		if err := p.forget(ctx, id); err != nil {
			return "", err
		}
	}
	for _, id := range ids {
		wrong, err := p.answer(ctx, id)
		if err != nil {
			return "", err
		}
		if wrong != nil {
			problem = fmt.Sprintf("relation %s: %v", id, wrong)
		}
	}
	return problem, nil
}

// dropOthers drops the users of relations that are gone, and those that a
// router made under its name.
func (p *provider) dropOthers(ctx context.Context, ids []string) error {
	for _, user := range p.users {
		id, _, _ := strings.Cut(strings.TrimPrefix(user, userPrefix), "-")
		if slices.Contains(ids, endpoint+":"+id) {
			continue
		}
		if err := p.admin.DropUser(ctx, user); err != nil {
			return err
		}
		p.Log.Info("dropped a user of a relation that is gone", "relation", id)
	}
	return nil
}

// forget removes the secret of a relation that is being broken.
func (p *provider) forget(ctx context.Context, id int) error {
	secret, err := p.Tools.SecretInfo(ctx, hooktool.SecretRef{Label: relation.SecretLabel(endpoint, id, relation.GroupUser)})
	if hooktool.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return p.Tools.SecretRemove(ctx, secret.ID)
}

// answer serves one related application. What is wrong with its request, or
// with the server, is no error of the hook.
func (p *provider) answer(ctx context.Context, id string) (wrong, err error) {
	app, err := p.Tools.RelationApp(ctx, id)
	if err != nil {
		return nil, err
	}
	bag, err := p.Tools.RelationGetApp(ctx, id, app)
	if err != nil {
		return nil, err
	}
	own, err := p.Tools.RelationGetApp(ctx, id, p.Event.App)
	if err != nil {
		return nil, err
	}
	request, wrong := relation.ParseRequest(bag)
	if wrong != nil || !request.Asked() {
		return wrong, nil
	}
	number, err := hooks.ParseRelationID(id)
	if err != nil {
		return nil, err
	}
	answer := relation.Answer{
		Request: request, RequestBag: bag, Database: request.Database, Version: p.version,
		Endpoints: []string{p.address}, ReadOnlyEndpoints: []string{p.address},
	}
	c := database.Credentials{Username: userPrefix + strconv.Itoa(number), Password: own["password"]}
	known := relation.HoldsCredentials(own)
	secret := request.WantsSecret("username") && request.WantsSecret("password")
	if known {
		secret = relation.UsesSecrets(own)
	}
	if secret {
		if answer.SecretUser, c.Password, err = p.secret(ctx, number, id, c.Username); err != nil {
			return nil, err
		}
	} else {
		if !known {
			c.Password = database.NewPassword()
		}
		answer.Username, answer.Password = c.Username, c.Password
	}
	if !known || !slices.Contains(p.users, c.Username) {
		if err := p.makeUser(ctx, request, c); err != nil {
			return err, nil
		}
	}
	return nil, p.Tools.RelationSetApp(ctx, id, relation.Diff(own, answer.Bag()))
}

// secret returns the relation's secret and the password in it, and makes it
// unless it is there.
func (p *provider) secret(ctx context.Context, number int, id, username string) (uri, password string, err error) {
	label := relation.SecretLabel(endpoint, number, relation.GroupUser)
	info, err := p.Tools.SecretInfo(ctx, hooktool.SecretRef{Label: label})
	if err == nil {
		content, err := p.Tools.SecretGet(ctx, hooktool.SecretRef{Label: label})
		return "secret:" + info.ID, content["password"], err
	}
	if !hooktool.IsNotFound(err) {
		return "", "", err
	}
	password = database.NewPassword()
	uri, err = p.Tools.SecretAdd(ctx, hooktool.Secret{Label: label, Content: map[string]string{"username": username, "password": password}})
	if err != nil {
		return "", "", err
	}
	return uri, password, p.Tools.SecretGrant(ctx, uri, id)
}

// makeUser makes what a request asks for.
func (p *provider) makeUser(ctx context.Context, r relation.Request, c database.Credentials) error {
	switch r.ExtraUserRoles {
	case routerRole:
		return p.admin.EnsureRouterUser(ctx, c.Username, c.Password)
	case "":
		if err := p.admin.EnsureDatabase(ctx, r.Database); err != nil {
			return err
		}
		return p.admin.EnsureUser(ctx, c.Username, c.Password, r.Database)
	}
	return fmt.Errorf("cannot give role %.40q: the only one is %s", r.ExtraUserRoles, routerRole)
}
