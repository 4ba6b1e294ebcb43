// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package workload

import (
	"fmt"
	"reflect"

	"gopkg.in/yaml.v3"
)

// Layer is the part of a Pebble layer that we write.
type Layer struct {
	Services map[string]LayerService `yaml:"services,omitempty"`
	Checks   map[string]LayerCheck   `yaml:"checks,omitempty"`
}

// LayerService is a service; it replaces one of the same name and starts with
// a replan.
type LayerService struct {
	Summary string `yaml:"summary,omitempty"`
	Command string `yaml:"command"`
}

// LayerCheck is a check that asks a URL, on the level "ready".
type LayerCheck struct {
	Period    string `yaml:"period"`
	Timeout   string `yaml:"timeout"`
	Threshold int    `yaml:"threshold"`
	URL       string `yaml:"-"`
}

// MarshalYAML adds what every service of ours has.
func (s LayerService) MarshalYAML() (any, error) {
	type plain LayerService
	return struct {
		Override string `yaml:"override"`
		Startup  string `yaml:"startup"`
		plain    `yaml:",inline"`
	}{"replace", "enabled", plain(s)}, nil
}

// MarshalYAML adds what every check of ours has.
func (c LayerCheck) MarshalYAML() (any, error) {
	type plain LayerCheck
	return struct {
		Override string            `yaml:"override"`
		Level    string            `yaml:"level"`
		HTTP     map[string]string `yaml:"http"`
		plain    `yaml:",inline"`
	}{"replace", "ready", map[string]string{"url": c.URL}, plain(c)}, nil
}

// compare returns the layer's YAML, and whether a plan has all of it. Keys that
// only the plan has, such as defaults that Pebble fills in, do not count.
func (l Layer) compare(plan []byte) (data []byte, within bool, err error) {
	data, err = yaml.Marshal(l)
	if err != nil {
		return nil, false, fmt.Errorf("cannot write a layer: %w", err)
	}
	var want, have any
	if err := yaml.Unmarshal(data, &want); err != nil {
		return nil, false, fmt.Errorf("cannot read a layer: %w", err)
	}
	if err := yaml.Unmarshal(plan, &have); err != nil {
		return nil, false, fmt.Errorf("cannot read Pebble's plan: %w", err)
	}
	return data, contains(have, want), nil
}

// contains reports whether have is want, or is a map that contains all that is
// in want.
func contains(have, want any) bool {
	wanted, ok := want.(map[string]any)
	if !ok {
		return reflect.DeepEqual(have, want)
	}
	there, ok := have.(map[string]any)
	if !ok {
		return false
	}
	for key, value := range wanted {
		if !contains(there[key], value) {
			return false
		}
	}
	return true
}
