// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

// Package relation gives databags types: the peer relation of drawbridge-k8s with its exposure state machine, and both
// sides of the data_interfaces protocol (interface mysql_client): v0, and as provider v1 too.
//
// The package does no input or output. A databag comes in as a map of strings, a decision or another map of strings goes
// out; Diff turns the wish into the smallest relation-set. Whatever the other side wrote is treated as hostile: it is
// bounded in size, never trusted to be JSON, and a bad value is an error that names the key, never a panic.
package relation
