// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

type debugLogOptions struct {
	app     *app
	request control.LogRequest
	tail    bool
	noTail  bool
	date    bool
	ms      bool
	utc     bool
	limit   int
	flags   *pflag.FlagSet
}

// logLevels are juju's, from the least to the most severe.
var logLevels = []string{"TRACE", "DEBUG", "INFO", "WARNING", "ERROR"}

func newDebugLog(a *app) *cobra.Command {
	o := &debugLogOptions{app: a}
	cmd := &cobra.Command{
		Use:   "debug-log",
		Short: "Display log messages of the model",
		Example: `    jujulet debug-log --replay --no-tail
    jujulet debug-log -i drawbridge-k8s/0 -l DEBUG`,
		Args:    noArgs,
		PreRunE: func(*cobra.Command, []string) error { return o.complete() },
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error {
			return c.DebugLog(ctx, o.request, func(line model.LogLine) error {
				o.app.printf("%s\n", o.line(line))
				return nil
			})
		}),
	}
	o.flags = cmd.Flags()
	o.addFlags(cmd.Flags())
	return cmd
}

func (o *debugLogOptions) addFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&o.tail, "tail", false, "Show existing messages and continue with new ones (the default on a terminal)")
	flags.BoolVar(&o.noTail, "no-tail", false, "Show existing messages and stop (the default otherwise)")
	flags.BoolVar(&o.request.Replay, "replay", false, "Show the whole log")
	flags.IntVarP(&o.request.Lines, "lines", "n", 10, "Show this many of the most recent messages and continue with new ones; 0 is all")
	flags.IntVar(&o.limit, "limit", 0, "Show this many of the most recent messages, with --replay of the first, and stop; 0 is all")
	flags.StringVarP(&o.request.Level, "level", "l", "", "The least level to show (TRACE|DEBUG|INFO|WARNING|ERROR)")
	flags.StringSliceVarP(&o.request.Include, "include", "i", nil, "Only these entities: app, app/0 or unit-app-0")
	flags.StringSliceVarP(&o.request.Exclude, "exclude", "x", nil, "Not these entities")
	flags.StringSliceVar(&o.request.Modules, "include-module", nil, "Only these modules")
	flags.StringSliceVar(&o.request.NotModules, "exclude-module", nil, "Not these modules")
	flags.BoolVar(&o.date, "date", false, "Show dates as well as times")
	flags.BoolVar(&o.ms, "ms", false, "Show times to millisecond precision")
	flags.BoolVar(&o.utc, "utc", false, "Show times in UTC")
	ignoreBool(flags, "color", "location", "retry")
	ignoreString(flags, "retry-delay")
}

// complete checks what goes together, in juju's words, and fills in what follows from it.
func (o *debugLogOptions) complete() error {
	lines, limit := o.flags.Changed("lines"), o.flags.Changed("limit")
	for _, pair := range []struct {
		both bool
		text string
	}{
		{o.tail && o.noTail, "--tail and --no-tail"},
		{o.noTail && lines, "--no-tail and --lines"},
		{o.tail && limit, "--tail and --limit"},
		{lines && limit, "--limit and --lines"},
		{o.request.Replay && lines, "--replay and --lines"},
	} {
		if pair.both {
			return usageErrorf("setting %s not valid", pair.text)
		}
	}
	for name, value := range map[string]int{"--lines": o.request.Lines, "--limit": o.limit} {
		if value < 0 {
			return usageErrorf("invalid value \"%d\" for option %s: must be positive", value, name)
		}
	}
	o.request.Level = strings.ToUpper(o.request.Level)
	if o.request.Level != "" && !slices.Contains(logLevels, o.request.Level) {
		return usageErrorf("level value %q is not one of \"%s\"", o.request.Level, strings.Join(logLevels, "\", \""))
	}
	o.request.Follow = !limit && (o.tail || lines || (!o.noTail && isTerminal(o.app.Out)))
	switch {
	case o.request.Replay:
		o.request.Lines, o.request.First = 0, o.limit
	case limit:
		o.request.Lines = o.limit
	case lines && o.request.Lines == 0:
		o.request.Replay = true
	}
	return nil
}

// line is one line as juju prints it.
func (o *debugLogOptions) line(l model.LogLine) string {
	layout := "15:04:05"
	if o.ms {
		layout += ".000"
	}
	if o.date {
		layout = "2006-01-02 " + layout
	}
	return fmt.Sprintf("%s: %s %s %s %s", l.Entity, l.Time.In(o.app.zone(o.utc)).Format(layout), l.Level, l.Module, l.Message)
}
