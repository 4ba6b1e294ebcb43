// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

// Package pods holds the tests that start real pods: the charms as they are packed, on jujulet as it is built, with a
// real database, a real gateway and real clients. They share one cluster where they can; those that kill it, and the
// tour, have their own. They need root, haproxy, mariadbd and ss, and say so. What an ordinary user can do is tested by one
// that they make up.
package pods
