// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// runAction runs an action. It never puts the unit into error; a hook that waits
// keeps waiting.
func (a *Agent) runAction(ctx context.Context, id string) (string, error) {
	act, err := a.options.Controller.ActionInfo(ctx, a.options.Unit, id)
	if err != nil {
		return "", fmt.Errorf("cannot read action: %w", err)
	}
	n := cloneState(a.state)
	n.Kind, n.Step, n.Action = model.OpRunAction, model.StepPending, id
	err = a.save(ctx, model.Save{
		State: n, StartAction: id,
		Agent: &model.StatusValue{Status: "executing", Message: "running action " + act.Name},
	})
	if err != nil {
		return "", err
	}
	r, err := a.newRun(ctx, nil, &act)
	if err != nil {
		return "", err
	}
	begun := a.options.Clock()
	watchCtx, stop := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		a.watchAbort(watchCtx, id)
	}()
	o := a.executeAction(ctx, r, act)
	stop()
	<-watched
	if errors.Is(o.err, ErrTerminated) && ctx.Err() != nil {
		return "terminated action " + act.Name, nil // failed when the agent is back
	}
	err = a.finishAction(context.WithoutCancel(ctx), r, act, o, a.options.Clock().Sub(begun))
	return "action " + act.Name, err
}

// executeAction runs dispatch, or the script of juju-exec.
func (a *Agent) executeAction(ctx context.Context, r *run, act model.Action) outcome {
	if act.Name != model.ExecAction {
		return a.dispatch(ctx, r, "actions/"+act.Name)
	}
	script, _ := act.Params["command"].(string)
	if timeout, err := time.ParseDuration(fmt.Sprint(act.Params["timeout"])); err == nil && timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	return a.execute(ctx, r, Command{Path: shell(), Args: []string{"-c", script}})
}

func shell() string {
	if _, err := os.Stat("/bin/bash"); err == nil {
		return "/bin/bash"
	}
	return "/bin/sh"
}

// watchAbort kills the action's process once the operator has cancelled it.
func (a *Agent) watchAbort(ctx context.Context, id string) {
	var seen uint64
	for ctx.Err() == nil {
		g, err := a.options.Controller.WaitChange(ctx, a.options.Unit, seen)
		if err != nil {
			return
		}
		seen = g
		act, err := a.options.Controller.ActionInfo(ctx, a.options.Unit, id)
		if err != nil {
			return
		}
		if act.Status == model.ActionAborting {
			a.KillHook()
			return
		}
	}
}

// finishAction delivers the results, and flushes if the action has exited with 0.
func (a *Agent) finishAction(ctx context.Context, r *run, act model.Action, o outcome, took time.Duration) error {
	results, failed, message := r.context.ActionOutcome()
	result := &model.ActionResult{ID: act.ID, Status: model.ActionCompleted, Results: results}
	results["return-code"] = o.exit
	r.stdout.result("stdout", results)
	r.stderr.result("stderr", results)
	if failed {
		result.Status, result.Message = model.ActionFailed, message
	}
	exec := act.Name == model.ExecAction
	switch {
	case o.missing:
		delete(results, "return-code")
		result.Status = model.ActionFailed
		result.Message = fmt.Sprintf("action not implemented on unit %q", a.options.Unit)
	case errors.Is(o.err, ErrTerminated):
		result.Status, result.Message = model.ActionFailed, "action terminated"
	case o.err != nil && !(exec && o.exit != 0):
		result.Status, result.Message = model.ActionFailed, o.err.Error()
	}
	c := model.HookCommit{}
	if o.err == nil && !o.missing || exec && o.exit > 0 {
		c = r.context.Commit()
	}
	c.Journal.Hook, c.Journal.Duration = "action "+act.Name, took
	c.Journal.ToolCalls, c.Journal.Statuses = r.context.Calls(), r.context.Statuses()
	c.State, c.ActionDone = a.afterAction(), result
	if o.err != nil {
		c.Journal.Failed = o.err.Error()
	}
	return a.commitAction(ctx, c)
}

// afterAction is the state after an action: a hook that waited waits on.
func (a *Agent) afterAction() *model.UnitState {
	n := cloneState(a.state)
	n.Action, n.Step, n.Kind = "", model.StepPending, model.OpContinue
	if n.Hook != nil {
		n.Kind = model.OpRunHook
	}
	a.erred = "" // the agent's status has changed meanwhile
	return n
}

// commitAction commits; if the flush is refused the action has failed and nothing
// of it is applied.
func (a *Agent) commitAction(ctx context.Context, c model.HookCommit) error {
	_, err := a.options.Controller.CommitHook(ctx, a.options.Unit, c)
	if err != nil {
		text := fmt.Sprintf("cannot apply changes: %v", err)
		done := c.ActionDone
		done.Status, done.Message = model.ActionFailed, text
		if code, ok := done.Results["return-code"].(int); !ok || code == 0 {
			done.Results["return-code"] = "1"
		}
		if old, ok := done.Results["stderr"].(string); ok && old != "" {
			text = old + "\n" + text
		}
		done.Results["stderr"] = text
		only := model.HookCommit{State: c.State, ActionDone: done}
		only.Journal = c.Journal
		only.Journal.Failed = err.Error()
		if _, err := a.options.Controller.CommitHook(ctx, a.options.Unit, only); err != nil {
			return fmt.Errorf("cannot finish action: %w", err)
		}
	}
	a.state = c.State
	return a.reportWaiting(ctx)
}

// reportWaiting shows again the error of a hook that waited during an action.
func (a *Agent) reportWaiting(ctx context.Context) error {
	if a.state.Hook == nil || isWorkload(a.state.Hook) {
		return nil
	}
	a.erred = a.state.Hook.Name()
	return a.save(ctx, model.Save{Agent: hookError(*a.state.Hook)})
}

// failAction ends an action that was interrupted by the end of its agent.
func (a *Agent) failAction(ctx context.Context, id string) error {
	c := model.HookCommit{
		State:      a.afterAction(),
		ActionDone: &model.ActionResult{ID: id, Status: model.ActionFailed, Message: "action terminated"},
	}
	c.Journal.Hook, c.Journal.Failed = "action "+id, "action terminated"
	if _, err := a.options.Controller.CommitHook(ctx, a.options.Unit, c); err != nil {
		return fmt.Errorf("cannot end action: %w", err)
	}
	a.state = c.State
	return a.reportWaiting(ctx)
}
