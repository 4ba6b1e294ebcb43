// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

// Package workloadtest starts a real Pebble for tests, as a container's.
package workloadtest

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Pebble is a running Pebble daemon. It ends with the test, with all that it
// started.
type Pebble struct {
	// Socket is the path of its socket.
	Socket string

	t       testing.TB
	folder  string
	options Options
	process *os.Process
	ended   chan struct{}
}

// Options change what a workload finds around it.
type Options struct {
	// Env is added to the environment of the test.
	Env []string
	// ResolvConf is an /etc/resolv.conf of the workload's own (a mount that only
	// Pebble and its children see, which needs root).
	ResolvConf string
}

// StartPebble runs Pebble with nothing in its plan, as Juju does, until the
// test ends.
func StartPebble(t testing.TB, o Options) *Pebble {
	t.Helper()
	// Not t.TempDir: the path of a socket has at most 107 bytes.
	folder, err := os.MkdirTemp("", "pebble-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	p := &Pebble{Socket: filepath.Join(folder, "pebble.socket"), t: t, folder: folder, options: o}
	p.start()
	t.Cleanup(p.stop)
	return p
}

// Folder is an empty folder for the files of the workload.
func (p *Pebble) Folder() string { return filepath.Join(p.folder, "root") }

// Replace ends Pebble and all that it started, loses its plan and the files in
// Folder, and starts it again: what a killed pod comes back as.
func (p *Pebble) Replace() {
	p.t.Helper()
	p.stop()
	for _, path := range []string{p.Folder(), filepath.Join(p.folder, "pebble")} {
		if err := os.RemoveAll(path); err != nil {
			p.t.Fatal(err)
		}
	}
	p.start()
}

func (p *Pebble) start() {
	p.t.Helper()
	program, log := binary(p.t), &strings.Builder{}
	var daemon *exec.Cmd
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		daemon = p.command(program, "run", "--create-dirs", "--hold")
		daemon.Env = append(os.Environ(), "PEBBLE="+filepath.Join(p.folder, "pebble"), "PEBBLE_SOCKET="+p.Socket,
			"PATH="+os.Getenv("PATH")+":/usr/sbin:/usr/local/sbin")
		daemon.Env = append(daemon.Env, p.options.Env...)
		daemon.Stdout, daemon.Stderr = log, log
		err := daemon.Start()
		if err == nil {
			break
		}
		// A program that has just been built may still be open for writing in a process that is being forked.
		if !errors.Is(err, syscall.ETXTBSY) || time.Now().After(deadline) {
			p.t.Fatalf("cannot start Pebble: %v", err)
		}
	}
	p.process, p.ended = daemon.Process, make(chan struct{})
	go func() { defer close(p.ended); daemon.Wait() }() //nolint:errcheck // stopped below
	for deadline := time.Now().Add(10 * time.Second); ; {
		conn, err := net.Dial("unix", p.Socket)
		if err == nil {
			conn.Close()
			return
		}
		select {
		case <-p.ended:
			p.t.Fatalf("Pebble ended:\n%s", log)
		case <-time.After(time.Millisecond):
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("Pebble does not answer: %v", err)
		}
	}
}

func (p *Pebble) command(args ...string) *exec.Cmd {
	p.t.Helper()
	if p.options.ResolvConf == "" {
		return exec.Command(args[0], args[1:]...)
	}
	if os.Geteuid() != 0 {
		p.t.Fatal("cannot give the workload its own /etc/resolv.conf: that needs root")
	}
	path := filepath.Join(p.folder, "resolv.conf")
	if err := os.WriteFile(path, []byte(p.options.ResolvConf), 0o644); err != nil {
		p.t.Fatal(err)
	}
	const script = `mount --make-rprivate / && mount --bind "$0" /etc/resolv.conf && exec "$@"`
	command := exec.Command("sh", append([]string{"-c", script, path}, args...)...)
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	return command
}

// stop lets Pebble stop its services, which live in sessions of their own.
func (p *Pebble) stop() {
	p.process.Signal(os.Interrupt) //nolint:errcheck // it may have ended
	select {
	case <-p.ended:
	case <-time.After(20 * time.Second):
		p.process.Kill() //nolint:errcheck // it may have ended
		<-p.ended
		p.t.Error("Pebble did not end")
	}
}

// binary builds the daemon that go.mod names as a tool, or finds it built.
func binary(t testing.TB) string {
	t.Helper()
	path, err := exec.Command("go", "tool", "-n", "pebble").Output()
	if err != nil {
		t.Fatalf("cannot build Pebble: %v", err)
	}
	return strings.TrimSpace(string(path))
}
