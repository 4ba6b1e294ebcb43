// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

const operationModule = "juju.worker.uniter.operation"

// runHook runs one hook: its state is pending before, and what comes of it is
// committed or dropped after.
func (a *Agent) runHook(ctx context.Context, v *view, d decision) (string, error) {
	h := d.hook
	if h.Kind == "start" {
		a.rebooted = false
	}
	if err := a.beginHook(ctx, v, d); err != nil {
		return "", err
	}
	if h.Endpoint != "" && h.RemoteUnit != "" && (h.Kind == "relation-joined" || h.Kind == "relation-changed") {
		a.cache.Forget(h.RelationID, h.RemoteUnit)
	}
	r, err := a.newRun(ctx, &h, nil)
	if err != nil {
		return "", err
	}
	begun := a.options.Clock()
	outcome := a.dispatch(ctx, r, "hooks/"+h.Name())
	if outcome.err == nil {
		outcome.err = a.commitRun(ctx, v, r, h, a.options.Clock().Sub(begun))
	}
	a.endEvent(d.event, outcome.err)
	switch {
	case outcome.err == nil:
		a.logRan(ctx, h, outcome)
		return h.Name(), nil
	case errors.Is(outcome.err, ErrTerminated):
		n := cloneState(a.state)
		n.Step = model.StepQueued
		a.log(ctx, operationModule, "WARNING", fmt.Sprintf("hook %q was terminated by a signal", h.Name()))
		if err := a.save(context.WithoutCancel(ctx), model.Save{State: n}); err != nil {
			return "", err
		}
		return "terminated " + h.Name(), nil
	}
	return "failed " + h.Name(), a.failHook(ctx, r, h, outcome, a.options.Clock().Sub(begun))
}

// beginHook records that the hook is pending, with the statuses around it.
func (a *Agent) beginHook(ctx context.Context, v *view, d decision) error {
	h := d.hook
	n := cloneState(a.state)
	n.Kind, n.Step, n.Hook = model.OpRunHook, model.StepPending, &h
	s := model.Save{State: n, FireDone: d.fire, ClearResolve: d.forced}
	if d.forced {
		a.clearRetry()
	}
	if h.Kind != "update-status" {
		s.Agent = &model.StatusValue{Status: "executing", Message: runningMessage(h)}
	}
	switch h.Kind {
	case "install":
		s.Workload = &model.StatusValue{Status: "maintenance", Message: "installing charm software"}
		s.OnlyUnset = true
	case "stop":
		s.Workload = &model.StatusValue{Status: "maintenance", Message: "stopping charm software"}
	}
	return a.save(ctx, s)
}

// runningMessage is the agent's message while a hook runs.
func runningMessage(h model.HookInfo) string {
	switch {
	case h.SecretID != "" && h.SecretRevision != 0:
		return fmt.Sprintf("running %s hook for secret:%s/%d", h.Kind, h.SecretID, h.SecretRevision)
	case h.SecretID != "":
		return fmt.Sprintf("running %s hook for secret:%s", h.Kind, h.SecretID)
	case h.RemoteUnit != "":
		return fmt.Sprintf("running %s hook for %s", h.Name(), h.RemoteUnit)
	}
	return fmt.Sprintf("running %s hook", h.Name())
}

// commitRun flushes what the hook has buffered, with the new state, in one
// transaction.
func (a *Agent) commitRun(ctx context.Context, v *view, r *run, h model.HookInfo, took time.Duration) error {
	c := r.context.Commit()
	c.State = commitHook(a.state, h, v.snap)
	c.Network = h.Kind == "config-changed"
	lastWord(&c, h)
	if h.Kind == "secret-expired" || h.Kind == "secret-rotate" {
		c.SecretFired, c.SecretFiredKind = &model.SecretRevision{ID: h.SecretID, Revision: h.SecretRevision}, h.Kind
	}
	a.describe(&c.Journal, h, took)
	ctx = context.WithoutCancel(ctx) // what was done is recorded
	if _, err := a.options.Controller.CommitHook(ctx, a.options.Unit, c); err != nil {
		return fmt.Errorf("cannot apply changes: %w", err)
	}
	a.committed(h, v, c.State)
	return a.afterHook(ctx, h)
}

// lastWord has the unit leave what the hook was the last about.
func lastWord(c *model.HookCommit, h model.HookInfo) {
	switch {
	case h.Fired:
	case h.Kind == "relation-broken":
		c.Leave = []int{h.RelationID}
	case h.Kind == "storage-detaching":
		c.DetachStorage = h.StorageID
	}
}

// describe fills in the journal's own fields.
func (a *Agent) describe(e *model.JournalEntry, h model.HookInfo, took time.Duration) {
	e.Hook, e.Remote, e.Duration = h.Name(), h.RemoteUnit, took
	if e.Remote == "" {
		e.Remote = h.RemoteApp
	}
}

// committed updates what is kept in memory only.
func (a *Agent) committed(h model.HookInfo, v *view, n *model.UnitState) {
	a.state = n
	a.clearRetry()
	switch h.Kind {
	case "leader-settings-changed":
		a.leaderSettings = v.snap.LeaderSettings
	case "relation-departed":
		a.cache.Forget(h.RelationID, h.RemoteUnit)
	case "relation-broken":
		a.cache.ForgetRelation(h.RelationID)
	}
	a.mu.Lock()
	a.tick = false
	a.mu.Unlock()
}

// afterHook sets the statuses that follow from a hook's success.
func (a *Agent) afterHook(ctx context.Context, h model.HookInfo) error {
	var s model.Save
	switch h.Kind {
	case "start":
		s.Workload, s.OnlyUnset = &model.StatusValue{Status: "unknown"}, true
	case "remove":
		s.Workload = &model.StatusValue{Status: "terminated"}
	default:
		return nil
	}
	if err := a.save(ctx, s); err != nil {
		a.options.Logger.Warn("cannot set status", "unit", a.options.Unit, "error", err)
	}
	return nil
}

func (a *Agent) logRan(ctx context.Context, h model.HookInfo, o outcome) {
	if o.missing {
		a.log(ctx, operationModule, "INFO", fmt.Sprintf("skipped %q hook (missing)", h.Name()))
		return
	}
	a.log(ctx, operationModule, "INFO", fmt.Sprintf("ran %q hook (via %s)", h.Name(), o.handler))
}

// failHook drops what the hook has buffered; the state stays pending.
func (a *Agent) failHook(ctx context.Context, r *run, h model.HookInfo, o outcome, took time.Duration) error {
	a.retrying, a.erred = false, ""
	text := fmt.Sprintf("hook %q (via %s) failed: %v", h.Name(), o.handler, o.err)
	a.log(ctx, operationModule, "ERROR", text)
	e := model.JournalEntry{Failed: o.err.Error(), Statuses: r.context.Statuses(), ToolCalls: r.context.Calls()}
	a.describe(&e, h, took)
	err := a.options.Controller.FailHook(ctx, a.options.Unit, e, model.Save{State: a.state})
	if err != nil {
		return fmt.Errorf("cannot record failed hook: %w", err)
	}
	return nil
}

// skipHook takes a failed hook for successful without running it: after
// `resolved --no-retry`, or because it is a workload hook.
func (a *Agent) skipHook(ctx context.Context, v *view, d decision) error {
	h := d.hook
	c := model.HookCommit{State: commitHook(a.state, h, v.snap), ClearResolve: d.forced}
	lastWord(&c, h)
	c.Journal.Hook, c.Journal.Remote = "skip "+h.Name(), h.RemoteUnit
	if _, err := a.options.Controller.CommitHook(ctx, a.options.Unit, c); err != nil {
		return fmt.Errorf("cannot skip hook: %w", err)
	}
	a.committed(h, v, c.State)
	return nil
}

// endEvent tells the source of a workload event what became of its hook.
func (a *Agent) endEvent(e *event, err error) {
	if e == nil {
		return
	}
	a.mu.Lock()
	a.events = slices.DeleteFunc(a.events, func(o *event) bool { return o == e })
	a.mu.Unlock()
	e.done <- err
}
