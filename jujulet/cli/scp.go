// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
)

// place is one end of a copy: a path in a unit's container, or here if unit is "".
type place struct{ unit, path string }

type scpOptions struct {
	app       *app
	container string
	from, to  place
}

func newSCP(a *app) *cobra.Command {
	o := &scpOptions{app: a}
	cmd := &cobra.Command{
		Use:   "scp <source> <destination>",
		Short: "Copy files to or from a container of a unit",
		Long: `Copy a file or a folder to or from a container of a unit, as juju does on Kubernetes: by tar, which the container needs.
A place in a unit is <unit>:<path>. Links in a copied folder are left out.`,
		Example: `    jujulet scp ./file drawbridge-k8s/0:/tmp/
    jujulet scp --container gateway drawbridge-k8s/0:/etc/haproxy/haproxy.cfg .`,
		Args: func(_ *cobra.Command, args []string) error { return o.parse(args) },
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error { return o.run(ctx, c) }),
	}
	flags := cmd.Flags()
	flags.StringVar(&o.container, "container", "", "The container of the unit (default charm)")
	ignoreBool(flags, "proxy", "no-host-key-checks", "remote")
	return cmd
}

func (o *scpOptions) parse(args []string) error {
	switch {
	case len(args) < 2:
		return usageErrorf("at least two arguments required")
	case len(args) > 2:
		return runErrorf("only one source and one destination are allowed for a k8s application")
	}
	for i, into := range []*place{&o.from, &o.to} {
		unit, file, remote := strings.Cut(args[i], ":")
		switch {
		case !remote:
			into.path = args[i]
		case unit == "":
			return runErrorf("target must match format: [pod[/container]:]path")
		default:
			into.unit, into.path = unit, file
		}
	}
	if (o.from.unit == "") == (o.to.unit == "") {
		return runErrorf("either copy from a pod or to a pod")
	}
	return nil
}

func (o *scpOptions) run(ctx context.Context, c *control.Client) error {
	unit, err := containerOf(ctx, c, o.from.unit+o.to.unit, o.container)
	if err != nil {
		return err
	}
	if o.from.unit != "" {
		return o.fetch(ctx, c, unit)
	}
	return o.send(ctx, c, unit)
}

// inPod runs a command in the container.
func (o *scpOptions) inPod(ctx context.Context, c *control.Client, unit string, in io.Reader, out io.Writer, command ...string) error {
	var stderr bytes.Buffer
	request := control.ShellRequest{Unit: unit, Container: o.container, Command: command}
	code, err := c.Shell(ctx, request, control.Streams{Stdin: in, Stdout: out, Stderr: &stderr})
	if err == nil && code != 0 {
		err = runErrorf("cannot copy: %s in unit %q: exit code %d: %s", command[0], unit, code, strings.TrimSpace(stderr.String()))
	}
	return err
}

// send copies to a container. Juju 3.6: below the destination if that is a folder there, else to it.
func (o *scpOptions) send(ctx context.Context, c *control.Client, unit string) error {
	if _, err := os.Stat(o.from.path); err != nil {
		return runErrorf("%q does not exist on local", o.from.path)
	}
	target := path.Clean("/" + o.to.path)
	if o.to.path == "" || !path.IsAbs(o.to.path) {
		target = path.Clean(o.to.path)
	}
	if o.inPod(ctx, c, unit, nil, nil, "test", "-d", target) == nil {
		target = path.Join(target, filepath.Base(o.from.path))
	}
	reader, writer := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		err := pack(o.from.path, path.Base(target), writer)
		writer.CloseWithError(err)
		packed <- err
	}()
	err := o.inPod(ctx, c, unit, reader, nil, "tar", "-xmf", "-", "-C", path.Dir(target))
	reader.Close()
	if packing := <-packed; packing != nil && err == nil {
		err = runErrorf("cannot copy %q: %v", o.from.path, packing)
	}
	return err
}

// fetch copies from a container: below the destination if that is a folder here, else to it.
func (o *scpOptions) fetch(ctx context.Context, c *control.Client, unit string) error {
	source, target := path.Clean(o.from.path), o.to.path
	if info, err := os.Stat(target); err == nil && info.IsDir() {
		target = filepath.Join(target, path.Base(source))
	}
	reader, writer := io.Pipe()
	unpacked := make(chan error, 1)
	go func() {
		err := unpack(reader, path.Base(source), target, o.app)
		if err == nil {
			_, err = io.Copy(io.Discard, reader) // what tar fills the last block with
		}
		reader.CloseWithError(err)
		unpacked <- err
	}()
	err := o.inPod(ctx, c, unit, nil, writer, "tar", "-cf", "-", "-C", path.Dir(source), path.Base(source))
	writer.Close()
	if unpacking := <-unpacked; unpacking != nil && err == nil {
		err = runErrorf("cannot copy to %q: %v", target, unpacking)
	}
	return err
}
