// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
)

func newRemoveRelation(a *app) *cobra.Command {
	var ends [2]string
	return &cobra.Command{
		Use:               "remove-relation <application>[:<endpoint>] <application>[:<endpoint>]",
		Short:             "Remove an existing relation between two applications",
		Example:           "    jujulet remove-relation client-k8s drawbridge-k8s:database",
		ValidArgsFunction: a.completeEndpoints(),
		Args:              twoEndpoints(&ends, "a relation must involve two applications"),
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error {
			return c.RemoveRelation(ctx, ends[0], ends[1])
		}),
	}
}
