// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// completeTimeout bounds how long a shell waits for names.
const completeTimeout = 2 * time.Second

// completion is what a shell asks a command for names.
type completion = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// completeUnits completes the names of units, each application's leader included.
func (a *app) completeUnits() completion {
	return a.complete(func(application model.ApplicationStatus) []string {
		names := []string{application.Name + "/leader"}
		for unit := range application.Units {
			names = append(names, unit)
		}
		return names
	})
}

// completeApplications completes the names of applications.
func (a *app) completeApplications() completion {
	return a.complete(func(application model.ApplicationStatus) []string { return []string{application.Name} })
}

// completeEndpoints completes "application:endpoint".
func (a *app) completeEndpoints() completion {
	return a.complete(func(application model.ApplicationStatus) []string {
		names := []string{application.Name}
		for endpoint := range application.Endpoints {
			names = append(names, application.Name+":"+endpoint)
		}
		return names
	})
}

// complete asks the cluster; when it does not answer there is nothing to complete.
func (a *app) complete(names func(model.ApplicationStatus) []string) completion {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		client, err := a.client()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer client.Close()
		ctx, cancel := context.WithTimeout(cmd.Context(), completeTimeout)
		defer cancel()
		status, err := client.Status(ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var all []string
		for _, application := range status.Applications {
			all = append(all, names(application)...)
		}
		slices.Sort(all)
		return all, cobra.ShellCompDirectiveNoFileComp
	}
}
