// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
)

type execOptions struct {
	tasks        taskOptions
	units        []string
	applications []string
	command      string
}

func newExec(a *app) *cobra.Command {
	o := &execOptions{tasks: taskOptions{app: a}}
	cmd := &cobra.Command{
		Use:   "exec (--unit <unit> | --application <application>) -- <command> [<argument> ...]",
		Short: "Run a command in a unit's hook context",
		Long: `Run a command in a unit's charm container, in a hook context: hook tools such as relation-get work, and what
they write is committed when the command exits 0.`,
		Example: `    jujulet exec --unit drawbridge-k8s/0 -- relation-ids database
    jujulet exec --application drawbridge-k8s "config-get --format json"`,
		Args: func(_ *cobra.Command, args []string) error { return o.parse(args) },
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error {
			operation, err := c.Exec(ctx, control.ExecRequest{
				Units: o.units, Applications: o.applications, Command: o.command, Timeout: o.tasks.wait,
			})
			if err != nil {
				return err
			}
			return o.tasks.follow(ctx, c, operation)
		}),
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false)
	flags.StringSliceVarP(&o.units, "unit", "u", nil, "Units, comma-separated; app/leader is one too")
	flags.StringSliceVarP(&o.applications, "application", "a", nil, "Applications: every unit of them")
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "app" {
			name = "application"
		}
		return pflag.NormalizedName(name)
	})
	o.tasks.addFlags(flags)
	return cmd
}

func (o *execOptions) parse(args []string) error {
	if len(args) == 0 {
		return usageErrorf("no commands specified")
	}
	if len(o.units) == 0 && len(o.applications) == 0 {
		return usageErrorf("You must specify a target, either through --application or --unit")
	}
	for _, unit := range o.units {
		if !isUnit(unit) {
			return usageErrorf("The following exec targets are not valid:\n  %q is not a valid unit name", unit)
		}
	}
	for _, name := range o.applications {
		if !isApplication(name) {
			return usageErrorf("The following exec targets are not valid:\n  %q is not a valid application name", name)
		}
	}
	o.command = shellWords(args)
	return nil
}

// shellWords makes one command line: a single argument is one already, several are quoted where they need it.
func shellWords(args []string) string {
	if len(args) == 1 {
		return args[0]
	}
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = quote(arg)
	}
	return strings.Join(words, " ")
}

func quote(arg string) string {
	const safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./-_"
	if arg != "" && strings.Trim(arg, safe) == "" {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'"'"'`) + "'"
}
