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
	settings
	format *format
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
	return o.arguments(args[1:], "cannot get and set or reset options at the same time")
}

// settings is what "config" and "model-config" have in common: one key to get, or what to set and reset.
type settings struct {
	key   string
	set   map[string]string
	reset []string
	file  string
}

// arguments reads the key, or the key=value pairs; both is what is said of a command line that has both.
func (s *settings) arguments(args []string, both string) error {
	var pairs []string
	for _, arg := range args {
		switch {
		case strings.Contains(arg, "="):
			pairs = append(pairs, arg)
		case s.key != "":
			return usageErrorf("cannot specify multiple keys to get")
		default:
			s.key = arg
		}
	}
	if s.key != "" && (len(pairs) > 0 || len(s.reset) > 0 || s.file != "") {
		return usageErrorf("%s", both)
	}
	var err error
	if s.set, err = configPairs(pairs); err != nil {
		return err
	}
	for _, key := range s.reset {
		if _, clash := s.set[key]; clash {
			return usageErrorf("cannot set and reset key %q simultaneously", key)
		}
	}
	return nil
}

// changes reports whether anything is set or reset.
func (s *settings) changes() bool { return len(s.set) > 0 || len(s.reset) > 0 || s.file != "" }

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
	if o.changes() {
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
