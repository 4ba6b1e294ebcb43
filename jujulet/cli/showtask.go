// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
)

func newShowTask(a *app) *cobra.Command {
	o := &taskOptions{app: a}
	var id string
	cmd := &cobra.Command{
		Use:     "show-task <task id>",
		Short:   "Show the results of a task",
		Example: "    jujulet show-task 4",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageErrorf("no task ID specified")
			}
			id = args[0]
			return checkEmpty(args[1:])
		},
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error {
			task, err := c.Task(ctx, id)
			if err != nil {
				return err
			}
			_, err = o.format.writeValue(a.Out, o.document(task))
			return err
		}),
	}
	cmd.Flags().BoolVar(&o.utc, "utc", false, "Show times in UTC")
	o.format = formatFlag(cmd.Flags(), "yaml", "json")
	return cmd
}
