// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

// Package rules keeps the rules of the repository as tests: who may import
// whom, what the charm's binary may link, and what every file carries.
package rules

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/drawbridge-k8s/drawbridge"

// charmHalf and runnerHalf meet at Juju's protocols only.
var (
	charmHalf = []string{"./hooks/...", "./charm/...", "./relation/...", "./k8sservice/...", "./probe/...",
		"./workload/...", "./database/...", "./connections/...", "./cmd/drawbridge", "./examples/..."}
	runnerHalf = []string{"./jujulet/...", "./cmd/jujulet"}
)

func TestCharmNeverImportsRunner(t *testing.T) {
	for _, dep := range deps(t, charmHalf...) {
		if inside(dep, "jujulet") || inside(dep, "cmd/jujulet") {
			t.Errorf("the charm half imports %s", dep)
		}
	}
}

func TestRunnerNeverImportsCharm(t *testing.T) {
	rooms := []string{"hooks", "charm", "relation", "k8sservice", "probe", "workload", "database", "connections", "cmd/drawbridge", "examples"}
	for _, dep := range deps(t, runnerHalf...) {
		for _, room := range rooms {
			if inside(dep, room) {
				t.Errorf("the runner half imports %s", dep)
			}
		}
	}
}

// The whole clientset, its scheme and the apply configurations double the
// charm's start-up time.
func TestCharmBinaryLinksNoClientset(t *testing.T) {
	for _, dep := range deps(t, "./cmd/drawbridge", "./examples/...") {
		for _, heavy := range []string{"k8s.io/client-go/kubernetes", "k8s.io/client-go/applyconfigurations"} {
			if dep == heavy || strings.HasPrefix(dep, heavy+"/") {
				t.Errorf("the charm links %s", dep)
			}
		}
	}
}

// relation and connections decide and do no input or output.
func TestRelationDoesNoIO(t *testing.T) {
	for _, pkg := range []string{"./relation", "./connections"} {
		for _, dep := range deps(t, pkg) {
			switch dep {
			case "net", "net/http", "os/exec", "database/sql":
				t.Errorf("%s imports %s", pkg, dep)
			}
		}
	}
}

func TestEveryFileCarriesTheLicence(t *testing.T) {
	root := repository(t)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "out") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, ".sh") {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		head := string(data[:min(len(data), 400)])
		if !strings.Contains(head, "SPDX-License-Identifier: GPL-3.0-only") {
			t.Errorf("%s has no SPDX line", strings.TrimPrefix(path, root+"/"))
		}
		return nil
	})
	require.NoError(t, err)
}

// deps lists the packages that the patterns link, tests apart.
func deps(t *testing.T, patterns ...string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list", "-deps"}, patterns...)...)
	cmd.Dir = repository(t)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err, "go list -deps %v", patterns)
	found := strings.Fields(string(out))
	require.Greater(t, len(found), 50, "go list -deps %v found almost nothing", patterns)
	return found
}

func inside(dep, room string) bool {
	return dep == module+"/"+room || strings.HasPrefix(dep, module+"/"+room+"/")
}

func repository(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	require.NoError(t, err)
	_, err = os.Stat(filepath.Join(dir, "go.mod"))
	require.NoError(t, err)
	return dir
}
