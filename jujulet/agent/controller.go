// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package agent

import (
	"context"
	"errors"
	"net"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// Controller is what an agent asks of the model. *model.Model is one.
type Controller interface {
	// WaitChange blocks until the unit's part of the model is not at generation
	// seen any more, and returns the new one.
	WaitChange(ctx context.Context, unit string, seen uint64) (uint64, error)
	Snapshot(ctx context.Context, unit string) (*model.Snapshot, error)
}

// Serve serves Controller to agents of other processes until the listener is
// closed. unit is the only unit that the connection may speak for.
func Serve(ctx context.Context, l net.Listener, c Controller, unit string) error {
	return errors.New("not built yet")
}

// Dial connects to a Serve on the unix socket at path.
func Dial(ctx context.Context, path string) (Controller, error) {
	return nil, errors.New("not built yet")
}
