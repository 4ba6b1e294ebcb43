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
	shown, err := configShape(raw)
	if err != nil {
		return nil, err
	}
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
		var ok bool
		if o.Default, ok = optionDefault(name, o.Type, &doc.Default); !ok {
			return nil, errf(Invalid, "invalid config default: option %q expected %s, got %#v", name, o.Type, shown[name])
		}
		options[name] = o
	}
	return options, nil
}

// optionDefault reads a default, if it is of the option's type.
func optionDefault(name, kind string, n *yaml.Node) (value any, ok bool) {
	if n.Kind == 0 || n.Tag == "!!null" {
		return nil, true
	}
	if n.Kind != yaml.ScalarNode {
		return nil, false
	}
	quoted := n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0
	switch kind {
	case "string", "secret":
		isSecret := n.Value == "" || strings.HasPrefix(n.Value, "secret:")
		return n.Value, (n.Tag == "!!str" || quoted) && (kind == "string" || isSecret)
	case "boolean":
		b, ok := yamlBool(n.Value)
		return b, ok && !quoted
	}
	v, err := parseOption(name, Option{Type: kind}, n.Value)
	return v, err == nil && !quoted
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
		return nil, errf(Invalid, "%v", err)
	}
	actions := map[string]ActionSpec{}
	for _, name := range sortedKeys(d) {
		if !validAction.MatchString(name) {
			return nil, errf(Invalid, "bad action name %s", name)
		}
		if name == "juju" {
			return nil, errf(Invalid, "cannot use action name juju: \"juju\" is a reserved name")
		}
		if strings.HasPrefix(name, "juju-") {
			return nil, errf(Invalid, "cannot use action name %s: the \"juju-\" prefix is reserved", name)
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
		ok, want := true, "string"
		switch v := doc[key]; key {
		case "description":
			spec.Description, ok = v.(string)
		case "title":
			schema[key], ok = v.(string)
		case "parallel":
			want = "bool"
			spec.Parallel, ok = v.(bool)
		case "execution-group":
			spec.ExecutionGroup, ok = v.(string)
		case "required":
			want = "YAML list"
			schema[key], ok = v.([]any)
		case "params":
			props, isMap := v.(map[string]any)
			if !isMap && v != nil {
				return spec, errf(Invalid, "params failed to parse as a map")
			}
			schema["properties"] = props
		default:
			schema[key] = v
		}
		if !ok {
			return spec, errf(Invalid, "value for schema key %q must be a %s", key, want)
		}
	}
	if key := reference(schema["properties"]); key != "" {
		return spec, errf(Invalid, "schema key %q not compatible with this version of juju", key)
	}
	if t := unknownType(schema["properties"]); t != "" {
		return spec, errf(Invalid, "invalid params schema for action schema %s: %s is not a valid type", name, t)
	}
	spec.Params = schema
	return spec, nil
}

// reference returns the first key in a schema that would refer to another one.
func reference(v any) string {
	switch t := v.(type) {
	case map[string]any:
		for _, k := range sortedKeys(t) {
			if k == "$ref" || k == "$schema" {
				return k
			}
			if found := reference(t[k]); found != "" {
				return found
			}
		}
	case []any:
		for _, e := range t {
			if found := reference(e); found != "" {
				return found
			}
		}
	}
	return ""
}

var schemaTypes = []string{"array", "boolean", "integer", "number", "null", "object", "string"}

// unknownType returns the first type among properties that JSON schema has not.
func unknownType(properties any) string {
	props, _ := properties.(map[string]any)
	for _, name := range sortedKeys(props) {
		prop, ok := props[name].(map[string]any)
		if !ok {
			continue
		}
		if t, ok := prop["type"].(string); ok && !slices.Contains(schemaTypes, t) {
			return t
		}
		if found := unknownType(prop["properties"]); found != "" {
			return found
		}
	}
	return ""
}
