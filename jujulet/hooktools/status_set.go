// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package hooktools

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

var charmStatuses = []string{"maintenance", "blocked", "waiting", "active"}

// statusSet sets the unit's status, or the application's, at once.
func statusSet(c *call) error {
	var app bool
	c.flags.boolean(&app, "application")
	args, err := c.parse()
	if err != nil {
		return err
	}
	if len(args) == 0 {
		return usagef("invalid args, require <status> [message]")
	}
	if !slices.Contains(charmStatuses, args[0]) {
		return usagef("invalid status %q, expected one of %v", args[0], charmStatuses)
	}
	v := model.StatusValue{Status: args[0]}
	if len(args) > 1 {
		v.Message = args[1]
		if err := noArgs(args[2:]); err != nil {
			return err
		}
	}
	if app {
		return c.hook.Backend.SetAppStatus(c.ctx, c.hook.Unit, v)
	}
	if err := c.hook.Backend.SetUnitStatus(c.ctx, c.hook.Unit, v); err != nil {
		return err
	}
	c.hook.statuses = append(c.hook.statuses, v)
	return nil
}

// statusGet prints the unit's status, or the application's.
func statusGet(c *call) error {
	var app, data bool
	out := c.outputFlags("smart", "yaml", "json")
	c.flags.boolean(&data, "include-data")
	c.flags.boolean(&app, "application")
	args, err := c.parse()
	if err != nil {
		return err
	}
	if err := noArgs(args); err != nil {
		return err
	}
	if app {
		return c.appStatus(out, data)
	}
	v, err := c.hook.Backend.UnitStatusValue(c.ctx, c.hook.Unit)
	if err != nil {
		return err
	}
	if !data && out.format == "smart" {
		return c.write(out, v.Status)
	}
	return c.write(out, statusMap(v, data))
}

func statusMap(v model.StatusValue, data bool) map[string]any {
	m := map[string]any{"status": v.Status}
	if data {
		m["message"] = v.Message
		m["status-data"] = v.Data
		if v.Data == nil {
			m["status-data"] = map[string]any{}
		}
	}
	return m
}

func (c *call) appStatus(out *output, data bool) error {
	v, units, err := c.hook.Backend.AppStatusValue(c.ctx, c.hook.Unit)
	if err != nil {
		return fmt.Errorf("finding application status: %w", err)
	}
	if !data && out.format == "smart" {
		return c.write(out, v.Status)
	}
	m := statusMap(v, data)
	all := map[string]any{}
	for name, u := range units {
		all[name] = statusMap(u, data)
	}
	m["units"] = all
	return c.write(out, map[string]any{"application-status": m})
}

// applicationVersionSet sets the workload's version, at once.
func applicationVersionSet(c *call) error {
	args, err := c.parse()
	if err != nil {
		return err
	}
	if len(args) == 0 {
		return usagef("no version specified")
	}
	if err := noArgs(args[1:]); err != nil {
		return err
	}
	return c.hook.Backend.SetVersion(c.ctx, c.hook.Unit, args[0])
}

var logLevels = []string{"TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"}

// jujuLog writes to the model's debug log, at once.
func jujuLog(c *call) error {
	var level string
	var debug bool
	level = "INFO"
	c.flags.text(&level, "l", "log-level")
	note := c.oldFormat("juju-log")
	c.flags.boolean(&debug, "debug")
	args, err := c.parse()
	if err != nil {
		return err
	}
	if len(args) == 0 {
		return usagef("no message specified")
	}
	note()
	if debug {
		level = "DEBUG"
	}
	upper := strings.ToUpper(level)
	if upper == "WARN" {
		upper = "WARNING"
	}
	if !slices.Contains(logLevels, upper) {
		c.hook.Log("WARNING", fmt.Sprintf("Specified log level of %q is not valid", level))
		upper = "INFO"
	}
	message := strings.Join(args, " ")
	if id, ok := c.hook.hookRelation(); ok {
		message = fmt.Sprintf("%s:%d: %s", c.hook.Hook.Endpoint, id, message)
	}
	c.hook.Log(upper, message)
	return nil
}
