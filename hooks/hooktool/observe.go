// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package hooktool

import (
	"context"
	"sort"
	"strings"
)

// ConfigGet returns the application's options that have a value: strings,
// bools and float64 (Juju 3.6 sends every number as one).
func (c *Client) ConfigGet(ctx context.Context) (map[string]any, error) {
	v := map[string]any{}
	err := c.read(ctx, &v, "config-get")
	return v, err
}

// IsLeader reports whether this unit is the leader now; Juju guarantees a
// true answer for 30 seconds.
func (c *Client) IsLeader(ctx context.Context) (bool, error) {
	var v bool
	err := c.read(ctx, &v, "is-leader")
	return v, err
}

// GoalState is what the model is meant to become.
type GoalState struct {
	// Units are the units of this application that are not dead, this one
	// included, with their status ("dying" for one that is to go).
	Units map[string]string
	// Relations are the applications and units related, with their status, by
	// endpoint. Peer relations are not listed (Juju 3.6).
	Relations map[string]map[string]string
}

// GoalState returns the goal state.
func (c *Client) GoalState(ctx context.Context) (GoalState, error) {
	type entry struct {
		Status string `json:"status"`
	}
	var raw struct {
		Units     map[string]entry            `json:"units"`
		Relations map[string]map[string]entry `json:"relations"`
	}
	if err := c.read(ctx, &raw, "goal-state"); err != nil {
		return GoalState{}, err
	}
	g := GoalState{Units: map[string]string{}, Relations: map[string]map[string]string{}}
	for name, e := range raw.Units {
		g.Units[name] = e.Status
	}
	for endpoint, members := range raw.Relations {
		g.Relations[endpoint] = map[string]string{}
		for name, e := range members {
			g.Relations[endpoint][name] = e.Status
		}
	}
	return g, nil
}

// NetworkGet returns the address to bind for an endpoint ("" when there is
// none yet) and the addresses at which others reach it (Juju 3.6 on
// Kubernetes: those of the application's own Service).
func (c *Client) NetworkGet(ctx context.Context, binding string) (bind string, ingress []string, err error) {
	var raw struct {
		Bind []struct {
			Addresses []struct {
				Value string `json:"value"`
			} `json:"addresses"`
		} `json:"bind-addresses"`
		Ingress []string `json:"ingress-addresses"`
	}
	if err := c.read(ctx, &raw, "network-get", "--", binding); err != nil {
		return "", nil, err
	}
	for _, b := range raw.Bind {
		for _, a := range b.Addresses {
			if bind == "" {
				bind = a.Value
			}
		}
	}
	return bind, raw.Ingress, nil
}

// RelationIDs returns the ids of an endpoint's relations ("db:3"), in order
// of their number. A relation that is being broken is not among them.
func (c *Client) RelationIDs(ctx context.Context, endpoint string) ([]string, error) {
	var v []string
	err := c.read(ctx, &v, "relation-ids", "--", endpoint)
	sort.Slice(v, func(i, j int) bool { return lessID(v[i], v[j]) })
	return v, err
}

// lessID orders "db:3" before "db:12".
func lessID(a, b string) bool {
	_, na, _ := strings.Cut(a, ":")
	_, nb, _ := strings.Cut(b, ":")
	if len(na) != len(nb) {
		return len(na) < len(nb)
	}
	return na < nb
}

// RelationUnits returns the remote units of a relation that this unit has
// been shown, sorted.
func (c *Client) RelationUnits(ctx context.Context, id string) ([]string, error) {
	var v []string
	err := c.read(ctx, &v, "relation-list", "-r", id)
	sort.Strings(v)
	return v, err
}

// RelationApp returns the name of the remote application of a relation.
func (c *Client) RelationApp(ctx context.Context, id string) (string, error) {
	var v string
	err := c.read(ctx, &v, "relation-list", "-r", id, "--app")
	return v, err
}

// RelationModel returns the UUID of the model of the remote application.
func (c *Client) RelationModel(ctx context.Context, id string) (string, error) {
	var v struct {
		UUID string `json:"uuid"`
	}
	err := c.read(ctx, &v, "relation-model-get", "-r", id)
	return v.UUID, err
}

// RelationGet returns the databag of one unit in a relation, our own writes
// of this hook included. It is never nil without an error.
func (c *Client) RelationGet(ctx context.Context, id, unit string) (map[string]string, error) {
	v := map[string]string{}
	err := c.read(ctx, &v, "relation-get", "-r", id, "--", "-", unit)
	return v, err
}

// RelationGetApp returns the databag of one application in a relation. Juju
// 3.6: our own application's is readable by the leader only, except in a peer
// relation; see IsPermission.
func (c *Client) RelationGetApp(ctx context.Context, id, app string) (map[string]string, error) {
	v := map[string]string{}
	err := c.read(ctx, &v, "relation-get", "-r", id, "--app", "--", "-", app)
	return v, err
}
