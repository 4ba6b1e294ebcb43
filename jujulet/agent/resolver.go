// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package agent

import (
	"slices"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// op is what the resolver decides to do.
type op string

const (
	opNone       op = ""            // nothing to do now
	opInstall    op = "install"     // unpack the charm, queue install
	opUpgrade    op = "upgrade"     // unpack the charm, queue upgrade-charm
	opHook       op = "hook"        // run a hook
	opSkip       op = "skip"        // take a failed hook for successful
	opAction     op = "action"      // run an action
	opFailAction op = "fail-action" // an interrupted action has failed
	opLead       op = "lead"        // accept leadership, queue leader-elected
	opResign     op = "resign"      // note that leadership is gone
	opRetryTimer op = "retry-timer" // start the backoff of a failed hook
	opDead       op = "dead"        // the last hook has run
	opStopped    op = "stopped"     // shut down: stop has run
)

// decision is one choice of the resolver.
type decision struct {
	op     op
	hook   model.HookInfo
	action string
	event  *event // the workload event that the hook is about
	fire   uint64 // the operator's request that the hook fulfils
	forced bool   // by `resolved`: forget that request
}

// event is a workload event that waits for its hook.
type event struct {
	hook model.HookInfo
	done chan error // buffered
}

// view is what the resolver decides from: the persisted state, the model's
// snapshot, and what the agent knows only as long as it lives.
type view struct {
	state *model.UnitState
	snap  *model.Snapshot

	// rebooted: the agent has begun after the unit had started before.
	rebooted bool
	// deployed is the hash of the charm on disk, "" if there is none.
	deployed string
	// stale: the agent has begun in a pod that was to be replaced already.
	stale bool
	// leaderSettings is the version delivered by leader-settings-changed; -1 at
	// first.
	leaderSettings int64
	events         []*event
	// tick: update-status is due.
	tick bool
	// shutdown: the pod is to end.
	shutdown bool
	// retrying: the backoff runs; retryDue: it has run out.
	retrying, retryDue bool
	// order gives the order in which relations are looked at.
	order func(ids []int)
}

// decide picks exactly one operation, in the order of Juju's uniter: start after
// a restart, charm, relation-created, leadership, workload, secrets, actions, storage, then
// what is queued or failed, and at last the idle chain.
func decide(v *view) decision {
	s := v.state
	if v.snap.Life == model.Dead {
		return decision{op: opDead}
	}
	if s.Kind == model.OpRunAction {
		return decision{op: opFailAction, action: s.Action}
	}
	if v.stale {
		// Juju 3.6: an agent that begins in a pod of an earlier charm does nothing but
		// wait for the end of the pod.
		if v.shutdown {
			return decision{op: opStopped}
		}
		return decision{}
	}
	if d, ok := v.charm(); ok {
		return d
	}
	if s.Kind == model.OpContinue {
		if v.rebooted && startBeforeLeadership {
			return hookOp(model.HookInfo{Kind: "start"})
		}
		if d, ok := v.relationCreated(); ok {
			return d
		}
	}
	for _, step := range []func() (decision, bool){v.leadership, v.lateStart, v.workload, v.secrets, v.actions, v.fires, v.storage} {
		if d, ok := step(); ok {
			return d
		}
	}
	if s.Kind == model.OpRunHook && !v.shutdown {
		switch {
		case s.Step == model.StepPending:
			return v.failed()
		case s.Hook.Kind != "install":
			return hookOp(*s.Hook)
		}
	}
	return v.idle()
}

func hookOp(h model.HookInfo) decision { return decision{op: opHook, hook: h} }

// charm sees to it that the charm is on disk. A pod that was replaced has none:
// then upgrade-charm is queued, unless a hook was interrupted, which is retried.
func (v *view) charm() (decision, bool) {
	s := v.state
	first := s.Kind == "" || s.Kind == model.OpInstall
	if first && v.snap.Life != model.Alive {
		return decision{op: opDead}, true
	}
	if first {
		return decision{op: opInstall}, true
	}
	if s.Kind == model.OpUpgrade || v.deployed == "" {
		if !s.Installed {
			return decision{op: opInstall}, true
		}
		return decision{op: opUpgrade}, true
	}
	return decision{}, false
}

// relationCreated picks the first living relation whose relation-created has not
// run yet.
func (v *view) relationCreated() (decision, bool) {
	if !v.state.Installed || v.snap.Life != model.Alive {
		return decision{}, false
	}
	for _, id := range v.relationOrder(false) {
		r := v.snap.Relations[id]
		if r.Life != model.Alive || !v.known(r) {
			continue
		}
		if st := v.state.Relations[id]; st == nil || !st.Created {
			return hookOp(model.HookInfo{
				Kind: "relation-created", Endpoint: r.Endpoint, RelationID: id, RemoteApp: r.RemoteApp,
			}), true
		}
	}
	return decision{}, false
}

// known says whether the relation's endpoint is the charm's own: the implicit
// juju-info endpoint fires no hooks.
func (v *view) known(r model.RelationSnapshot) bool {
	_, ok := v.snap.Endpoints[r.Endpoint]
	return ok
}

// leadership accepts or gives up leadership, and tells non-leaders of leader
// settings.
func (v *view) leadership() (decision, bool) {
	s, snap := v.state, v.snap
	if !s.Installed {
		return decision{}, false
	}
	idle := s.Kind == model.OpContinue
	switch {
	case snap.Leader && !s.Leader && snap.Life == model.Alive && idle:
		return decision{op: opLead}, true
	case s.Leader && (!snap.Leader || snap.Life != model.Alive):
		return decision{op: opResign}, true
	case idle && !s.Leader && snap.Life == model.Alive && v.leaderSettings != snap.LeaderSettings:
		return hookOp(model.HookInfo{Kind: "leader-settings-changed"}), true
	}
	return decision{}, false
}

// lateStart is start after a restart, if leadership comes before it.
func (v *view) lateStart() (decision, bool) {
	return hookOp(model.HookInfo{Kind: "start"}), v.rebooted && v.state.Kind == model.OpContinue
}

// workload picks the oldest workload event. A workload hook that has failed is
// skipped: its source fires it again.
func (v *view) workload() (decision, bool) {
	s := v.state
	if s.Kind == model.OpRunHook && s.Step == model.StepPending && skipsFailed(s.Hook) {
		return decision{op: opSkip, hook: *s.Hook}, true
	}
	if s.Kind != model.OpContinue || len(v.events) == 0 {
		return decision{}, false
	}
	return decision{op: opHook, hook: v.events[0].hook, event: v.events[0]}, true
}

func isWorkload(h *model.HookInfo) bool { return h != nil && h.Workload != "" }

// secrets picks expired, then rotating, then changed, then obsolete secrets.
func (v *view) secrets() (decision, bool) {
	s, snap := v.state, v.snap
	if s.Kind != model.OpContinue || !s.Installed || snap.Life != model.Alive {
		return decision{}, false
	}
	owner := func(kind string, r model.SecretRevision) (decision, bool) {
		h := model.HookInfo{Kind: kind, SecretID: r.ID, SecretLabel: r.Label, SecretRevision: r.Revision}
		return hookOp(h), true
	}
	if len(snap.Expired) > 0 {
		return owner("secret-expired", snap.Expired[0])
	}
	if len(snap.Rotate) > 0 {
		return owner("secret-rotate", snap.Rotate[0])
	}
	for _, id := range sorted(snap.Secrets) {
		c := snap.Secrets[id]
		if secretChanged(c.Latest, s.Secrets[id]) {
			h := model.HookInfo{Kind: "secret-changed", SecretID: id, SecretLabel: c.Label, Version: int64(c.Latest)}
			return hookOp(h), true
		}
	}
	for _, r := range snap.Obsolete {
		if !slices.Contains(s.Obsolete[r.ID], r.Revision) {
			return owner("secret-remove", r)
		}
	}
	return decision{}, false
}

// actions picks the oldest pending action: when nothing is queued, or while a
// failed hook waits.
func (v *view) actions() (decision, bool) {
	s := v.state
	if len(v.snap.Actions) == 0 {
		return decision{}, false
	}
	inError := s.Kind == model.OpRunHook && s.Step == model.StepPending
	if s.Kind != model.OpContinue && !inError {
		return decision{}, false
	}
	return decision{op: opAction, action: v.snap.Actions[0]}, true
}

// fires picks the oldest hook that the operator has asked for.
func (v *view) fires() (decision, bool) {
	if v.state.Kind != model.OpContinue || len(v.snap.Fires) == 0 {
		return decision{}, false
	}
	f := v.snap.Fires[0]
	f.Hook.Fired = true
	return decision{op: opHook, hook: f.Hook, fire: f.ID}, true
}

// storage picks an instance that the charm has not been told of, or, in a dying
// unit, one that it is to be told of for the last time. Juju 3.6 on Kubernetes:
// not before install, and not between hooks of which one queues the next.
func (v *view) storage() (decision, bool) {
	s, dying := v.state, v.snap.Life != model.Alive
	queued := s.Kind == model.OpRunHook && s.Step == model.StepQueued
	if s.Kind != model.OpContinue && !(queued && s.Started && dying) {
		return decision{}, false
	}
	order := make([]int, len(v.snap.Storage))
	for i := range order {
		order[i] = i
	}
	if v.order != nil {
		v.order(order)
	}
	for _, i := range order {
		id := v.snap.Storage[i]
		attached := slices.Contains(s.Storage, id)
		switch {
		case !dying && !attached:
			return hookOp(model.HookInfo{Kind: "storage-attached", StorageID: id}), true
		case dying && attached:
			return hookOp(model.HookInfo{Kind: "storage-detaching", StorageID: id}), true
		}
	}
	return decision{}, false
}

// failed decides about the hook that has failed: `resolved` first, then the
// backoff.
func (v *view) failed() decision {
	h := *v.state.Hook
	switch v.snap.Resolve {
	case model.ResolveRetry:
		return decision{op: opHook, hook: h, forced: true}
	case model.ResolveSkip:
		return decision{op: opSkip, hook: h, forced: true}
	}
	switch {
	case v.retryDue:
		return decision{op: opHook, hook: h}
	case !v.retrying:
		return decision{op: opRetryTimer, hook: h}
	}
	return decision{}
}

// idle is the chain of what runs when nothing is queued.
func (v *view) idle() decision {
	s, snap := v.state, v.snap
	if snap.Life != model.Alive {
		return v.tearDown()
	}
	if v.shutdown {
		// A hook that waits is kept for the next pod.
		if s.Kind == model.OpContinue && s.Started && !s.Stopped {
			return hookOp(model.HookInfo{Kind: "stop"})
		}
		return decision{op: opStopped}
	}
	if !s.Installed {
		return hookOp(model.HookInfo{Kind: "install"})
	}
	if v.deployed != snap.Charm {
		return decision{op: opUpgrade}
	}
	if s.ConfigHash != snap.ConfigHash || s.TrustHash != snap.TrustHash || s.AddressHash != snap.AddressHash {
		return hookOp(model.HookInfo{Kind: "config-changed"})
	}
	if h, ok := v.relations(); ok {
		return hookOp(h)
	}
	if v.tick {
		return hookOp(model.HookInfo{Kind: "update-status"})
	}
	return decision{}
}

// tearDown is the end of a dying unit: its relations, stop, remove.
func (v *view) tearDown() decision {
	s := v.state
	if h, ok := v.relations(); ok {
		return hookOp(h)
	}
	switch {
	case s.Started && !s.Stopped:
		return hookOp(model.HookInfo{Kind: "stop"})
	case s.Installed && !s.Removed:
		return hookOp(model.HookInfo{Kind: "remove"})
	}
	return decision{op: opDead}
}
