// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"maps"
	"slices"

	"github.com/spf13/cobra"
)

// Why verbs of juju are not there.
const (
	noCloud     = "there are no clouds, credentials or controllers to choose: \"jujulet up\" is the controller"
	noMachine   = "this is a Kubernetes model: it has no machines"
	noKeys      = "there are no SSH keys: \"jujulet ssh\" needs none"
	noUsers     = "there is one user, who owns this machine"
	noSpaces    = "there is one space, alpha"
	noExpose    = "nothing leads in through juju's ingress; a Service of type LoadBalancer or NodePort does"
	noStore     = "charms of a store are not supported; \"jujulet deploy\" takes a .charm file or a folder"
	noLimits    = "nothing is limited here"
	noBundles   = "bundles are not supported"
	noDebug     = "hooks are not taken over here; \"jujulet exec\" and \"jujulet fire\" run them"
	noSuspend   = "a relation is there or it is not"
	noMigration = "the model is a file in the state folder"
	noPools     = "there is one kind of storage, a folder of the state folder"
)

// refusedVerbs are verbs of juju that a script may call, each with the reason why it is refused rather than unknown.
var refusedVerbs = map[string]string{
	"add-cloud": noCloud, "add-credential": noCloud, "add-k8s": noCloud, "autoload-credentials": noCloud, "bootstrap": noCloud,
	"clouds": noCloud, "credentials": noCloud, "default-credential": noCloud, "destroy-controller": noCloud, "enable-ha": noCloud,
	"kill-controller": noCloud, "register": noCloud, "remove-cloud": noCloud, "remove-credential": noCloud, "remove-k8s": noCloud,
	"update-cloud": noCloud, "update-credential": noCloud, "update-k8s": noCloud, "upgrade-controller": noCloud, "upgrade-model": noCloud,
	"add-machine": noMachine, "machines": noMachine, "remove-machine": noMachine, "show-machine": noMachine,
	"add-ssh-key": noKeys, "import-ssh-key": noKeys, "remove-ssh-key": noKeys, "ssh-keys": noKeys,
	"add-user": noUsers, "change-user-password": noUsers, "grant": noUsers, "login": noUsers, "logout": noUsers, "remove-user": noUsers,
	"revoke": noUsers, "users": noUsers,
	"add-space": noSpaces, "bind": noSpaces, "spaces": noSpaces, "subnets": noSpaces,
	"expose": noExpose, "unexpose": noExpose,
	"download": noStore, "find": noStore, "info": noStore,
	"constraints": noLimits, "set-constraints": noLimits, "set-model-constraints": noLimits,
	"diff-bundle": noBundles, "export-bundle": noBundles,
	"debug-code": noDebug, "debug-hooks": noDebug,
	"resume-relation": noSuspend, "suspend-relation": noSuspend,
	"create-backup": noMigration, "migrate": noMigration,
	"create-storage-pool": noPools, "storage-pools": noPools,
}

// addRefused adds the verbs that are refused, unless the verb is there by now. They are not listed in help.
func addRefused(root *cobra.Command) {
	known := map[string]bool{}
	for _, c := range root.Commands() {
		known[c.Name()] = true
	}
	for _, name := range slices.Sorted(maps.Keys(refusedVerbs)) {
		if known[name] {
			continue
		}
		root.AddCommand(&cobra.Command{
			Use: name, Short: "Not supported: " + refusedVerbs[name], Hidden: true, DisableFlagParsing: true,
			RunE: func(*cobra.Command, []string) error {
				return runErrorf("%s is not supported here: %s", name, refusedVerbs[name])
			},
		})
	}
}

// newModelConstraints is there because scripts read it: there never are any.
func newModelConstraints(a *app) *cobra.Command {
	var format *format
	cmd := &cobra.Command{
		Use:     "model-constraints",
		Short:   "Print the constraints of the model: there are none, nothing is limited here",
		Example: "    jujulet model-constraints --format json",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := format.writeValue(a.Out, struct{}{})
			return err
		},
	}
	format = formatFlag(cmd.Flags(), "constraints", "json", "yaml")
	return cmd
}
