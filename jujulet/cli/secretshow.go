// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cli/render"
	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

func newSecrets(a *app) *cobra.Command {
	var owner string
	var format *format
	cmd := &cobra.Command{
		Use:     "secrets",
		Aliases: []string{"list-secrets"},
		Short:   "List the secrets of the model",
		Example: `    jujulet secrets
    jujulet secrets --owner application-drawbridge-k8s --format json`,
		Args: func(_ *cobra.Command, args []string) error {
			if kind, name, found := strings.Cut(owner, "-"); owner != "" && (!found || name == "" || !isOwnerKind(kind)) {
				return runErrorf("invalid owner %q: %q is not a valid tag", owner, owner)
			}
			return checkEmpty(args)
		},
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error {
			secrets, err := c.Secrets(ctx)
			if err != nil {
				return err
			}
			status, err := c.Status(ctx)
			if err != nil {
				return err
			}
			document := map[string]render.Secret{}
			for _, s := range secrets {
				if owner == "" || owner == ownerTag(s, status.Model.UUID) {
					document[secretKey(s)] = render.ShowSecret(s, render.SecretOptions{})
				}
			}
			if written, err := format.writeValue(a.Out, document); written || err != nil {
				return err
			}
			return render.Secrets(a.Out, document, a.Now())
		}),
	}
	cmd.Flags().StringVar(&owner, "owner", "", "Only secrets of this owner: application-NAME, unit-NAME-0 or model-UUID")
	format = formatFlag(cmd.Flags(), "tabular", "json", "yaml")
	return cmd
}

func isOwnerKind(kind string) bool { return kind == "application" || kind == "unit" || kind == "model" }

// ownerTag is the tag of a secret's owner.
func ownerTag(s control.Secret, modelUUID string) string {
	switch s.OwnerKind {
	case "model":
		return "model-" + modelUUID
	case "unit":
		return model.Tag(s.Owner)
	default:
		return "application-" + s.Owner
	}
}

// secretKey is how documents name a secret: by its bare id.
func secretKey(s control.Secret) string { return strings.TrimPrefix(s.URI, "secret:") }

func newShowSecret(a *app) *cobra.Command {
	request := control.SecretRequest{}
	revisions := false
	var format *format
	cmd := &cobra.Command{
		Use:   "show-secret (<ID>|<name>)",
		Short: "Show details for a specific secret",
		Example: `    jujulet show-secret my-secret --reveal
    jujulet show-secret 9m4e2mr0ui3e8a215n4g --revisions`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return usageErrorf("secret ID is required")
			case revisions && request.Reveal:
				return usageErrorf("specify either --revisions or --reveal but not both")
			case revisions && request.Revision > 0:
				return usageErrorf("specify either --revisions or --revision but not both")
			case request.Revision < 0:
				return usageErrorf("revision must be a positive integer")
			}
			request.Ref = args[0]
			return checkEmpty(args[1:])
		},
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error {
			secret, err := c.SecretRevision(ctx, request)
			if err != nil {
				return err
			}
			options := render.SecretOptions{Access: true}
			if revisions {
				status, err := c.Status(ctx)
				if err != nil {
					return err
				}
				options.Backend = status.Model.Name + "-local"
			}
			_, err = format.writeValue(a.Out, map[string]render.Secret{secretKey(secret): render.ShowSecret(secret, options)})
			return err
		}),
	}
	flags := cmd.Flags()
	flags.BoolVar(&request.Reveal, "reveal", false, "Reveal the secret's content")
	flags.BoolVar(&revisions, "revisions", false, "Show the metadata of all revisions")
	flags.IntVarP(&request.Revision, "revision", "r", 0, "Show this revision (default the latest)")
	format = formatFlag(flags, "yaml", "json")
	return cmd
}
