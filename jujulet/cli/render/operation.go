// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package render

import (
	"io"
	"reflect"
	"strings"
	"time"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// Operation is one operation in the documents of `juju operations` and `show-operation`.
type Operation struct {
	Summary string                   `json:"summary" yaml:"summary"`
	Status  string                   `json:"status" yaml:"status"`
	Fail    string                   `json:"fail,omitempty" yaml:"fail,omitempty"`
	Action  *Action                  `json:"action,omitempty" yaml:"action,omitempty"`
	Timing  OperationTiming          `json:"timing" yaml:"timing,omitempty"`
	Tasks   map[string]OperationTask `json:"tasks,omitempty" yaml:"tasks,omitempty"`
}

// OperationTiming is [Timing] in the order of operations.
type OperationTiming struct {
	Enqueued  string `json:"enqueued,omitempty" yaml:"enqueued,omitempty"`
	Started   string `json:"started,omitempty" yaml:"started,omitempty"`
	Completed string `json:"completed,omitempty" yaml:"completed,omitempty"`
}

// Action is what all tasks of an [Operation] run.
type Action struct {
	Name       string         `json:"name" yaml:"name"`
	Parameters map[string]any `json:"parameters" yaml:"parameters"`
}

// OperationTask is one task of an [Operation].
type OperationTask struct {
	Name    string          `json:"name,omitempty" yaml:"name,omitempty"`
	Host    string          `json:"host" yaml:"host"`
	Status  string          `json:"status" yaml:"status"`
	Timing  OperationTiming `json:"timing" yaml:"timing,omitempty"`
	Log     []string        `json:"log,omitempty" yaml:"log,omitempty"`
	Message string          `json:"message,omitempty" yaml:"message,omitempty"`
	Results map[string]any  `json:"results,omitempty" yaml:"results,omitempty"`
}

func operationTiming(enqueued, started, completed time.Time, zone *time.Location) OperationTiming {
	t := timing(enqueued, started, completed, zone)
	if t == nil {
		return OperationTiming{}
	}
	return OperationTiming{t.Enqueued, t.Started, t.Completed}
}

// ShowOperation returns the document of one operation.
func ShowOperation(o model.Operation, zone *time.Location) Operation {
	out := Operation{
		Summary: o.Summary, Status: string(o.Status()), Fail: o.Fail, Tasks: map[string]OperationTask{},
		Timing: operationTiming(o.Enqueued, o.Started(), o.Completed(), zone),
	}
	same := true
	for _, t := range o.Tasks {
		same = same && t.Name == o.Tasks[0].Name && reflect.DeepEqual(t.Params, o.Tasks[0].Params)
	}
	for _, t := range o.Tasks {
		task := OperationTask{
			Host: t.Unit, Status: string(t.Status), Timing: operationTiming(t.Enqueued, t.Started, t.Completed, zone),
			Log: taskLog(t, zone), Message: t.Message, Results: t.Results,
		}
		if !same {
			task.Name = t.Name
		}
		out.Tasks[t.ID] = task
	}
	if same && len(o.Tasks) > 0 {
		out.Action = &Action{Name: o.Tasks[0].Name, Parameters: o.Tasks[0].Params}
		if out.Action.Parameters == nil {
			out.Action.Parameters = map[string]any{}
		}
	}
	return out
}

// maxTasks is how many tasks of an operation are named in its line.
const maxTasks = 5

// Operations writes operations as `juju operations` does.
func Operations(w io.Writer, operations []model.Operation, zone *time.Location) error {
	t := newTable("ID", "Status", "Started", "Finished", "Task IDs", "Summary")
	t.right[0] = true
	show := func(at time.Time) string {
		if at.IsZero() {
			return ""
		}
		return at.In(zone).Format("2006-01-02T15:04:05")
	}
	for _, o := range operations {
		var ids []string
		for _, task := range o.Tasks[:min(len(o.Tasks), maxTasks)] {
			ids = append(ids, task.ID)
		}
		tasks := strings.Join(ids, ",")
		if len(o.Tasks) > maxTasks {
			tasks += "..."
		}
		t.add(plain(o.ID), plain(string(o.Status())), plain(show(o.Started())), plain(show(o.Completed())), plain(tasks), plain(o.Summary))
	}
	return t.write(w, false)
}
