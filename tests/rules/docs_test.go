// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package rules

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// docs/architecture.md names packages: each has to exist, and each that exists
// has to be named, what serves tests only apart.
func TestArchitectureNamesThePackages(t *testing.T) {
	t.Parallel()
	root := repository(t)
	text, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	require.NoError(t, err)
	table, _, found := strings.Cut(string(text), "## The life of a hook")
	require.True(t, found)
	named := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]*) \\|").FindAllStringSubmatch(table, -1) {
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			named[name[1]] = true
			files, err := filepath.Glob(filepath.Join(root, name[1], "*.go"))
			require.NoError(t, err)
			require.NotEmpty(t, files, "docs/architecture.md names %s, which is no package", name[1])
		}
	}
	require.Greater(t, len(named), 20, "the table of packages was not found")
	cmd := exec.CommandContext(t.Context(), "go", "list", "./...")
	cmd.Dir = root
	out, err := cmd.Output()
	require.NoError(t, err)
	for pkg := range strings.FieldsSeq(string(out)) {
		name := strings.TrimPrefix(strings.TrimPrefix(pkg, module), "/")
		if name == "" || strings.HasSuffix(name, "test") {
			continue
		}
		if !named[name] {
			t.Errorf("docs/architecture.md does not name %s", name)
		}
	}
}

// Each module that go.mod requires directly stands in docs/architecture.md with
// what it is for.
func TestArchitectureGivesReasonsForDependencies(t *testing.T) {
	t.Parallel()
	root := repository(t)
	text, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json")
	cmd.Dir = root
	out, err := cmd.Output()
	require.NoError(t, err)
	var mod struct {
		Require []struct {
			Path     string
			Indirect bool
		}
	}
	require.NoError(t, json.Unmarshal(out, &mod))
	require.NotEmpty(t, mod.Require)
	for _, m := range mod.Require {
		path := regexp.MustCompile(`/v\d+$`).ReplaceAllString(m.Path, "")
		if !m.Indirect && !strings.Contains(string(text), "`"+path+"`") {
			t.Errorf("docs/architecture.md gives no reason for %s", m.Path)
		}
	}
}
