// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cli/render"
	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
)

func newShowApplication(a *app) *cobra.Command {
	var names []string
	var format *format
	cmd := &cobra.Command{
		Use:               "show-application <application> [<application> ...]",
		Short:             "Show information about an application",
		Example:           "    jujulet show-application drawbridge-k8s --format json",
		ValidArgsFunction: a.completeApplications(),
		Args: func(_ *cobra.Command, args []string) error {
			if names = args; len(args) == 0 {
				return usageErrorf("an application name must be supplied")
			}
			for _, name := range args {
				if !isApplication(name) {
					return usageErrorf("application name %s not valid", name)
				}
			}
			return nil
		},
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error {
			status, err := c.Status(ctx)
			if err != nil {
				return err
			}
			document := map[string]render.ApplicationInfo{}
			for _, name := range names {
				known, ok := status.Applications[name]
				if !ok {
					return runErrorf("application %q not found", name)
				}
				document[name] = render.ShowApplication(known)
			}
			_, err = format.writeValue(a.Out, document)
			return err
		}),
	}
	format = formatFlag(cmd.Flags(), "yaml", "json")
	return cmd
}
