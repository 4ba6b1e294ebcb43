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
				return err
			}
			a.infof("%s scaled to %d units", application, units)
			return nil
		}),
	}
}
