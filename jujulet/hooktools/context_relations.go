// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package hooktools

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// hookRelation is the relation of the running hook, if it is a relation hook.
func (c *Context) hookRelation() (int, bool) {
	if c.Hook == nil || c.Hook.Endpoint == "" {
		return 0, false
	}
	return c.Hook.RelationID, true
}

// relationName is "db:3".
func relationName(r model.RelationView) string { return fmt.Sprintf("%s:%d", r.Endpoint, r.ID) }

// broken says whether relation-ids hides the relation: it is ending and its
// units are gone. Peer relations never are.
func (c *Context) broken(r model.RelationView) bool {
	if r.Role == model.Peer {
		return false
	}
	if id, ok := c.hookRelation(); ok && id == r.ID {
		switch c.Hook.Kind {
		case "relation-broken":
			return true
		case "relation-departed": // the one that departs still counts
			return false
		}
	}
	return r.Life != model.Alive && len(c.Members[r.ID]) == 0
}

// relationIDs lists the relations of an endpoint, sorted as strings.
func (c *Context) relationIDs(endpoint string) []string {
	out := []string{}
	for _, r := range c.relations {
		if r.Endpoint == endpoint && !c.broken(r) {
			out = append(out, relationName(r))
		}
	}
	slices.Sort(out)
	return out
}

// readBag reads a databag with the caching that Juju has: own databags and
// applications' once in a hook, members' until a hook about them.
func (c *Context) readBag(ctx context.Context, r model.RelationView, owner string) (map[string]string, error) {
	id := bagID{r.ID, owner}
	if owner == "" {
		return nil, &model.Error{Kind: model.Permission, Message: "permission denied"}
	}
	if owner == c.Unit || owner == c.Info.App {
		return c.readOwn(ctx, id)
	}
	if strings.Contains(owner, "/") && slices.Contains(c.Members[r.ID], owner) {
		if b, ok := c.Cache.get(id); ok {
			return b, nil
		}
		b, err := c.Backend.ReadBag(ctx, c.Unit, r.ID, owner)
		if err == nil {
			c.Cache.put(id, b)
		}
		return b, err
	}
	if b, ok := c.hookBags[id]; ok {
		return b, nil
	}
	b, err := c.Backend.ReadBag(ctx, c.Unit, r.ID, owner)
	if err == nil {
		c.hookBags[id] = b
	}
	return b, err
}

// readOwn returns an own databag with this hook's writes over it.
func (c *Context) readOwn(ctx context.Context, id bagID) (map[string]string, error) {
	base, ok := c.own[id]
	if !ok {
		var err error
		if base, err = c.Backend.ReadBag(ctx, c.Unit, id.relation, id.owner); err != nil {
			return nil, err
		}
		c.own[id] = base
	}
	out := maps.Clone(base)
	for k, v := range c.writes[id] {
		if v == "" {
			delete(out, k)
		} else {
			out[k] = v
		}
	}
	return out, nil
}

// setBag buffers values for an own databag; "" deletes.
func (c *Context) setBag(id bagID, values map[string]string) {
	if c.writes[id] == nil {
		c.writes[id] = map[string]string{}
	}
	maps.Copy(c.writes[id], values)
}

// relationFlag adds -r and --relation. The result is filled in by parsing; with no
// option it is the running hook's relation.
func (c *call) relationFlag() *relationOption {
	o := &relationOption{hook: c.hook}
	set := func(v string) error {
		number := v
		if i := strings.LastIndex(v, ":"); i >= 0 {
			number = v[i+1:]
		}
		id, err := atoi(number)
		if err != nil {
			return fmt.Errorf("invalid relation id")
		}
		r, ok := c.hook.relations[id]
		if !ok {
			return fmt.Errorf("relation not found")
		}
		o.view, o.given = r, true
		return nil
	}
	c.flags.value(set, "r", "relation")
	return o
}

type relationOption struct {
	hook  *Context
	view  model.RelationView
	given bool
}

// get returns the relation asked for, or the hook's own.
func (o *relationOption) get() (model.RelationView, error) {
	if o.given {
		return o.view, nil
	}
	if id, ok := o.hook.hookRelation(); ok {
		if r, known := o.hook.relations[id]; known {
			return r, nil
		}
	}
	return model.RelationView{}, usagef("no relation id specified")
}
