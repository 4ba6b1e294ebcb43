// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package agent

import (
	"context"

	"github.com/drawbridge-k8s/drawbridge/jujulet/hooktools"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// Controller is what an agent asks of the model. *model.Model is one.
type Controller interface {
	hooktools.Backend

	// WaitChange blocks until the unit's part of the model is not at generation
	// seen any more, and returns the new one.
	WaitChange(ctx context.Context, unit string, seen uint64) (uint64, error)
	// Snapshot reads versions, for the resolver.
	Snapshot(ctx context.Context, unit string) (*model.Snapshot, error)
	// LoadState and Save read and write the agent's persisted state.
	LoadState(ctx context.Context, unit string) (*model.UnitState, error)
	Save(ctx context.Context, unit string, s model.Save) error
	// CommitHook and FailHook end a hook.
	CommitHook(ctx context.Context, unit string, c model.HookCommit) (model.JournalEntry, error)
	FailHook(ctx context.Context, unit string, e model.JournalEntry, s model.Save) error
	ContextInfo(ctx context.Context, unit string) (*model.ContextInfo, error)
	CharmArchive(ctx context.Context, unit string) (*model.CharmArchive, error)
	ClaimLeadership(ctx context.Context, unit string) (model.Leadership, error)
	MarkDead(ctx context.Context, unit string) error
	ActionInfo(ctx context.Context, unit, id string) (model.Action, error)
	AddLogs(ctx context.Context, unit string, lines []model.LogLine) error
}

var _ Controller = (*model.Model)(nil)
