// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"fmt"
	"regexp"
	"strings"

	yaml "sigs.k8s.io/yaml/goyaml.v2"
)

// storageCount is "m-n", "m+" or "m-"; a bare number is no text in YAML.
var storageCount = regexp.MustCompile(`^([0-9]+)([-+]|-[0-9]+)?$`)

// metaShape refuses metadata.yaml that is no YAML, with the line where the parser
// gives one, and values of the wrong kind, in the words of Juju's schema. The parser
// is of the line that Juju uses, so that the words are the same.
func metaShape(raw []byte) error {
	var doc map[any]any
	if err := yaml.Unmarshal(raw, &doc); err != nil {
		return errf(Invalid, "%v", err)
	}
	for _, key := range []string{"name", "summary", "description"} {
		if err := wantString(key, doc[key]); err != nil {
			return err
		}
	}
	for _, key := range []string{"provides", "requires", "peers"} {
		group, err := wantMap(key, doc[key])
		if err != nil {
			return err
		}
		for _, name := range sortedKeys(group) {
			if err := endpointShape(key+"."+name, group[name]); err != nil {
				return err
			}
		}
	}
	group, err := wantMap("storage", doc["storage"])
	if err != nil {
		return err
	}
	for _, name := range sortedKeys(group) {
		if err := storageShape("storage."+name, group[name]); err != nil {
			return err
		}
	}
	return nil
}

func endpointShape(at string, v any) error {
	if _, short := v.(string); short {
		return nil
	}
	doc, err := wantMap(at, v)
	if err != nil {
		return err
	}
	if err := wantString(at+".interface", doc["interface"]); err != nil {
		return err
	}
	if _, ok := doc["limit"].(int); doc["limit"] != nil && !ok {
		return errf(Invalid, "metadata: %s.limit: unexpected value %#v", at, doc["limit"])
	}
	switch scope := doc["scope"]; scope {
	case nil, "global", "container":
		return nil
	default:
		return errf(Invalid, "metadata: %s.scope: unexpected value %#v", at, scope)
	}
}

func storageShape(at string, v any) error {
	doc, err := wantMap(at, v)
	if err != nil {
		return err
	}
	if t := doc["type"]; t != "filesystem" && t != "block" {
		return errf(Invalid, "metadata: %s.type: unexpected value %#v", at, t)
	}
	multiple, err := wantMap(at+".multiple", doc["multiple"])
	if err != nil {
		return err
	}
	if s, ok := multiple["range"].(string); ok && !storageCount.MatchString(s) {
		return errf(Invalid, "metadata: %s.multiple.range: value %q does not match 'm', 'm-n', or 'm+'", at, s)
	}
	return nil
}

// wantString refuses what is no text; nothing is none either.
func wantString(at string, v any) error {
	if _, ok := v.(string); ok {
		return nil
	}
	return errf(Invalid, "metadata: %s: expected string, got %s", at, kindOf(v))
}

// wantMap refuses what is no map with text as keys; nothing is an empty one.
func wantMap(at string, v any) (map[string]any, error) {
	out := map[string]any{}
	if v == nil {
		return out, nil
	}
	m, ok := v.(map[any]any)
	if !ok {
		return nil, errf(Invalid, "metadata: %s: expected map, got %s", at, kindOf(v))
	}
	for k, e := range m {
		name, ok := k.(string)
		if !ok {
			return nil, errf(Invalid, "metadata: %s: expected string, got %s", at, kindOf(k))
		}
		out[name] = e
	}
	return out, nil
}

func kindOf(v any) string {
	if v == nil {
		return "nothing"
	}
	return fmt.Sprintf("%T(%#v)", v, v)
}

// optionShape is an option of config.yaml as Juju's parser reads it.
type optionShape struct {
	Type, Description string
	Default           any
}

// configShape refuses config.yaml that is no YAML or has no options, and returns
// the defaults as Juju's parser reads them.
func configShape(raw []byte) (map[string]any, error) {
	var doc struct{ Options map[string]optionShape }
	if err := yaml.Unmarshal(raw, &doc); err != nil {
		return nil, errf(Invalid, "%s", strings.ReplaceAll(err.Error(), "model.optionShape", "charm.Option"))
	}
	var keys map[any]any
	if err := yaml.Unmarshal(raw, &keys); err != nil {
		return nil, errf(Invalid, "%v", err)
	}
	if _, ok := keys["options"]; !ok {
		return nil, errf(Invalid, "invalid config: empty configuration")
	}
	defaults := map[string]any{}
	for name, o := range doc.Options {
		defaults[name] = o.Default
	}
	return defaults, nil
}
