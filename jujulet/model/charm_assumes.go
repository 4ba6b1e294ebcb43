// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"sort"
	"strconv"
	"strings"
)

// assumesUnmet returns the first expression that this runner does not satisfy,
// as text; the error is about the form.
func assumesUnmet(list []any) (string, error) {
	for _, e := range list {
		unmet, err := assumeUnmet(e)
		if err != nil || unmet != "" {
			return unmet, err
		}
	}
	return "", nil
}

func assumeUnmet(e any) (string, error) {
	switch v := e.(type) {
	case string:
		return featureUnmet(v)
	case map[string]any:
		all, hasAll := v["all-of"].([]any)
		some, hasAny := v["any-of"].([]any)
		switch {
		case len(v) == 1 && hasAll:
			return assumesUnmet(all)
		case len(v) == 1 && hasAny:
			return anyUnmet(some)
		}
		return "", errf(Invalid, "parsing \"assumes\": expected any-of or all-of, got %q", sortedKeys(v))
	}
	return "", errf(Invalid, "parsing \"assumes\": unexpected %v", e)
}

func anyUnmet(list []any) (string, error) {
	var last string
	for _, e := range list {
		unmet, err := assumeUnmet(e)
		if err != nil || unmet == "" {
			return "", err
		}
		last = unmet
	}
	return last, nil
}

func featureUnmet(text string) (string, error) {
	fields := strings.Fields(strings.NewReplacer(">=", " >= ", "<", " < ").Replace(text))
	if len(fields) != 1 && len(fields) != 3 {
		return "", errf(Invalid, "parsing \"assumes\": malformed feature expression %q", text)
	}
	if fields[0] != "juju" && fields[0] != "k8s-api" {
		return text, nil
	}
	if len(fields) == 1 {
		return "", nil
	}
	have := JujuVersion
	if fields[0] == "k8s-api" {
		have = "1.35.0"
	}
	c := compareVersions(have, fields[2])
	if (fields[1] == ">=" && c < 0) || (fields[1] == "<" && c >= 0) {
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
