// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
)

// maxManifest bounds what is read as a manifest, in bytes.
const maxManifest = 64 << 20

func newClusterApply(a *app) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "apply",
		Short: "Make or change ConfigMaps as a manifest says",
		Long: `Make ConfigMaps of the model's namespace what a manifest says, by server-side apply. The manifest is YAML or JSON and may
have several documents. Other kinds are refused: they belong to Juju or to charms.`,
		Example: `    jujulet cluster apply -f examples/connections/configmaps.yaml
    jujulet cluster apply -f -`,
		Args: noArgs,
	}
	cmd.Flags().StringVarP(&file, "filename", "f", "", "The manifest; - is the standard input")
	cmd.RunE = a.withClient(func(ctx context.Context, c *control.Client) error {
		if file == "" {
			return usageErrorf("no manifest specified: give -f")
		}
		text, err := readManifest(cmd.InOrStdin(), file)
		if err != nil {
			return err
		}
		done, err := c.ApplyObjects(ctx, text)
		for _, line := range done {
			a.printf("%s\n", line)
		}
		return err
	})
	return cmd
}

// readManifest reads a file, or the standard input.
func readManifest(stdin io.Reader, file string) (string, error) {
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return "", fmt.Errorf("cannot read the manifest: %w", err)
		}
		defer opened.Close()
		stdin = opened
	}
	text, err := io.ReadAll(io.LimitReader(stdin, maxManifest+1))
	if err != nil {
		return "", fmt.Errorf("cannot read the manifest: %w", err)
	}
	if len(text) > maxManifest {
		return "", fmt.Errorf("cannot read the manifest: it is larger than %d bytes", maxManifest)
	}
	return string(text), nil
}

func newClusterDelete(a *app) *cobra.Command {
	var kind, name string
	return &cobra.Command{
		Use:     "delete <kind> <name>",
		Short:   "Delete a ConfigMap",
		Example: "    jujulet cluster delete configmap model-prediction",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usageErrorf("no object specified: expected <kind> <name>, such as configmap model-prediction")
			}
			kind, name = args[0], args[1]
			return checkEmpty(args[2:])
		},
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error {
			if err := c.DeleteObject(ctx, kind, name); err != nil {
				return err
			}
			a.printf("configmap %q deleted\n", name)
			return nil
		}),
	}
}
