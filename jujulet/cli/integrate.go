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
		Use:               "integrate <application>[:<endpoint>] (<application>[:<endpoint>] | <offer URL>)",
		Aliases:           []string{"relate"},
		Short:             "Integrate two applications",
		Example:           "    jujulet integrate client-k8s:database drawbridge-k8s:database\n    jujulet integrate client-k8s admin/prod.mysql",
		ValidArgsFunction: a.completeEndpoints(),
		Args:              twoEndpoints(&ends, "an integration must involve two applications"),
		PreRunE:           func(cmd *cobra.Command, _ []string) error { return via.check(cmd.Flags()) },
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error {
			if err := consumeEnds(ctx, c, &ends); err != nil {
				return err
			}
			_, err := c.Integrate(ctx, ends[0], ends[1])
			return err
		}),
	}
	via.add(cmd.Flags())
	return cmd
}

// consumeEnds makes offers of other models known, and names them as they are known then. Juju 3.6: the same.
func consumeEnds(ctx context.Context, c *control.Client, ends *[2]string) error {
	for i, end := range ends {
		url := control.ParseOfferURL(end)
		if !url.Qualified() {
			continue
		}
		name, err := c.Consume(ctx, control.ConsumeRequest{Model: url.ModelRef(), Offer: url.Offer})
		if err != nil {
			return err
		}
		if ends[i] = name; url.Endpoint != "" {
			ends[i] += ":" + url.Endpoint
		}
	}
	return nil
}

// twoEndpoints parses "app[:endpoint] app[:endpoint]".
func twoEndpoints(ends *[2]string, wrongNumber string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 2 {
			return usageErrorf("%s", wrongNumber)
		}
		for i, arg := range args {
			if url := control.ParseOfferURL(arg); url.Qualified() && isApplication(url.Offer) {
				ends[i] = arg
				continue
			}
			application, endpoint, given := strings.Cut(arg, ":")
			if !isApplication(application) || (given && endpoint == "") {
				return usageErrorf("invalid endpoint %q: expected application or application:endpoint", arg)
			}
			ends[i] = arg
		}
		return nil
	}
}
