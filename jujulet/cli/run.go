// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"context"
	"fmt"
	"maps"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"gopkg.in/yaml.v3"

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
		Args:              func(_ *cobra.Command, args []string) error { return o.parse(args) },
		RunE:              a.withClient(func(ctx context.Context, c *control.Client) error { return o.run(ctx, c) }),
	}
	flags := cmd.Flags()
	flags.StringVar(&o.paramsFile, "params", "", "Path to a YAML file of parameters")
	flags.BoolVar(&o.stringArgs, "string-args", false, "Take values as text, not as YAML")
	o.tasks.addFlags(flags)
	return cmd
}

func (o *runOptions) parse(args []string) error {
	for len(args) > 0 && isUnit(args[0]) {
		o.units = append(o.units, args[0])
		args = args[1:]
	}
	switch {
	case len(o.units) == 0 && len(args) > 0 && strings.Contains(args[0], "/"):
		return usageErrorf("invalid unit or action name %q", args[0])
	case len(o.units) == 0:
		return usageErrorf("no unit specified")
	case len(args) == 0:
		return usageErrorf("no action specified")
	}
	o.action, o.pairs = args[0], args[1:]
	for _, pair := range o.pairs {
		if key, _, found := strings.Cut(pair, "="); !found || key == "" {
			return usageErrorf("argument %q must be of the form key.key.key...=value", pair)
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
		if err := nest(params, strings.Split(key, "."), value); err != nil {
			return nil, err
		}
	}
	return params, nil
}

// nest sets a value below a path of keys.
func nest(into map[string]any, path []string, value any) error {
	for _, key := range path[:len(path)-1] {
		next, ok := into[key].(map[string]any)
		if !ok {
			if _, taken := into[key]; taken {
				return runErrorf("cannot set parameter %q: it already has a value", strings.Join(path, "."))
			}
			next = map[string]any{}
			into[key] = next
		}
		into = next
	}
	into[path[len(path)-1]] = value
	return nil
}

// defaultWait is how long results are waited for.
const defaultWait = 60 * time.Second

// withoutOutput returns an action's own results.
func withoutOutput(results map[string]any) map[string]any {
	own := maps.Clone(results)
	maps.DeleteFunc(own, func(key string, _ any) bool {
		switch key {
		case "return-code", "stdout", "stderr", "stdout-encoding", "stderr-encoding":
			return true
		}
		return false
	})
	return own
}

// returnCode is the exit code of an action's process; 0 if it has none.
func returnCode(results map[string]any) int {
	switch code := results["return-code"].(type) {
	case float64:
		return int(code)
	case int:
		return code
	case string:
		n := 0
		_, _ = fmt.Sscan(code, &n)
		return n
	}
	return 0
}
