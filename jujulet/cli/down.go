// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"github.com/spf13/cobra"
)

// DownOptions say which cluster process ends, and what becomes of its state.
type DownOptions struct {
	// State is the absolute path of the state folder.
	State string
	// Destroy removes the model: the next up begins with an empty one.
	Destroy bool
}

func newDown(a *app) *cobra.Command {
	options := DownOptions{}
	cmd := &cobra.Command{
		Use:   "down",
		Short: "End the cluster of this state folder",
		Long: `End the cluster: every pod, process, mount and network of it is gone when the command returns. The model stays in
the state folder, and "jujulet up" brings it back; with --destroy it is removed.`,
		Example: "    jujulet down\n    jujulet down --destroy",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if options.State, err = a.stateFolder(); err != nil {
				return err
			}
			return a.Lifecycle.Down(cmd.Context(), options)
		},
	}
	cmd.Flags().BoolVar(&options.Destroy, "destroy", false, "Remove the model too")
	return cmd
}
