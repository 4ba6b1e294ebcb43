// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

// Package conformance holds jujulet against Juju itself: Juju's own jujuc client
// drives every hook tool of jujulet's agent, and Juju's own charm library reads
// the charms that we pack and that jujulet refuses.
//
// It is a module of its own. Juju is AGPL-3.0: it is built and run here, for
// these tests alone; nothing that we ship links it.
package conformance
