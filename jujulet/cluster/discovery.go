// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cluster

// nonResource answers discovery, OpenAPI, version and health.
func (c *call) nonResource() error { return unknownPath(c.action) }
