// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

// Command client-k8s is an example of a charm: a requirer of mysql_client that
// runs statements through the address that it was given.
//
// Every hook does the same for each relation: make the request, keep what the
// other side has published, and say how it is. It also carries the document of
// connected applications for its workload (connect.go).
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/drawbridge-k8s/drawbridge/connections"
	"github.com/drawbridge-k8s/drawbridge/database"
	"github.com/drawbridge-k8s/drawbridge/hooks"
	"github.com/drawbridge-k8s/drawbridge/hooks/hooktool"
	"github.com/drawbridge-k8s/drawbridge/relation"
)

const (
	endpoint = "database"
	maxRows  = 1000
)

func main() { os.Exit(hooks.Run(context.Background(), os.Getenv, handle)) }

func handle(ctx context.Context, h *hooks.Hook) error {
	c := client{h}
	switch h.Event.Kind {
	case hooks.Action:
		if h.Event.Action == connections.ActionQuery {
			return c.queryConnection(ctx)
		}
		return c.query(ctx)
	case hooks.Stop, hooks.Remove:
		return nil
	}
	status, message, err := c.reconcile(ctx)
	if err != nil {
		return err
	}
	causes, _, err := c.connect(ctx)
	if err != nil {
		return err
	}
	if status == hooktool.Active && len(causes) > 0 {
		status, message = causes[0].Status, causes[0].Text
	}
	if was, said, err := h.Tools.StatusGet(ctx); err != nil || was == status && said == message {
		return err
	}
	return h.Tools.StatusSet(ctx, status, message)
}

type client struct{ *hooks.Hook }

// reconcile returns the unit's status: that of the last relation which is not
// well.
func (c client) reconcile(ctx context.Context) (status hooktool.Status, message string, err error) {
	ids, err := c.Tools.RelationIDs(ctx, endpoint)
	if err != nil {
		return "", "", err
	}
	if len(ids) == 0 {
		return hooktool.Blocked, fmt.Sprintf("missing relation: run juju integrate %s:%s <database>", c.Event.App, endpoint), nil
	}
	status = hooktool.Active
	for _, id := range ids {
		problem, err := c.request(ctx, id)
		if err != nil {
			return "", "", err
		}
		given, missing, err := c.given(ctx, id)
		switch {
		case err != nil:
			return "", "", err
		case problem != "":
			status, message = hooktool.Blocked, problem
		case missing != "" && status == hooktool.Active:
			status, message = hooktool.Waiting, "waiting for "+missing
		case status == hooktool.Active:
			message = fmt.Sprintf("database %s at %s", given.Database, strings.Join(given.Endpoints, ", "))
		}
	}
	return status, message, nil
}

// request makes the request, in one write and once; problem says that it is not
// the one that the options ask for.
func (c client) request(ctx context.Context, id string) (problem string, err error) {
	leader, err := c.Tools.IsLeader(ctx)
	if err != nil || !leader {
		return "", err
	}
	config, err := c.Tools.ConfigGet(ctx)
	if err != nil {
		return "", err
	}
	own, err := c.Tools.RelationGetApp(ctx, id, c.Event.App)
	if err != nil {
		return "", err
	}
	name, _ := config["database"].(string)
	if asked := own["database"]; asked != "" {
		if asked != name {
			problem = fmt.Sprintf("database is %s: to use another, remove the relation and relate again", asked)
		}
		return problem, nil
	}
	if name == "" {
		return "option database is empty", nil
	}
	wanted := relation.Request{Database: name}
	if secrets, _ := config["secrets"].(bool); secrets {
		wanted.RequestedSecrets = relation.DefaultRequestedSecrets()
	}
	return "", c.Tools.RelationSetApp(ctx, id, relation.Diff(own, wanted.Bag()))
}

// given reads what the other side has published, and keeps it in this unit's
// databag, where the other side sees that it was seen. What is missing of it is
// no error.
func (c client) given(ctx context.Context, id string) (given relation.Backend, missing string, err error) {
	app, err := c.Tools.RelationApp(ctx, id)
	if err != nil {
		return given, "", err
	}
	bag, err := c.Tools.RelationGetApp(ctx, id, app)
	if err != nil {
		return given, "", err
	}
	if c.Event.Kind != hooks.Action {
		own, err := c.Tools.RelationGet(ctx, id, c.Event.Unit)
		if err != nil {
			return given, "", err
		}
		if err := c.Tools.RelationSet(ctx, id, relation.Diff(own, map[string]string{"data": relation.Mirror(bag)})); err != nil {
			return given, "", err
		}
	}
	if given, err = relation.ParseBackend(bag); err != nil {
		return given, fmt.Sprintf("a readable answer of %s: %v", app, err), nil
	}
	if given.SecretUser != "" {
		content, err := c.Tools.SecretGet(ctx, hooktool.SecretRef{ID: given.SecretUser, Refresh: true})
		if hooktool.IsNotFound(err) || hooktool.IsPermission(err) {
			return given, "the secret of " + app, nil
		}
		if err != nil {
			return given, "", err
		}
		given.UseUserSecret(content)
	}
	if missing = given.Missing(); missing != "" {
		missing += " of " + app
	}
	return given, missing, nil
}

// query runs the statement of the action through the first published address
// that answers.
func (c client) query(ctx context.Context) error {
	params, err := c.Tools.ActionGet(ctx)
	if err != nil {
		return err
	}
	statement, _ := params["sql"].(string)
	readOnly, _ := params["read-only"].(bool)
	ids, err := c.Tools.RelationIDs(ctx, endpoint)
	if err != nil {
		return err
	}
	if len(ids) == 0 {
		return c.Tools.ActionFail(ctx, "no database is related")
	}
	given, missing, err := c.given(ctx, ids[0])
	if err != nil {
		return err
	}
	if missing != "" {
		return c.Tools.ActionFail(ctx, "cannot query yet: waiting for "+missing)
	}
	addresses := given.Endpoints
	if readOnly && len(given.ReadOnlyEndpoints) > 0 {
		addresses = given.ReadOnlyEndpoints
	}
	login := database.Credentials{Username: given.Username, Password: given.Password}
	var failed error
	for _, address := range addresses {
		rows, err := login.Query(ctx, address, given.Database, statement, maxRows)
		if err == nil {
			return c.show(ctx, address, rows)
		}
		if failed = err; database.Code(err) != 0 { // the server's own answer
			break
		}
	}
	return c.Tools.ActionFail(ctx, failed.Error())
}

func (c client) show(ctx context.Context, address string, rows database.Rows) error {
	if rows.Values == nil {
		rows.Values = [][]string{}
	}
	values, err := json.Marshal(rows.Values)
	if err != nil {
		return err
	}
	return c.Tools.ActionSet(ctx, map[string]string{
		"address": address,
		"columns": strings.Join(rows.Columns, ","),
		"count":   strconv.Itoa(len(rows.Values)),
		"rows":    string(values),
	})
}
