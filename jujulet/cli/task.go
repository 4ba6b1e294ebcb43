// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// taskOptions are the flags of run and exec, and what follows once tasks are enqueued.
type taskOptions struct {
	app        *app
	background bool
	wait       time.Duration
	utc        bool
	format     *format
}

func (o *taskOptions) addFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&o.background, "background", false, "Do not wait for results")
	flags.DurationVar(&o.wait, "wait", defaultWait, "How long to wait for results")
	flags.BoolVar(&o.utc, "utc", false, "Show times in UTC")
	o.format = formatFlag(flags, "plain", "json", "yaml")
}

// follow reports an operation's progress on standard error and its results on standard output.
func (o *taskOptions) follow(ctx context.Context, c *control.Client, operation control.Operation) error {
	if o.background {
		return o.scheduled(operation)
	}
	plural := "s"
	if len(operation.Tasks) == 1 {
		plural = ""
	}
	o.app.infof("Running operation %s with %d task%s", operation.ID, len(operation.Tasks), plural)
	for _, task := range operation.Tasks {
		o.app.infof("  - task %s on %s", task.ID, unitTag(task.Unit))
	}
	o.app.infof("")
	waiting, cancel := context.WithTimeout(ctx, o.wait)
	defer cancel()
	done := make([]model.Action, len(operation.Tasks))
	for i, task := range operation.Tasks {
		o.app.infof("Waiting for task %s...", task.ID)
		result, err := o.await(waiting, c, task.ID)
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if !errors.Is(err, context.DeadlineExceeded) && control.KindOf(err) != control.KindTimeout {
				return err
			}
			o.app.infof("")
			return runErrorf("timed out waiting for results from: unit %s", task.Unit)
		}
		done[i] = result
	}
	o.app.infof("")
	return o.print(done)
}

func (o *taskOptions) scheduled(operation control.Operation) error {
	if len(operation.Tasks) == 1 {
		o.app.infof("Scheduled operation %s with task %s", operation.ID, operation.Tasks[0].ID)
		return nil
	}
	o.app.infof("Scheduled operation %s with %d tasks", operation.ID, len(operation.Tasks))
	for _, task := range operation.Tasks {
		o.app.infof("  - task %s on %s", task.ID, unitTag(task.Unit))
	}
	return nil
}

// await waits for one task and prints its log as it comes.
func (o *taskOptions) await(ctx context.Context, c *control.Client, id string) (model.Action, error) {
	seen := 0
	for {
		task, err := c.WaitTask(ctx, id, seen)
		if err != nil {
			return task, err
		}
		for ; seen < len(task.Log); seen++ {
			o.app.infof("%s %s", task.Log[seen].Time.In(o.app.zone(o.utc)).Format("15:04:05"), task.Log[seen].Message)
		}
		if task.Status.Finished() {
			return task, nil
		}
		if ctx.Err() != nil {
			return task, ctx.Err()
		}
	}
}

// taskDocument is one task in --format json|yaml.
type taskDocument struct {
	ID      string            `json:"id" yaml:"id"`
	Log     []string          `json:"log,omitempty" yaml:"log,omitempty"`
	Message string            `json:"message,omitempty" yaml:"message,omitempty"`
	Results map[string]any    `json:"results,omitempty" yaml:"results,omitempty"`
	Status  string            `json:"status" yaml:"status"`
	Timing  map[string]string `json:"timing,omitempty" yaml:"timing,omitempty"`
	Unit    string            `json:"unit" yaml:"unit"`
}

func (o *taskOptions) print(tasks []model.Action) error {
	document := map[string]taskDocument{}
	var failed []string
	for _, task := range tasks {
		document[task.Unit] = o.document(task)
		if code := returnCode(task.Results); code != 0 {
			failed = append(failed, fmt.Sprintf(" - id %q with return code %d\n", task.ID, code))
		}
	}
	written, err := o.format.writeValue(o.app.Out, document)
	if err != nil {
		return err
	}
	if !written {
		if err := o.printPlain(tasks, document); err != nil {
			return err
		}
	}
	if len(failed) == 0 {
		return nil
	}
	plural := ""
	if len(failed) > 1 {
		plural = "s"
	}
	return runErrorf("the following task%s failed:\n%s\nuse 'jujulet show-task' to inspect the failure%s", plural, strings.Join(failed, ""), plural)
}

func (o *taskOptions) document(task model.Action) taskDocument {
	d := taskDocument{ID: task.ID, Unit: task.Unit, Status: string(task.Status), Message: task.Message, Timing: map[string]string{}}
	if len(task.Results) > 0 {
		d.Results = maps.Clone(task.Results)
		if _, given := d.Results["return-code"]; given {
			d.Results["return-code"] = returnCode(task.Results)
		}
	}
	for name, at := range map[string]time.Time{"enqueued": task.Enqueued, "started": task.Started, "completed": task.Completed} {
		if !at.IsZero() {
			d.Timing[name] = at.In(o.app.zone(o.utc)).Format("2006-01-02 15:04:05 -0700 MST")
		}
	}
	for _, line := range task.Log {
		d.Log = append(d.Log, line.Time.In(o.app.zone(o.utc)).Format("2006-01-02 15:04:05 -0700 MST")+" "+line.Message)
	}
	return d
}

// printPlain prints one task's own results and then its output; several tasks are a YAML document.
func (o *taskOptions) printPlain(tasks []model.Action, document map[string]taskDocument) error {
	if len(tasks) != 1 {
		return writeYAML(o.app.Out, document)
	}
	task := tasks[0]
	if task.Status == model.ActionFailed {
		o.app.printf("Action id %s failed: %s\n", task.ID, task.Message)
	}
	own := withoutOutput(task.Results)
	switch {
	case len(own) > 0:
		if err := writeYAML(o.app.Out, own); err != nil {
			return err
		}
		o.app.printf("\n")
	case len(task.Results) == 0 || !hasOutput(task.Results):
		if task.Status != model.ActionFailed {
			o.app.printf("Task %s %s\n", task.ID, task.Status)
		}
	}
	for _, key := range []string{"stdout", "stderr"} {
		if text, ok := task.Results[key].(string); ok && text != "" {
			o.app.printf("%s\n", text)
		}
	}
	return nil
}

func hasOutput(results map[string]any) bool {
	for _, key := range []string{"stdout", "stderr"} {
		if text, ok := results[key].(string); ok && text != "" {
			return true
		}
	}
	return false
}
