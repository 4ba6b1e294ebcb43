// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package probe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// lockName is the file whose lock says that a watch runs. It holds the pid of
// the process for people, and for ending one that listens to nobody.
const lockName = "watch.lock"

// lockFile is a lock that is held.
type lockFile struct{ file *os.File }

// tryLock takes the lock of a folder. It returns nil when somebody holds it.
func tryLock(dir string) (*lockFile, error) {
	file, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open the watch's lock: %w", err)
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err != nil {
		file.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, nil
		}
		return nil, fmt.Errorf("cannot take the watch's lock: %w", err)
	}
	return &lockFile{file}, nil
}

// waitLock takes the lock as soon as it is free; nil when it is not in time.
func waitLock(ctx context.Context, dir string, limit time.Duration) (*lockFile, error) {
	deadline := time.Now().Add(limit)
	for {
		lock, err := tryLock(dir)
		if lock != nil || err != nil {
			return lock, err
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return nil, nil
		}
		pause(ctx, nil, pollEvery)
	}
}

// sign writes this process's pid into the file.
func (l *lockFile) sign() error {
	if err := l.file.Truncate(0); err != nil {
		return fmt.Errorf("cannot write the watch's lock: %w", err)
	}
	if _, err := l.file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0); err != nil {
		return fmt.Errorf("cannot write the watch's lock: %w", err)
	}
	return nil
}

// valid reports whether the file that is locked is still the one in dir: a
// lock on a file that was deleted keeps nobody out.
func (l *lockFile) valid(dir string) bool {
	held, err := l.file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(filepath.Join(dir, lockName))
	return err == nil && os.SameFile(held, there)
}

func (l *lockFile) release() { l.file.Close() }

// endHolder kills the process that holds the lock of dir. The pid in the file
// is trusted only if that process has the very file open, and the process is
// held by a handle first, so that no other can be hit.
func endHolder(dir string) error {
	path := filepath.Join(dir, lockName)
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("cannot read the watch's lock: %w", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 1 || pid == os.Getpid() {
		return errors.New("cannot end the watch: its lock names no process")
	}
	process, err := os.FindProcess(pid) // by pidfd
	if err != nil {
		return fmt.Errorf("cannot end the watch: %w", err)
	}
	defer process.Release()
	if !hasOpen(pid, path) {
		return fmt.Errorf("cannot end the watch: process %d does not hold its lock", pid)
	}
	if err := process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("cannot end the watch: %w", err)
	}
	return nil
}

// hasOpen reports whether a process has a file open.
func hasOpen(pid int, path string) bool {
	wanted, err := os.Stat(path)
	if err != nil {
		return false
	}
	folder := fmt.Sprintf("/proc/%d/fd", pid)
	names, err := os.ReadDir(folder)
	if err != nil {
		return false
	}
	for _, name := range names {
		info, err := os.Stat(filepath.Join(folder, name.Name()))
		if err == nil && os.SameFile(info, wanted) {
			return true
		}
	}
	return false
}
