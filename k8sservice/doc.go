// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

// Package k8sservice is the charm's own Kubernetes Service: what it should
// be, where the live one differs, how to get there in place, which addresses
// it has, and why it has none yet.
//
// Deciding (Drift, Addresses, Fingerprint, Classify) is pure; Client does the
// reading and writing.
//
// # What is ours
//
// A value is compared and changed only if it is ours: the type, our two ports
// (found by number and protocol, the key by which Kubernetes merges them), the
// selector's app.kubernetes.io/name, our labels, the reference to the owner,
// and the fields and annotations that options ask for. Everything else on the
// object belongs to somebody else and survives.
//
// A field or annotation that an option no longer asks for must go if it is
// ours. Of fields the object's managedFields tell that (an apply by our field
// manager). Of annotations a list on the object itself tells it, since a hand
// edit of a value takes the key out of our managedFields though it is still
// the one we brought; keys that managedFields give us count as well.
package k8sservice
