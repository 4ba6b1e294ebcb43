// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

type removeApplicationOptions struct {
	app          *app
	applications []string
	noPrompt     bool
	force        bool
	noWait       bool
	dryRun       bool
	destroy      bool
}

func newRemoveApplication(a *app) *cobra.Command {
	o := &removeApplicationOptions{app: a}
	cmd := &cobra.Command{
		Use:               "remove-application <application> [<application> ...]",
		Short:             "Remove applications from the model",
		Example:           "    jujulet remove-application --no-prompt client-k8s",
		ValidArgsFunction: a.completeApplications(),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageErrorf("no application specified")
			}
			for _, name := range args {
				if !isApplication(name) {
					return usageErrorf("invalid application name %q", name)
				}
			}
			if o.noWait && !o.force {
				return usageErrorf("--no-wait without --force not valid")
			}
			o.applications = args
			return nil
		},
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error { return o.run(ctx, c) }),
	}
	cmd.Flags().BoolVar(&o.noPrompt, "no-prompt", false, "Do not ask for confirmation")
	cmd.Flags().BoolVar(&o.force, "force", false, "Do not wait for the units' hooks")
	cmd.Flags().BoolVar(&o.noWait, "no-wait", false, "With --force: as --force")
	cmd.Flags().BoolVar(&o.destroy, "destroy-storage", false, "Destroy storage attached to application units")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "Print what would be removed and change nothing")
	return cmd
}

func (o *removeApplicationOptions) run(ctx context.Context, c *control.Client) error {
	status, err := c.Status(ctx)
	if err != nil {
		return err
	}
	for _, name := range o.applications {
		application, ok := status.Applications[name]
		if !ok {
			return runErrorf("application %q not found", name)
		}
		o.app.infof("will remove application %s", name)
		for _, unit := range slices.Sorted(maps.Keys(application.Units)) {
			o.app.infof("- will remove unit %s", unit)
		}
		o.announceStorage(status, application)
	}
	if o.dryRun {
		return nil
	}
	if !o.noPrompt {
		if err := o.app.confirm(); err != nil {
			return runErrorf("application removal: %v", err)
		}
	}
	for _, name := range o.applications {
		if err := c.RemoveApplication(ctx, control.RemoveRequest{Application: name, Force: o.force, DestroyStorage: o.destroy}); err != nil {
			return err
		}
	}
	return nil
}

// announceStorage says what becomes of the storage of an application's units.
func (o *removeApplicationOptions) announceStorage(status model.Status, application model.ApplicationStatus) {
	for _, s := range status.Storage {
		if _, own := application.Units[s.Unit]; !own {
			continue
		}
		if o.destroy {
			o.app.infof("- will remove storage %s", s.ID)
		} else {
			o.app.infof("- will detach storage %s", s.ID)
		}
	}
}

// confirm asks for a yes on standard error; anything else is a no.
func (a *app) confirm() error {
	fmt.Fprint(a.Err, "\nContinue [y/N]? ")
	answer, err := bufio.NewReader(a.In).ReadString('\n')
	if err != nil && err != io.EOF {
		return err
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	default:
		return fmt.Errorf("aborted")
	}
}
