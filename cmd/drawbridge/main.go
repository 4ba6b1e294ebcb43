// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

// Command drawbridge is the one binary of the charm drawbridge-k8s. Juju runs it as `dispatch`, without arguments and
// with the hook in the environment; a hook runs it as `watch`; `version` says what it is.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/drawbridge-k8s/drawbridge/charm"
	"github.com/drawbridge-k8s/drawbridge/hooks"
)

// version is set when the charm is packed.
var version = "dev"

const usage = `drawbridge is run by Juju, as the program "dispatch" of the charm drawbridge-k8s.

  drawbridge              run the hook or action that the environment describes
  drawbridge watch DIR    run the watch (a hook starts it and gives it its order)
  drawbridge version      print the version
`

func main() {
	// A unit agent that goes away ends the hook with SIGTERM; the hook is run again later, so it may stop anywhere.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is main with everything handed in. Nothing is parsed before the common case, a hook, is recognised: it has to be
// cheap.
func run(ctx context.Context, args []string, getenv func(string) string, stdin io.Reader, stdout, stderr io.Writer) int {
	build := buildID()
	switch {
	case len(args) == 0 && (getenv("JUJU_DISPATCH_PATH") != "" || getenv("JUJU_HOOK_NAME") != ""):
		return hooks.Run(ctx, getenv, charm.New(charm.Options{Build: build}).Handle)
	case len(args) == 1 && (args[0] == "version" || args[0] == "--version"):
		fmt.Fprintln(stdout, "drawbridge", version)
		return 0
	case len(args) == 2 && args[0] == "watch":
		if err := charm.Watch(ctx, charm.Options{Build: build}, args[1], getenv, stdin); err != nil {
			fmt.Fprintln(stderr, err)
			return 1
		}
		return 0
	case len(args) == 1 && (args[0] == "help" || args[0] == "--help" || args[0] == "-h"):
		fmt.Fprint(stdout, usage)
		return 0
	}
	fmt.Fprint(stderr, usage)
	return 2
}

// buildID tells two builds apart, also two of the same version, without reading the whole file.
func buildID() string {
	program, err := os.Executable()
	if err != nil {
		return version
	}
	info, err := os.Stat(program)
	if err != nil {
		return version
	}
	return fmt.Sprintf("%s-%x-%x", version, info.Size(), info.ModTime().UnixNano())
}
