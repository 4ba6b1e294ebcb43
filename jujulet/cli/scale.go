// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
)

func newScaleApplication(a *app) *cobra.Command {
	var application string
	var units int
	return &cobra.Command{
		Use:               "scale-application <application> <scale>",
		Short:             "Set the desired number of application units",
		Example:           "    jujulet scale-application drawbridge-k8s 3",
		ValidArgsFunction: a.completeApplications(),
		Args: func(_ *cobra.Command, args []string) (err error) {
			switch {
			case len(args) == 0:
				return usageErrorf("no application specified")
			case !isApplication(args[0]):
				return usageErrorf("invalid application name %q", args[0])
			case len(args) == 1:
				return usageErrorf("no scale specified")
			}
			application = args[0]
			if units, err = strconv.Atoi(args[1]); err != nil {
				return usageErrorf("invalid scale %q: expected a number", args[1])
			}
			if units < 0 {
				return usageErrorf("scale must be a positive integer")
			}
			return checkEmpty(args[2:])
		},
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error {
			if err := c.Scale(ctx, application, units); err != nil {
				return runErrorf("could not scale application %q: %w", application, err)
			}
			a.infof("%s scaled to %d units", application, units)
			return nil
		}),
	}
}

func newAddUnit(a *app) *cobra.Command {
	var application string
	var units int
	cmd := &cobra.Command{
		Use:               "add-unit <application>",
		Short:             "Add one or more units to a deployed application",
		Example:           "    jujulet add-unit drawbridge-k8s -n 2",
		ValidArgsFunction: a.completeApplications(),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageErrorf("no application specified")
			}
			application = args[0]
			if err := checkEmpty(args[1:]); err != nil {
				return err
			}
			switch {
			case cmd.Flags().Changed("to") || cmd.Flags().Changed("attach-storage"):
				return usageErrorf("k8s models only support --num-units")
			case units < 1:
				return usageErrorf("--num-units must be a positive integer")
			}
			return nil
		},
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error {
			_, err := c.ChangeScale(ctx, control.ScaleRequest{Application: application, Change: units})
			return err
		}),
	}
	cmd.Flags().IntVarP(&units, "num-units", "n", 1, "The number of units to add")
	ignoreString(cmd.Flags(), "to", "attach-storage")
	return cmd
}

type removeUnitOptions struct {
	names   []string
	units   int
	force   bool
	noWait  bool
	dryRun  bool
	storage bool
}

func newRemoveUnit(a *app) *cobra.Command {
	o := &removeUnitOptions{}
	cmd := &cobra.Command{
		Use:               "remove-unit <application> --num-units <number>",
		Short:             "Remove units from an application, those with the highest numbers first",
		Example:           "    jujulet remove-unit drawbridge-k8s --num-units 1",
		ValidArgsFunction: a.completeApplications(),
		Args: func(_ *cobra.Command, args []string) error {
			o.names = args
			return o.check()
		},
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error {
			units, err := c.ChangeScale(ctx, control.ScaleRequest{Application: o.names[0], Change: -o.units, Force: o.force})
			if err == nil {
				a.infof("scaling down to %d units", units)
			}
			return err
		}),
	}
	flags := cmd.Flags()
	flags.IntVar(&o.units, "num-units", 0, "The number of units to remove")
	flags.BoolVar(&o.force, "force", false, "Do not wait for the units' hooks")
	flags.BoolVar(&o.noWait, "no-wait", false, "With --force: as --force")
	flags.BoolVar(&o.dryRun, "dry-run", false, "Not supported, as in juju for Kubernetes")
	flags.BoolVar(&o.storage, "destroy-storage", false, "Not supported, as in juju for Kubernetes")
	ignoreBool(flags, "no-prompt")
	return cmd
}

func (o *removeUnitOptions) check() error {
	switch {
	case o.dryRun:
		return usageErrorf("`--dry-run` is not supported for kubernetes units")
	case o.storage:
		return usageErrorf("k8s models only support --num-units")
	case len(o.names) == 0:
		return usageErrorf("no application specified")
	case len(o.names) > 1:
		return usageErrorf("only single application supported")
	case isUnitNumber(o.names[0]):
		return usageErrorf("k8s models do not support removing named units.\nInstead specify an application with --num-units.\n")
	case !isApplication(o.names[0]):
		return usageErrorf("application name %q not valid", o.names[0])
	case o.units <= 0:
		return usageErrorf("specify the number of units (> 0) to remove using --num-units")
	case o.noWait && !o.force:
		return usageErrorf("--no-wait without --force not valid")
	}
	return nil
}
