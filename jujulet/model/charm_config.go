// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

var optionTypes = []string{"string", "int", "float", "boolean", "secret"}

func parseConfig(raw []byte) (map[string]Option, error) {
	var d struct {
		Options map[string]struct {
			Type        string    `yaml:"type"`
			Description string    `yaml:"description"`
			Default     yaml.Node `yaml:"default"`
		} `yaml:"options"`
	}
	if err := yaml.Unmarshal(raw, &d); err != nil {
		return nil, errf(Invalid, "invalid config: %v", err)
	}
	if d.Options == nil {
		return nil, errf(Invalid, "invalid config: empty configuration")
	}
	options := map[string]Option{}
	for _, name := range sortedKeys(d.Options) {
		doc := d.Options[name]
		o := Option{Type: doc.Type, Description: doc.Description}
		if o.Type == "" {
			o.Type = "string"
		}
		if !slices.Contains(optionTypes, o.Type) {
			return nil, errf(Invalid, "invalid config: option %q has unknown type %q", name, o.Type)
		}
		var err error
		if o.Default, err = optionDefault(name, o.Type, &doc.Default); err != nil {
			return nil, err
		}
		options[name] = o
	}
	return options, nil
}

// optionDefault checks a default against its type. An empty string is no default
// for types that have no empty value.
func optionDefault(name, kind string, n *yaml.Node) (any, error) {
	if n.Kind == 0 || n.Tag == "!!null" {
		return nil, nil
	}
	bad := errf(Invalid, "invalid config default: option %q expected %s, got %q", name, kind, n.Value)
	if n.Kind != yaml.ScalarNode {
		return nil, bad
	}
	quoted := n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0
	switch kind {
	case "string", "secret":
		if n.Tag != "!!str" && !quoted {
			return nil, bad
		}
		return n.Value, nil
	case "boolean":
		if n.Value == "" && quoted {
			return nil, nil
		}
		if b, ok := yamlBool(n.Value); ok && !quoted {
			return b, nil
		}
		return nil, bad
	}
	if n.Value == "" && quoted {
		return nil, nil
	}
	if quoted {
		return nil, bad
	}
	v, err := parseOption(name, Option{Type: kind}, n.Value)
	if err != nil {
		return nil, bad
	}
	return v, nil
}

// yamlBool reads the boolean words of YAML 1.1, which Juju's parser knows.
func yamlBool(s string) (value, ok bool) {
	switch strings.ToLower(s) {
	case "true", "yes", "on", "y":
		return true, true
	case "false", "no", "off", "n":
		return false, true
	}
	return false, false
}

// parseOption reads an option's value from the text given by a user. Numbers are
// float64, as they reach charms over Juju's JSON API.
func parseOption(name string, o Option, text string) (any, error) {
	if !utf8.ValidString(text) {
		return nil, errf(Invalid, "value for option %q contains non-UTF-8 sequences", name)
	}
	bad := errf(Invalid, "option %q expected %s, got %q", name, o.Type, text)
	switch o.Type {
	case "int":
		v, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, bad
		}
		return float64(v), nil
	case "float":
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, bad
		}
		return v, nil
	case "boolean":
		v, err := strconv.ParseBool(text)
		if err != nil {
			return nil, bad
		}
		return v, nil
	case "secret":
		if text != "" && !strings.HasPrefix(text, "secret:") {
			return nil, bad
		}
	}
	return text, nil
}

// parseOptions reads all values or none.
func parseOptions(c *Charm, values map[string]string) (map[string]any, error) {
	out := map[string]any{}
	for _, name := range sortedKeys(values) {
		o, ok := c.Config[name]
		if !ok {
			return nil, errf(Invalid, "unknown option %q", name)
		}
		v, err := parseOption(name, o, values[name])
		if err != nil {
			return nil, err
		}
		out[name] = v
	}
	return out, nil
}

func parseActions(raw []byte) (map[string]ActionSpec, error) {
	var d map[string]map[string]any
	if err := yaml.Unmarshal(raw, &d); err != nil {
		return nil, errf(Invalid, "invalid actions: %v", err)
	}
	actions := map[string]ActionSpec{}
	for _, name := range sortedKeys(d) {
		if !validAction.MatchString(name) {
			return nil, errf(Invalid, "bad action name %q", name)
		}
		if name == "juju" || strings.HasPrefix(name, "juju-") {
			return nil, errf(Invalid, "cannot use action name %q: names starting with juju are reserved", name)
		}
		spec, err := parseAction(name, d[name])
		if err != nil {
			return nil, err
		}
		actions[name] = spec
	}
	return actions, nil
}

func parseAction(name string, doc map[string]any) (ActionSpec, error) {
	spec := ActionSpec{Name: name}
	schema := map[string]any{"type": "object", "title": name, "additionalProperties": true}
	for _, key := range sortedKeys(doc) {
		ok := true
		switch key {
		case "description":
			spec.Description, ok = doc[key].(string)
		case "parallel":
			spec.Parallel, ok = doc[key].(bool)
		case "execution-group":
			spec.ExecutionGroup, ok = doc[key].(string)
		case "params":
			var props map[string]any
			if props, ok = doc[key].(map[string]any); ok || doc[key] == nil {
				schema["properties"], ok = props, true
			}
		case "$schema", "$ref":
			return spec, errf(Invalid, "schema key %q not compatible with this version of juju", key)
		default:
			schema[key] = doc[key]
		}
		if !ok {
			return spec, errf(Invalid, "value for schema key %q of action %q has the wrong type", key, name)
		}
	}
	if hasRef(schema) {
		return spec, errf(Invalid, "invalid params schema for action schema %s: $ref is not supported", name)
	}
	spec.Params = schema
	return spec, nil
}

func hasRef(v any) bool {
	switch t := v.(type) {
	case map[string]any:
		for k, e := range t {
			if k == "$ref" || k == "$schema" || hasRef(e) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(t, hasRef)
	}
	return false
}
