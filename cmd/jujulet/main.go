// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

// Command jujulet runs Juju sidecar charms on a Linux machine, without a controller and without a cluster.
//
// One program is all of it. Called by the name of a hook tool, as the charm finds it on PATH, it is that tool. With a
// hidden command as its first argument it is a part of the runner: the cluster process, a pod's init, a unit's agent, or
// a prober of the tour. Otherwise it is the command line, in package cli.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cli"
	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/controller"
	"github.com/drawbridge-k8s/drawbridge/jujulet/hooktools"
	"github.com/drawbridge-k8s/drawbridge/jujulet/pod"
	"github.com/drawbridge-k8s/drawbridge/jujulet/tour"
)

func main() { os.Exit(run(os.Args)) }

func run(args []string) int {
	if hooktools.IsTool(filepath.Base(args[0])) {
		return hooktools.ClientMain(args)
	}
	if len(args) > 1 {
		switch name := args[1]; {
		case pod.IsCommand(name):
			return pod.Main(args[1:])
		case name == controller.ClusterCommand:
			return controller.Main(args[1:])
		case name == controller.AgentCommand:
			return controller.AgentMain(args[1:])
		}
	}
	// Later signals are caught too: the end of a tour must not be cut short.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM, unix.SIGHUP)
	defer stop()
	if len(args) > 1 {
		switch args[1] {
		case tour.ProbeCommand:
			return exitCode(tour.LoginProbe(ctx, os.Stdin, os.Stdout))
		case tour.QueryCommand:
			return exitCode(tour.Query(ctx, os.Stdin, os.Stdout))
		}
	}
	return cli.Main(ctx, cli.Environment{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		Getenv:      os.Getenv,
		Now:         time.Now,
		Zone:        time.Local,
		Version:     version(),
		StateFolder: controller.StateFolder,
		Socket:      func(state string) string { return control.SocketPath(controller.RuntimeFolder(state)) },
		Lifecycle:   lifecycle{},
	}, args[1:])
}

func exitCode(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintf(os.Stderr, "ERROR %v\n", err)
	return 1
}

// buildVersion is set by the linker: make build passes what git calls the checkout.
var buildVersion string

// version is that of the build, else the module's, else "dev".
func version() string {
	if buildVersion != "" {
		return buildVersion
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}

// lifecycle starts and ends cluster processes of this program.
type lifecycle struct{}

// Up starts the cluster process of a state folder.
func (lifecycle) Up(ctx context.Context, o cli.UpOptions) error {
	options := controller.UpOptions{State: o.State, UpdateStatus: o.UpdateStatus, Foreground: o.Foreground, Version: version()}
	if o.Foreground {
		options.Log = os.Stderr
	}
	return controller.Up(ctx, options)
}

// Down ends it.
func (lifecycle) Down(ctx context.Context, o cli.DownOptions) error {
	return controller.Down(ctx, controller.DownOptions{State: o.State, Purge: o.Destroy})
}
