// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

type destroyModelOptions struct {
	app      *app
	request  control.DestroyModelRequest
	noPrompt bool
	destroy  bool // its storage
	release  bool
	timeout  time.Duration
}

func newDestroyModel(a *app) *cobra.Command {
	o := &destroyModelOptions{app: a}
	cmd := &cobra.Command{
		Use:   "destroy-model [<controller>:]<model>",
		Short: "Remove a model with all that is in it",
		Example: `    jujulet destroy-model prod --no-prompt
    jujulet destroy-model prod --no-prompt --force --no-wait`,
		Args: func(cmd *cobra.Command, args []string) error { return o.parse(cmd, args) },
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error { return o.run(ctx, c) }),
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.noPrompt, "no-prompt", false, "Do not ask for confirmation")
	flags.BoolVar(&o.destroy, "destroy-storage", false, "Destroy all storage instances in the model")
	flags.BoolVar(&o.release, "release-storage", false, "Not supported")
	flags.BoolVar(&o.request.Force, "force", false, "Remove units that cannot end in order, too")
	flags.BoolVar(&o.request.NoWait, "no-wait", false, "With --force: do not wait for hooks")
	flags.DurationVarP(&o.timeout, "timeout", "t", -1, "With --force: how long hooks may take (default 1m)")
	return cmd
}

func (o *destroyModelOptions) parse(cmd *cobra.Command, args []string) error {
	switch {
	case o.destroy && o.release:
		return usageErrorf("--destroy-storage and --release-storage cannot both be specified")
	case o.release:
		return usageErrorf("--release-storage is not supported: storage does not outlive its model")
	case cmd.Flags().Changed("timeout") && o.timeout < 0:
		return usageErrorf("--timeout must be zero or greater")
	case !o.request.Force && o.timeout >= 0:
		return usageErrorf("--timeout can only be used with --force (dangerous)")
	case len(args) == 0:
		return usageErrorf("no model specified")
	}
	o.request.Model = args[0]
	if o.timeout >= 0 {
		o.request.Timeout = o.timeout
		o.request.NoWait = o.request.NoWait || o.timeout == 0
	}
	return checkEmpty(args[1:])
}

func (o *destroyModelOptions) run(ctx context.Context, c *control.Client) error {
	if o.request.NoWait && !o.request.Force {
		return runErrorf("--no-wait without --force not valid")
	}
	status, err := c.In(o.request.Model).Status(ctx)
	if err != nil {
		return err
	}
	if n := len(status.Storage); n > 0 && !o.destroy {
		return runErrorf("cannot destroy model %q\n\nThe model has persistent storage remaining:\n    %d filesystem(s)\n\n"+
			"To destroy the storage, run the destroy-model\ncommand again with the \"--destroy-storage\" option.", status.Model.Name, n)
	}
	if !o.noPrompt {
		if err := o.confirm(status); err != nil {
			return err
		}
	}
	fmt.Fprint(o.app.Err, "Destroying model")
	if err := c.DestroyModel(ctx, o.request); err != nil {
		fmt.Fprintln(o.app.Err)
		return err
	}
	return o.wait(ctx, c, status.Model.UUID)
}

// confirm wants the model's name typed. Juju 3.6: the same.
func (o *destroyModelOptions) confirm(s model.Status) error {
	name := s.Model.Name
	o.app.infof("WARNING This command will destroy the %q model and affect the following resources. It cannot be stopped.", name)
	o.app.infof(" - %d application%s will be removed", len(s.Applications), strings.Repeat("s", min(1, max(0, len(s.Applications)-1))))
	if len(s.Applications) > 0 {
		list := ""
		for _, app := range slices.Sorted(maps.Keys(s.Applications)) {
			list += fmt.Sprintf(" %q", app)
		}
		o.app.infof("  - application list:%s", list)
	}
	fmt.Fprintf(o.app.Err, "\nTo continue, enter the name of the model to be unregistered: ")
	answer, _ := bufio.NewReader(o.app.In).ReadString('\n')
	if strings.TrimSpace(answer) != name {
		return runErrorf("model destruction: aborted")
	}
	return nil
}

// wait follows the end of the model.
func (o *destroyModelOptions) wait(ctx context.Context, c *control.Client, uuid string) error {
	said := ""
	return c.Wait(ctx, func(ctx context.Context) (bool, error) {
		all, err := c.Models(ctx)
		if err != nil {
			return false, err
		}
		i := slices.IndexFunc(all.Models, func(m control.Model) bool { return m.UUID == uuid })
		if i < 0 {
			o.app.infof("\nModel destroyed.")
			return true, nil
		}
		text := "Waiting for model to be removed"
		if n := all.Models[i].Applications; n > 0 {
			text += fmt.Sprintf(", %d application(s)", n)
		}
		if text != said {
			fmt.Fprintf(o.app.Err, "\n%s...", text)
			said = text
		}
		return false, nil
	})
}
