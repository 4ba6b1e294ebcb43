// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
)

func newKill(a *app) *cobra.Command {
	var target control.KillTarget
	var unit string
	return &cobra.Command{
		Use:   "kill (pod|agent|hook) <unit>",
		Short: "End a pod, a unit agent or a running hook by SIGKILL",
		Long: `End something by SIGKILL, as a crash would:

  pod     the whole pod, without a stop hook; it is made again after a second, and the unit finds an empty disk
  agent   the unit agent; it is started again after a second
  hook    the charm's process that runs now; the agent retries the hook`,
		Example: "    jujulet kill pod drawbridge-k8s/leader",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usageErrorf("expected what to kill and a unit, such as: kill pod foo/0")
			}
			target, unit = control.KillTarget(args[0]), args[1]
			switch target {
			case control.KillPod, control.KillAgent, control.KillHook:
			default:
				return usageErrorf("cannot kill %q: expected pod, agent or hook", args[0])
			}
			if !isUnit(unit) {
				return usageErrorf("invalid unit name %q", unit)
			}
			return checkEmpty(args[2:])
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return []string{"pod", "agent", "hook"}, cobra.ShellCompDirectiveNoFileComp
			}
			return a.completeUnits()(cmd, args, word)
		},
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error { return c.Kill(ctx, target, unit) }),
	}
}
