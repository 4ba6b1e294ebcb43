// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/drawbridge-k8s/drawbridge/jujulet/hooktools"
)

// TestMain makes the test binary the program: in scripts, where the cluster process runs it again with a hidden command,
// and in pods, where charms call it by the names of hook tools.
func TestMain(m *testing.M) {
	hidden := len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "__")
	if hidden || hooktools.IsTool(filepath.Base(os.Args[0])) {
		os.Exit(run(os.Args))
	}
	program := func() { os.Exit(run(os.Args)) }
	testscript.Main(m, map[string]func(){"jujulet": program, "status-set": program})
}

// TestScripts runs the program as a user does. Scripts named "cluster-" start pods.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("JUJULET_STATE", filepath.Join(e.WorkDir, "state"))
			e.Defer(func() { // also when a script has failed
				down := exec.Command(filepath.Join(e.Getenv("TESTBIN"), "jujulet"), "down", "--state", filepath.Join(e.WorkDir, "state"))
				if out, err := down.CombinedOutput(); err != nil {
					t.Errorf("cannot end the cluster: %v: %s", err, out)
				}
			})
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"pebble": pebble},
	})
}

// pebble makes sure that the script's JUJULET_PEBBLE names a daemon.
func pebble(ts *testscript.TestScript, _ bool, _ []string) {
	path := os.Getenv("JUJULET_PEBBLE")
	if path == "" {
		path = filepath.Join(ts.MkAbs("."), "pebble")
		build := exec.Command("go", "build", "-o", path, "github.com/canonical/pebble/cmd/pebble")
		if out, err := build.CombinedOutput(); err != nil {
			ts.Fatalf("cannot build Pebble: %v: %s", err, out)
		}
	}
	ts.Setenv("JUJULET_PEBBLE", path)
}
