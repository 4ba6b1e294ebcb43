// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
)

func newFire(a *app) *cobra.Command {
	var request control.FireRequest
	return &cobra.Command{
		Use:   "fire <unit> <hook> [<key>=<value> ...]",
		Short: "Run a hook once more",
		Long: `Run a hook of a unit once more, as soon as the unit is idle. A relation hook needs relation=<endpoint>:<id>, and
remote=<unit or application> for joined, changed and departed.`,
		Example: `    jujulet fire drawbridge-k8s/0 update-status
    jujulet fire drawbridge-k8s/0 database-relation-changed relation=database:4 remote=client-k8s`,
		ValidArgsFunction: a.completeUnits(),
		Args: func(_ *cobra.Command, args []string) (err error) {
			if len(args) < 2 {
				return usageErrorf("expected a unit and a hook, such as: fire foo/0 update-status")
			}
			request.Unit, request.Hook = args[0], args[1]
			if !isUnit(request.Unit) {
				return usageErrorf("invalid unit name %q", request.Unit)
			}
			request.Args, err = keyValues(args[2:])
			return err
		},
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error { return c.Fire(ctx, request) }),
	}
}
