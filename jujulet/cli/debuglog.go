// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

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
	flags := cmd.Flags()
	flags.BoolVar(&o.tail, "tail", false, "Show existing messages and continue with new ones (the default on a terminal)")
	flags.BoolVar(&o.noTail, "no-tail", false, "Show existing messages and stop (the default otherwise)")
	flags.BoolVar(&o.request.Replay, "replay", false, "Show the whole log")
	flags.IntVarP(&o.request.Lines, "lines", "n", 10, "Show this many of the most recent messages")
	flags.StringVarP(&o.request.Level, "level", "l", "", "The least level to show (TRACE|DEBUG|INFO|WARNING|ERROR)")
	flags.StringSliceVarP(&o.request.Include, "include", "i", nil, "Only these entities: app, app/0 or unit-app-0")
	flags.StringSliceVarP(&o.request.Exclude, "exclude", "x", nil, "Not these entities")
	flags.StringSliceVar(&o.request.Modules, "include-module", nil, "Only these modules")
	flags.BoolVar(&o.date, "date", false, "Show dates as well as times")
	flags.BoolVar(&o.ms, "ms", false, "Show times to millisecond precision")
	flags.BoolVar(&o.utc, "utc", false, "Show times in UTC")
	return cmd
}

func (o *debugLogOptions) complete() error {
	if o.tail && o.noTail {
		return usageErrorf("setting --tail and --no-tail not valid")
	}
	if o.request.Lines < 0 {
		return usageErrorf("invalid value \"%d\" for option --lines: must be positive", o.request.Lines)
	}
	o.request.Level = strings.ToUpper(o.request.Level)
	if o.request.Level != "" && !slices.Contains(logLevels, o.request.Level) {
		return usageErrorf("level value %q is not one of \"%s\"", o.request.Level, strings.Join(logLevels, "\", \""))
	}
	o.request.Follow = o.tail || (!o.noTail && isTerminal(o.app.Out))
	if o.request.Replay {
		o.request.Lines = 0
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
