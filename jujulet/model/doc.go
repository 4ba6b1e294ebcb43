// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

// Package model is the controller's half of the runner: what Juju keeps in its
// controller for one Kubernetes model. It holds applications, units, charms,
// relations and their databags, configuration, secrets, leadership, statuses,
// actions and the persisted part of every unit agent, in one bbolt database.
//
// Every mutation is one transaction: when a method has returned without an
// error, what it did survives a SIGKILL. A hook's buffered writes and the
// agent's own new state are committed together (see Model.CommitHook).
//
// Observers are told by level-triggered wake-ups (Watch, WaitChange): a wake-up
// carries nothing, the observer reads the state again.
//
// The rules are those of Juju 3.6 for sidecar charms.
package model
