// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"context"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cli/render"
	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

type statusOptions struct {
	app       *app
	patterns  []string
	relations bool
	storage   bool
	utc       bool
	format    *format
}

func newStatus(a *app) *cobra.Command {
	o := &statusOptions{app: a}
	cmd := &cobra.Command{
		Use:   "status [<application or unit pattern> ...]",
		Short: "Report the status of the model, its applications and units",
		Example: `    jujulet status --relations
    jujulet status drawbridge-k8s --format json`,
		Args: func(_ *cobra.Command, args []string) error {
			for _, pattern := range args {
				if _, err := path.Match(pattern, ""); err != nil {
					return usageErrorf("pattern %q contains invalid characters", pattern)
				}
			}
			o.patterns = args
			return nil
		},
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error { return o.run(ctx, c) }),
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.relations, "relations", false, "Show the 'relations' section in tabular output")
	flags.BoolVar(&o.relations, "integrations", false, "The same as --relations")
	flags.BoolVar(&o.storage, "storage", false, "Show the storage section")
	flags.BoolVar(&o.utc, "utc", false, "Display timestamps in the UTC timezone")
	ignoreBool(flags, "color", "no-color")
	ignoreString(flags, "retry-count", "retry-delay")
	o.format = formatFlag(flags, "tabular", "json", "yaml")
	return cmd
}

func (o *statusOptions) run(ctx context.Context, c *control.Client) error {
	status, err := c.Status(ctx)
	if err != nil {
		return err
	}
	filter(&status, o.patterns)
	options := render.Options{
		Now: o.app.Now(), Zone: o.app.zone(false), UTC: o.utc, Relations: o.relations, Storage: o.storage || o.format.String() != "tabular",
		Colour: o.app.colour(),
	}
	written, err := o.format.writeValue(o.app.Out, render.Formatted(status, options))
	if err != nil {
		return err
	}
	if !written {
		if err := render.Tabular(o.app.Out, status, options); err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(status.Applications)) {
			o.app.noteDefaults(name, status.Applications[name].DefaultImages())
		}
	}
	if len(status.Applications) == 0 && len(status.Remotes) == 0 {
		if len(o.patterns) > 0 {
			o.app.infof("Nothing matched specified filter%s.", strings.Repeat("s", min(1, len(o.patterns)-1)))
		} else {
			o.app.infof("\nModel %q is empty.", status.Model.Name)
		}
	}
	return nil
}

// filter keeps the applications of which the name or a unit matches a pattern. An application that matches by name
// keeps all its units; relations are kept where one side is.
func filter(s *model.Status, patterns []string) {
	if len(patterns) == 0 {
		return
	}
	matches := func(name string) bool {
		for _, pattern := range patterns {
			if ok, _ := path.Match(pattern, name); ok {
				return true
			}
		}
		return false
	}
	for name, application := range s.Applications {
		if matches(name) {
			continue
		}
		application.Units = maps.Clone(application.Units)
		maps.DeleteFunc(application.Units, func(unit string, _ model.UnitStatus) bool { return !matches(unit) })
		if len(application.Units) == 0 {
			delete(s.Applications, name)
			continue
		}
		s.Applications[name] = application
	}
	var relations []model.RelationStatus
	for _, relation := range s.Relations {
		for _, end := range relation.Ends {
			if _, kept := s.Applications[end.App]; kept {
				relations = append(relations, relation)
				break
			}
		}
	}
	s.Relations = relations
	s.Storage = slices.DeleteFunc(slices.Clone(s.Storage), func(storage model.StorageStatus) bool {
		app, _, _ := strings.Cut(storage.Unit, "/")
		_, kept := s.Applications[app].Units[storage.Unit]
		return !kept
	})
}
