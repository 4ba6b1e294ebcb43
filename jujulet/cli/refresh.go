// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
)

type refreshOptions struct {
	deployOptions // app, charm, config and resources are the same

	application string
	revision    int
	channel     string
	change      string
	storage     []string
	trustChange bool
}

func newRefresh(a *app) *cobra.Command {
	o := &refreshOptions{deployOptions: deployOptions{app: a}}
	cmd := &cobra.Command{
		Use:   "refresh <application>",
		Short: "Refresh an application's charm",
		Long: `Replace the charm of an application by another version of it, from a .charm file or an unpacked charm folder.

The pods are replaced one after another, the highest unit first, each as soon as the one before is ready. In each the
stop hook runs, and in its successor upgrade-charm, config-changed and start. A unit in error is replaced, too: the hook
that has failed is tried again with the new charm, and upgrade-charm does not run.`,
		Example: `    jujulet refresh db --path ./db_amd64.charm
    jujulet refresh db --path ./db_amd64.charm --resource image=./rootfs --config log-level=debug`,
		ValidArgsFunction: a.completeApplications(),
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return usageErrorf("no application specified")
			case !isApplication(args[0]):
				return usageErrorf("invalid application name %q", args[0])
			}
			o.application, o.name = args[0], args[0]
			return checkEmpty(args[1:])
		},
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			o.trustChange = cmd.Flags().Changed("trust")
			return o.check()
		},
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error { return o.run(ctx, c) }),
	}
	flags := cmd.Flags()
	flags.StringVar(&o.charm, "path", "", "Refresh to a charm located at path")
	flags.StringArrayVar(&o.config, "config", nil, "An option as name=value, or a YAML file of options (repeatable)")
	flags.StringArrayVar(&o.resources, "resource", nil, "A resource as in deploy (repeatable)")
	flags.BoolVar(&o.trust, "trust", false, "Give the application rights in the whole cluster; =false takes them")
	flags.Bool("force-units", false, "Refresh all units, even if in error state: as they are anyhow, with pods")
	flags.Bool("force", false, "Without effect, as with juju on Kubernetes")
	flags.Bool("force-base", false, "Without effect, as with juju on Kubernetes")
	flags.IntVar(&o.revision, "revision", -1, "Not supported: there is no store")
	flags.StringVar(&o.channel, "channel", "", "Not supported: there is no store")
	flags.StringVar(&o.change, "switch", "", "Not supported: there is no store")
	flags.StringArrayVar(&o.storage, "storage", nil, "Not supported: storage of a running application does not change")
	return cmd
}

// check refuses what needs a store, and what juju refuses.
func (o *refreshOptions) check() error {
	switch {
	case o.change != "" && o.revision != -1:
		return usageErrorf("--switch and --revision are mutually exclusive")
	case o.charm != "" && o.revision != -1:
		return usageErrorf("--path and --revision are mutually exclusive")
	case o.change != "" && o.charm != "":
		return usageErrorf("--switch and --path are mutually exclusive")
	case o.change != "":
		return hintf(runErrorf("cannot refresh to %q: charms of a store are not supported", o.change), "give --path")
	case o.revision != -1:
		return hintf(runErrorf("cannot refresh to revision %d: charms of a store are not supported", o.revision), "give --path")
	case o.channel != "":
		return hintf(runErrorf("cannot refresh to channel %q: charms of a store are not supported", o.channel), "give --path")
	case len(o.storage) > 0:
		return runErrorf("cannot change storage of %q: not supported for sidecar charms", o.application)
	case o.charm == "":
		return hintf(runErrorf("refreshing a local charm requires either --path or --switch"),
			"to change resources only, use attach-resource")
	}
	if _, err := os.Stat(o.charm); err != nil {
		return runErrorf("no charm found at %q", o.charm)
	}
	return nil
}

func (o *refreshOptions) run(ctx context.Context, c *control.Client) error {
	config, err := o.parseConfig()
	if err != nil {
		return err
	}
	resources, err := keyValues(o.resources)
	if err != nil {
		return err
	}
	if resources, err = o.app.addImages(ctx, c, charmImages(o.charm), resources); err != nil {
		return err
	}
	request := control.RefreshRequest{Application: o.application, Charm: o.charm, Config: config, Resources: resources}
	if o.trustChange {
		request.Trust = &o.trust
	}
	result, err := c.Refresh(ctx, request)
	if err != nil {
		return err
	}
	o.app.infof("Added local charm %q, revision %d, to the model", result.Charm, result.Revision)
	return nil
}

func newAttachResource(a *app) *cobra.Command {
	var application string
	var pairs []string
	return &cobra.Command{
		Use:               "attach-resource <application> <resource name>=<value>",
		Short:             "Change a resource of an application; its pods are replaced",
		Example:           "    jujulet attach-resource db image=./rootfs",
		ValidArgsFunction: a.completeApplications(),
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return usageErrorf("missing application name")
			case len(args) == 1:
				return usageErrorf("no resource specified")
			}
			application, pairs = args[0], args[1:2]
			return checkEmpty(args[2:])
		},
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error {
			resources, err := keyValues(pairs)
			if err != nil {
				return err
			}
			if resources, err = a.addImages(ctx, c, applicationImages(ctx, c, application), resources); err != nil {
				return err
			}
			return c.AttachResource(ctx, control.ResourceRequest{Application: application, Resources: resources})
		}),
	}
}
