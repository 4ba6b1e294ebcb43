// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

// UpOptions say how a cluster process is started.
type UpOptions struct {
	// State is the absolute path of the state folder.
	State string
	// Foreground keeps the command until the cluster ends; its log goes to standard error.
	Foreground bool
	// UpdateStatus is the mean interval of update-status; 0 is off.
	UpdateStatus time.Duration
}

// defaultUpdateStatus is juju's update-status-hook-interval.
const defaultUpdateStatus = 5 * time.Minute

// interval is a duration, or "off" for 0. Juju allows a minute to an hour; here the tests want less.
type interval time.Duration

// String returns "off" or the duration.
func (i *interval) String() string {
	if *i == 0 {
		return "off"
	}
	return time.Duration(*i).String()
}

// Type names the flag's values in help.
func (i *interval) Type() string { return "off|duration" }

// Set reads "off" or a duration above 0.
func (i *interval) Set(text string) error {
	if text == "off" {
		*i = 0
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return fmt.Errorf("expected off or a duration such as 5m")
	}
	*i = interval(d)
	return nil
}

func newUp(a *app) *cobra.Command {
	options := UpOptions{}
	every := interval(defaultUpdateStatus)
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start the cluster of this state folder, and return when it is ready",
		Long: `Start the cluster of the state folder, and return when it is ready. What was deployed before is there again: each
unit is, for its charm, a replaced pod.`,
		Example: "    jujulet up\n    jujulet up --state ./try --update-status=off",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if options.State, err = a.stateFolder(); err != nil {
				return err
			}
			options.UpdateStatus = time.Duration(every)
			if err := a.Lifecycle.Up(cmd.Context(), options); err != nil {
				return err
			}
			if !options.Foreground {
				a.infof("The cluster of %s is up. \"jujulet status\" shows it, \"jujulet down\" ends it.", options.State)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&options.Foreground, "foreground", false, "Stay, log to standard error, and end the cluster on a signal")
	cmd.Flags().Var(&every, "update-status", "Interval of the update-status hook")
	return cmd
}
