// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package conformance

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// jujuc is Juju's own hook tool, jujulet is ours; both are told by the name under
// which they are called which tool they are.
var jujuc, jujulet string

// TestMain builds both clients.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "conformance")
	if err == nil {
		err = build(dir)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "cannot build hook tools: %v\n", err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

func build(dir string) error {
	jujuc, jujulet = filepath.Join(dir, "jujuc"), filepath.Join(dir, "jujulet")
	begun := time.Now()
	// In this module, with the versions of its go.mod.
	cmd := exec.Command("go", "build", "-mod=mod", "-o", jujuc, "github.com/juju/juju/cmd/jujuc")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("jujuc: %w\n%s", err, out)
	}
	fmt.Printf("built Juju's jujuc in %.1f s\n", time.Since(begun).Seconds())
	// In the product's module, as it is shipped.
	cmd = exec.Command("go", "build", "-o", jujulet, "./cmd/jujulet")
	cmd.Dir = filepath.Join("..", "..")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("jujulet: %w\n%s", err, out)
	}
	return nil
}
