// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"regexp"
	"sort"
	"strconv"
	"strings"
)

// featurePattern is "juju", or "juju >= 3.6"; what it names need not be known.
var featurePattern = regexp.MustCompile(`^\s*([a-z][a-z0-9-]*?[a-z0-9]+|[a-z])\s*(?:(>=|<)\s*(\S+)\s*)?$`)

var versionPattern = regexp.MustCompile(`^[0-9]+(\.[0-9]+){0,3}(-[a-z]+[0-9.]*)?$`)

// assumesUnmet returns the first expression that this runner does not satisfy,
// as text; the error is about the form, in Juju's words.
func assumesUnmet(list []any) (string, error) {
	first := ""
	for i, e := range list {
		unmet, err := assumeUnmet(e)
		if err != nil {
			return "", errf(Invalid, "parsing expression %d in top level \"assumes\" block: %v", i+1, err)
		}
		if first == "" {
			first = unmet
		}
	}
	return first, nil
}

func assumeUnmet(e any) (string, error) {
	switch v := e.(type) {
	case string:
		return featureUnmet(v)
	case map[string]any:
		for _, kind := range []string{"any-of", "all-of"} {
			if sub, ok := v[kind]; ok && len(v) == 1 {
				return blockUnmet(kind, sub)
			}
		}
	}
	return "", errf(Invalid, "malformed composite expression; expected an \"any-of\" or \"all-of\" block")
}

// blockUnmet judges "any-of" and "all-of".
func blockUnmet(kind string, v any) (string, error) {
	list, ok := v.([]any)
	if !ok {
		return "", errf(Invalid, "malformed %q expression; expected a list of sub-expressions", kind)
	}
	var missed []string
	for _, e := range list {
		unmet, err := assumeUnmet(e)
		if err != nil {
			return "", errf(Invalid, "parsing %q expression: %v", kind, err)
		}
		if unmet != "" {
			missed = append(missed, unmet)
		}
	}
	if len(missed) == 0 || (kind == "any-of" && len(missed) < len(list)) {
		return "", nil
	}
	return missed[len(missed)-1], nil
}

func featureUnmet(text string) (string, error) {
	m := featurePattern.FindStringSubmatch(text)
	if m == nil {
		return "", errf(Invalid, "malformed feature expression %q", text)
	}
	name, operator, wanted := m[1], m[2], m[3]
	if operator != "" && !versionPattern.MatchString(wanted) {
		return "", errf(Invalid, "malformed feature expression %q: invalid version %q", text, wanted)
	}
	if name != "juju" && name != "k8s-api" {
		return text, nil
	}
	have := JujuVersion
	if name == "k8s-api" {
		have = "1.35.0"
	}
	c := compareVersions(have, wanted)
	if (operator == ">=" && c < 0) || (operator == "<" && c >= 0) {
		return text, nil
	}
	return "", nil
}

func compareVersions(a, b string) int {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := range max(len(as), len(bs)) {
		var x, y int
		if i < len(as) {
			x, _ = strconv.Atoi(as[i])
		}
		if i < len(bs) {
			y, _ = strconv.Atoi(bs[i])
		}
		if x != y {
			return x - y
		}
	}
	return 0
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
