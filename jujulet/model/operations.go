// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Enqueue makes an operation with one task for each unit ("foo/0" or "foo/leader"). The action juju-exec is always
// there. A parameter that does not fit the schema makes the task fail. Juju 3.6: a unit that is not there, or whose charm
// has no such action, fails alone; an operation without a task is in error.
func (m *Model) Enqueue(units []string, action string, params map[string]any) (Operation, error) {
	var o Operation
	err := m.update(func(t *txn) error {
		d, err := t.model()
		if err != nil {
			return err
		}
		d.NextOperation++
		o = Operation{ID: strconv.Itoa(d.NextOperation), Enqueued: t.now}
		receivers := make([]string, len(units))
		for i, name := range units {
			receivers[i] = receiver(name)
			task, err := t.newAction(name, action, params)
			var refusal *Error
			if errors.As(err, &refusal) {
				o.Errors = append(o.Errors, refusal.Message)
				continue
			}
			if err != nil {
				return err
			}
			d.NextOperation++
			task.ID, task.Operation = strconv.Itoa(d.NextOperation), o.ID
			if err := t.putAction(&task); err != nil {
				return err
			}
			o.Tasks = append(o.Tasks, task)
		}
		o.Summary = fmt.Sprintf("%s run on %s", action, strings.Join(receivers, ","))
		if len(o.Errors) > 0 {
			o.Fail = "error(s) enqueueing action(s): " + strings.Join(o.Errors, ", ")
		}
		stored := o
		stored.Tasks, stored.Errors = nil, nil
		if err := put(t, bucketOperations, actionKey(o.ID), stored); err != nil {
			return err
		}
		return t.putModel(d)
	})
	return o, err
}

// receiver is a unit as an operation's summary names it; "foo/leader" stands as it was asked for.
func receiver(name string) string {
	if strings.HasSuffix(name, "/leader") {
		return name
	}
	return Tag(name)
}

// Operation returns an operation with its tasks.
func (m *Model) Operation(id string) (Operation, error) {
	all, err := m.Operations()
	for _, o := range all {
		if o.ID == id {
			return o, nil
		}
	}
	if err == nil {
		err = notFound("operation", id)
	}
	return Operation{}, err
}

// Operations lists all operations with their tasks, oldest first.
func (m *Model) Operations() ([]Operation, error) {
	var out []Operation
	err := m.view(func(t *txn) error {
		index := map[string]int{}
		err := each(t, bucketOperations, "", func(_ string, o *Operation) error {
			index[o.ID] = len(out)
			out = append(out, *o)
			return nil
		})
		if err != nil {
			return err
		}
		return each(t, bucketActions, "", func(_ string, a *Action) error {
			if i, ok := index[a.Operation]; ok {
				out[i].Tasks = append(out[i].Tasks, *a)
			}
			return nil
		})
	})
	return out, err
}

// operationOrder is Juju's: the first status that a task has is the operation's.
var operationOrder = []ActionStatus{ActionRunning, ActionPending, ActionFailed, ActionCancelled, ActionCompleted}

// Status is the operation's, from its tasks. Juju 3.6: "error" if there is no task.
func (o Operation) Status() ActionStatus {
	if len(o.Tasks) == 0 {
		return ActionError
	}
	for _, status := range operationOrder {
		for _, task := range o.Tasks {
			if task.Status == status {
				return status
			}
		}
	}
	return o.Tasks[0].Status
}

// Started is when the first task began; zero if none did.
func (o Operation) Started() time.Time {
	var first time.Time
	for _, task := range o.Tasks {
		first = earlier(first, task.Started)
	}
	return first
}

// Completed is when the last task ended; zero while one has not.
func (o Operation) Completed() time.Time {
	var last time.Time
	for _, task := range o.Tasks {
		if !task.Status.Finished() {
			return time.Time{}
		}
		if task.Completed.After(last) {
			last = task.Completed
		}
	}
	return last
}
