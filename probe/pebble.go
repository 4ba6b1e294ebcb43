// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/canonical/pebble/client"
)

// NoticeKey is the key of the notices of the watch.
const NoticeKey = "drawbridge-k8s.charm/exposure"

// Notifier wakes the charm. It obeys the context's deadline.
type Notifier interface {
	Notify(ctx context.Context) error
}

type pebbleNotifier struct{ socket, key string }

// PebbleNotifier records a custom notice with the Pebble on a socket: that of
// the gateway container. Juju 3.4: the notice must come from the agent's own
// user, or it is not seen.
func PebbleNotifier(socket, key string) Notifier { return pebbleNotifier{socket, key} }

// Notify records one occurrence. The socket is opened anew each time: it goes
// and comes with the container.
func (p pebbleNotifier) Notify(ctx context.Context) error {
	c, err := client.New(&client.Config{Socket: p.socket})
	if err != nil {
		return fmt.Errorf("cannot send a notice: %w", err)
	}
	defer c.CloseIdleConnections()
	// client.Notify takes no context.
	body, err := json.Marshal(map[string]string{"action": "add", "type": string(client.CustomNotice), "key": p.key})
	if err != nil {
		return fmt.Errorf("cannot send a notice: %w", err)
	}
	_, err = c.Requester().Do(ctx, &client.RequestOptions{
		Type: client.SyncRequest, Method: "POST", Path: "/v1/notices", Body: bytes.NewReader(body),
	})
	if err != nil {
		return fmt.Errorf("cannot send a notice: %w", err)
	}
	return nil
}
