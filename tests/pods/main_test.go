// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package pods

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

// built is where TestMain has put the programs and the charms.
var built struct{ folder, jujulet, charms string }

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if err := check(); err != nil {
		fmt.Fprintf(os.Stderr, "cannot run the tests of pods: %v\n", err)
		return 1
	}
	began := time.Now()
	// Not below /tmp: pods have a /tmp of their own, and that the state folder is hidden would prove nothing there.
	folder, err := os.MkdirTemp("/var/tmp", "drawbridge-pods-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)
	if err := os.Chmod(folder, 0o755); err != nil { // the ordinary user of some tests uses what is built
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ending := make(chan os.Signal, 1)
	signal.Notify(ending, unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	go func() {
		<-ending
		endAll(folder)
		os.Exit(1)
	}()
	if err := build(folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Printf("programs and charms built in %.1f s\n", time.Since(began).Seconds())
	return m.Run()
}

// endAll ends the clusters of tests that were broken off.
func endAll(folder string) {
	for _, pattern := range []string{"*/model.db", "*/tour/model.db", "*/*/model.db"} {
		files, _ := filepath.Glob(filepath.Join(folder, pattern))
		for _, file := range files {
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			_ = controller.Down(ctx, controller.DownOptions{State: filepath.Dir(file)})
			cancel()
		}
	}
	_ = os.RemoveAll(folder)
}

// check names what this machine lacks.
func check() error {
	if os.Geteuid() != 0 {
		return errors.New("they start pods and need root: run them with sudo -E")
	}
	for program, pkg := range map[string]string{"haproxy": "haproxy", "mariadbd": "mariadb-server-core", "ss": "iproute2", "flock": "util-linux"} {
		if _, err := exec.LookPath(program); err == nil {
			continue
		}
		if _, err := os.Stat("/usr/sbin/" + program); err != nil {
			return fmt.Errorf("%s is missing: apt-get install --no-install-recommends %s", program, pkg)
		}
	}
	return nil
}

// build makes the programs and packs the charms with the flags of the Makefile, so that its cache serves both.
func build(folder string) error {
	built.folder, built.jujulet, built.charms = folder, filepath.Join(folder, "bin", "jujulet"), filepath.Join(folder, "charms")
	pack := []string{"run", "./tools/packcharm", "-version", "test", "-out", built.charms}
	for _, args := range [][]string{
		{"build", "-o", built.jujulet, "./cmd/jujulet"},
		{"build", "-o", filepath.Join(folder, "bin", "pebble"), "github.com/canonical/pebble/cmd/pebble"},
		append(pack[:len(pack):len(pack)], "-program", "./cmd/connq", ".", "./cmd/drawbridge"),
		append(pack[:len(pack):len(pack)], "examples/mariadb-k8s", "./examples/mariadb-k8s"),
		append(pack[:len(pack):len(pack)], "-program", "./cmd/connq", "examples/client-k8s", "./examples/client-k8s"),
	} {
		cmd := exec.Command("go", args...)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath -buildvcs=false")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("cannot go %s: %w\n%s", strings.Join(args, " "), err, out)
		}
	}
	return nil
}

// charm is the path of a packed charm.
func charm(name string) string { return filepath.Join(built.charms, name+"_amd64.charm") }
