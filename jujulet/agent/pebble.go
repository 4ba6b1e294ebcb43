// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	pebble "github.com/canonical/pebble/client"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// Timings of Juju's notice watcher.
const (
	noticeWait  = 30 * time.Second
	noticeRetry = time.Second
)

// pebbleWatch watches the Pebble of one container.
type pebbleWatch struct {
	agent     *Agent
	container string
}

func (a *Agent) newPebble(container string) *pebbleWatch {
	return &pebbleWatch{agent: a, container: container}
}

func (p *pebbleWatch) client() (*pebble.Client, error) {
	return pebble.New(&pebble.Config{Socket: p.agent.options.PebbleSocket(p.container)})
}

// pollReady fires pebble-ready when the boot id is a new one. The id counts as seen
// only once the hook has succeeded, so a failed hook is fired again at the next poll.
func (p *pebbleWatch) pollReady(ctx context.Context) {
	ticker := time.NewTicker(p.agent.options.PebblePoll)
	defer ticker.Stop()
	seen := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		id, err := p.bootID()
		if err != nil || id == seen {
			continue
		}
		err = p.fire(ctx, model.HookInfo{Kind: "pebble-ready", Workload: p.container})
		if err == nil {
			seen = id
			continue
		}
		if ctx.Err() == nil {
			p.agent.log(ctx, "juju.worker.uniter", "ERROR", fmt.Sprintf(
				"pebble poll failed for container %q: failed to send pebble-ready event: hook failed", p.container))
		}
	}
}

func (p *pebbleWatch) bootID() (string, error) {
	c, err := p.client()
	if err != nil {
		return "", err
	}
	defer c.CloseIdleConnections()
	info, err := c.SysInfo()
	if err != nil {
		return "", err
	}
	return info.BootID, nil
}

// fire posts an event and waits for its hook.
func (p *pebbleWatch) fire(ctx context.Context, h model.HookInfo) error {
	select {
	case err := <-p.agent.Post(h):
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// watchNotices long-polls for notices and fires their hooks, one after the other,
// beginning with all that are stored. It returns an error when a hook has failed.
func (p *pebbleWatch) watchNotices(ctx context.Context) error {
	var after time.Time
	for ctx.Err() == nil {
		notices, err := p.waitNotices(ctx, after)
		if err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(noticeRetry):
			}
			continue
		}
		for _, n := range notices {
			if err := p.process(ctx, n); err != nil && noticeFailureRestarts {
				return err
			}
			after = n.LastRepeated
		}
	}
	return nil
}

func (p *pebbleWatch) waitNotices(ctx context.Context, after time.Time) ([]*pebble.Notice, error) {
	c, err := p.client()
	if err != nil {
		return nil, err
	}
	defer c.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, noticeWait+5*time.Second)
	defer cancel()
	return c.WaitNotices(ctx, noticeWait, &pebble.NoticesOptions{After: after})
}

// process fires the hook that a notice asks for, if any.
func (p *pebbleWatch) process(ctx context.Context, n *pebble.Notice) error {
	switch n.Type {
	case pebble.CustomNotice:
		return p.fire(ctx, model.HookInfo{
			Kind: "pebble-custom-notice", Workload: p.container,
			NoticeID: n.ID, NoticeType: string(n.Type), NoticeKey: n.Key,
		})
	case pebble.ChangeUpdateNotice:
		return p.check(ctx, n)
	}
	return nil
}

// check turns the end of a check's change into its hook.
func (p *pebbleWatch) check(ctx context.Context, n *pebble.Notice) error {
	hooks := map[string]struct{ status, kind string }{
		"perform-check": {"Error", "pebble-check-failed"},
		"recover-check": {"Done", "pebble-check-recovered"},
	}
	want, ok := hooks[n.LastData["kind"]]
	if !ok {
		return nil
	}
	reached, err := p.changeReached(n.Key, want.status)
	if err != nil || !reached {
		return err
	}
	return p.fire(ctx, model.HookInfo{Kind: want.kind, Workload: p.container, CheckName: n.LastData["check-name"]})
}

// changeReached says whether a change has the status; one that was pruned has.
func (p *pebbleWatch) changeReached(id, status string) (bool, error) {
	c, err := p.client()
	if err != nil {
		return false, err
	}
	defer c.CloseIdleConnections()
	change, err := c.Change(id)
	var e *pebble.Error
	if errors.As(err, &e) && e.StatusCode == http.StatusNotFound {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return change.Status == status, nil
}
