// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package charm

import (
	"context"

	"github.com/drawbridge-k8s/drawbridge/hooks"
)

// action runs an action of actions.yaml.
func (c *Charm) action(ctx context.Context, h *hooks.Hook) error {
	return h.Tools.ActionFail(ctx, "unknown action "+h.Event.Action)
}
