// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"context"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"gopkg.in/yaml.v3"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cli/render"
	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
)

type runOptions struct {
	tasks      taskOptions
	units      []string
	action     string
	pairs      []string
	paramsFile string
	stringArgs bool
}

func newRun(a *app) *cobra.Command {
	o := &runOptions{tasks: taskOptions{app: a}}
	cmd := &cobra.Command{
		Use:   "run <unit> [<unit> ...] <action> [<key>=<value> ...]",
		Short: "Run an action on units",
		Long: `Run an action on units and wait for its results. A unit is "app/0", or "app/leader". Progress is printed on
standard error, results on standard output. Values are read as YAML; a dot in a key nests.`,
		Example: `    jujulet run drawbridge-k8s/leader get-endpoints
    jujulet run client-k8s/0 query sql="SELECT 1" --format json`,
		ValidArgsFunction: a.completeUnits(),
		Args: func(cmd *cobra.Command, args []string) error {
			o.tasks.waits = cmd.Flags().Changed("wait")
			return o.parse(args)
		},
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error { return o.run(ctx, c) }),
	}
	flags := cmd.Flags()
	flags.StringVar(&o.paramsFile, "params", "", "Path to a YAML file of parameters")
	flags.BoolVar(&o.stringArgs, "string-args", false, "Take values as text, not as YAML")
	o.tasks.plain = func(tasks map[string]render.Task) error { return render.Tasks(a.Out, tasks) }
	o.tasks.addFlags(flags, runWait)
	return cmd
}

// actionPattern is what an action, and a parameter of one, may be called.
var actionPattern = regexp.MustCompile(`^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$`)

func (o *runOptions) parse(args []string) error {
	applications := map[string]bool{}
	for ; len(args) > 0 && o.action == ""; args = args[1:] {
		switch {
		case isUnit(args[0]):
			application, _, _ := strings.Cut(args[0], "/")
			applications[application] = true
			o.units = append(o.units, args[0])
		case actionPattern.MatchString(args[0]):
			o.action = args[0]
		default:
			return usageErrorf("invalid unit or action name %q", args[0])
		}
	}
	switch {
	case o.tasks.background && o.tasks.waits:
		return usageErrorf("cannot specify both --wait and --background")
	case len(o.units) == 0:
		return usageErrorf("no unit specified")
	case o.action == "":
		return usageErrorf("no action specified")
	case len(applications) > 1:
		return usageErrorf("all units must be of the same application")
	}
	o.pairs = args
	for _, pair := range o.pairs {
		keys, _, found := strings.Cut(pair, "=")
		if !found {
			return usageErrorf("argument %q must be of the form key.key.key...=value", pair)
		}
		for key := range strings.SplitSeq(keys, ".") {
			if !actionPattern.MatchString(key) {
				return usageErrorf("key %q must start and end with lowercase alphanumeric, and contain only lowercase alphanumeric and hyphens", key)
			}
		}
	}
	return nil
}

func (o *runOptions) run(ctx context.Context, c *control.Client) error {
	params, err := o.params()
	if err != nil {
		return err
	}
	operation, err := c.Run(ctx, control.RunRequest{Units: o.units, Action: o.action, Params: params})
	if err != nil {
		return err
	}
	return o.tasks.follow(ctx, c, operation)
}

// params merges the file and the arguments; arguments win.
func (o *runOptions) params() (map[string]any, error) {
	params := map[string]any{}
	if o.paramsFile != "" {
		data, err := os.ReadFile(o.paramsFile)
		if err != nil {
			return nil, runErrorf("cannot read parameters: %v", err)
		}
		if err := yaml.Unmarshal(data, &params); err != nil {
			return nil, runErrorf("cannot read parameters from %q: %v", o.paramsFile, err)
		}
	}
	for _, pair := range o.pairs {
		key, text, _ := strings.Cut(pair, "=")
		var value any = text
		if !o.stringArgs {
			if err := yaml.Unmarshal([]byte(text), &value); err != nil {
				return nil, runErrorf("cannot read parameter %q as YAML: %v", key, err)
			}
		}
		nest(params, strings.Split(key, "."), value)
	}
	return params, nil
}

// nest sets a value below a path of keys. Juju 3.6: what stands in the way is replaced.
func nest(into map[string]any, path []string, value any) {
	for _, key := range path[:len(path)-1] {
		next, ok := into[key].(map[string]any)
		if !ok {
			next = map[string]any{}
			into[key] = next
		}
		into = next
	}
	into[path[len(path)-1]] = value
}

// runWait is how long results of an action are waited for. Juju 3.6.
const runWait = 60 * time.Second
