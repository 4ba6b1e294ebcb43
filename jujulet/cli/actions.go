// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cli/render"
	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
)

func newActions(a *app) *cobra.Command {
	application, schema := "", false
	var format *format
	cmd := &cobra.Command{
		Use:               "actions <application>",
		Aliases:           []string{"list-actions"},
		Short:             "List actions defined for an application",
		Example:           "    jujulet actions drawbridge-k8s\n    jujulet actions drawbridge-k8s --schema",
		ValidArgsFunction: a.completeApplications(),
		Args: func(cmd *cobra.Command, args []string) error {
			if schema && cmd.Flags().Changed("format") && format.value == "tabular" {
				return usageErrorf("full schema not compatible with tabular output")
			}
			if len(args) == 0 {
				return usageErrorf("no application name specified")
			}
			if application = args[0]; !isApplication(application) {
				return usageErrorf("invalid application name %q", application)
			}
			return checkEmpty(args[1:])
		},
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error {
			actions, err := c.Actions(ctx, application)
			if err != nil {
				return err
			}
			if schema {
				document := map[string]map[string]any{}
				for name, spec := range actions {
					document[name] = spec.Params
				}
				if written, err := format.writeValue(a.Out, document); written || err != nil {
					return err
				}
				return writeYAML(a.Out, document)
			}
			document := render.ActionDescriptions(actions)
			if written, err := format.writeValue(a.Out, document); written || err != nil {
				return err
			}
			if len(actions) == 0 {
				a.infof("No actions defined for %s.", application)
				return nil
			}
			return render.Actions(a.Out, document)
		}),
	}
	cmd.Flags().BoolVar(&schema, "schema", false, "Display the full action schema")
	format = formatFlag(cmd.Flags(), "tabular", "json", "yaml")
	return cmd
}

func newShowAction(a *app) *cobra.Command {
	var application, action string
	return &cobra.Command{
		Use:               "show-action <application> <action>",
		Short:             "Show detailed information about an action",
		Example:           "    jujulet show-action drawbridge-k8s get-endpoints",
		ValidArgsFunction: a.completeApplications(),
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return usageErrorf("no application specified")
			case len(args) == 1:
				return usageErrorf("no action specified")
			case !isApplication(args[0]):
				return usageErrorf("invalid application name %q", args[0])
			}
			application, action = args[0], args[1]
			return checkEmpty(args[2:])
		},
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error {
			actions, err := c.Actions(ctx, application)
			if err != nil {
				return err
			}
			spec, ok := actions[action]
			if !ok {
				a.infof("unknown action %q\n", action)
				return exitSilently(exitFailed)
			}
			a.printf("%s\n\nArguments\n", spec.Description)
			if err := writeYAML(a.Out, render.Arguments(spec)); err != nil {
				return err
			}
			a.printf("\n")
			return nil
		}),
	}
}
