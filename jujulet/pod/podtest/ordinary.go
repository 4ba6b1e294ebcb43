// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package podtest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drawbridge-k8s/drawbridge/jujulet/pod"
)

// OrdinaryID is the user and the group of the tests' ordinary user. No machine has it: not even a name belongs to it.
const OrdinaryID = 61234

// ordinaryFolder is the environment variable of the second run, with the folder that it works in.
const ordinaryFolder = "JUJULET_ORDINARY_TEST"

// MainTwice is Main and, when root is the caller and all is well, Main again as an ordinary user.
func MainTwice(m *testing.M) int {
	code := Main(m)
	again := os.Getenv(marker) == "" && os.Getenv(ordinaryFolder) == "" && os.Geteuid() == 0
	if hidden := len(os.Args) > 1 && pod.IsCommand(os.Args[1]); code != 0 || hidden || !again {
		return code
	}
	fmt.Println("again, as an ordinary user:")
	return exitCode(runOrdinary())
}

// Ordinary tells whether this is the run as an ordinary user.
func Ordinary() bool { return os.Getenv(ordinaryFolder) != "" }

// Mounted returns a folder of root's on a file system of its own, which the ordinary user finds on the machine: in it are
// deep/file, with the text "host", and private/file and closed/file, which only root may read; closed/inner is a mount.
func Mounted() string { return filepath.Join(os.Getenv(ordinaryFolder), "mounted") }

// runOrdinary runs this program again with no right but those of an ordinary user. It gets a copy, as what go test has built
// lies in a folder that only root may enter. The folder is not in /tmp, which no pod sees.
func runOrdinary() error {
	folder, err := os.MkdirTemp("/var/tmp", "podtest-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	own, mounted := filepath.Join(folder, "own"), filepath.Join(folder, "mounted")
	err = errors.Join(os.Chmod(folder, 0o755), copyProgram("/proc/self/exe", filepath.Join(folder, "tests")),
		os.Mkdir(mounted, 0o755), os.Mkdir(own, 0o700), os.Chown(own, OrdinaryID, OrdinaryID))
	if err != nil {
		return err
	}
	env := []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + own, ordinaryFolder + "=" + folder}
	if pebble := os.Getenv("JUJULET_PEBBLE"); pebble != "" {
		daemon := filepath.Join(folder, "daemon")
		if err := copyProgram(pebble, daemon); err != nil {
			return err
		}
		env = append(env, "JUJULET_PEBBLE="+daemon)
	}
	cmd := exec.Command("/proc/self/exe", testArgs()...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.Env = "/", os.Stdout, os.Stderr, env
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	return cmd.Run()
}

// testArgs are this program's arguments without the names of files that are root's.
func testArgs() []string {
	ours := []string{"-test.testlogfile=", "-test.coverprofile=", "-test.gocoverdir=", "-test.outputdir=", "-test.cpuprofile="}
	return slices.DeleteFunc(slices.Clone(os.Args[1:]), func(arg string) bool {
		return slices.ContainsFunc(ours, func(prefix string) bool { return strings.HasPrefix(arg, prefix) })
	})
}

// copyProgram copies a program for everybody.
func copyProgram(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}

// dropRights is the step between: root, in a mount namespace that ends with it, mounts what Mounted promises and becomes
// the ordinary user.
func dropRights(folder string) error {
	mounted := filepath.Join(folder, "mounted")
	if err := unix.Mount("tmpfs", mounted, "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("cannot mount: %w", err)
	}
	for name, mode := range map[string]os.FileMode{"deep": 0o755, "private": 0o700, "closed": 0o700} {
		file := filepath.Join(mounted, name, "file")
		if err := errors.Join(os.Mkdir(filepath.Dir(file), mode), os.WriteFile(file, []byte("host"), 0o644)); err != nil {
			return err
		}
	}
	inner := filepath.Join(mounted, "closed/inner")
	if err := errors.Join(os.Mkdir(inner, 0o755), unix.Mount("tmpfs", inner, "tmpfs", 0, "mode=755")); err != nil {
		return fmt.Errorf("cannot mount: %w", err)
	}
	cmd := exec.Command(filepath.Join(folder, "tests"), os.Args[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: OrdinaryID, Gid: OrdinaryID}, Pdeathsig: syscall.SIGKILL}
	return cmd.Run()
}

// checkOrdinary fails if this process, which is to be an ordinary user's, has rights all the same: its tests would prove
// nothing.
func checkOrdinary() error {
	if !Ordinary() {
		return nil
	}
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	found := 0
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		if !slices.Contains([]string{"CapInh", "CapPrm", "CapEff", "CapAmb"}, name) {
			continue
		}
		found++
		if strings.Trim(value, "0 \t\n") != "" {
			return fmt.Errorf("an ordinary user has no capabilities: %s", strings.TrimSpace(line))
		}
	}
	if found != 4 || os.Getuid() != OrdinaryID || os.Geteuid() != OrdinaryID {
		return errors.New("this is not the ordinary user")
	}
	return nil
}
