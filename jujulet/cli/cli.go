// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

// Package cli is the command line of jujulet: juju's verbs, flags, texts and exit codes over the control socket, and
// the verbs that a runner on one machine needs beside them.
//
// Each verb has a file of its own with a constructor newX, an options struct and its run method. A verb parses, asks
// the cluster process through control.Client, and prints; what it prints where is decided in output.go, what it exits
// with in exit.go.
package cli

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
)

// Environment is all that commands see of the world around them.
type Environment struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
	// Getenv reads an environment variable.
	Getenv func(string) string
	// Now is the clock of timestamps.
	Now func() time.Time
	// Zone is the zone of times that are not asked for in UTC.
	Zone *time.Location
	// Version is what --version prints.
	Version string
	// StateFolder returns the absolute path of the state folder: the flag's, else the environment's, else the user's.
	StateFolder func(flag string, getenv func(string) string) (string, error)
	// Socket returns the control socket that belongs to a state folder.
	Socket func(state string) string
	// Lifecycle starts and ends cluster processes.
	Lifecycle Lifecycle
}

// Lifecycle starts and ends the cluster process of a state folder.
type Lifecycle interface {
	// Up starts a cluster process and returns when it is ready; in the foreground it returns when that process ends.
	Up(ctx context.Context, o UpOptions) error
	// Down ends it and returns when nothing of it is left. It is not an error when there is none.
	Down(ctx context.Context, o DownOptions) error
}

// Main runs one command line (without the program's name) and returns its exit code.
func Main(ctx context.Context, env Environment, args []string) int {
	root := newRoot(&app{Environment: env})
	root.SetArgs(args)
	root.SetIn(env.In)
	root.SetOut(env.Out)
	root.SetErr(env.Err)
	if err := unknownHelp(root, args); err != nil {
		return report(env.Err, err)
	}
	return report(env.Err, root.ExecuteContext(ctx))
}

// app is what every command shares: the environment and the global flags.
type app struct {
	Environment
	state      string
	model      string // [controller:][user/]model; "" is the current one
	controller string
	quiet      bool
}

// modelVariable names the model where no flag does, as for juju.
const modelVariable = "JUJU_MODEL"

// jujuFlags adds the flags that every verb of juju has.
func (a *app) jujuFlags(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.BoolVarP(&a.quiet, "quiet", "q", false, "Show no informational output")
	flags.BoolP("verbose", "v", false, noEffect)
	_ = flags.MarkHidden("verbose")
	ignoreBool(flags, "debug", "show-log")
	ignoreString(flags, "logging-config")
}

// stateFolder returns the absolute path of the state folder.
func (a *app) stateFolder() (string, error) {
	path, err := a.StateFolder(a.state, a.Getenv)
	if err != nil {
		return "", &commandError{code: exitFailed, cause: err}
	}
	return path, nil
}

// client returns a client of the cluster process of the state folder.
func (a *app) client() (*control.Client, error) {
	state, err := a.stateFolder()
	if err != nil {
		return nil, err
	}
	model := a.model
	if model == "" {
		model = a.Getenv(modelVariable)
	}
	return control.New(a.Socket(state)).In(model), nil
}

// zone returns the zone for times.
func (a *app) zone(utc bool) *time.Location {
	if utc || a.Zone == nil {
		return time.UTC
	}
	return a.Zone
}

// withClient gives a verb's run its client.
func (a *app) withClient(run func(context.Context, *control.Client) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		client, err := a.client()
		if err != nil {
			return err
		}
		defer client.Close()
		return run(cmd.Context(), client)
	}
}
