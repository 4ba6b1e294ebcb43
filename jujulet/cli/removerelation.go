// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
)

func newRemoveRelation(a *app) *cobra.Command {
	var ends [2]string
	id := -1
	two := twoEndpoints(&ends, "a relation must involve two applications")
	cmd := &cobra.Command{
		Use:               "remove-relation (<application>[:<endpoint>] <application>[:<endpoint>] | <relation id>)",
		Short:             "Remove an existing relation between two applications",
		Example:           "    jujulet remove-relation client-k8s drawbridge-k8s:database\n    jujulet remove-relation 4",
		ValidArgsFunction: a.completeEndpoints(),
		Args: func(cmd *cobra.Command, args []string) (err error) {
			if len(args) != 1 {
				return two(cmd, args)
			}
			if id, err = strconv.Atoi(args[0]); err != nil || id < 0 {
				return usageErrorf("relation ID %q not valid", args[0])
			}
			return nil
		},
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error {
			if id >= 0 {
				if err := relationEnds(ctx, c, id, &ends); err != nil {
					return err
				}
			}
			return c.RemoveRelation(ctx, ends[0], ends[1])
		}),
	}
	ignoreBool(cmd.Flags(), "force", "no-wait")
	return cmd
}

// relationEnds finds the endpoints of a relation.
func relationEnds(ctx context.Context, c *control.Client, id int, ends *[2]string) error {
	status, err := c.Status(ctx)
	if err != nil {
		return err
	}
	for _, r := range status.Relations {
		switch {
		case r.ID != id:
		case len(r.Ends) != 2:
			return runErrorf("cannot destroy relation %q: is a peer relation", r.Ends[0])
		default:
			ends[0], ends[1] = r.Ends[0].String(), r.Ends[1].String()
			return nil
		}
	}
	return runErrorf("relation \"%d\" not found", id)
}
