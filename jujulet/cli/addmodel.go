// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"gopkg.in/yaml.v3"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

type addModelOptions struct {
	app      *app
	request  control.AddModelRequest
	cloud    string
	config   []string
	owner    string
	noSwitch bool
}

func newAddModel(a *app) *cobra.Command {
	o := &addModelOptions{app: a}
	cmd := &cobra.Command{
		Use:   "add-model <model> [<cloud>]",
		Short: "Add a model, which is a Kubernetes namespace of its own",
		Example: `    jujulet add-model prod
    jujulet add-model prod --config update-status-hook-interval=10s --no-switch`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageErrorf("expected a model name: \"jujulet add-model <model>\"")
			}
			o.request.Name, args = args[0], args[1:]
			if len(args) > 0 {
				o.cloud, args = args[0], args[1:]
			}
			if !model.IsModelName(o.request.Name) {
				return usageErrorf("%q is not a valid name: model names may only contain lowercase letters, digits and hyphens", o.request.Name)
			}
			return checkEmpty(args)
		},
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error { return o.run(ctx, c) }),
	}
	a.controllerFlag(cmd)
	flags := cmd.Flags()
	flags.StringArrayVar(&o.config, "config", nil, "Configuration: key=value, or a YAML file")
	flags.BoolVar(&o.noSwitch, "no-switch", false, "Choose not to switch to the newly created model")
	flags.StringVar(&o.owner, "owner", "", "Owner of the model: there is one user, admin")
	flags.String("credential", "", "Accepted: there is one cloud and no credential is needed")
	return cmd
}

func (o *addModelOptions) run(ctx context.Context, c *control.Client) error {
	all, err := c.Models(ctx)
	if err != nil {
		return err
	}
	if err := o.app.checkController(all); err != nil {
		return err
	}
	if o.owner != "" && o.owner != control.User {
		return runErrorf("user %q not found", o.owner)
	}
	if region := all.Cloud + "/" + all.Region; o.cloud != "" && o.cloud != all.Cloud && o.cloud != all.Region && o.cloud != region {
		return runErrorf("%q is neither a cloud supported by this controller, nor a region in the controller's default cloud %q", o.cloud, all.Cloud)
	}
	if o.request.Config, err = modelConfigArgs(o.config); err != nil {
		return err
	}
	o.request.NoSwitch = o.noSwitch
	made, err := c.AddModel(ctx, o.request)
	if err != nil {
		return err
	}
	o.app.infof("Added '%s' model on %s with credential '%s' for user '%s'", made.Name, made.CloudRegion, all.Cloud, control.User)
	return nil
}

// modelConfigArgs reads "key=value" and names of YAML files; later ones win.
func modelConfigArgs(args []string) (map[string]string, error) {
	out := map[string]string{}
	for _, arg := range args {
		if key, value, pair := strings.Cut(arg, "="); pair {
			out[key] = value
			continue
		}
		values, err := modelConfigFile(arg)
		if err != nil {
			return nil, err
		}
		for key, value := range values {
			out[key] = value
		}
	}
	return out, nil
}

// modelConfigFile reads keys from a YAML file: values, or what "model-config --format yaml" prints of them.
func modelConfigFile(path string) (map[string]string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, runErrorf("cannot read configuration: %v", err)
	}
	var values map[string]any
	if err := yaml.Unmarshal(data, &values); err != nil {
		return nil, runErrorf("cannot read configuration %q: %v", path, err)
	}
	out := map[string]string{}
	for key, value := range values {
		if shown, ok := value.(map[string]any); ok && shown["source"] != nil {
			value = shown["value"]
		}
		out[key] = fmt.Sprint(value)
	}
	return out, nil
}
