// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

type waitForOptions struct {
	app     *app
	kind    string
	name    string
	text    string
	timeout time.Duration
	query   query
	fields  func(model.Status, string) (map[string]any, bool)
}

func newWaitFor(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "wait-for (application|unit) <name>",
		Short: "Wait for an application or a unit to reach a state",
		Example: `    jujulet wait-for application drawbridge-k8s --query='status=="active" && idle' --timeout 2m
    jujulet wait-for unit client-k8s/0`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageErrorf("no kind specified: expected application or unit")
			}
			return usageErrorf("cannot wait for %q: expected application or unit", args[0])
		},
	}
	cmd.AddCommand(newWaitForOne(a, "application", isApplication, applicationFields,
		`    jujulet wait-for application drawbridge-k8s
    jujulet wait-for application drawbridge-k8s --query='status=="active" && idle' --timeout 2m`))
	cmd.AddCommand(newWaitForOne(a, "unit", isUnit, unitFields,
		`    jujulet wait-for unit client-k8s/0 --query='workload-status=="active" && idle'
    jujulet wait-for unit client-k8s/0 --query='life=="dead"'`))
	return cmd
}

func newWaitForOne(a *app, kind string, valid func(string) bool, fields func(model.Status, string) (map[string]any, bool), example string) *cobra.Command {
	o := &waitForOptions{app: a, kind: kind, fields: fields}
	names := known(fields)
	cmd := &cobra.Command{
		Use:   kind + " <name>",
		Short: "Wait for one " + kind,
		Long: "Wait until a condition holds for one " + kind + ", which need not exist yet.\n\n" +
			"The condition knows == != < <= > >= && || ! and parentheses, and these names:\n  " +
			strings.Join(slices.Sorted(maps.Keys(names)), " "),
		Example: example,
		Args: func(_ *cobra.Command, args []string) (err error) {
			if len(args) == 0 {
				return usageErrorf("%s name must be supplied when waiting for it", kind)
			}
			if o.name = args[0]; !valid(o.name) {
				return usageErrorf("invalid %s name %q", kind, o.name)
			}
			if o.query, err = parseQuery(o.text, names); err != nil {
				return usageErrorf("%v", err)
			}
			return checkEmpty(args[1:])
		},
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error { return o.run(ctx, c) }),
	}
	cmd.Flags().StringVar(&o.text, "query", `life=="alive" && status=="active"`, "The condition")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 10*time.Minute, "How long to wait")
	return cmd
}

func (o *waitForOptions) run(ctx context.Context, c *control.Client) error {
	waiting, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	seen, said := false, ""
	say := func(text string) {
		if text != said {
			o.app.infof("%s", text)
			said = text
		}
	}
	err := c.Wait(waiting, func(ctx context.Context) (bool, error) {
		status, err := c.Status(ctx)
		if err != nil {
			return false, err
		}
		fields, found := o.fields(status, o.name)
		switch {
		case found:
			seen = true
			say(o.kind + " \"" + o.name + "\" found, waiting...")
		case !seen:
			say(o.kind + " \"" + o.name + "\" not found, waiting...")
			return false, nil
		default:
			fields["life"] = string(model.Dead)
		}
		return truth(o.query, fields)
	})
	if err != nil && ctx.Err() == nil && (errors.Is(err, context.DeadlineExceeded) || waiting.Err() != nil) {
		return runErrorf("timed out waiting for %q to reach goal state", o.name)
	}
	return err
}

// known returns the names that a condition may use: those of something that does not exist.
func known(fields func(model.Status, string) (map[string]any, bool)) map[string]bool {
	names := map[string]bool{}
	values, _ := fields(model.Status{}, "")
	for name := range values {
		names[name] = true
	}
	return names
}

// applicationFields are the names of a condition about an application. idle: all units are there and have nothing to do.
func applicationFields(s model.Status, name string) (map[string]any, bool) {
	a, found := s.Applications[name]
	idle := found && len(a.Units) == a.Scale
	for _, u := range a.Units {
		idle = idle && u.Idle
	}
	return map[string]any{
		"name": name, "life": string(a.Life), "status": a.Status.Status, "message": a.Status.Message,
		"charm-name": a.CharmName, "workload-version": a.Version, "address": a.Address, "leader": a.Leader,
		"scale": a.Scale, "units": len(a.Units), "trust": a.Trust, "idle": idle,
	}, found
}

func unitFields(s model.Status, name string) (map[string]any, bool) {
	application, _, _ := strings.Cut(name, "/")
	a := s.Applications[application]
	if name == application+"/leader" && a.Leader != "" {
		name = a.Leader
	}
	u, found := a.Units[name]
	return map[string]any{
		"name": name, "application": application, "life": string(u.Life),
		"status": u.Workload.Status, "message": u.Workload.Message,
		"workload-status": u.Workload.Status, "workload-message": u.Workload.Message,
		"agent-status": u.Agent.Status, "agent-message": u.Agent.Message, "workload-version": u.Version,
		"leader": u.Leader, "address": u.Pod.Address, "ready": u.Pod.Ready, "idle": u.Idle,
	}, found
}
