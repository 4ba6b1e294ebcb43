// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package connections

import (
	"errors"
	"fmt"
	"strings"
)

// Connectable is the rule which applications may be connected: one of its terms must match. No term means any.
type Connectable struct{ terms []term }

// term is a list of conditions that must all hold.
type term []condition

type condition struct{ key, value string }

// The keys of conditions.
const (
	condCategory = "category"
	condDistro   = "distro-id"
	condVersion  = "version"
	condName     = "name"
)

// ParseConnectable reads connectable-to: terms separated by commas, of which one has to match; a term is conditions joined
// by "+", which all have to hold; a condition is a category, or key=value with the key category, distro-id, version or
// name.
func ParseConnectable(text string) (Connectable, error) {
	var rule Connectable
	if strings.TrimSpace(text) == "" {
		return rule, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		var t term
		for word := range strings.SplitSeq(part, "+") {
			c, err := parseCondition(strings.TrimSpace(word))
			if err != nil {
				return Connectable{}, err
			}
			t = append(t, c)
		}
		rule.terms = append(rule.terms, t)
	}
	return rule, nil
}

func parseCondition(word string) (condition, error) {
	key, value, pair := strings.Cut(word, "=")
	if !pair {
		key, value = condCategory, word
	}
	key, value = strings.TrimSpace(key), strings.TrimSpace(value)
	switch key {
	case condCategory, condDistro, condVersion, condName:
	default:
		return condition{}, fmt.Errorf("bad condition %q: the keys are category, distro-id, version and name", clip(word))
	}
	if err := checkWord(value); err != nil {
		return condition{}, fmt.Errorf("bad condition %q: %w", clip(word), err)
	}
	return condition{key, value}, nil
}

// checkWord checks what a condition can name.
func checkWord(word string) error {
	if word == "" {
		return errors.New("it is empty")
	}
	if len(word) > 253 {
		return errors.New("it is longer than 253 characters")
	}
	for _, r := range word {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !letter && !strings.ContainsRune("-_./:@~", r) {
			return fmt.Errorf("%q cannot stand in it", r)
		}
	}
	return nil
}

// Accepts reports whether an application that says this about itself may be connected, and if not, why.
func (c Connectable) Accepts(m Metadata) (ok bool, why string) {
	if len(c.terms) == 0 {
		return true, ""
	}
	for _, t := range c.terms {
		if t.holds(m) {
			return true, ""
		}
	}
	if c.onlyCategories() {
		return false, fmt.Sprintf("category %q not in connectable-to", clip(m.Category))
	}
	return false, fmt.Sprintf("category %q, distro-id %q, version %q not in connectable-to", clip(m.Category), clip(m.DistroID), clip(m.Version))
}

func (c Connectable) onlyCategories() bool {
	for _, t := range c.terms {
		if len(t) != 1 || t[0].key != condCategory {
			return false
		}
	}
	return true
}

func (t term) holds(m Metadata) bool {
	for _, c := range t {
		have := map[string]string{condCategory: m.Category, condDistro: m.DistroID, condVersion: m.Version, condName: m.Name}[c.key]
		if have != c.value {
			return false
		}
	}
	return true
}
