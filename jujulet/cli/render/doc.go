// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

// Package render turns a model's status into the text of `juju status` and `juju show-unit`: the tables byte for byte,
// json and yaml with the same names in the same order. It does no I/O and knows no clock: the moment is an option.
package render
