// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"path"
	"strings"
)

// ignoreRule is one line of .jujuignore, in the manner of .gitignore.
type ignoreRule struct {
	pattern  string
	anchored bool // matches from the charm's root only
	folder   bool // matches folders only
	negate   bool
}

type ignoreRules []ignoreRule

// newIgnore returns Juju's own rules followed by those of .jujuignore.
func newIgnore(files []charmFile) ignoreRules {
	var rules ignoreRules
	for _, line := range []string{
		".git", ".svn", ".hg", ".bzr", ".tox", "/build/", "/revision", "/version", ".jujuignore",
	} {
		rules = rules.add(line)
	}
	for _, f := range files {
		if f.name != ".jujuignore" {
			continue
		}
		for line := range strings.SplitSeq(string(f.data), "\n") {
			rules = rules.add(line)
		}
	}
	return rules
}

func (r ignoreRules) add(line string) ignoreRules {
	line = strings.TrimRight(line, " \t\r")
	line = strings.TrimLeft(line, " \t")
	if line == "" || strings.HasPrefix(line, "#") {
		return r
	}
	rule := ignoreRule{}
	if rest, ok := strings.CutPrefix(line, "!"); ok {
		rule.negate, line = true, rest
	}
	line = strings.TrimPrefix(line, "\\")
	if rest, ok := strings.CutSuffix(line, "/"); ok {
		rule.folder, line = true, rest
	}
	if strings.Contains(line, "/") {
		rule.anchored = true
	}
	rule.pattern = strings.TrimPrefix(line, "/")
	return append(r, rule)
}

// match says whether the file is left out: it or one of its folders matches.
func (r ignoreRules) match(name string) bool {
	parts := strings.Split(name, "/")
	for i := range parts {
		if r.matchOne(parts[:i+1], i < len(parts)-1) {
			return true
		}
	}
	return false
}

func (r ignoreRules) matchOne(parts []string, folder bool) bool {
	out := false
	for _, rule := range r {
		if rule.folder && !folder {
			continue
		}
		hit := false
		if rule.anchored {
			hit = matchPath(strings.Split(rule.pattern, "/"), parts)
		} else {
			hit, _ = path.Match(rule.pattern, parts[len(parts)-1])
		}
		if hit {
			out = !rule.negate
		}
	}
	return out
}

// matchPath matches path elements; "**" stands for any number of them.
func matchPath(pattern, parts []string) bool {
	if len(pattern) == 0 {
		return len(parts) == 0
	}
	if pattern[0] == "**" {
		for i := 0; i <= len(parts); i++ {
			if matchPath(pattern[1:], parts[i:]) {
				return true
			}
		}
		return false
	}
	if len(parts) == 0 {
		return false
	}
	if ok, _ := path.Match(pattern[0], parts[0]); !ok {
		return false
	}
	return matchPath(pattern[1:], parts[1:])
}
