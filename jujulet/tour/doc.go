// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

// Package tour is `jujulet tour`: it deploys a database, the charm and a client on a cluster of its own, drives the
// exposure through every mode, and measures what the project promises: that a client is told an address only once the
// address answers, and then at once.
//
// Two independent clocks meet here. When an address *answers* is found by the tour's own prober (LoginProbe), which logs
// in through the address from the client's network and from outside the cluster. When an address was *published* is the
// commit time in the controller's journal, and so is what else was written in between. The charm's own probes and
// statuses are shown, but they prove nothing here.
//
// The package is made of a story (steps.go) told through a small interface of the runner (stage.go), and of pure
// functions that judge a journal (judge.go) and report (report.go).
package tour
