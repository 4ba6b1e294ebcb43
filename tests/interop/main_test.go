// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package interop

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drawbridge-k8s/drawbridge/jujulet/controller"
)

// root is the folder of the module.
const root = "../.."

// built is where TestMain has put the programs, and the folder that all tests share; it is removed when they end.
var built struct{ folder, jujulet string }

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if os.Geteuid() != 0 {
		fmt.Fprintln(os.Stderr, "cannot run the tests of interop: they start pods and need root: run them with sudo -E")
		return 1
	}
	began := time.Now()
	// Not below /tmp: pods have a /tmp of their own.
	folder, err := os.MkdirTemp("/var/tmp", "drawbridge-interop-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)
	ending := make(chan os.Signal, 1)
	signal.Notify(ending, unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	go func() {
		<-ending
		endAll(folder)
		os.Exit(1)
	}()
	built.folder, built.jujulet = folder, filepath.Join(folder, "bin", "jujulet")
	for _, program := range [][2]string{{"jujulet", "./cmd/jujulet"}, {"pebble", "github.com/canonical/pebble/cmd/pebble"}} {
		if err := build(filepath.Join(folder, "bin", program[0]), program[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	fmt.Printf("programs built in %.1f s\n", time.Since(began).Seconds())
	return m.Run()
}

// endAll ends the clusters of tests that were broken off.
func endAll(folder string) {
	files, _ := filepath.Glob(filepath.Join(folder, "*/model.db"))
	for _, file := range files {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		_ = controller.Down(ctx, controller.DownOptions{State: filepath.Dir(file)})
		cancel()
	}
	_ = os.RemoveAll(folder)
}

// build makes one program with the flags of the Makefile, so that its cache serves both.
func build(out, pkg string) error {
	cmd := exec.Command("go", "build", "-o", out, pkg)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath -buildvcs=false")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build %s: %w\n%s", pkg, err, text)
	}
	return nil
}

// state makes a state folder for one cluster below the shared folder, where endAll finds it.
func state(t *testing.T, name string) string {
	t.Helper()
	folder, err := os.MkdirTemp(built.folder, name+"-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return folder
}

// command runs a program and returns its two outputs and its exit code; the test fails if it cannot be run at all.
func command(t *testing.T, env []string, name string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var out, errs strings.Builder
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), env...), &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("cannot run %s %v: %v", name, args, err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}
