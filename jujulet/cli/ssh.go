// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
)

type sshOptions struct {
	shell     shellOptions
	target    string
	container string
	pty       string
}

func newSSH(a *app) *cobra.Command {
	o := &sshOptions{shell: shellOptions{app: a}}
	cmd := &cobra.Command{
		Use:   "ssh <unit> [<command> [<argument> ...]]",
		Short: "Open a shell, or run a command, in a container of a unit",
		Long: `Open a shell, or run a command, in a container of a unit, as juju does on Kubernetes: no SSH is involved, and the words of
the command are one line for the container's shell. "jujulet shell" keeps them apart and exits with the command's code.`,
		Example: `    jujulet ssh drawbridge-k8s/0
    jujulet ssh --container gateway drawbridge-k8s/leader cat /etc/haproxy/haproxy.cfg`,
		ValidArgsFunction: a.completeUnits(),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageErrorf("no target name specified")
			}
			o.target = args[0]
			if words := slices.DeleteFunc(args[1:], func(word string) bool { return word == "--" }); len(words) > 0 {
				o.shell.request.Command = []string{"sh", "-c", strings.Join(words, " ")}
			}
			return nil
		},
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error { return o.run(ctx, c) }),
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false)
	flags.StringVar(&o.container, "container", "", "The container of the unit (default charm)")
	flags.StringVar(&o.pty, "pty", "", "Whether the command has a terminal: true or false (default: whether this one has)")
	flags.Lookup("pty").NoOptDefVal = "true"
	ignoreBool(flags, "proxy", "no-host-key-checks", "remote")
	return cmd
}

func (o *sshOptions) run(ctx context.Context, c *control.Client) error {
	unit, err := containerOf(ctx, c, o.target, o.container)
	if err != nil {
		return err
	}
	o.shell.request.Unit, o.shell.request.Container = unit, o.container
	if len(o.shell.request.Command) == 0 {
		o.shell.request.Command = []string{"sh"}
	}
	o.shell.noTerminal = o.pty == "false"
	code, err := o.shell.start(ctx, c)
	if err == nil && code != 0 {
		err = runErrorf("command terminated with exit code %d", code)
	}
	return err
}

// containerOf returns the name of a unit that is there and has the container; "" is the charm's. Juju 3.6's texts.
func containerOf(ctx context.Context, c *control.Client, target, container string) (string, error) {
	if !isUnit(target) {
		return "", runErrorf("invalid unit name %q", target)
	}
	status, err := c.Status(ctx)
	if err != nil {
		return "", err
	}
	application, number, _ := strings.Cut(target, "/")
	known := status.Applications[application]
	unit := target
	if number == "leader" {
		if unit = known.Leader; unit == "" {
			return "", runErrorf("could not determine leader for %q", application)
		}
	}
	if _, ok := known.Units[unit]; !ok {
		return "", runErrorf("getting unit %q: unit %q not found", unit, unit)
	}
	const charm = "charm"
	if _, ok := known.Containers[container]; !ok && container != "" && container != charm {
		names := append([]string{charm}, slices.Sorted(maps.Keys(known.Containers))...)
		return "", runErrorf("container %q must be one of %s", container, strings.Join(names, ", "))
	}
	return unit, nil
}
