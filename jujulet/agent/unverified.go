// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package agent

import "github.com/drawbridge-k8s/drawbridge/jujulet/model"

// What follows are rules of Juju 3.6 that were read in its source and not seen on a
// live controller. They stand here alone, so that they are easy to change.
const (
	// startBeforeLeadership: after a restart of the agent `start` comes before
	// leader-settings-changed. Juju's resolver has it so; its documentation lists
	// the other order.
	startBeforeLeadership = true
	// noticeFailureRestarts: a failed hook of a notice or a check makes the agent
	// start over, which replays every notice.
	noticeFailureRestarts = true
)

// skipsFailed says whether a failed hook is taken for done, because its source
// fires it again: so it is with workload hooks, which never enter the back-off.
func skipsFailed(h *model.HookInfo) bool { return isWorkload(h) }

// secretChanged says whether a unit that has read a secret is to be told of its
// latest revision, when it was told of delivered at last (0: never). So the first
// read of a secret that is at revision 2 already earns a hook, and units of the
// owner are told as well.
func secretChanged(latest, delivered int) bool { return latest > 1 && latest != delivered }
