// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package render

import (
	"io"
	"strings"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// Argument is one parameter of an action in the document of `juju show-action`.
type Argument struct {
	Type        any `yaml:"type"`
	Description any `yaml:"description"`
	Default     any `yaml:"default,omitempty"`
}

// Arguments returns an action's parameters by name.
func Arguments(spec model.ActionSpec) map[string]Argument {
	out := map[string]Argument{}
	properties, _ := spec.Params["properties"].(map[string]any)
	for name, value := range properties {
		if p, ok := value.(map[string]any); ok {
			out[name] = Argument{p["type"], p["description"], p["default"]}
		}
	}
	return out
}

// ActionDescriptions returns what actions do, by name.
func ActionDescriptions(actions map[string]model.ActionSpec) map[string]string {
	out := map[string]string{}
	for name, spec := range actions {
		out[name] = spec.Description
		if spec.Description == "" {
			out[name] = "No description"
		}
	}
	return out
}

// Actions writes actions as `juju actions` does.
func Actions(w io.Writer, descriptions map[string]string) error {
	t := newTable("Action", "Description")
	for _, name := range sortedNames(descriptions) {
		shown := name
		for line := range strings.Lines(strings.TrimSpace(descriptions[name])) {
			t.add(plain(shown), plain(strings.TrimSuffix(line, "\n")))
			shown = ""
		}
	}
	return t.write(w, false)
}
