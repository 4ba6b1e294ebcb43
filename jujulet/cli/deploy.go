// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"context"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"gopkg.in/yaml.v3"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
)

type deployOptions struct {
	app       *app
	charm     string
	name      string
	units     int
	config    []string
	resources []string
	storage   []string
	trust     bool
	bind      string
}

func newDeploy(a *app) *cobra.Command {
	o := &deployOptions{app: a}
	cmd := &cobra.Command{
		Use:   "deploy <charm> [<application name>]",
		Short: "Deploy an application from a local charm",
		Long: `Deploy an application from a .charm file or an unpacked charm folder.

A resource of type oci-image is the root filesystem of a container: "host" (the default) for this machine's own files, a
folder that holds a root filesystem, an archive ("docker save", or an OCI archive or layout), or a reference to a
registry, such as ubuntu:24.04. An image is pulled and unpacked at once, and kept by its digest.`,
		Example: `    jujulet deploy ./drawbridge-k8s_amd64.charm --resource gateway-image=host --trust
    jujulet deploy ./my-charm_amd64.charm db -n 3 --config log-level=debug`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageErrorf("no charm or bundle specified")
			}
			return checkEmpty(args[min(2, len(args)):])
		},
		PreRunE: func(cmd *cobra.Command, args []string) error {
			if err := deployRefusals.check(cmd.Flags()); err != nil {
				return err
			}
			return o.complete(args)
		},
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error { return o.run(ctx, c) }),
	}
	flags := cmd.Flags()
	flags.IntVarP(&o.units, "num-units", "n", 1, "Number of units")
	flags.StringArrayVar(&o.config, "config", nil, "An option as name=value, or a YAML file of options (repeatable)")
	flags.StringArrayVar(&o.resources, "resource", nil, "A resource as name=host, name=FOLDER, name=ARCHIVE or name=IMAGE (repeatable)")
	flags.StringArrayVar(&o.storage, "storage", nil, "A storage directive as name=pool,count,size (repeatable)")
	flags.BoolVar(&o.trust, "trust", false, "Give the application rights in the whole cluster")
	flags.StringVar(&o.bind, "bind", "", "A space for all endpoints, or endpoint=space pairs: alpha is the one there is")
	ignoreString(flags, "base", "series", "channel")
	ignoreBool(flags, "force")
	flags.StringArray("constraints", nil, "Taken for juju's sake: nothing is limited here")
	deployRefusals.add(flags)
	return cmd
}

// deployRefusals are juju's flags that would change what is deployed.
var deployRefusals = refusals{
	"attach-storage": "a Kubernetes model takes no storage of before",
	"device":         "pods have no devices",
	"dry-run":        "deploy into a model of its own and destroy that",
	"map-machines":   "there are no machines, and bundles are not supported",
	"overlay":        "bundles are not supported",
	"revision":       "a local charm has no revision to choose",
	"to":             "a Kubernetes model places units itself",
}

func (o *deployOptions) complete(args []string) error {
	o.charm = args[0]
	if len(args) == 2 {
		o.name = args[1]
		if !isApplication(o.name) {
			return usageErrorf("invalid application name %q", o.name)
		}
	}
	for binding := range strings.FieldsSeq(o.bind) {
		if _, space, named := strings.Cut(binding, "="); named && space != "alpha" || !named && binding != "alpha" {
			return runErrorf("space %q not found", binding[strings.IndexByte(binding, '=')+1:])
		}
	}
	if o.units < 0 {
		return usageErrorf("--num-units must be a positive integer")
	}
	if info, err := os.Stat(o.charm); err != nil {
		if !strings.ContainsAny(o.charm, "/.") {
			return hintf(runErrorf("cannot deploy %q: charms of a store are not supported", o.charm),
				"give a .charm file or a charm folder, such as ./%s.charm", o.charm)
		}
		return runErrorf("cannot deploy %q: no such file", o.charm)
	} else if !info.IsDir() && !strings.Contains(o.charm, "/") {
		o.charm = "./" + o.charm
	}
	return nil
}

func (o *deployOptions) run(ctx context.Context, c *control.Client) error {
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
	result, err := c.Deploy(ctx, control.DeployRequest{
		Charm: o.charm, Application: o.name, Units: o.units, Config: config, Resources: resources,
		Storage: o.storage, Trust: o.trust,
	})
	if err != nil {
		return err
	}
	o.app.infof("Located local charm %q, revision %d", result.Charm, result.Revision)
	o.app.infof("Deploying %q from local charm %q, revision %d", result.Application, result.Charm, result.Revision)
	o.app.noteDefaults(result.Application, result.DefaultImages)
	return nil
}

// parseConfig reads --config values: name=value, or the name of a YAML file with options, plain or below the
// application's name. Later ones win.
func (o *deployOptions) parseConfig() (map[string]string, error) {
	config := map[string]string{}
	for _, text := range o.config {
		if strings.Contains(text, "=") {
			pairs, err := keyValues([]string{text})
			if err != nil {
				return nil, err
			}
			if err := readFileValues(pairs); err != nil {
				return nil, err
			}
			for key, value := range pairs {
				config[key] = value
			}
			continue
		}
		values, err := configFile(text, o.name)
		if err != nil {
			return nil, err
		}
		for key, value := range values {
			config[key] = value
		}
	}
	return config, nil
}

// configFile reads options from a YAML file.
func configFile(path, application string) (map[string]string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, runErrorf("cannot read options: %v", err)
	}
	var document map[string]yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil {
		return nil, runErrorf("cannot read options from %q: %v", path, err)
	}
	if below, ok := document[application]; ok && below.Kind == yaml.MappingNode {
		document = map[string]yaml.Node{}
		if err := below.Decode(&document); err != nil {
			return nil, runErrorf("cannot read options from %q: %v", path, err)
		}
	}
	values := map[string]string{}
	for key, node := range document {
		if node.Kind != yaml.ScalarNode {
			return nil, runErrorf("cannot read options from %q: %q is not a plain value", path, key)
		}
		values[key] = node.Value
	}
	return values, nil
}

// keyValues parses name=value arguments as juju does: both sides trimmed, no name twice.
func keyValues(args []string) (map[string]string, error) {
	out := map[string]string{}
	for _, arg := range args {
		key, value, found := strings.Cut(arg, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if !found || key == "" {
			return nil, usageErrorf("expected \"key=value\", got %q", arg)
		}
		if _, twice := out[key]; twice {
			return nil, usageErrorf("key %q specified more than once", key)
		}
		out[key] = value
	}
	return out, nil
}
