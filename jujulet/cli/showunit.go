// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cli/render"
	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
)

type showUnitOptions struct {
	app    *app
	units  []string
	unit   render.UnitOptions
	format *format
}

func newShowUnit(a *app) *cobra.Command {
	o := &showUnitOptions{app: a}
	cmd := &cobra.Command{
		Use:   "show-unit <unit> [<unit> ...]",
		Short: "Show information about a unit, its relations and databags",
		Example: `    jujulet show-unit client-k8s/0
    jujulet show-unit client-k8s/0 --endpoint database --app`,
		ValidArgsFunction: a.completeUnits(),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageErrorf("an unit name must be supplied")
			}
			for _, unit := range args {
				if !isUnit(unit) {
					return usageErrorf("invalid unit name %q", unit)
				}
			}
			o.units = args
			return nil
		},
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error { return o.run(ctx, c) }),
	}
	flags := cmd.Flags()
	flags.StringVar(&o.unit.Endpoint, "endpoint", "", "Only show relation data of this endpoint")
	flags.StringVar(&o.unit.RelatedUnit, "related-unit", "", "Only show relation data of this unit")
	flags.BoolVar(&o.unit.App, "app", false, "Only show application relation data")
	o.format = formatFlag(flags, "yaml", "json")
	return cmd
}

func (o *showUnitOptions) run(ctx context.Context, c *control.Client) error {
	status, err := c.Status(ctx)
	if err != nil {
		return err
	}
	document := map[string]render.Unit{}
	for _, unit := range o.units {
		name, view, ok := render.ShowUnit(status, unit, o.unit)
		if !ok {
			return runErrorf("unit %q not found", unit)
		}
		document[name] = view
	}
	_, err = o.format.writeValue(o.app.Out, document)
	return err
}
