// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"regexp"
	"strings"
)

var (
	unitPattern        = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]*[a-z][a-z0-9]*)*/(0|[1-9][0-9]*|leader)$`)
	unitNumberPattern  = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]*[a-z][a-z0-9]*)*/(0|[1-9][0-9]*)$`)
	applicationPattern = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]*[a-z][a-z0-9]*)*$`)
)

// isUnit accepts "app/0" and "app/leader".
func isUnit(name string) bool { return unitPattern.MatchString(name) }

// isUnitNumber accepts "app/0" alone.
func isUnitNumber(name string) bool { return unitNumberPattern.MatchString(name) }

func isApplication(name string) bool { return applicationPattern.MatchString(name) }

// unitTag turns "foo/0" into juju's tag "unit-foo-0".
func unitTag(unit string) string { return "unit-" + strings.ReplaceAll(unit, "/", "-") }
