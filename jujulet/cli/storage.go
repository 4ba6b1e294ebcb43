// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"context"
	"regexp"

	"github.com/spf13/cobra"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cli/render"
	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// storageID is what juju takes for the id of a storage instance.
var storageID = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]*[a-z][a-z0-9]*)*/(0|[1-9][0-9]*)$`)

type storageOptions struct {
	app    *app
	ids    []string
	format *format
}

func newStorage(a *app) *cobra.Command {
	o := &storageOptions{app: a}
	cmd := &cobra.Command{
		Use:     "storage",
		Aliases: []string{"list-storage"},
		Short:   "List storage details",
		Example: "    jujulet storage --format yaml",
		Args:    noArgs,
		RunE:    a.withClient(func(ctx context.Context, c *control.Client) error { return o.list(ctx, c) }),
	}
	o.format = formatFlag(cmd.Flags(), "tabular", "json", "yaml")
	return cmd
}

func (o *storageOptions) list(ctx context.Context, c *control.Client) error {
	status, err := c.Status(ctx)
	if err != nil {
		return err
	}
	if len(status.Storage) == 0 {
		if o.format.String() == "tabular" {
			o.app.infof("No storage to display.")
		}
		return nil
	}
	options := o.options()
	written, err := o.format.writeValue(o.app.Out, render.StorageDocument(status.Storage, options))
	if err != nil || written {
		return err
	}
	return render.StorageTabular(o.app.Out, status.Storage, options)
}

func (o *storageOptions) options() render.Options {
	return render.Options{Now: o.app.Now(), Zone: o.app.zone(false), Colour: o.app.colour()}
}

func newShowStorage(a *app) *cobra.Command {
	o := &storageOptions{app: a}
	cmd := &cobra.Command{
		Use:     "show-storage <storage ID> [...]",
		Short:   "Show storage instance information",
		Example: "    jujulet show-storage data/0",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageErrorf("must specify storage ID(s)")
			}
			o.ids = args
			return nil
		},
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error { return o.show(ctx, c) }),
	}
	o.format = formatFlag(cmd.Flags(), "yaml", "json", "smart")
	return cmd
}

func (o *storageOptions) show(ctx context.Context, c *control.Client) error {
	for _, id := range o.ids {
		if !storageID.MatchString(id) {
			return runErrorf("invalid storage ID %s", id)
		}
	}
	status, err := c.Status(ctx)
	if err != nil {
		return err
	}
	known := map[string]model.StorageStatus{}
	for _, s := range status.Storage {
		known[s.ID] = s
	}
	var found []model.StorageStatus
	for _, id := range o.ids {
		s, ok := known[id]
		if !ok {
			return runErrorf("storage instance %q not found", id)
		}
		found = append(found, s)
	}
	document := render.StorageDocument(found, o.options()).Instances
	written, err := o.format.writeValue(o.app.Out, document)
	if err != nil || written {
		return err
	}
	return writeYAML(o.app.Out, document)
}

type removeStorageOptions struct {
	app       *app
	ids       []string
	force     bool
	noDestroy bool
}

func newRemoveStorage(a *app) *cobra.Command {
	o := &removeStorageOptions{app: a}
	cmd := &cobra.Command{
		Use:     "remove-storage <storage> [<storage> ...]",
		Short:   "Remove detached storage, with its content, from the model",
		Example: "    jujulet remove-storage data/0",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageErrorf("remove-storage requires at least one storage ID")
			}
			o.ids = args
			return nil
		},
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error { return o.run(ctx, c) }),
	}
	cmd.Flags().BoolVar(&o.force, "force", false, "Not supported on container models")
	cmd.Flags().BoolVar(&o.noDestroy, "no-destroy", false, "Not supported here: nobody else would know the content")
	return cmd
}

func (o *removeStorageOptions) run(ctx context.Context, c *control.Client) error {
	if o.force {
		return runErrorf("forced detachment of storage on container models not supported")
	}
	if o.noDestroy {
		return runErrorf("cannot keep the content of storage that the model forgets: --no-destroy is not supported here")
	}
	failed := false
	for _, id := range o.ids {
		if !storageID.MatchString(id) {
			return runErrorf("storage ID %q not valid", id)
		}
		if err := c.RemoveStorage(ctx, id); err != nil {
			o.app.infof("failed to remove %s: %v", id, err)
			failed = true
			continue
		}
		o.app.infof("removing %s", id)
	}
	if failed {
		return runErrorf("cannot remove all storage")
	}
	return nil
}
