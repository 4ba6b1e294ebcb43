// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"context"
	"regexp"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cli/render"
	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// taskID is what juju takes for the id of an operation or a task.
var taskID = regexp.MustCompile(`^[0-9]+$`)

// watchFlags are --wait and --watch of show-operation and show-task. Without them nothing is waited for.
type watchFlags struct {
	wait  time.Duration
	watch bool
	flags *pflag.FlagSet
}

func (w *watchFlags) add(flags *pflag.FlagSet) {
	w.flags = flags
	flags.DurationVar(&w.wait, "wait", -time.Second, "How long to wait for results")
	flags.BoolVar(&w.watch, "watch", false, "Wait for results without a limit")
}

func (w *watchFlags) check() error {
	if w.watch && w.flags.Changed("wait") {
		return usageErrorf("specify either --watch or --wait but not both")
	}
	return nil
}

// asked reports whether something is to be waited for.
func (w *watchFlags) asked() bool { return w.watch || w.wait >= 0 }

// context bounds the wait. Juju 3.6: --wait 0 is without a limit.
func (w *watchFlags) context(ctx context.Context) (context.Context, context.CancelFunc) {
	if w.watch || w.wait <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, w.wait)
}

func newShowOperation(a *app) *cobra.Command {
	var id string
	var format *format
	watch, utc := &watchFlags{}, false
	cmd := &cobra.Command{
		Use:     "show-operation <operation id>",
		Short:   "Show results of an operation",
		Example: "    jujulet show-operation 1\n    jujulet show-operation 1 --wait=2m",
		Args: func(_ *cobra.Command, args []string) error {
			if err := watch.check(); err != nil {
				return err
			}
			if len(args) == 0 {
				return usageErrorf("no operation ID specified")
			}
			if id = args[0]; !taskID.MatchString(id) {
				return usageErrorf("operation ID %q not valid", id)
			}
			return checkEmpty(args[1:])
		},
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error {
			operation, err := awaitOperation(ctx, c, id, watch)
			if err != nil {
				return err
			}
			_, err = format.writeValue(a.Out, render.ShowOperation(operation, a.zone(utc)))
			return err
		}),
	}
	watch.add(cmd.Flags())
	cmd.Flags().BoolVar(&utc, "utc", false, "Show times in UTC")
	format = formatFlag(cmd.Flags(), "yaml", "json")
	return cmd
}

// awaitOperation returns an operation, when it has ended if that is asked for.
func awaitOperation(ctx context.Context, c *control.Client, id string, watch *watchFlags) (control.Operation, error) {
	waiting, cancel := watch.context(ctx)
	defer cancel()
	for {
		operation, err := findOperation(ctx, c, id)
		if err != nil || !watch.asked() {
			return operation, err
		}
		open := ""
		for _, task := range operation.Tasks {
			if !task.Status.Finished() {
				open = task.ID
			}
		}
		if open == "" {
			return operation, nil
		}
		_, err = c.WaitTask(waiting, open, 1<<30)
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return operation, ctx.Err()
		case waiting.Err() != nil:
			return operation, runErrorf("timeout reached")
		default:
			return operation, err
		}
	}
}

func findOperation(ctx context.Context, c *control.Client, id string) (control.Operation, error) {
	all, err := c.Operations(ctx)
	if err != nil {
		return control.Operation{}, err
	}
	for _, operation := range all {
		if operation.ID == id {
			return operation, nil
		}
	}
	return control.Operation{}, runErrorf("operation %q not found", id)
}

func newShowTask(a *app) *cobra.Command {
	o := &taskOptions{app: a}
	watch := &watchFlags{}
	var id string
	cmd := &cobra.Command{
		Use:     "show-task <task id>",
		Short:   "Show results of a task by ID",
		Example: "    jujulet show-task 4\n    jujulet show-task 4 --format yaml --wait=2m",
		Args: func(_ *cobra.Command, args []string) error {
			if err := watch.check(); err != nil {
				return err
			}
			if len(args) == 0 {
				return usageErrorf("no task ID specified")
			}
			if id = args[0]; !taskID.MatchString(id) {
				return usageErrorf("task ID %q not valid", id)
			}
			return checkEmpty(args[1:])
		},
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error {
			task, err := o.show(ctx, c, id, watch)
			if err != nil {
				return err
			}
			document := render.ShowTask(task, a.zone(o.utc))
			if written, err := o.format.writeValue(a.Out, document); written || err != nil {
				return err
			}
			return render.Tasks(a.Out, map[string]render.Task{id: document})
		}),
	}
	watch.add(cmd.Flags())
	cmd.Flags().BoolVar(&o.utc, "utc", false, "Show times in UTC")
	o.format = formatFlag(cmd.Flags(), "plain", "json", "yaml")
	return cmd
}

// show returns a task, when it has ended if that is asked for; its log is printed meanwhile.
func (o *taskOptions) show(ctx context.Context, c *control.Client, id string, watch *watchFlags) (model.Action, error) {
	task, err := c.Task(ctx, id)
	if control.KindOf(err) == control.KindNotFound {
		return task, runErrorf("task %q not found", id)
	}
	if err != nil || !watch.asked() || task.Status.Finished() {
		return task, err
	}
	waiting, cancel := watch.context(ctx)
	defer cancel()
	task, seen, err := o.await(waiting, c, id, true)
	if seen > 0 {
		o.app.infof("")
	}
	if err != nil && ctx.Err() == nil && isTimeout(err) {
		return task, runErrorf("maximum wait time reached")
	}
	return task, err
}

func newCancelTask(a *app) *cobra.Command {
	var ids []string
	var format *format
	cmd := &cobra.Command{
		Use:     "cancel-task <task id> [<task id> ...]",
		Short:   "Cancel pending or running tasks",
		Example: "    jujulet cancel-task 1 2",
		Args: func(_ *cobra.Command, args []string) error {
			for _, id := range args {
				if !taskID.MatchString(id) {
					return usageErrorf("task ID %q not valid", id)
				}
			}
			if ids = args; len(ids) == 0 {
				return runErrorf("no task IDs specified")
			}
			return nil
		},
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error {
			cancelled, failed := []render.Cancelled{}, ""
			for _, id := range ids {
				task, err := c.Cancel(ctx, id)
				switch {
				case err == nil:
					cancelled = append(cancelled, render.ShowCancelled(task))
				case control.KindOf(err) == control.KindNotFound:
					failed += "task: " + id + ", error: " + err.Error() + "\n"
				default:
					return err
				}
			}
			if failed != "" {
				a.infof("WARNING The following tasks could not be canceled:\n%s", failed)
			}
			if len(cancelled) == 0 {
				return nil
			}
			_, err := format.writeValue(a.Out, map[string]any{"actions": cancelled})
			return err
		}),
	}
	format = formatFlag(cmd.Flags(), "yaml", "json")
	return cmd
}
