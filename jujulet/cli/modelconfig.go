// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"gopkg.in/yaml.v3"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cli/render"
	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
)

type modelConfigOptions struct {
	app *app
	settings
	format *format
}

// modelConfigItem has juju's names: in json they begin with capitals.
type modelConfigItem struct {
	Value  any    `json:"Value" yaml:"value"`
	Source string `json:"Source" yaml:"source"`
}

func newModelConfig(a *app) *cobra.Command {
	o := &modelConfigOptions{app: a}
	cmd := &cobra.Command{
		Use:   "model-config [<key>[=<value>] ...]",
		Short: "Get, set, or reset the configuration of the model",
		Example: `    jujulet model-config
    jujulet model-config update-status-hook-interval=10s
    jujulet model-config --reset update-status-hook-interval`,
		Args: func(_ *cobra.Command, args []string) error {
			return o.arguments(args, "cannot get value and set key=value pairs simultaneously")
		},
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error { return o.run(ctx, c) }),
	}
	cmd.Flags().StringSliceVar(&o.reset, "reset", nil, "Reset these keys to their defaults (comma-separated)")
	cmd.Flags().StringVar(&o.file, "file", "", "Set keys from a YAML file")
	o.format = formatFlag(cmd.Flags(), "tabular", "json", "yaml")
	return cmd
}

func (o *modelConfigOptions) run(ctx context.Context, c *control.Client) error {
	if o.changes() {
		return o.change(ctx, c)
	}
	config, err := c.ModelConfig(ctx)
	if err != nil {
		return err
	}
	shown := map[string]modelConfigItem{}
	for key, value := range config {
		if number, ok := value.Value.(float64); ok {
			value.Value = int(number)
		}
		shown[key] = modelConfigItem{value.Value, value.Source}
	}
	if o.key != "" {
		item, ok := shown[o.key]
		if !ok {
			return o.unknown(ctx, c)
		}
		if o.format.value == "tabular" {
			o.app.printf("%v\n", item.Value)
			return nil
		}
		shown = map[string]modelConfigItem{o.key: item}
	}
	written, err := o.format.writeValue(o.app.Out, shown)
	if err != nil || written {
		return err
	}
	var rows [][]string
	for _, key := range slices.Sorted(maps.Keys(shown)) {
		text, err := yaml.Marshal(shown[key].Value)
		if err != nil {
			return fmt.Errorf("cannot write %q: %w", key, err)
		}
		rows = append(rows, []string{key, shown[key].Source, strings.TrimSuffix(string(text), "\n")})
	}
	return render.Table(o.app.Out, []string{"Attribute", "From", "Value"}, rows, o.app.colour())
}

// unknown is the error for a key that is not there.
func (o *modelConfigOptions) unknown(ctx context.Context, c *control.Client) error {
	name := o.app.model
	if status, err := c.Status(ctx); err == nil && name == "" {
		name = control.User + "/" + status.Model.Name
	}
	return runErrorf("%q is not a key of the currently targeted model: %q", o.key, name)
}

func (o *modelConfigOptions) change(ctx context.Context, c *control.Client) error {
	values := map[string]string{}
	if o.file != "" {
		var err error
		if values, err = modelConfigFile(o.file); err != nil {
			return err
		}
	}
	maps.Copy(values, o.set)
	unknown, err := c.SetModelConfig(ctx, control.ModelConfigChange{Set: values, Reset: o.reset})
	if err != nil {
		return err
	}
	for _, key := range unknown {
		o.app.infof("WARNING key %q is not defined in the current model configuration: possible misspelling", key)
	}
	return nil
}
