// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
)

type configOptions struct {
	app         *app
	application string
	key         string
	set         map[string]string
	reset       []string
	file        string
	format      *format
}

func newConfig(a *app) *cobra.Command {
	o := &configOptions{app: a}
	cmd := &cobra.Command{
		Use:   "config <application> [<option>[=<value>] ...]",
		Short: "Get, set, or reset configuration for an application",
		Example: `    jujulet config drawbridge-k8s
    jujulet config drawbridge-k8s expose-external
    jujulet config drawbridge-k8s expose-external=loadbalancer
    jujulet config drawbridge-k8s loadbalancer-extra-annotations=@annotations.json
    jujulet config drawbridge-k8s --reset expose-external`,
		ValidArgsFunction: a.completeApplications(),
		Args:              func(_ *cobra.Command, args []string) error { return o.parse(args) },
		RunE:              a.withClient(func(ctx context.Context, c *control.Client) error { return o.run(ctx, c) }),
	}
	cmd.Flags().StringSliceVar(&o.reset, "reset", nil, "Reset these options to their defaults (comma-separated)")
	cmd.Flags().StringVar(&o.file, "file", "", "Set options from a YAML file")
	o.format = formatFlag(cmd.Flags(), "yaml", "json")
	return cmd
}

func (o *configOptions) parse(args []string) error {
	if len(args) == 0 {
		return usageErrorf("no application specified")
	}
	o.application = args[0]
	if !isApplication(o.application) {
		return usageErrorf("invalid application name %q", o.application)
	}
	var pairs []string
	for _, arg := range args[1:] {
		if strings.Contains(arg, "=") {
			pairs = append(pairs, arg)
		} else if o.key != "" {
			return usageErrorf("cannot specify multiple keys to get")
		} else {
			o.key = arg
		}
	}
	if o.key != "" && (len(pairs) > 0 || len(o.reset) > 0 || o.file != "") {
		return usageErrorf("cannot get and set or reset options at the same time")
	}
	var err error
	if o.set, err = configPairs(pairs); err != nil {
		return err
	}
	for _, key := range o.reset {
		if _, both := o.set[key]; both {
			return usageErrorf("cannot set and reset key %q simultaneously", key)
		}
	}
	return nil
}

// configPairs parses name=value; unlike other arguments of juju, a value is taken as it was typed.
func configPairs(args []string) (map[string]string, error) {
	out := map[string]string{}
	for _, arg := range args {
		key, value, _ := strings.Cut(arg, "=")
		if key == "" {
			return nil, usageErrorf("expected \"key=value\", got %q", arg)
		}
		if _, twice := out[key]; twice {
			return nil, usageErrorf("key %q specified more than once", key)
		}
		out[key] = value
	}
	return out, nil
}

func (o *configOptions) run(ctx context.Context, c *control.Client) error {
	if len(o.set) > 0 || len(o.reset) > 0 || o.file != "" {
		return o.change(ctx, c)
	}
	config, err := c.Config(ctx, o.application)
	if err != nil {
		return err
	}
	if o.key == "" {
		_, err := o.format.writeValue(o.app.Out, config)
		return err
	}
	option, ok := config.Settings[o.key]
	if !ok {
		option, ok = config.ApplicationConfig[o.key]
	}
	if !ok {
		return runErrorf("key %q not found in %q application config or charm settings.", o.key, o.application)
	}
	if option.Value == nil {
		o.app.printf("\n")
		return nil
	}
	o.app.printf("%s\n", optionText(option))
	return nil
}

// optionText prints a value as Go would print the option's type; JSON has made a float64 of an int.
func optionText(option control.ConfigOption) string {
	if number, ok := option.Value.(float64); ok && option.Type == "int" {
		return fmt.Sprintf("%d", int64(number))
	}
	return fmt.Sprint(option.Value)
}

func (o *configOptions) change(ctx context.Context, c *control.Client) error {
	values := map[string]string{}
	if o.file != "" {
		fromFile, err := configFile(o.file, o.application)
		if err != nil {
			return err
		}
		values = fromFile
	}
	if err := readFileValues(o.set); err != nil {
		return err
	}
	for key, value := range o.set {
		values[key] = value
	}
	return c.SetConfig(ctx, control.ConfigChange{Application: o.application, Set: values, Reset: o.reset})
}

// readFileValues replaces a value @FILE by the file's content.
func readFileValues(values map[string]string) error {
	for key, value := range values {
		path, isFile := strings.CutPrefix(value, "@")
		if !isFile {
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return runErrorf("cannot read option from file %q: %v", path, err)
		}
		if !utf8.Valid(data) {
			return runErrorf("value for option %q contains non-UTF-8 sequences", key)
		}
		values[key] = string(data)
	}
	return nil
}
