// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
)

func newResolved(a *app) *cobra.Command {
	var request control.ResolvedRequest
	cmd := &cobra.Command{
		Use:     "resolved [<unit> ...]",
		Aliases: []string{"resolve"},
		Short:   "Mark unit errors resolved and re-execute failed hooks",
		Example: `    jujulet resolved drawbridge-k8s/0
    jujulet resolved --all --no-retry`,
		ValidArgsFunction: a.completeUnits(),
		Args: func(_ *cobra.Command, args []string) error {
			if request.All && len(args) > 0 {
				return usageErrorf("specifying unit names(s) with --all is not supported")
			}
			if !request.All && len(args) == 0 {
				return usageErrorf("no unit specified")
			}
			for _, unit := range args {
				if !isUnitNumber(unit) {
					return usageErrorf("unit name %q not valid", unit)
				}
			}
			request.Units = args
			return nil
		},
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error { return c.Resolved(ctx, request) }),
	}
	cmd.Flags().BoolVar(&request.NoRetry, "no-retry", false, "Do not re-execute failed hooks on the unit")
	cmd.Flags().BoolVar(&request.All, "all", false, "Mark all units in error as resolved")
	return cmd
}
