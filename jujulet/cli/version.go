// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"runtime"

	"github.com/spf13/cobra"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// versionDocument is what `juju version --all` prints, with the version of jujulet beside it.
type versionDocument struct {
	Version  string `json:"version" yaml:"version"`
	Compiler string `json:"compiler" yaml:"compiler"`
	Official bool   `json:"official" yaml:"official"`
	Jujulet  string `json:"jujulet" yaml:"jujulet"`
}

func newVersion(a *app) *cobra.Command {
	all := false
	var format *format
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of Juju whose rules are followed, or (--all) of jujulet too",
		Long: `Print the version of Juju whose rules are followed, as juju prints its own: what reads "juju version" finds what it looks
for. --all has the version of jujulet beside it, and "jujulet --version" prints that alone.`,
		Example: "    jujulet version\n    jujulet version --all --format json",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			// Juju 3.6 on a Linux that is neither Ubuntu nor CentOS.
			version := model.JujuVersion + "-genericlinux-" + runtime.GOARCH
			if all {
				document := versionDocument{Version: version, Compiler: runtime.Compiler, Jujulet: a.Version}
				written, err := format.writeValue(a.Out, document)
				if !written && err == nil {
					err = writeYAML(a.Out, document)
				}
				return err
			}
			written, err := format.writeValue(a.Out, version)
			if !written && err == nil {
				a.printf("%s\n", version)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "Print all version information")
	format = formatFlag(cmd.Flags(), "smart", "json", "yaml")
	return cmd
}
