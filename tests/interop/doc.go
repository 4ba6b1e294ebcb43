// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

// Package interop holds the tests of jujulet with programs that others wrote for Juju, unmodified and as PyPI has
// them: charms in Python, and the library jubilant that drives the juju command. Its tests build jujulet, make one
// virtual environment with the packages of requirements.txt, and fail when those cannot be installed.
package interop
