// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"context"
	"errors"
	"strconv"
	"strings"
)

// EnqueueAction is [Model.Enqueue] for a caller that wants all units or an error.
func (m *Model) EnqueueAction(units []string, action string, params map[string]any) (string, []Action, error) {
	o, err := m.Enqueue(units, action, params)
	if err == nil && len(o.Errors) > 0 {
		err = errors.New(strings.Join(o.Errors, ", "))
	}
	return o.ID, o.Tasks, err
}

// leaderUnit replaces "foo/leader" by the leader's name.
func (t *txn) leaderUnit(name string) (string, error) {
	app, ok := strings.CutSuffix(name, "/leader")
	if !ok {
		return name, nil
	}
	a, err := t.app(app)
	if err != nil {
		return "", err
	}
	leader := a.leader(t.now)
	if leader == "" {
		return "", errf(NotFound, "could not determine leader for %q", app)
	}
	return leader, nil
}

func (t *txn) newAction(name, action string, params map[string]any) (Action, error) {
	unit, err := t.leaderUnit(name)
	if err != nil {
		return Action{}, err
	}
	u, err := t.unit(unit)
	if err != nil {
		return Action{}, err
	}
	a, err := t.app(u.App)
	if err != nil {
		return Action{}, err
	}
	c, err := t.charm(a.Charm)
	if err != nil {
		return Action{}, err
	}
	task := Action{Unit: unit, Name: action, Params: params, Status: ActionPending, Enqueued: t.now}
	if action == ExecAction {
		return task, nil
	}
	spec, ok := c.Actions[action]
	if !ok {
		return Action{}, errf(NotFound, "action %q not defined on unit %q", action, unit)
	}
	task.Parallel, task.ExecutionGroup = spec.Parallel, spec.ExecutionGroup
	full, err := spec.ActionParams(params)
	task.Params = full
	if err != nil {
		task.Status, task.Message, task.Completed = ActionFailed, err.Error(), t.now
	}
	return task, nil
}

// putAction stores an action, and wakes its unit.
func (t *txn) putAction(a *Action) error {
	app, _, _ := strings.Cut(a.Unit, "/")
	t.touch(app)
	pending := a.Unit + "\x00" + actionKey(a.ID)
	var err error
	if a.Status == ActionPending {
		err = t.bucket(bucketPending).Put([]byte(pending), []byte{1})
	} else {
		err = del(t, bucketPending, pending)
	}
	if err != nil {
		return err
	}
	return put(t, bucketActions, actionKey(a.ID), a)
}

// actionKey orders ids by number.
func actionKey(id string) string {
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil {
		return id
	}
	return idKey(n)
}

func (t *txn) action(id string) (*Action, error) {
	a, err := get[Action](t, bucketActions, actionKey(id))
	if err == nil && a == nil {
		err = notFound("action", id)
	}
	return a, err
}

// Action returns an action by its id.
func (m *Model) Action(id string) (Action, error) {
	var out Action
	err := m.view(func(t *txn) error {
		a, err := t.action(id)
		if err == nil {
			out = *a
		}
		return err
	})
	return out, err
}

// ActionInfo is Action for an agent: only actions of its unit.
func (m *Model) ActionInfo(_ context.Context, unit, id string) (Action, error) {
	a, err := m.Action(id)
	if err == nil && a.Unit != unit {
		err = notFound("action", id)
	}
	return a, err
}

// pendingActions lists the ids of a unit's actions that are to run, in order.
func (t *txn) pendingActions(unit string) []string {
	var out []string
	for _, k := range keys(t, bucketPending, unit+"\x00") {
		out = append(out, strconv.FormatUint(keyID(k), 10))
	}
	return out
}

func (t *txn) startAction(id string) error {
	a, err := t.action(id)
	if err != nil {
		return err
	}
	a.Status, a.Started = ActionRunning, t.now
	return t.putAction(a)
}

func (t *txn) finishAction(r ActionResult) error {
	a, err := t.action(r.ID)
	if err != nil {
		return err
	}
	if a.Status.Finished() {
		return nil
	}
	if a.Status == ActionAborting && r.Status == ActionFailed {
		r.Status = ActionAborted
	}
	a.Status, a.Message, a.Results, a.Completed = r.Status, r.Message, r.Results, t.now
	return t.putAction(a)
}

// LogAction adds a line of action-log, at once.
func (m *Model) LogAction(_ context.Context, unit, id, message string) error {
	return m.update(func(t *txn) error {
		a, err := t.action(id)
		if err != nil {
			return err
		}
		if a.Unit != unit {
			return errf(Permission, "permission denied")
		}
		a.Log = append(a.Log, ActionLog{Time: t.now, Message: message})
		return t.putAction(a)
	})
}

// CancelAction cancels a pending action; a running one is aborting until its agent has killed it.
func (m *Model) CancelAction(id string) error {
	return m.update(func(t *txn) error {
		a, err := t.action(id)
		if err != nil {
			return err
		}
		switch a.Status {
		case ActionPending:
			a.Status, a.Message, a.Completed = ActionCancelled, "action cancelled via the API", t.now
		case ActionRunning:
			a.Status = ActionAborting
		default:
			return nil
		}
		return t.putAction(a)
	})
}

func (t *txn) cancelActions(unit string) error {
	var open []*Action
	err := each(t, bucketActions, "", func(_ string, a *Action) error {
		if a.Unit == unit && !a.Status.Finished() {
			open = append(open, a)
		}
		return nil
	})
	for _, a := range open {
		if err != nil {
			return err
		}
		a.Status, a.Message, a.Completed = ActionCancelled, "unit was removed", t.now
		err = t.putAction(a)
	}
	return err
}

// WaitAction returns the action once it has finished, or has more than logged
// lines of log, or ctx has ended; then with ctx's error.
func (m *Model) WaitAction(ctx context.Context, id string, logged int) (Action, error) {
	for {
		_, changed := m.generation(everything)
		a, err := m.Action(id)
		if err != nil || a.Status.Finished() || len(a.Log) > logged {
			return a, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return a, ctx.Err()
		case <-m.closed:
			return a, ErrClosed
		}
	}
}

// ActionSpecs returns the actions that an application's charm defines, by name.
func (m *Model) ActionSpecs(app string) (map[string]ActionSpec, error) {
	var out map[string]ActionSpec
	err := m.view(func(t *txn) error {
		a, err := t.app(app)
		if err != nil {
			return err
		}
		c, err := t.charm(a.Charm)
		if err == nil {
			out = c.Actions
		}
		return err
	})
	return out, err
}

// Actions lists all actions, oldest first.
func (m *Model) Actions() ([]Action, error) {
	var out []Action
	err := m.view(func(t *txn) error {
		return each(t, bucketActions, "", func(_ string, a *Action) error {
			out = append(out, *a)
			return nil
		})
	})
	return out, err
}
