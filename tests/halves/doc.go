// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

// Package halves holds the tests of the charm half and the runner half against
// each other, where they meet: the hook-tool client against the server of the
// hook tools, the client of the Service against the embedded API, and the
// charm's packed program, a process as Juju starts it, against both.
//
// The two halves are written without knowledge of each other. So what holds
// here holds because both keep to the same protocol.
package halves
