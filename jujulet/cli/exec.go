// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cli/render"
	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
)

type execOptions struct {
	tasks        taskOptions
	units        []string
	applications []string
	machines     []string
	command      string
}

// execWait is how long results of a command are waited for. Juju 3.6.
const execWait = 5 * time.Minute

func newExec(a *app) *cobra.Command {
	o := &execOptions{tasks: taskOptions{app: a, silent: true}}
	o.tasks.plain = func(tasks map[string]render.Task) error { return render.Outputs(a.Out, tasks) }
	cmd := &cobra.Command{
		Use:   "exec (--unit <unit> | --application <application>) -- <command> [<argument> ...]",
		Short: "Run a command in a unit's hook context",
		Long: `Run a command in a unit's charm container, in a hook context: hook tools such as relation-get work, and what
they write is committed when the command exits 0.`,
		Example: `    jujulet exec --unit drawbridge-k8s/0 -- relation-ids database
    jujulet exec --application drawbridge-k8s "config-get --format json"`,
		Args: func(cmd *cobra.Command, args []string) error {
			o.tasks.waits = cmd.Flags().Changed("wait")
			return o.parse(args)
		},
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
	flags.StringSliceVar(&o.machines, "machine", nil, "Not supported: there are no machines")
	ignoreBool(flags, "parallel", "operator")
	ignoreString(flags, "execution-group")
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "app" {
			name = "application"
		}
		return pflag.NormalizedName(name)
	})
	o.tasks.addFlags(flags, execWait)
	return cmd
}

func (o *execOptions) parse(args []string) error {
	switch {
	case o.tasks.background && o.tasks.waits:
		return usageErrorf("cannot specify both --wait and --background")
	case len(args) == 0:
		return usageErrorf("no commands specified")
	case len(o.units) == 0 && len(o.applications) == 0 && len(o.machines) == 0:
		return usageErrorf("You must specify a target, either through --all, --machine, --application or --unit")
	}
	var wrong []string
	for _, name := range o.applications {
		if !isApplication(name) {
			wrong = append(wrong, fmt.Sprintf("  %q is not a valid application name", name))
		}
	}
	for _, unit := range o.units {
		if !isUnit(unit) {
			wrong = append(wrong, fmt.Sprintf("  %q is not a valid unit name", unit))
		}
	}
	if len(wrong) > 0 {
		return usageErrorf("The following exec targets are not valid:\n%s", strings.Join(wrong, "\n"))
	}
	if len(o.machines) > 0 {
		return runErrorf("unable to target machines with a k8s controller")
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
