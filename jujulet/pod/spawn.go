// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package pod

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// spawner starts processes and collects all children of this process, orphans that were
// handed to it as process 1 included. It must be the only one to wait for children.
type spawner struct {
	thread chan func()

	mu   sync.Mutex
	want map[int]chan unix.WaitStatus
}

// newSpawner returns a spawner that collects children from now on. All are started by one thread, which prepare has
// prepared: what belongs to a thread, such as capabilities, they have from it.
func newSpawner(prepare func() error) (*spawner, error) {
	s := &spawner{want: map[int]chan unix.WaitStatus{}, thread: make(chan func())}
	prepared := make(chan error)
	go func() {
		runtime.LockOSThread()
		prepared <- prepare()
		for f := range s.thread {
			f()
		}
	}()
	if err := <-prepared; err != nil {
		return nil, err
	}
	children := make(chan os.Signal, 1)
	signal.Notify(children, unix.SIGCHLD)
	go func() {
		for range children {
			s.collect()
		}
	}()
	return s, nil
}

// start runs a program. The channel receives its status once.
//
// The lock is held from the fork to the entry in the table, so that collect cannot take a child away
// before it is known, nor the status of a child whose exec failed.
func (s *spawner) start(path string, args []string, attr *os.ProcAttr) (int, <-chan unix.WaitStatus, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var p *os.Process
	var err error
	done := make(chan struct{})
	s.thread <- func() {
		p, err = os.StartProcess(path, args, attr)
		close(done)
	}
	<-done
	if err != nil {
		return 0, nil, err
	}
	pid := p.Pid
	if err := p.Release(); err != nil {
		return 0, nil, err
	}
	status := make(chan unix.WaitStatus, 1)
	s.want[pid] = status
	return pid, status, nil
}

// collect takes the status of all children that have ended.
func (s *spawner) collect() {
	for {
		s.mu.Lock()
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		if errors.Is(err, unix.EINTR) {
			s.mu.Unlock()
			continue
		}
		if err != nil || pid <= 0 {
			s.mu.Unlock()
			return
		}
		if ch := s.want[pid]; ch != nil {
			ch <- status
			delete(s.want, pid)
		}
		s.mu.Unlock()
	}
}

// signal sends a signal to a process or, with a negative number, to a process group that
// start began and that has not been collected yet. A process that has gone is not an error.
func (s *spawner) signal(pid int, sig unix.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	leader := pid
	if leader < 0 {
		leader = -leader
	}
	if s.want[leader] == nil {
		return nil
	}
	if err := unix.Kill(pid, sig); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("cannot send %s to process %d: %w", unix.SignalName(sig), leader, err)
	}
	return nil
}

// exitCode returns what a shell would report: the exit code, or 128 and the signal's number.
func exitCode(s unix.WaitStatus) int {
	if s.Signaled() {
		return 128 + int(s.Signal())
	}
	return s.ExitStatus()
}

// lookPath finds a program as execvp would, in the PATH of env and relative to dir.
func lookPath(program, dir string, env []string) (string, error) {
	if program == "" {
		return "", errors.New("cannot run a command: its name is empty")
	}
	if strings.Contains(program, "/") {
		if !filepath.IsAbs(program) {
			program = filepath.Join(dir, program)
		}
		return program, nil
	}
	path := defaultPath
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	for _, folder := range filepath.SplitList(path) {
		if folder == "" {
			folder = "."
		}
		if !filepath.IsAbs(folder) {
			folder = filepath.Join(dir, folder)
		}
		file := filepath.Join(folder, program)
		info, err := os.Stat(file)
		if err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 {
			return file, nil
		}
	}
	return "", fmt.Errorf("cannot find %q in PATH", program)
}

// defaultPath is the search path of a container.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// mergeEnv joins environments; a later value of a variable wins, at the place of the first.
func mergeEnv(lists ...[]string) []string {
	var merged []string
	at := map[string]int{}
	for _, list := range lists {
		for _, kv := range list {
			key, _, _ := strings.Cut(kv, "=")
			if i, ok := at[key]; ok {
				merged[i] = kv
				continue
			}
			at[key] = len(merged)
			merged = append(merged, kv)
		}
	}
	return merged
}
