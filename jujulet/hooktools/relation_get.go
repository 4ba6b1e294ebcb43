// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package hooktools

import (
	"regexp"
	"slices"
	"strings"
)

var (
	unitPattern = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]*[a-z][a-z0-9]*)*/(0|[1-9][0-9]*)$`)
	appPattern  = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]*[a-z][a-z0-9]*)*$`)
)

// relationGet prints a databag or one of its keys.
func relationGet(c *call) error {
	var app bool
	out := c.outputFlags("smart", "yaml", "json")
	rel := c.relationFlag()
	c.flags.boolean(&app, "app")
	args, err := c.parse()
	if err != nil {
		return err
	}
	r, err := rel.get()
	if err != nil {
		return err
	}
	key := ""
	if len(args) > 0 {
		if args[0] != "-" {
			key = args[0]
		}
		args = args[1:]
	}
	owner := ""
	if len(args) > 0 {
		owner, args = args[0], args[1:]
	}
	if owner, err = c.bagOwner(owner, &app); err != nil {
		return err
	}
	if err := noArgs(args); err != nil {
		return err
	}
	bag, err := c.hook.readBag(c.ctx, r, owner)
	if err != nil {
		return err
	}
	if key == "" {
		return c.write(out, bag)
	}
	if v, ok := bag[key]; ok {
		return c.write(out, v)
	}
	return c.write(out, nil)
}

// bagOwner resolves whose databag is meant: what was named, else the hook's
// remote unit, else its remote application.
func (c *call) bagOwner(name string, app *bool) (string, error) {
	if name == "" {
		if _, ok := c.hook.hookRelation(); ok {
			name = c.hook.Hook.RemoteUnit
			if name == "" {
				name = c.hook.Hook.RemoteApp
				*app = true
			}
		}
	}
	if name == "" {
		return "", usagef("no unit or application specified")
	}
	switch {
	case unitPattern.MatchString(name):
		if *app {
			owner, _, _ := strings.Cut(name, "/")
			return owner, nil
		}
	case !appPattern.MatchString(name):
		if *app {
			return "", nil // nobody's: refused when read
		}
		return "", usagef("invalid unit name %q", name)
	case !*app:
		return "", usagef("expected unit name, got application name %q", name)
	}
	return name, nil
}

// relationIDs lists the relations of an endpoint.
func relationIDs(c *call) error {
	out := c.outputFlags("smart", "yaml", "json")
	args, err := c.parse()
	if err != nil {
		return err
	}
	endpoint := ""
	if _, ok := c.hook.hookRelation(); ok {
		endpoint = c.hook.Hook.Endpoint
	}
	if len(args) > 0 {
		endpoint, args = args[0], args[1:]
	} else if endpoint == "" {
		return usagef("no endpoint name specified")
	}
	if err := noArgs(args); err != nil {
		return err
	}
	return c.write(out, c.hook.relationIDs(endpoint))
}

// relationList lists a relation's remote units as delivered, or with --app its
// remote application.
func relationList(c *call) error {
	var app bool
	out := c.outputFlags("smart", "yaml", "json")
	rel := c.relationFlag()
	c.flags.boolean(&app, "app")
	args, err := c.parse()
	if err != nil {
		return err
	}
	r, err := rel.get()
	if err != nil {
		return err
	}
	if err := noArgs(args); err != nil {
		return err
	}
	if app {
		return c.write(out, r.RemoteApp)
	}
	units := slices.Clone(c.hook.Members[r.ID])
	if units == nil {
		units = []string{}
	}
	slices.SortFunc(units, compare)
	return c.write(out, units)
}

// relationModelGet prints the model of the other side: always this one.
func relationModelGet(c *call) error {
	out := c.outputFlags("smart", "yaml", "json")
	rel := c.relationFlag()
	args, err := c.parse()
	if err != nil {
		return err
	}
	view, err := rel.get()
	if err != nil {
		return err
	}
	if err := noArgs(args); err != nil {
		return err
	}
	return c.write(out, map[string]string{"uuid": view.Model})
}
