// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
)

func newSetLeader(a *app) *cobra.Command {
	var unit string
	return &cobra.Command{
		Use:               "set-leader <unit>",
		Short:             "Move leadership to a unit at once",
		Long:              "Move the leadership of an application to one of its units at once, without waiting for the lease to end.",
		Example:           "    jujulet set-leader drawbridge-k8s/1",
		ValidArgsFunction: a.completeUnits(),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageErrorf("no unit specified")
			}
			if unit = args[0]; !isUnitNumber(unit) {
				return usageErrorf("invalid unit name %q", unit)
			}
			return checkEmpty(args[1:])
		},
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error {
			application, _, _ := strings.Cut(unit, "/")
			return c.SetLeader(ctx, application, unit)
		}),
	}
}
