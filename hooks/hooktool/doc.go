// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

// Package hooktool is a typed client of Juju's hook tools.
//
// One Client serves one hook. Its calls go over the unit agent's socket with
// Juju's own protocol (net/rpc with gob, method Jujuc.Main), on one
// connection, which saves a process per call; where that socket is absent or
// refuses, the tools are executed from PATH instead. Either way:
//
//   - every call has a deadline, so that an agent that does not answer cannot
//     hang the hook;
//   - databag values, state and secret content never stand in an argument
//     list (relation-set and state-set read them from standard input,
//     secret-add and secret-set from a file that only we can read and that is
//     removed when the call returns);
//   - values that come from data follow "--", so that a value that starts
//     with a dash is no option.
//
// Writes made through relation-set, state-* and secret-* are kept by the
// agent and committed together only if the hook exits 0 (Juju 3.6);
// status-set, juju-log and application-version-set take effect at once.
package hooktool
