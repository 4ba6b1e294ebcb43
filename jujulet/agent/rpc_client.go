// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/rpc"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// Remote is a Controller in another process. The server knows the unit: the unit
// arguments of the methods are not sent.
type Remote struct{ client *rpc.Client }

var _ Controller = (*Remote)(nil)

// Dial connects to a Serve on the unix socket at path.
func Dial(ctx context.Context, path string) (*Remote, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to controller: %w", err)
	}
	return &Remote{client: rpc.NewClient(conn)}, nil
}

// Close ends the connection.
func (r *Remote) Close() error { return r.client.Close() }

// ask makes one call; when ctx ends the answer is no longer awaited.
func ask[R any](ctx context.Context, r *Remote, method string, args any) (R, error) {
	var result R
	raw, err := json.Marshal(args)
	if err != nil {
		return result, fmt.Errorf("cannot call %s: %w", method, err)
	}
	reply := new(Reply)
	call := r.client.Go("Agent.Call", Request{Method: method, Args: raw}, reply, make(chan *rpc.Call, 1))
	select {
	case <-call.Done:
	case <-ctx.Done():
		return result, ctx.Err()
	}
	if call.Error != nil {
		return result, fmt.Errorf("cannot call %s: %w", method, call.Error)
	}
	if reply.Failed {
		if reply.Kind == closedKind {
			return result, model.ErrClosed
		}
		if reply.Kind == "" {
			return result, errors.New(reply.Message)
		}
		return result, &model.Error{Kind: model.ErrorKind(reply.Kind), Message: reply.Message}
	}
	if err := json.Unmarshal(reply.Result, &result); err != nil {
		return result, fmt.Errorf("cannot read result of %s: %w", method, err)
	}
	return result, nil
}

// tell makes a call that has no result.
func tell(ctx context.Context, r *Remote, method string, args any) error {
	_, err := ask[none](ctx, r, method, args)
	return err
}

// The methods of Controller, each documented at model.Model.

// Config implements Controller.
func (r *Remote) Config(ctx context.Context, _ string) (map[string]any, error) {
	return ask[map[string]any](ctx, r, "Config", none{})
}

// ReadBag implements Controller.
func (r *Remote) ReadBag(ctx context.Context, _ string, relation int, owner string) (map[string]string, error) {
	return ask[map[string]string](ctx, r, "ReadBag", bagArgs{relation, owner})
}

// IsLeader implements Controller.
func (r *Remote) IsLeader(ctx context.Context, _ string) (bool, error) {
	return ask[bool](ctx, r, "IsLeader", none{})
}

// GoalState implements Controller.
func (r *Remote) GoalState(ctx context.Context, _ string) (model.GoalState, error) {
	return ask[model.GoalState](ctx, r, "GoalState", none{})
}

// CharmState implements Controller.
func (r *Remote) CharmState(ctx context.Context, _ string) (map[string]string, error) {
	return ask[map[string]string](ctx, r, "CharmState", none{})
}

// OpenedPorts implements Controller.
func (r *Remote) OpenedPorts(ctx context.Context, _ string) ([]string, error) {
	return ask[[]string](ctx, r, "OpenedPorts", none{})
}

// SetUnitStatus implements Controller.
func (r *Remote) SetUnitStatus(ctx context.Context, _ string, v model.StatusValue) error {
	return tell(ctx, r, "SetUnitStatus", v)
}

// SetAppStatus implements Controller.
func (r *Remote) SetAppStatus(ctx context.Context, _ string, v model.StatusValue) error {
	return tell(ctx, r, "SetAppStatus", v)
}

// UnitStatusValue implements Controller.
func (r *Remote) UnitStatusValue(ctx context.Context, _ string) (model.StatusValue, error) {
	return ask[model.StatusValue](ctx, r, "UnitStatusValue", none{})
}

// AppStatusValue implements Controller.
func (r *Remote) AppStatusValue(ctx context.Context, _ string) (model.StatusValue, map[string]model.StatusValue, error) {
	v, err := ask[appStatus](ctx, r, "AppStatusValue", none{})
	return v.App, v.Units, err
}

// SetVersion implements Controller.
func (r *Remote) SetVersion(ctx context.Context, _, version string) error {
	return tell(ctx, r, "SetVersion", version)
}

// ReadSecret implements Controller.
func (r *Remote) ReadSecret(ctx context.Context, _ string, q model.SecretRead) (model.SecretValue, error) {
	return ask[model.SecretValue](ctx, r, "ReadSecret", q)
}

// ManagedSecrets implements Controller.
func (r *Remote) ManagedSecrets(ctx context.Context, _ string) ([]model.SecretMeta, error) {
	return ask[[]model.SecretMeta](ctx, r, "ManagedSecrets", none{})
}

// LeaderSettings implements Controller.
func (r *Remote) LeaderSettings(ctx context.Context, _ string) (map[string]string, error) {
	return ask[map[string]string](ctx, r, "LeaderSettings", none{})
}

// SetLeaderSettings implements Controller.
func (r *Remote) SetLeaderSettings(ctx context.Context, _ string, values map[string]string) error {
	return tell(ctx, r, "SetLeaderSettings", values)
}

// Resource implements Controller.
func (r *Remote) Resource(ctx context.Context, _, name string) ([]byte, error) {
	return ask[[]byte](ctx, r, "Resource", name)
}

// LogAction implements Controller.
func (r *Remote) LogAction(ctx context.Context, _, id, message string) error {
	return tell(ctx, r, "LogAction", actionLogArgs{id, message})
}

// WaitChange implements Controller.
func (r *Remote) WaitChange(ctx context.Context, _ string, seen uint64) (uint64, error) {
	for {
		g, err := ask[uint64](ctx, r, "WaitChange", seen)
		if err != nil || g != seen {
			return g, err
		}
	}
}

// Snapshot implements Controller.
func (r *Remote) Snapshot(ctx context.Context, _ string) (*model.Snapshot, error) {
	return ask[*model.Snapshot](ctx, r, "Snapshot", none{})
}

// LoadState implements Controller.
func (r *Remote) LoadState(ctx context.Context, _ string) (*model.UnitState, error) {
	return ask[*model.UnitState](ctx, r, "LoadState", none{})
}

// Save implements Controller.
func (r *Remote) Save(ctx context.Context, _ string, s model.Save) error {
	return tell(ctx, r, "Save", s)
}

// CommitHook implements Controller.
func (r *Remote) CommitHook(ctx context.Context, _ string, c model.HookCommit) (model.JournalEntry, error) {
	return ask[model.JournalEntry](ctx, r, "CommitHook", c)
}

// FailHook implements Controller.
func (r *Remote) FailHook(ctx context.Context, _ string, e model.JournalEntry, s model.Save) error {
	return tell(ctx, r, "FailHook", failArgs{e, s})
}

// ContextInfo implements Controller.
func (r *Remote) ContextInfo(ctx context.Context, _ string) (*model.ContextInfo, error) {
	return ask[*model.ContextInfo](ctx, r, "ContextInfo", none{})
}

// ClaimLeadership implements Controller.
func (r *Remote) ClaimLeadership(ctx context.Context, _ string) (model.Leadership, error) {
	return ask[model.Leadership](ctx, r, "ClaimLeadership", none{})
}

// MarkDead implements Controller.
func (r *Remote) MarkDead(ctx context.Context, _ string) error {
	return tell(ctx, r, "MarkDead", none{})
}

// ActionInfo implements Controller.
func (r *Remote) ActionInfo(ctx context.Context, _, id string) (model.Action, error) {
	return ask[model.Action](ctx, r, "ActionInfo", id)
}

// AddLogs implements Controller.
func (r *Remote) AddLogs(ctx context.Context, _ string, lines []model.LogLine) error {
	return tell(ctx, r, "AddLogs", lines)
}
