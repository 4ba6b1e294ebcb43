// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"bytes"
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cli/render"
	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
	"github.com/drawbridge-k8s/drawbridge/jujulet/tour"
)

func newTour(a *app) *cobra.Command {
	options := tour.Options{}
	cmd := &cobra.Command{
		Use:   "tour",
		Short: "Deploy, expose and break a database, and measure what is promised",
		Long: `Deploy a database, drawbridge-k8s and a client on a cluster of its own, and drive the exposure through every mode.
A prober of its own finds out when each new address answers first; the controller's journal says when the client was
told. The client must be told within 2 s of the first answer, never before it, and its databag must not move while a
switch is pending. When a connected ConfigMap changes, every unit's document must follow within 2 s.

The report is a table, and tour.json in the output folder. The exit code is 1 if any step failed. Nothing is left
behind, also after Ctrl-C.

Steps: ` + strings.Join(tour.StepNames(), ", "),
		Example: "    jujulet tour\n    jujulet tour --units 1 --steps deploy,loadbalancer",
		Args:    noArgs,
		PreRunE: func(*cobra.Command, []string) error {
			if options.Units < 1 {
				return usageErrorf("invalid value \"%d\" for option --units: at least one unit is needed", options.Units)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return a.tour(cmd.Context(), options) },
	}
	flags := cmd.Flags()
	flags.StringVar(&options.Charms, "charms", "out/charms", "Folder of the packed charms")
	flags.StringVar(&options.Out, "out", "out", "Folder for tour.json, and for the state while the tour lasts")
	flags.IntVar(&options.Units, "units", 3, "Number of units of drawbridge-k8s")
	flags.StringSliceVar(&options.Steps, "steps", nil, "Only these steps (comma-separated); deploy is always run")
	flags.BoolVar(&options.Keep, "keep", false, "Leave the cluster up at the end")
	return cmd
}

func (a *app) tour(ctx context.Context, options tour.Options) error {
	options.Story = a.Out
	options.Render = func(s model.Status) string {
		var text bytes.Buffer
		if err := render.Tabular(&text, s, render.Options{Now: a.Now(), Zone: a.zone(false), Relations: false, Colour: a.colour()}); err != nil {
			return err.Error()
		}
		return text.String()
	}
	options.Up = func(ctx context.Context, state string) (tour.Stage, error) {
		if err := a.Lifecycle.Up(ctx, UpOptions{State: state}); err != nil {
			return nil, err
		}
		return control.New(a.Socket(state)), nil
	}
	options.Down = func(ctx context.Context, state string) error {
		return a.Lifecycle.Down(ctx, DownOptions{State: state, Destroy: true})
	}
	report, err := tour.Run(ctx, options)
	if err != nil {
		return err
	}
	if !report.Passed {
		return runErrorf("the tour failed: %s", strings.Join(report.Failed(), ", "))
	}
	return nil
}
