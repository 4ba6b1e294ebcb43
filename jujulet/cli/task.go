// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cli/render"
	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// taskOptions are the flags of run and exec, and what follows once tasks are enqueued.
type taskOptions struct {
	app        *app
	background bool
	wait       time.Duration
	waits      bool // --wait was given
	utc        bool
	format     *format
	// silent leaves progress out, and plain prints the results: exec has it so.
	silent bool
	plain  func(tasks map[string]render.Task) error
}

// addFlags adds the flags; wait is how long results are waited for if nobody says, negative is for ever.
func (o *taskOptions) addFlags(flags *pflag.FlagSet, wait time.Duration) {
	flags.BoolVar(&o.background, "background", false, "Do not wait for results")
	flags.DurationVar(&o.wait, "wait", wait, "How long to wait for results; negative is for ever")
	flags.BoolVar(&o.utc, "utc", false, "Show times in UTC")
	ignoreBool(flags, "color", "no-color")
	o.format = formatFlag(flags, "plain", "json", "yaml")
}

// progress says what goes on, on standard error.
func (o *taskOptions) progress(format string, args ...any) {
	if !o.silent {
		o.app.infof(format, args...)
	}
}

// follow reports an operation's progress on standard error and its results on standard output. Juju 3.6: units that could
// not be asked are told of, and are no failure.
func (o *taskOptions) follow(ctx context.Context, c *control.Client, operation control.Operation) error {
	if !o.background && len(operation.Tasks) > 0 {
		o.progress("Running operation %s with %d task%s", operation.ID, len(operation.Tasks), plural(len(operation.Tasks)))
		for _, task := range operation.Tasks {
			o.progress("  - task %s on %s", task.ID, unitTag(task.Unit))
		}
	}
	if !o.background {
		o.progress("")
	}
	if len(operation.Tasks) == 0 {
		o.app.infof("Operation %s failed to schedule any tasks:\n%s", operation.ID, strings.Join(operation.Errors, "\n"))
		return nil
	}
	if len(operation.Errors) > 0 {
		o.app.infof("Some actions could not be scheduled:\n%s\n", strings.Join(operation.Errors, "\n"))
		o.app.infof("")
	}
	if o.background {
		return o.scheduled(operation)
	}
	done, err := o.awaitAll(ctx, c, operation.Tasks)
	if err != nil {
		return err
	}
	return o.print(done)
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

func (o *taskOptions) scheduled(operation control.Operation) error {
	if len(operation.Tasks) == 1 {
		o.app.infof("Scheduled operation %s with task %s", operation.ID, operation.Tasks[0].ID)
		o.app.infof("Check operation status with 'jujulet show-operation %s'", operation.ID)
		o.app.infof("Check task status with 'jujulet show-task %s'", operation.Tasks[0].ID)
		return nil
	}
	o.app.infof("Scheduled operation %s with %d tasks", operation.ID, len(operation.Tasks))
	ids := map[string]map[string]string{}
	for _, task := range operation.Tasks {
		ids[task.Unit] = map[string]string{"id": task.ID}
	}
	if err := writeYAML(o.app.Out, ids); err != nil {
		return err
	}
	o.app.infof("Check operation status with 'jujulet show-operation %s'", operation.ID)
	o.app.infof("Check task status with 'jujulet show-task <id>'")
	return nil
}

// awaitAll waits for all tasks; the log of a single one is printed as it comes.
func (o *taskOptions) awaitAll(ctx context.Context, c *control.Client, tasks []model.Action) ([]model.Action, error) {
	waiting, cancel := patience(ctx, o.wait)
	defer cancel()
	done := make([]model.Action, 0, len(tasks))
	for _, task := range tasks {
		o.progress("Waiting for task %s...\n", task.ID)
		result, seen, err := o.await(waiting, c, task.ID, len(tasks) == 1)
		if seen > 0 {
			o.progress("\n")
		}
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case !isTimeout(err):
			return nil, err
		default:
			var late []string
			for _, t := range tasks[len(done):] {
				late = append(late, "unit "+t.Unit)
			}
			slices.Sort(late)
			return nil, runErrorf("timed out waiting for results from: %s", strings.Join(late, ", "))
		}
		done = append(done, result)
	}
	return done, nil
}

// patience bounds a wait; negative is for ever.
func patience(ctx context.Context, wait time.Duration) (context.Context, context.CancelFunc) {
	if wait < 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, wait)
}

// isTimeout reports whether an error says that time was up.
func isTimeout(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || control.KindOf(err) == control.KindTimeout
}

// await waits for one task, and returns how many lines of its log it has printed.
func (o *taskOptions) await(ctx context.Context, c *control.Client, id string, log bool) (model.Action, int, error) {
	seen := 0
	for {
		task, err := c.WaitTask(ctx, id, seen)
		if err != nil {
			return task, seen, err
		}
		for ; log && seen < len(task.Log); seen++ {
			o.app.infof("%s %s", task.Log[seen].Time.In(o.app.zone(o.utc)).Format("15:04:05"), task.Log[seen].Message)
		}
		if task.Status.Finished() {
			return task, seen, nil
		}
		seen = len(task.Log)
		if ctx.Err() != nil {
			return task, seen, ctx.Err()
		}
	}
}

// print writes results, and fails if a process did. Juju 3.6: action-fail alone is no failure of the command.
func (o *taskOptions) print(tasks []model.Action) error {
	document := map[string]render.Task{}
	var failed []string
	for _, task := range tasks {
		document[task.Unit] = render.ShowTask(task, o.app.zone(o.utc))
		if code := render.ReturnCode(task.Results); code > 0 {
			failed = append(failed, fmt.Sprintf(" - id %q with return code %d\n", task.ID, code))
		}
	}
	written, err := o.format.writeValue(o.app.Out, document)
	if err != nil {
		return err
	}
	if !written {
		if err := o.plain(document); err != nil {
			return err
		}
	}
	if len(failed) == 0 {
		return nil
	}
	slices.Sort(failed)
	s := plural(len(failed))
	return runErrorf("the following task%s failed:\n%s\nuse 'jujulet show-task' to inspect the failure%s\n", s, strings.Join(failed, ""), s)
}
