// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package connections

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"
)

// DefaultHookTimeout is used where the option connections-hook-timeout is not set or invalid.
const DefaultHookTimeout = 60 * time.Second

// maxHookTimeout bounds connections-hook-timeout.
const maxHookTimeout = time.Hour

// Name is a ConfigMap that the operator lists.
type Name struct {
	Name     string
	Optional bool
}

// Options are the options of the charm that are about connections, parsed. An option that cannot be used has an error and
// its zero value.
type Options struct {
	ConfigMaps  []Name // sorted by name
	Connectable Connectable
	Category    string
	Hook        string
	HookTimeout time.Duration

	// Errs has an error for each option that cannot be used, by the option's name.
	Errs map[string]error
}

// ParseOptions reads what config-get printed; category is the charm's own default. Every text is a defined state.
func ParseOptions(raw map[string]any, category string) Options {
	o := Options{Category: category, HookTimeout: DefaultHookTimeout, Errs: map[string]error{}}
	note := func(option string, err error) {
		if err != nil {
			o.Errs[option] = fmt.Errorf("%s: %w", option, err)
		}
	}
	var err error
	o.ConfigMaps, err = ParseNames(optionText(raw, OptConfigMaps))
	note(OptConfigMaps, err)
	o.Connectable, err = ParseConnectable(optionText(raw, OptConnectable))
	note(OptConnectable, err)
	if text := strings.TrimSpace(optionText(raw, OptCategory)); text != "" {
		o.Category = text
		note(OptCategory, checkWord(text))
	}
	o.Hook, err = parseHook(optionText(raw, OptHook))
	note(OptHook, err)
	if seconds, ok := raw[OptHookTimeout].(float64); ok {
		o.HookTimeout = time.Duration(seconds * float64(time.Second))
		if o.HookTimeout < time.Second || o.HookTimeout > maxHookTimeout {
			note(OptHookTimeout, fmt.Errorf("bad number of seconds %v: 1 to %d are allowed", seconds, int(maxHookTimeout.Seconds())))
			o.HookTimeout = DefaultHookTimeout
		}
	}
	return o
}

// Set reports whether an operator has asked for anything by options.
func (o Options) Set() bool {
	return len(o.ConfigMaps) > 0 || len(o.Errs) > 0
}

func optionText(raw map[string]any, option string) string {
	text, _ := raw[option].(string)
	return text
}

// ParseNames reads connected-configmaps: names separated by commas or white space, each with a question mark if it is
// optional. A name that is listed twice counts once, and is required if one of them is.
func ParseNames(text string) ([]Name, error) {
	required := map[string]bool{}
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || unicode.IsSpace(r) }) {
		name, optional := strings.CutSuffix(word, "?")
		if !isSubdomain(name) {
			return nil, fmt.Errorf("bad name %q", clip(word))
		}
		required[name] = required[name] || !optional
	}
	if len(required) > MaxNames {
		return nil, fmt.Errorf("%d names, at most %d are allowed", len(required), MaxNames)
	}
	var names []Name
	for name, needed := range required {
		names = append(names, Name{Name: name, Optional: !needed})
	}
	slices.SortFunc(names, func(a, b Name) int { return strings.Compare(a.Name, b.Name) })
	return names, nil
}

// isSubdomain reports whether a name is one that Kubernetes lets a ConfigMap have (RFC 1123 subdomain).
func isSubdomain(name string) bool {
	if len(name) > 253 {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		for i := range len(label) {
			c := label[i]
			alphanumeric := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
			if !alphanumeric && (c != '-' || i == 0 || i == len(label)-1) {
				return false
			}
		}
		if label == "" {
			return false
		}
	}
	return true
}

// parseHook reads connections-hook: nothing, or an absolute path.
func parseHook(text string) (string, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return "", nil
	}
	if !path.IsAbs(text) || strings.ContainsFunc(text, unicode.IsControl) || len(text) > 4096 {
		return "", fmt.Errorf("%q is not an absolute path", clip(text))
	}
	return path.Clean(text), nil
}

// clip shortens text of somebody else for a message.
func clip(text string) string {
	const most = 60
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "..."
	}
	return text
}
