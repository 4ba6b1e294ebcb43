// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package controller

import (
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
	"github.com/drawbridge-k8s/drawbridge/jujulet/pod"
)

// terminationGrace is how long a pod that is replaced may take for its stop hook.
// Juju 3.6: terminationGracePeriodSeconds of its pods.
const terminationGrace = 30 * time.Second

// rollout replaces pods that were made before charm or resources changed, as the
// StatefulSet controller of Kubernetes does: the highest ordinal first, one at a
// time, each ready before the next.
func (c *modelWorker) rollout(app model.ApplicationStatus) {
	var statuses []model.UnitStatus
	for _, status := range app.Units {
		if status.Life == model.Alive {
			statuses = append(statuses, status)
		}
	}
	slices.SortFunc(statuses, func(a, b model.UnitStatus) int { return b.Ordinal - a.Ordinal })
	for _, status := range statuses {
		c.mu.Lock()
		u := c.units[status.Name]
		c.mu.Unlock()
		if u == nil || !u.isCurrent(app.CharmVersion) {
			return
		}
	}
}

// isCurrent reports whether the unit has a ready pod of this version, and begins
// to replace one of another version, whether it is ready or not.
func (u *unit) isCurrent(version int) bool {
	u.mu.Lock()
	running, ready, ending, outdated := u.sandbox != nil, u.state.ready(), u.ending, u.version != version
	u.mu.Unlock()
	if running && outdated && !ending {
		u.log.Info("replacing pod", "unit", u.name)
		u.replace()
	}
	return running && ready && !ending && !outdated
}

// replace ends the present pod as Kubernetes does: the agent is asked to end, and
// runs the stop hook; after the grace period, or when it is done, the pod is
// killed. Another one follows.
func (u *unit) replace() {
	u.mu.Lock()
	box, agent := u.sandbox, u.agent
	if box == nil || u.ending {
		u.mu.Unlock()
		return
	}
	u.ending = true
	u.mu.Unlock()
	u.change(pod.CharmContainer, func(c *containerState) { c.ready = false })
	u.c.work.Go(func() {
		defer box.Kill()
		if agent == nil || agent.Signal(unix.SIGTERM) != nil {
			return
		}
		deadline := time.NewTimer(terminationGrace)
		defer deadline.Stop()
		poll := time.NewTicker(20 * time.Millisecond)
		defer poll.Stop()
		for u.hasAgent(agent) {
			select {
			case <-box.Done():
				return
			case <-deadline.C:
				u.log.Warn("the agent did not end in time", "unit", u.name)
				return
			case <-poll.C:
			}
		}
	})
}

// hasAgent reports whether this agent still runs.
func (u *unit) hasAgent(agent running) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.agent == agent
}

// isEnding reports whether the pod is being replaced.
func (u *unit) isEnding() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.ending
}
