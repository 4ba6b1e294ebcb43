// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"context"
	"errors"
)

var errNotBuilt = errors.New("not built yet")

// Open opens or makes the model in the database file at path, mode 0600.
func Open(path string, o Options) (*Model, error) { return nil, errNotBuilt }

// Close ends every watch and closes the database.
func (m *Model) Close() error { return errNotBuilt }

// ReadCharm reads, validates and repacks a charm: a .charm zip or a folder.
func ReadCharm(path string) (*Charm, error) { return nil, errNotBuilt }

// Deploy adds an application with its peer relations and units.
func (m *Model) Deploy(a DeployArgs) error { return errNotBuilt }

// Refresh replaces the charm of an application.
func (m *Model) Refresh(app string, c *Charm, resources map[string]string) error { return errNotBuilt }

// SetConfig sets options from their text, "trust" included.
func (m *Model) SetConfig(app string, values map[string]string) error { return errNotBuilt }

// ResetConfig forgets the user's values of options.
func (m *Model) ResetConfig(app string, keys []string) error { return errNotBuilt }

// SetTrust gives or takes the cluster-wide rights.
func (m *Model) SetTrust(app string, trust bool) error { return errNotBuilt }

// Integrate relates two endpoints, each "app" or "app:endpoint", and returns
// the relation's id.
func (m *Model) Integrate(a, b string) (int, error) { return 0, errNotBuilt }

// RemoveRelation begins the end of the relation between two endpoints.
func (m *Model) RemoveRelation(a, b string) error { return errNotBuilt }

// Scale sets the number of units of an application.
func (m *Model) Scale(app string, units int) error { return errNotBuilt }

// RemoveApplication begins the removal of an application.
func (m *Model) RemoveApplication(app string) error { return errNotBuilt }

// EnqueueAction adds one task for each unit ("foo/0" or "foo/leader"), in one
// operation, and returns its id and the tasks.
func (m *Model) EnqueueAction(units []string, action string, params map[string]any) (string, []Action, error) {
	return "", nil, errNotBuilt
}

// Action returns an action by its id.
func (m *Model) Action(id string) (Action, error) { return Action{}, errNotBuilt }

// CancelAction cancels a pending action, or aborts a running one.
func (m *Model) CancelAction(id string) error { return errNotBuilt }

// WaitAction returns the action once it has finished, or has more than logged
// lines of log, or ctx has ended; then with ctx's error.
func (m *Model) WaitAction(ctx context.Context, id string, logged int) (Action, error) {
	return Action{}, errNotBuilt
}

// Status reads everything that status verbs print.
func (m *Model) Status() (Status, error) { return Status{}, errNotBuilt }

// StatusHistory returns the last n statuses of a unit ("workload" or "agent"
// kind, or "" for both) or an application, oldest first.
func (m *Model) StatusHistory(entity, kind string, n int) ([]StatusValue, error) {
	return nil, errNotBuilt
}

// Resolve resolves the failed hook of a unit.
func (m *Model) Resolve(unit string, mode ResolveMode) error { return errNotBuilt }

// Fire makes the unit run a hook once more, as soon as it is idle. Relation
// hooks need a relation ("db:3") and, for joined, changed and departed, a
// remote unit or application.
func (m *Model) Fire(unit, hook string, args map[string]string) error { return errNotBuilt }

// SetLeader moves leadership to the unit at once, with a fresh lease.
func (m *Model) SetLeader(unit string) error { return errNotBuilt }

// Journal returns the commits with a sequence number above since, oldest first,
// at most limit (0 = all).
func (m *Model) Journal(since uint64, limit int) ([]JournalEntry, error) { return nil, errNotBuilt }

// Logs returns the log lines after since, oldest first, at most limit (0 = all).
func (m *Model) Logs(since uint64, limit int) []LogLine { return nil }

// WaitLogs returns like Logs as soon as there is a line, or nothing when ctx ends.
func (m *Model) WaitLogs(ctx context.Context, since uint64) []LogLine { return nil }

// SetPodStatus reports a unit's pod. An agent that needs the address (network-get)
// waits for none; pods report before their agent starts.
func (m *Model) SetPodStatus(unit string, p PodStatus) error { return errNotBuilt }

// SetServiceAddress reports the ClusterIP of the application's Service, or its
// load-balancer address.
func (m *Model) SetServiceAddress(app, address string) error { return errNotBuilt }

// UnitGone removes a dead unit whose pod has ended, and with the last one of a
// dying application the application. It is harmless for a unit that is not dead.
func (m *Model) UnitGone(unit string) error { return errNotBuilt }

// RemoveUnitNow forgets a unit without its hooks (the pod will never be back).
func (m *Model) RemoveUnitNow(unit string) error { return errNotBuilt }

// Watch wakes up on every change of the model, until ctx ends or the model is
// closed; then the channel is closed. One wake-up may stand for many changes.
func (m *Model) Watch(ctx context.Context) <-chan struct{} { return nil }

// WatchLogs is Watch for the debug log.
func (m *Model) WatchLogs(ctx context.Context) <-chan struct{} { return nil }
