// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package render

import (
	"fmt"
	"io"
	"maps"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// Task is one task in the documents of `juju run`, `exec` and `show-task`.
type Task struct {
	ID      string         `json:"id" yaml:"id"`
	Log     []string       `json:"log,omitempty" yaml:"log,omitempty"`
	Message string         `json:"message,omitempty" yaml:"message,omitempty"`
	Results map[string]any `json:"results,omitempty" yaml:"results,omitempty"`
	Status  string         `json:"status" yaml:"status"`
	Timing  *Timing        `json:"timing,omitempty" yaml:"timing,omitempty"`
	Unit    string         `json:"unit" yaml:"unit"`
}

// Timing says when something was asked for, begun and ended.
type Timing struct {
	Completed string `json:"completed,omitempty" yaml:"completed,omitempty"`
	Enqueued  string `json:"enqueued,omitempty" yaml:"enqueued,omitempty"`
	Started   string `json:"started,omitempty" yaml:"started,omitempty"`
}

// taskTime is how juju shows the times of tasks: to the second, as its store has them.
const taskTime = "2006-01-02 15:04:05 -0700 MST"

func timing(enqueued, started, completed time.Time, zone *time.Location) *Timing {
	show := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.In(zone).Format(taskTime)
	}
	if enqueued.IsZero() && started.IsZero() && completed.IsZero() {
		return nil
	}
	return &Timing{Enqueued: show(enqueued), Started: show(started), Completed: show(completed)}
}

// ShowTask returns the document of one task.
func ShowTask(t model.Action, zone *time.Location) Task {
	return Task{
		ID: t.ID, Unit: t.Unit, Status: string(t.Status), Message: t.Message, Log: taskLog(t, zone), Results: results(t.Results),
		Timing: timing(t.Enqueued, t.Started, t.Completed, zone),
	}
}

func taskLog(t model.Action, zone *time.Location) []string {
	var out []string
	for _, line := range t.Log {
		out = append(out, line.Time.In(zone).Format(taskTime)+" "+line.Message)
	}
	return out
}

// results are a task's, as juju shows them: the return code is a number, empty output is left out.
func results(all map[string]any) map[string]any {
	out := maps.Clone(all)
	for _, key := range []string{"stdout", "stderr"} {
		if text, _ := out[key].(string); text == "" {
			delete(out, key)
		} else {
			out[key] = strings.ReplaceAll(text, "\r\n", "\n")
		}
	}
	if _, given := out["return-code"]; given {
		out["return-code"] = ReturnCode(all)
	}
	return out
}

// ReturnCode is the exit code in a task's results, -1 if there is none.
func ReturnCode(results map[string]any) int {
	switch code := results["return-code"].(type) {
	case float64:
		return int(code)
	case int:
		return code
	case string:
		if n, err := strconv.Atoi(code); err == nil {
			return n
		}
	}
	return -1
}

// ownResults are what the charm has set: neither output nor return code.
func ownResults(all map[string]any) map[string]any {
	out := maps.Clone(all)
	for _, key := range []string{"return-code", "stdout", "stderr", "stdout-encoding", "stderr-encoding"} {
		delete(out, key)
	}
	return out
}

// Tasks writes the results of actions, by unit, as `juju run` does: one task's own results and then its output; of several
// a YAML document.
func Tasks(w io.Writer, tasks map[string]Task) error {
	summaries := map[string]map[string]any{}
	var outputs []string
	for unit, t := range tasks {
		text, err := taskText(t)
		if err != nil {
			return err
		}
		summary := map[string]any{"id": t.ID, "output": text, "status": t.Status}
		if t.Message != "" {
			summary["message"] = t.Message
		}
		summaries[unit] = summary
		for _, key := range []string{"stdout", "stderr"} {
			if text, ok := t.Results[key].(string); ok {
				outputs = append(outputs, strings.Trim(text, "\n"))
			}
		}
	}
	if len(summaries) > 1 {
		return writeYAML(w, summaries)
	}
	var out strings.Builder
	for _, s := range summaries {
		if s["status"] == string(model.ActionFailed) {
			message, given := s["message"]
			if !given {
				message = "<nil>" // as juju prints it
			}
			fmt.Fprintf(&out, "Action id %s failed: %v\n", s["id"], message)
		}
		fmt.Fprintln(&out, s["output"])
	}
	for _, text := range outputs {
		fmt.Fprintln(&out, text)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// taskText is a task's own results as YAML, or its status if it has no results at all.
func taskText(t Task) (string, error) {
	if len(t.Results) == 0 {
		return fmt.Sprintf("Task %s %s\n", t.ID, t.Status), nil
	}
	own := ownResults(t.Results)
	if len(own) == 0 {
		return "", nil
	}
	var out strings.Builder
	err := writeYAML(&out, own)
	return out.String(), err
}

// Outputs writes what commands printed, by unit, as `juju exec` does.
func Outputs(w io.Writer, tasks map[string]Task) error {
	outputs := map[string]string{}
	for unit, t := range tasks {
		for _, key := range []string{"stdout", "stderr"} {
			text, ok := t.Results[key].(string)
			if !ok {
				continue
			}
			if !strings.HasSuffix(text, "\n") {
				text += "\n"
			}
			outputs[unit] += text
		}
	}
	var out strings.Builder
	for _, unit := range sortedNames(tasks) {
		if len(outputs) > 1 {
			fmt.Fprintf(&out, "%s:\n%s\n", unit, outputs[unit])
		} else {
			out.WriteString(outputs[unit])
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func writeYAML(w io.Writer, value any) error {
	encoder := yaml.NewEncoder(w)
	encoder.SetIndent(2)
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("cannot write yaml: %w", err)
	}
	return encoder.Close()
}

// Cancelled is one task in the document of `juju cancel-task`.
type Cancelled struct {
	Action      string `json:"action" yaml:"action"`
	CompletedAt string `json:"completed at" yaml:"completed at"`
	ID          string `json:"id" yaml:"id"`
	Status      string `json:"status" yaml:"status"`
	Unit        string `json:"unit" yaml:"unit"`
}

// ShowCancelled returns the document of a cancelled task.
func ShowCancelled(t model.Action) Cancelled {
	at := "n/a"
	if !t.Completed.IsZero() {
		at = t.Completed.UTC().Format("2006-01-02 15:04:05")
	}
	return Cancelled{Action: t.Name, CompletedAt: at, ID: t.ID, Status: string(t.Status), Unit: t.Unit}
}
