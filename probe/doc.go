// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

// Package probe finds out whether endpoints answer: at once, for the hook
// that asks (Check), and in the background, for the watch that wakes the
// charm when what it sees is no longer what the last hook saw.
//
// # The watch
//
// One process per leader unit. A hook gives it an Order: what that hook saw,
// and how to see it again. The watch looks at the Service, the pods and the
// nodes, opens sessions through the addresses, and sends a Pebble notice when
// something differs from its order, or when the order's WakeAt has come. It
// decides nothing and writes nothing to Kubernetes, and a notice carries
// nothing that anybody trusts.
//
// A lock on a file in the watch's folder decides whether it runs; the process
// that holds it listens on a socket beside it. A hook that finds it running
// hands the new order over that socket; one that finds it of another build,
// or deaf, ends it first. So a watch, or a hook, that is killed at any moment
// leaves nothing that the next hook does not put right. An order holds a
// password: it goes through a pipe or the socket and never touches a disk.
package probe
