// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package hooktools

import (
	"maps"
	"strings"
	"time"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// configGet prints the options or one of them.
func configGet(c *call) error {
	var all bool
	out := c.outputFlags("smart", "yaml", "json")
	c.flags.boolean(&all, "a", "all")
	args, err := c.parse()
	if err != nil {
		return err
	}
	key := ""
	if len(args) > 0 {
		key, args = args[0], args[1:]
		if all && key != "" {
			return usagef("cannot use argument --all together with key %q", key)
		}
	}
	if err := noArgs(args); err != nil {
		return err
	}
	if c.hook.config == nil {
		if c.hook.config, err = c.hook.Backend.Config(c.ctx, c.hook.Unit); err != nil {
			return err
		}
	}
	if key != "" {
		return c.write(out, c.hook.config[key])
	}
	values := maps.Clone(c.hook.config)
	if !all {
		maps.DeleteFunc(values, func(_ string, v any) bool { return v == nil })
	}
	return c.write(out, values)
}

// isLeader prints whether leadership is sure for 30 s more.
func isLeader(c *call) error {
	out := c.outputFlags("smart", "yaml", "json")
	args, err := c.parse()
	if err != nil {
		return err
	}
	if err := noArgs(args); err != nil {
		return err
	}
	leads, err := c.hook.isLeader(c.ctx)
	if err != nil {
		return err
	}
	return c.write(out, leads)
}

// goalEntry is one unit or application of goal-state.
type goalEntry struct {
	Status string `json:"status" yaml:"status"`
	Since  string `json:"since,omitempty" yaml:"since,omitempty"`
}

// goalState prints the units of the own application and the other sides.
func goalState(c *call) error {
	out := c.outputFlags("yaml", "json")
	args, err := c.parse()
	if err != nil {
		return err
	}
	if err := noArgs(args); err != nil {
		return err
	}
	g, err := c.hook.Backend.GoalState(c.ctx, c.hook.Unit)
	if err != nil {
		return err
	}
	relations := map[string]map[string]goalEntry{}
	for endpoint, side := range g.Relations {
		relations[endpoint] = goalEntries(side)
	}
	return c.write(out, struct {
		Units     map[string]goalEntry            `json:"units" yaml:"units"`
		Relations map[string]map[string]goalEntry `json:"relations" yaml:"relations"`
	}{goalEntries(g.Units), relations})
}

func goalEntries(in map[string]model.GoalStatus) map[string]goalEntry {
	out := map[string]goalEntry{}
	for name, s := range in {
		out[name] = goalEntry{Status: s.Status, Since: since(s.Since)}
	}
	return out
}

// leaderGet prints the legacy leader settings.
func leaderGet(c *call) error {
	out := c.outputFlags("smart", "yaml", "json")
	args, err := c.parse()
	if err != nil {
		return err
	}
	key := ""
	if len(args) > 0 {
		if strings.Contains(args[0], "=") {
			return usagef("invalid key %q", args[0])
		}
		if args[0] != "-" {
			key = args[0]
		}
		args = args[1:]
	}
	if err := noArgs(args); err != nil {
		return err
	}
	settings, err := c.hook.Backend.LeaderSettings(c.ctx, c.hook.Unit)
	if err != nil {
		return err
	}
	if key == "" {
		return c.write(out, settings)
	}
	if v, ok := settings[key]; ok {
		return c.write(out, v)
	}
	return c.write(out, nil)
}

// leaderSet writes the legacy leader settings, at once.
func leaderSet(c *call) error {
	args, err := c.parse()
	if err != nil {
		return err
	}
	values, err := keyValues(args, true)
	if err != nil {
		return err
	}
	return c.hook.Backend.SetLeaderSettings(c.ctx, c.hook.Unit, values)
}

// since is a moment as the status tools print it.
func since(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }
