// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"context"
	"io"
	"os"
	"os/signal"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
)

type shellOptions struct {
	app     *app
	request control.ShellRequest
	// noTerminal keeps the command from having one.
	noTerminal bool
}

func newShell(a *app) *cobra.Command {
	o := &shellOptions{app: a}
	cmd := &cobra.Command{
		Use:   "shell (<unit> | --outside) [-- <command> [<argument> ...]]",
		Short: "Open a shell in a pod, or on a host outside the cluster",
		Long: `Open a shell, or run a command, in one of a unit's containers: in its network, with its files and its processes.

With --outside it runs on a host outside the cluster: only nodes and load balancer addresses are reachable there.
The exit code is the command's.`,
		Example: `    jujulet shell drawbridge-k8s/0
    jujulet shell drawbridge-k8s/0 --container gateway -- cat /etc/haproxy/haproxy.cfg
    jujulet shell --outside -- mariadb -h 10.64.140.43 -P 6446 -u USER -p`,
		ValidArgsFunction: a.completeUnits(),
		Args:              func(cmd *cobra.Command, args []string) error { return o.parse(cmd, args) },
		RunE:              a.withClient(func(ctx context.Context, c *control.Client) error { return o.run(ctx, c) }),
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.request.Outside, "outside", false, "Run on a host outside the cluster")
	flags.StringVar(&o.request.Container, "container", "", "The container of the unit (default charm)")
	flags.StringVar(&o.request.Dir, "workdir", "", "The folder to run in")
	return cmd
}

func (o *shellOptions) parse(cmd *cobra.Command, args []string) error {
	dash := cmd.ArgsLenAtDash()
	if dash < 0 {
		dash = len(args)
	}
	targets, command := args[:dash], args[dash:]
	o.request.Command = command
	if o.request.Outside {
		if o.request.Container != "" {
			return usageErrorf("--container cannot be used with --outside")
		}
		return checkEmpty(targets)
	}
	if len(targets) == 0 {
		return hintf(usageErrorf("no unit specified"), "name a unit, or use --outside; a command stands behind --")
	}
	o.request.Unit = targets[0]
	if !isUnit(o.request.Unit) {
		return usageErrorf("invalid unit name %q", o.request.Unit)
	}
	return checkEmpty(targets[1:])
}

func (o *shellOptions) run(ctx context.Context, c *control.Client) error {
	code, err := o.start(ctx, c)
	if err == nil && code != 0 {
		err = exitSilently(code)
	}
	return err
}

// start runs the command with our streams, and with a terminal if we have one, and returns its exit code.
func (o *shellOptions) start(ctx context.Context, c *control.Client) (int, error) {
	streams := control.Streams{Stdin: o.app.In, Stdout: o.app.Out, Stderr: o.app.Err}
	restore := func() {}
	if input, ok := o.app.In.(*os.File); ok && !o.noTerminal && isTerminal(input) && isTerminal(o.app.Out) {
		var err error
		if restore, err = o.terminal(input, &streams); err != nil {
			return -1, err
		}
	}
	defer restore()
	return c.Shell(ctx, o.request, streams)
}

// terminal asks for a terminal at the other end, makes ours raw and follows its size.
func (o *shellOptions) terminal(input *os.File, streams *control.Streams) (func(), error) {
	fd := int(input.Fd())
	old, err := term.MakeRaw(fd)
	if err != nil {
		return nil, runErrorf("cannot use the terminal: %v", err)
	}
	o.request.TTY = true
	if name := o.app.Getenv("TERM"); name != "" {
		o.request.Env = append(o.request.Env, "TERM="+name)
	}
	size := func() control.Size {
		cols, rows, err := term.GetSize(fd)
		if err != nil {
			return control.Size{Rows: 24, Cols: 80}
		}
		return control.Size{Rows: uint16(rows), Cols: uint16(cols)}
	}
	o.request.Size = size()
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, unix.SIGWINCH)
	sizes := make(chan control.Size)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-changed:
				select {
				case sizes <- size():
				case <-done:
					return
				}
			case <-done:
				return
			}
		}
	}()
	streams.Resize = sizes
	streams.Stderr = io.Discard
	return func() {
		signal.Stop(changed)
		close(done)
		_ = term.Restore(fd, old)
	}, nil
}
