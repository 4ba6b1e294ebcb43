// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
)

func newIntegrate(a *app) *cobra.Command {
	var ends [2]string
	via := refusals{"via": "there is one network"}
	cmd := &cobra.Command{
		Use:               "integrate <application>[:<endpoint>] <application>[:<endpoint>]",
		Aliases:           []string{"relate"},
		Short:             "Integrate two applications",
		Example:           "    jujulet integrate client-k8s:database drawbridge-k8s:database",
		ValidArgsFunction: a.completeEndpoints(),
		Args:              twoEndpoints(&ends, "an integration must involve two applications"),
		PreRunE:           func(cmd *cobra.Command, _ []string) error { return via.check(cmd.Flags()) },
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error {
			_, err := c.Integrate(ctx, ends[0], ends[1])
			return err
		}),
	}
	via.add(cmd.Flags())
	return cmd
}

// twoEndpoints parses "app[:endpoint] app[:endpoint]".
func twoEndpoints(ends *[2]string, wrongNumber string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 2 {
			return usageErrorf("%s", wrongNumber)
		}
		for i, arg := range args {
			application, endpoint, given := strings.Cut(arg, ":")
			if !isApplication(application) || (given && endpoint == "") {
				return usageErrorf("invalid endpoint %q: expected application or application:endpoint", arg)
			}
			ends[i] = arg
		}
		return nil
	}
}
