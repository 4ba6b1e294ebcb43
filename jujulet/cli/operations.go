// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cli/render"
	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

type operationsOptions struct {
	app          *app
	applications []string
	units        []string
	machines     []string
	actions      []string
	statuses     []string
	limit        uint
	offset       uint
	utc          bool
	format       *format
}

// operationStatuses are what --status may name, in juju's order.
var operationStatuses = []string{"pending", "running", "completed", "failed", "cancelled", "aborting", "aborted", "error"}

// operationsLimit is how many operations are listed unless --limit says more. Juju 3.6.
const operationsLimit = 50

func newOperations(a *app) *cobra.Command {
	o := &operationsOptions{app: a}
	cmd := &cobra.Command{
		Use:     "operations",
		Aliases: []string{"list-operations"},
		Short:   "List pending, running, or completed operations",
		Long:    "List operations: what run and exec have asked for. Those of exec are of the action juju-exec.",
		Example: `    jujulet operations
    jujulet operations --actions juju-exec --units drawbridge-k8s/0 --format yaml`,
		Args: func(_ *cobra.Command, args []string) error { return o.parse(args) },
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error { return o.run(ctx, c) }),
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&o.applications, "applications", nil, "Only of these applications (comma-separated)")
	flags.StringSliceVar(&o.applications, "apps", nil, "The same as --applications")
	flags.StringSliceVar(&o.units, "units", nil, "Only of these units (comma-separated)")
	flags.StringSliceVar(&o.machines, "machines", nil, "Not supported: there are no machines")
	flags.StringSliceVar(&o.actions, "actions", nil, "Only of these actions (comma-separated)")
	flags.StringSliceVar(&o.statuses, "status", nil, "Only in these statuses (comma-separated)")
	flags.UintVar(&o.limit, "limit", 0, "The maximum number of operations to return")
	flags.UintVar(&o.offset, "offset", 0, "Return operations from this one onwards")
	flags.BoolVar(&o.utc, "utc", false, "Show times in UTC")
	o.format = formatFlag(flags, "plain", "json", "yaml")
	return cmd
}

func (o *operationsOptions) parse(args []string) error {
	var wrong []string
	check := func(names []string, valid func(string) bool, format string) {
		for _, name := range names {
			if !valid(name) {
				wrong = append(wrong, fmt.Sprintf(format, name))
			}
		}
	}
	check(o.applications, isApplication, "invalid application name %q")
	check(o.units, isUnitNumber, "invalid unit name %q")
	check(o.machines, func(string) bool { return false }, "invalid machine id %q")
	check(o.statuses, func(s string) bool { return slices.Contains(operationStatuses, s) },
		"%q is not a valid task status, want one of ["+strings.Join(operationStatuses, " ")+"]")
	if len(wrong) > 0 {
		return usageErrorf("%s", strings.Join(wrong, "\n"))
	}
	return checkEmpty(args)
}

func (o *operationsOptions) run(ctx context.Context, c *control.Client) error {
	all, err := c.Operations(ctx)
	if err != nil {
		return err
	}
	status, err := c.Status(ctx)
	if err != nil {
		return err
	}
	for _, name := range o.applications {
		if _, ok := status.Applications[name]; !ok {
			return runErrorf("application %q not found", name)
		}
	}
	for i := range all {
		all[i].Tasks = slices.DeleteFunc(all[i].Tasks, func(task model.Action) bool { return !o.matches(task) })
	}
	all = slices.DeleteFunc(all, func(operation control.Operation) bool {
		return len(operation.Tasks) == 0 || len(o.statuses) > 0 && !slices.Contains(o.statuses, string(operation.Status()))
	})
	limit, offset := int(o.limit), min(int(o.offset), len(all))
	if limit == 0 {
		limit = operationsLimit
	}
	shown := all[offset:min(offset+limit, len(all))]
	if len(shown) == 0 {
		o.app.infof("no matching operations")
		return nil
	}
	document := map[string]render.Operation{}
	for _, operation := range shown {
		for i := range operation.Tasks {
			operation.Tasks[i].Log, operation.Tasks[i].Results = nil, nil
		}
		document[operation.ID] = render.ShowOperation(operation, o.app.zone(o.utc))
	}
	if written, err := o.format.writeValue(o.app.Out, document); written || err != nil {
		return err
	}
	truncated := offset+len(shown) < len(all)
	if offset > 0 || truncated {
		o.app.printf("Displaying operation results %d to %d.\n", offset+1, offset+len(shown))
	}
	if truncated {
		o.app.printf("Run the command again with --offset=%d --limit=%d to see the next batch.\n\n", offset+limit, limit)
	}
	return render.Operations(o.app.Out, shown, o.app.zone(o.utc))
}

// matches says whether a task is asked for. Juju 3.6: an operation is listed with the tasks that are, without results and
// logs.
func (o *operationsOptions) matches(task model.Action) bool {
	application, _, _ := strings.Cut(task.Unit, "/")
	if len(o.applications)+len(o.units) > 0 && !slices.Contains(o.applications, application) && !slices.Contains(o.units, task.Unit) {
		return false
	}
	return len(o.actions) == 0 || slices.Contains(o.actions, task.Name)
}
