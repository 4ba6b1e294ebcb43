// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
)

type trustOptions struct {
	application string
	scope       string
	remove      bool
}

func newTrust(a *app) *cobra.Command {
	o := &trustOptions{}
	cmd := &cobra.Command{
		Use:   "trust <application>",
		Short: "Set the trust status of a deployed application",
		Example: `    jujulet trust drawbridge-k8s --scope=cluster
    jujulet trust drawbridge-k8s --remove`,
		ValidArgsFunction: a.completeApplications(),
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return usageErrorf("no application name specified")
			case !isApplication(args[0]):
				return usageErrorf("invalid application name %q", args[0])
			}
			o.application = args[0]
			return checkEmpty(args[1:])
		},
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error { return o.run(ctx, c) }),
	}
	cmd.Flags().StringVar(&o.scope, "scope", "", "The scope of the trust: cluster")
	cmd.Flags().BoolVar(&o.remove, "remove", false, "Take the trust away")
	return cmd
}

func (o *trustOptions) run(ctx context.Context, c *control.Client) error {
	switch {
	case o.remove:
	case o.scope == "":
		return hintf(runErrorf("'jujulet trust' currently grants full access to the cluster itself"),
			"set the scope to 'cluster' using '--scope=cluster' to confirm this choice")
	case o.scope != "cluster":
		return runErrorf("scope %q not valid", o.scope)
	}
	return c.Trust(ctx, o.application, !o.remove)
}
