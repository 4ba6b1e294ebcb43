// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
)

func newAddSecret(a *app) *cobra.Command {
	request := control.UserSecretRequest{}
	file := ""
	cmd := &cobra.Command{
		Use:   "add-secret <name> [<key>[#base64|#file]=<value> ...]",
		Short: "Add a new secret",
		Long: `Add a secret of the model, and print its URI. Charms read it once it is granted to them, by its URI: an option of type
secret tells it to them.`,
		Example: `    jujulet add-secret my-token token=34ae35facd4
    jujulet add-secret my-secret key#file=/path/to/file --info "my password"`,
		Args: func(_ *cobra.Command, args []string) (err error) {
			if len(args) == 0 {
				return usageErrorf("secret name needs to be supplied as the first argument")
			}
			request.Name = args[0]
			if request.Content, err = secretContent(args[1:], file); err != nil {
				return usageErrorf("%v", err)
			}
			if len(request.Content) == 0 {
				return usageErrorf("missing secret value or filename")
			}
			return nil
		},
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error {
			uri, err := c.AddSecret(ctx, request)
			if err == nil {
				a.printf("%s\n", uri)
			}
			return err
		}),
	}
	cmd.Flags().StringVar(&request.Description, "info", "", "The secret description")
	cmd.Flags().StringVar(&file, "file", "", "A YAML file containing secret key values")
	return cmd
}

func newUpdateSecret(a *app) *cobra.Command {
	request := control.UserSecretRequest{}
	file, prune := "", false
	cmd := &cobra.Command{
		Use:   "update-secret (<ID>|<name>) [<key>[#base64|#file]=<value> ...]",
		Short: "Update an existing secret",
		Example: `    jujulet update-secret my-token token=34ae35facd4 --auto-prune
    jujulet update-secret my-token --name db-password --info "my password"`,
		Args: func(cmd *cobra.Command, args []string) (err error) {
			if len(args) == 0 {
				return usageErrorf("missing secret URI")
			}
			request.Ref = args[0]
			if cmd.Flags().Changed("auto-prune") {
				request.AutoPrune = &prune
			}
			if request.Content, err = secretContent(args[1:], file); err != nil {
				return usageErrorf("%v", err)
			}
			return nil
		},
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error { return c.UpdateSecret(ctx, request) }),
	}
	flags := cmd.Flags()
	flags.StringVar(&request.Description, "info", "", "The secret description")
	flags.StringVar(&file, "file", "", "A YAML file containing secret key values")
	flags.StringVar(&request.Name, "name", "", "The new secret name")
	flags.BoolVar(&prune, "auto-prune", false, "Remove revisions that nobody tracks any more")
	return cmd
}

func newGrantSecret(a *app) *cobra.Command {
	return newSecretAccess(a, "grant-secret", "Grant access to a secret", false)
}

func newRevokeSecret(a *app) *cobra.Command {
	return newSecretAccess(a, "revoke-secret", "Revoke access to a secret", true)
}

// newSecretAccess is the verb that gives the right to read a secret, or takes it.
func newSecretAccess(a *app, name, short string, revoke bool) *cobra.Command {
	request := control.GrantSecretRequest{Revoke: revoke}
	return &cobra.Command{
		Use:     name + " (<ID>|<name>) <application>[,<application> ...]",
		Short:   short,
		Example: "    jujulet " + name + " my-secret client-k8s",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usageErrorf("missing secret URI or application name")
			}
			request.Ref, request.Applications = args[0], strings.Split(args[1], ",")
			return checkEmpty(args[2:])
		},
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error { return c.GrantSecret(ctx, request) }),
	}
}

func newRemoveSecret(a *app) *cobra.Command {
	request := control.RemoveSecretRequest{}
	cmd := &cobra.Command{
		Use:   "remove-secret (<ID>|<name>)",
		Short: "Remove an existing secret",
		Example: `    jujulet remove-secret my-secret
    jujulet remove-secret my-secret --revision 4`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageErrorf("missing secret URI")
			}
			request.Ref = args[0]
			return checkEmpty(args[1:])
		},
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error { return c.RemoveSecret(ctx, request) }),
	}
	cmd.Flags().IntVar(&request.Revision, "revision", 0, "Remove this revision only")
	return cmd
}
