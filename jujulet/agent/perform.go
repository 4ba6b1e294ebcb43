// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// perform carries out a decision and returns its name, "" for what is only
// bookkeeping.
func (a *Agent) perform(ctx context.Context, v *view, d decision) (string, error) {
	if d.op != opNone && d.op != opRetryTimer {
		a.idleSaid = false
	}
	switch d.op {
	case opNone:
		return "", a.idle(ctx, v)
	case opInstall, opUpgrade:
		return string(d.op) + " charm", a.deploy(ctx, v, d.op)
	case opHook:
		return a.runHook(ctx, v, d)
	case opSkip:
		return "skip " + d.hook.Name(), a.skipHook(ctx, v, d)
	case opAction:
		return a.runAction(ctx, d.action)
	case opFailAction:
		return "", a.failAction(ctx, d.action)
	case opLead:
		n := cloneState(a.state)
		n.Leader = true
		n.Kind, n.Step, n.Hook = model.OpRunHook, model.StepQueued, &model.HookInfo{Kind: "leader-elected"}
		return "", a.save(ctx, model.Save{State: n})
	case opResign:
		n := cloneState(a.state)
		n.Leader = false
		return "", a.save(ctx, model.Save{State: n})
	case opRetryTimer:
		return "", a.startRetry(ctx, d.hook)
	case opDead:
		return "dead", a.die(ctx, v)
	case opStopped:
		return "stopped", nil
	}
	return "", fmt.Errorf("internal error: unknown operation %q", d.op)
}

// save records a new state, in the model first.
func (a *Agent) save(ctx context.Context, s model.Save) error {
	if err := a.options.Controller.Save(ctx, a.options.Unit, s); err != nil {
		return fmt.Errorf("cannot save state of %s: %w", a.options.Unit, err)
	}
	if s.State != nil {
		a.state = s.State
	}
	return nil
}

// idle says that nothing is left to do, once.
func (a *Agent) idle(ctx context.Context, v *view) error {
	if v.stale || a.idleSaid || v.state.Kind != model.OpContinue {
		return nil
	}
	a.idleSaid = true
	return a.save(ctx, model.Save{Agent: &model.StatusValue{Status: "idle"}})
}

// deploy unpacks the charm and queues install or upgrade-charm; a hook that was
// interrupted by the end of its pod is pending again instead.
func (a *Agent) deploy(ctx context.Context, v *view, kind op) error {
	archive, err := a.options.Controller.CharmArchive(ctx, a.options.Unit)
	if err != nil {
		return fmt.Errorf("cannot fetch charm: %w", err)
	}
	if err := a.paths.unpack(archive); err != nil {
		return err
	}
	n := cloneState(a.state)
	n.Charm = archive.Hash
	hook := &model.HookInfo{Kind: "install"}
	s := model.Save{State: n}
	if kind == opUpgrade {
		hook = &model.HookInfo{Kind: "upgrade-charm"}
	} else {
		s.Agent = &model.StatusValue{Status: "executing", Message: "installing charm"}
	}
	interrupted := n.Hook != nil && n.Kind == model.OpRunHook && kind == opUpgrade
	switch {
	case interrupted:
		n.Step = model.StepPending
	case v.snap.Life != model.Alive && kind == opUpgrade:
		// A dying unit only needs the charm for its last hooks.
	default:
		n.Kind, n.Step, n.Hook = model.OpRunHook, model.StepQueued, hook
	}
	return a.save(ctx, s)
}

// startRetry begins the backoff of a failed hook and says so.
func (a *Agent) startRetry(ctx context.Context, h model.HookInfo) error {
	delay := a.retryDelay * 2
	if delay == 0 {
		delay = a.options.RetryMin
	}
	a.retryDelay = min(delay, a.options.RetryMax)
	jitter := 0.97 + 0.06*a.rand.Float64()
	a.retryAt = a.options.Clock().Add(time.Duration(float64(a.retryDelay) * jitter))
	a.retrying = true
	a.wakeAt = earlier(a.wakeAt, a.retryAt)
	if a.erred == h.Name() {
		return nil
	}
	a.erred = h.Name()
	a.log(ctx, "juju.worker.uniter", "INFO", fmt.Sprintf("awaiting error resolution for %q hook", h.Kind))
	return a.save(ctx, model.Save{Agent: hookError(h)})
}

// hookError is the agent's status while a failed hook waits. The message has the
// full name for relation hooks only.
func hookError(h model.HookInfo) *model.StatusValue {
	name := h.Kind
	data := map[string]any{}
	if h.Endpoint != "" {
		name = h.Name()
		data["relation-id"], data["endpoint"] = h.RelationID, h.Endpoint
		if h.RemoteUnit != "" {
			data["remote-unit"] = h.RemoteUnit
		}
	}
	if h.SecretID != "" {
		data["secret-uri"], data["secret-label"] = "secret:"+h.SecretID, h.SecretLabel
	}
	data["hook"] = name
	return &model.StatusValue{Status: "error", Message: fmt.Sprintf("hook failed: %q", name), Data: data}
}

// clearRetry ends the backoff: the hook has succeeded or was resolved.
func (a *Agent) clearRetry() {
	a.retrying, a.retryDelay, a.retryAt, a.erred = false, 0, time.Time{}, ""
}

// die records that the unit has run its last hook.
func (a *Agent) die(ctx context.Context, v *view) error {
	if v.snap.Life == model.Dead {
		return nil
	}
	if err := a.options.Controller.MarkDead(ctx, a.options.Unit); err != nil {
		return fmt.Errorf("cannot end unit: %w", err)
	}
	return nil
}

// log adds a line of the agent itself to the debug log.
func (a *Agent) log(ctx context.Context, module, level, message string) {
	line := model.LogLine{Level: level, Module: module, Message: message, Time: a.options.Clock().UTC()}
	err := a.options.Controller.AddLogs(context.WithoutCancel(ctx), a.options.Unit, []model.LogLine{line})
	if err != nil {
		a.options.Logger.Warn("cannot write debug log", "unit", a.options.Unit, "error", err)
	}
}
