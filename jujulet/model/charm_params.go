// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// ActionParams fills in defaults and checks the parameters of an action against
// its schema, the part of JSON schema draft 4 that actions use.
func (s ActionSpec) ActionParams(params map[string]any) (map[string]any, error) {
	out := map[string]any{}
	maps.Copy(out, params)
	fillDefaults(s.Params, out)
	if problems := checkSchema("(root)", s.Params, out); len(problems) > 0 {
		return out, errf(Invalid, "validation failed: %s", strings.Join(problems, "; "))
	}
	return out, nil
}

func fillDefaults(schema map[string]any, into map[string]any) {
	props, _ := schema["properties"].(map[string]any)
	for _, name := range sortedKeys(props) {
		prop, ok := props[name].(map[string]any)
		if !ok {
			continue
		}
		if _, given := into[name]; !given {
			if d, ok := prop["default"]; ok {
				into[name] = d
			}
		}
		if sub, ok := into[name].(map[string]any); ok {
			fillDefaults(prop, sub)
		}
	}
}

func checkSchema(at string, schema map[string]any, v any) []string {
	var problems []string
	add := func(format string, args ...any) {
		problems = append(problems, fmt.Sprintf("%s : %s", at, fmt.Sprintf(format, args...)))
	}
	if t, ok := schema["type"]; ok && !typeFits(t, v) {
		add("must be of type %v, given %v", t, v)
		return problems
	}
	if enum, ok := schema["enum"].([]any); ok {
		if !slices.ContainsFunc(enum, func(e any) bool { return sameValue(e, v) }) {
			add("must match one of the enum values %v", enum)
		}
	}
	if n, ok := number(v); ok {
		if low, ok := number(schema["minimum"]); ok && n < low {
			add("must be greater than or equal to %v", low)
		}
		if high, ok := number(schema["maximum"]); ok && n > high {
			add("must be less than or equal to %v", high)
		}
	}
	switch t := v.(type) {
	case string:
		problems = append(problems, checkString(at, schema, t)...)
	case []any:
		if items, ok := schema["items"].(map[string]any); ok {
			for i, e := range t {
				problems = append(problems, checkSchema(fmt.Sprintf("%s.%d", at, i), items, e)...)
			}
		}
	case map[string]any:
		problems = append(problems, checkObject(at, schema, t)...)
	}
	return problems
}

func checkString(at string, schema map[string]any, s string) []string {
	var problems []string
	if p, ok := schema["pattern"].(string); ok {
		re, err := regexp.Compile(p)
		if err == nil && !re.MatchString(s) {
			problems = append(problems, fmt.Sprintf("%s : does not match pattern %q", at, p))
		}
	}
	if n, ok := number(schema["minLength"]); ok && float64(len(s)) < n {
		problems = append(problems, fmt.Sprintf("%s : must be at least %v long", at, n))
	}
	if n, ok := number(schema["maxLength"]); ok && float64(len(s)) > n {
		problems = append(problems, fmt.Sprintf("%s : must be at most %v long", at, n))
	}
	return problems
}

func checkObject(at string, schema map[string]any, v map[string]any) []string {
	var problems []string
	required, _ := schema["required"].([]any)
	for _, r := range required {
		name := fmt.Sprint(r)
		if _, ok := v[name]; !ok {
			problems = append(problems, fmt.Sprintf("%s : %q property is missing and required, given %v", at, name, v))
		}
	}
	props, _ := schema["properties"].(map[string]any)
	extra, restricted := schema["additionalProperties"].(bool)
	for _, name := range sortedKeys(v) {
		prop, known := props[name].(map[string]any)
		if !known {
			if _, declared := props[name]; !declared && restricted && !extra {
				problems = append(problems, fmt.Sprintf("%s : additional property %q is not allowed, given %v", at, name, v))
			}
			continue
		}
		problems = append(problems, checkSchema(at+"."+name, prop, v[name])...)
	}
	return problems
}

func typeFits(t, v any) bool {
	if list, ok := t.([]any); ok {
		return slices.ContainsFunc(list, func(e any) bool { return typeFits(e, v) })
	}
	n, numeric := number(v)
	switch t {
	case "string":
		_, ok := v.(string)
		return ok
	case "boolean":
		_, ok := v.(bool)
		return ok
	case "integer":
		return numeric && n == float64(int64(n))
	case "number":
		return numeric
	case "object":
		_, ok := v.(map[string]any)
		return ok
	case "array":
		_, ok := v.([]any)
		return ok
	case "null":
		return v == nil
	}
	return true
}

func number(v any) (float64, bool) {
	switch n := v.(type) {
	case int:
		return float64(n), true
	case int64:
		return float64(n), true
	case uint64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

func sameValue(a, b any) bool {
	x, ok := number(a)
	y, too := number(b)
	if ok && too {
		return x == y
	}
	return reflect.DeepEqual(a, b)
}
