// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cli/render"
	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
)

func newModels(a *app) *cobra.Command {
	var uuid, exact bool
	var form *format
	cmd := &cobra.Command{
		Use:     "models",
		Aliases: []string{"list-models"},
		Short:   "List the models",
		Example: "    jujulet models\n    jujulet models --format json",
		Args:    noArgs,
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error {
			all, err := c.Models(ctx)
			if err != nil {
				return err
			}
			written, err := form.writeValue(a.Out, render.Models(all, a.Now(), exact))
			if err != nil || written {
				return err
			}
			if len(all.Models) == 0 {
				a.infof("There are no models: \"jujulet add-model\" makes one.")
			}
			return render.ModelsTable(a.Out, all, uuid, a.colour())
		}),
	}
	a.controllerFlag(cmd)
	cmd.Flags().BoolVar(&uuid, "uuid", false, "Display UUID for models")
	cmd.Flags().BoolVar(&exact, "exact-time", false, "Use full timestamps")
	cmd.Flags().Bool("all", false, "The same: there is one user")
	cmd.Flags().String("user", "", "The same: there is one user")
	form = formatFlag(cmd.Flags(), "tabular", "json", "yaml")
	return cmd
}

// controllerFlag adds juju's -c; there is one controller.
func (a *app) controllerFlag(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&a.controller, "controller", "c", "", "Controller to operate in")
}

// checkController refuses another controller than the only one.
func (a *app) checkController(all control.Models) error {
	if a.controller != "" && a.controller != all.Controller {
		return runErrorf("controller %s not found", a.controller)
	}
	return nil
}

func newShowModel(a *app) *cobra.Command {
	var name string
	var form *format
	cmd := &cobra.Command{
		Use:     "show-model [<model>]",
		Short:   "Show the current or another model",
		Example: "    jujulet show-model\n    jujulet show-model dev --format json",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				name, args = args[0], args[1:]
			}
			return checkEmpty(args)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if name != "" {
				a.model = name
			}
			return a.withClient(func(ctx context.Context, c *control.Client) error {
				all, err := c.Models(ctx)
				if err != nil {
					return err
				}
				status, err := c.Status(ctx)
				if err != nil {
					return err
				}
				for _, m := range all.Models {
					if m.UUID == status.Model.UUID {
						_, err = form.writeValue(a.Out, render.ShowModel(all, m, a.Now()))
					}
				}
				return err
			})(cmd, nil)
		},
	}
	form = formatFlag(cmd.Flags(), "yaml", "json")
	return cmd
}

func newSwitch(a *app) *cobra.Command {
	target := ""
	return &cobra.Command{
		Use:     "switch [<model>|<controller>:<model>]",
		Short:   "Select or name the current model",
		Example: "    jujulet switch\n    jujulet switch dev",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				target, args = args[0], args[1:]
			}
			return checkEmpty(args)
		},
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error {
			if model := a.Getenv(modelVariable); model != "" && target != "" {
				return runErrorf("cannot switch when JUJU_MODEL is overriding the model (set to %q)", model)
			}
			all, err := c.Models(ctx)
			if err != nil {
				return err
			}
			result, err := c.Switch(ctx, target)
			if err != nil {
				return err
			}
			full := func(model string) string { return all.Controller + ":" + control.User + "/" + model }
			from := full(result.From)
			if result.From == "" {
				from = all.Controller + " (controller)"
			}
			switch {
			case target == "" && result.From == "":
				a.printf("%s\n", all.Controller)
			case target == "":
				a.printf("%s\n", from)
			case result.To == result.From:
				a.infof("%s (no change)", from)
			default:
				a.infof("%s -> %s", from, full(result.To))
			}
			return nil
		}),
	}
}

func newWhoami(a *app) *cobra.Command {
	var form *format
	cmd := &cobra.Command{
		Use:     "whoami",
		Short:   "Print the controller, the current model and the user",
		Example: "    jujulet whoami",
		Args:    noArgs,
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error {
			all, err := c.Models(ctx)
			if err != nil {
				return err
			}
			value := struct {
				Controller string `json:"controller" yaml:"controller"`
				Model      string `json:"model,omitempty" yaml:"model,omitempty"`
				User       string `json:"user" yaml:"user"`
			}{all.Controller, all.Current, control.User}
			written, err := form.writeValue(a.Out, value)
			if err != nil || written {
				return err
			}
			if value.Model == "" {
				value.Model = "<no-current-model>"
			}
			a.printf("Controller:  %s\nModel:       %s\nUser:        %s\n", value.Controller, value.Model, value.User)
			return nil
		}),
	}
	form = formatFlag(cmd.Flags(), "tabular", "json", "yaml")
	return cmd
}

// controllerItem is the controller as "juju controllers" lists it in json and yaml.
type controllerItem struct {
	Model        string   `json:"current-model,omitempty" yaml:"current-model,omitempty"`
	User         string   `json:"user,omitempty" yaml:"user,omitempty"`
	Access       string   `json:"access,omitempty" yaml:"access,omitempty"`
	UUID         string   `json:"uuid" yaml:"controller-uuid"`
	Endpoints    []string `json:"api-endpoints" yaml:"api-endpoints,flow"`
	CACert       string   `json:"ca-cert" yaml:"ca-cert"`
	Cloud        string   `json:"cloud" yaml:"cloud"`
	Region       string   `json:"region,omitempty" yaml:"region,omitempty"`
	AgentVersion string   `json:"agent-version,omitempty" yaml:"agent-version,omitempty"`
	Models       int      `json:"model-count,omitempty" yaml:"model-count,omitempty"`
}

func newControllers(a *app) *cobra.Command {
	var form *format
	cmd := &cobra.Command{
		Use:     "controllers",
		Aliases: []string{"list-controllers"},
		Short:   "List the controllers: there is one",
		Example: "    jujulet controllers",
		Args:    noArgs,
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error {
			all, err := c.Models(ctx)
			if err != nil {
				return err
			}
			item := controllerItem{
				Model: all.Current, User: control.User, Access: "superuser", UUID: all.ControllerUUID, Endpoints: []string{},
				Cloud: all.Cloud, Region: all.Region, AgentVersion: all.Version, Models: len(all.Models),
			}
			written, err := form.writeValue(a.Out, map[string]any{
				"controllers": map[string]controllerItem{all.Controller: item}, "current-controller": all.Controller,
			})
			if err != nil || written {
				return err
			}
			model := all.Current
			if model == "" {
				model = "-"
			}
			return render.Table(a.Out, []string{"Controller", "Model", "User", "Access", "Cloud/Region", "Models", "Nodes", "HA", "Version"},
				[][]string{{all.Controller + "*", model, item.User, item.Access, all.Cloud + "/" + all.Region, strconv.Itoa(item.Models), "-", "-", all.Version}},
				a.colour())
		}),
	}
	form = formatFlag(cmd.Flags(), "tabular", "json", "yaml")
	return cmd
}
