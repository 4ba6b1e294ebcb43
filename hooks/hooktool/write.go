// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package hooktool

import (
	"context"
	"log/slog"
	"strconv"
)

// Status is a unit status that a charm may set, in Juju's spelling.
type Status string

// The statuses that a charm may set.
const (
	Active      Status = "active"
	Blocked     Status = "blocked"
	Waiting     Status = "waiting"
	Maintenance Status = "maintenance"
)

// RelationSet changes keys of this unit's databag in a relation; "" deletes a
// key. An empty map makes no call.
func (c *Client) RelationSet(ctx context.Context, id string, values map[string]string) error {
	if len(values) == 0 {
		return nil
	}
	_, err := c.run(ctx, document(values), "relation-set", "-r", id, "--file", "-")
	return err
}

// RelationSetApp changes keys of our application's databag in a relation; ""
// deletes a key. An empty map makes no call. Leader only.
func (c *Client) RelationSetApp(ctx context.Context, id string, values map[string]string) error {
	if len(values) == 0 {
		return nil
	}
	_, err := c.run(ctx, document(values), "relation-set", "-r", id, "--app", "--file", "-")
	return err
}

// StatusSet sets the unit's status and message, at once.
func (c *Client) StatusSet(ctx context.Context, s Status, message string) error {
	return c.do(ctx, "status-set", "--", string(s), message)
}

// StatusGet returns the unit's status and message; "unknown", "error" and
// others that only Juju sets are possible.
func (c *Client) StatusGet(ctx context.Context) (Status, string, error) {
	var v struct {
		Status  Status `json:"status"`
		Message string `json:"message"`
	}
	err := c.read(ctx, &v, "status-get", "--include-data")
	return v.Status, v.Message, err
}

// StateGet returns what this unit has stored with the controller. It is never
// nil without an error.
func (c *Client) StateGet(ctx context.Context) (map[string]string, error) {
	v := map[string]string{}
	err := c.read(ctx, &v, "state-get")
	return v, err
}

// StateSet stores values with the controller; an empty value is stored, not
// deleted. An empty map makes no call.
func (c *Client) StateSet(ctx context.Context, values map[string]string) error {
	if len(values) == 0 {
		return nil
	}
	_, err := c.run(ctx, document(values), "state-set", "--file", "-")
	return err
}

// StateDelete deletes a stored value; one that is not there is no error.
func (c *Client) StateDelete(ctx context.Context, key string) error {
	return c.do(ctx, "state-delete", "--", key)
}

// Log writes a line to the model's log.
func (c *Client) Log(ctx context.Context, level slog.Level, message string) error {
	name := "DEBUG"
	switch {
	case level >= slog.LevelError:
		name = "ERROR"
	case level >= slog.LevelWarn:
		name = "WARNING"
	case level >= slog.LevelInfo:
		name = "INFO"
	}
	return c.do(ctx, "juju-log", "--log-level", name, "--", message)
}

// ApplicationVersionSet sets the workload's version as status shows it.
func (c *Client) ApplicationVersionSet(ctx context.Context, version string) error {
	return c.do(ctx, "application-version-set", "--", version)
}

// OpenPort declares a port ("6446/tcp") as open; it is safe to repeat.
func (c *Client) OpenPort(ctx context.Context, port string) error {
	return c.do(ctx, "open-port", "--", port)
}

// ActionGet returns the parameters of the action that runs.
func (c *Client) ActionGet(ctx context.Context) (map[string]any, error) {
	v := map[string]any{}
	err := c.read(ctx, &v, "action-get")
	return v, err
}

// ActionSet adds results to the action that runs. Keys consist of lower-case
// letters, digits, dashes and of dots, which nest; values stand in an argument
// list, so they must not be secret. An empty map makes no call.
func (c *Client) ActionSet(ctx context.Context, results map[string]string) error {
	if len(results) == 0 {
		return nil
	}
	args := []string{"--"}
	for _, key := range sortedKeys(results) {
		args = append(args, key+"="+results[key])
	}
	return c.do(ctx, "action-set", args...)
}

// ActionFail marks the action that runs as failed; it does not end it.
func (c *Client) ActionFail(ctx context.Context, message string) error {
	return c.do(ctx, "action-fail", "--", message)
}

// ActionLog shows a progress line of the action that runs.
func (c *Client) ActionLog(ctx context.Context, message string) error {
	return c.do(ctx, "action-log", "--", message)
}

func revisionArg(revision int) string { return strconv.Itoa(revision) }
