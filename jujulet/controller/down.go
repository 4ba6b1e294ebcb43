// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package controller

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

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/pod"
)

// lockName is the file in a state folder whose lock the cluster process holds
// as long as it lives; its text is that process's id.
const lockName = "lock"

// podsFolder is the folder in a runtime folder on which pods' files are
// mounted.
const podsFolder = "p"

// DownOptions say what Down ends.
type DownOptions struct {
	// State is the state folder, from StateFolder.
	State string
	// Purge removes the state folder too: applications, databags, all.
	Purge bool
}

// Down ends the cluster process of a state folder in order, and by force if it
// does not answer. It returns when nothing of it is left; that nothing runs is
// not an error. The state folder stays, unless it is to be purged.
func Down(ctx context.Context, o DownOptions) error {
	runtime := RuntimeFolder(o.State)
	if _, err := os.Stat(o.State); errors.Is(err, os.ErrNotExist) {
		return removeRuntime(o.State, runtime)
	}
	client := control.New(control.SocketPath(runtime))
	defer client.Close()
	asking, cancel := context.WithTimeout(ctx, downTimeout)
	asked := client.Shutdown(asking) == nil
	cancel()
	lock, err := awaitLock(ctx, o.State, asked)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := removeRuntime(o.State, runtime); err != nil {
		return err
	}
	if o.Purge {
		if err := os.RemoveAll(o.State); err != nil {
			return fmt.Errorf("cannot remove the state folder: %w", err)
		}
	}
	return nil
}

// awaitLock takes the lock of a state folder when its holder has ended, and ends
// the holder when that takes too long.
func awaitLock(ctx context.Context, state string, asked bool) (*os.File, error) {
	patience := time.Now().Add(downTimeout)
	if !asked {
		patience = time.Now()
	}
	for {
		lock, err := lockState(state)
		if !errors.Is(err, ErrRunning) {
			return lock, err
		}
		if time.Now().After(patience) {
			pid, err := readHolder(state)
			if err != nil {
				return nil, err
			}
			if err := pod.KillCluster(ctx, pid); err != nil {
				return nil, err
			}
			patience = time.Now().Add(downTimeout)
		}
		if !sleep(ctx, 20*time.Millisecond) {
			return nil, ctx.Err()
		}
	}
}

// lockState takes the lock of a state folder without waiting: ErrRunning says
// that it is taken.
func lockState(state string) (*os.File, error) {
	path := filepath.Join(state, lockName)
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot lock the state folder: %w", err)
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return file, nil
	}
	file.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, fmt.Errorf("%w on %s (end it with \"jujulet down\", or use another --state)", ErrRunning, state)
	}
	return nil, fmt.Errorf("cannot lock the state folder: %w", err)
}

// writeHolder writes into the lock who holds it.
func writeHolder(lock *os.File, pid int) error {
	if err := lock.Truncate(0); err != nil {
		return fmt.Errorf("cannot write the lock: %w", err)
	}
	if _, err := lock.WriteAt([]byte(strconv.Itoa(pid)+"\n"), 0); err != nil {
		return fmt.Errorf("cannot write the lock: %w", err)
	}
	return nil
}

// readHolder reads who holds the lock of a state folder.
func readHolder(state string) (int, error) {
	data, err := os.ReadFile(filepath.Join(state, lockName))
	if err != nil {
		return 0, fmt.Errorf("cannot read the lock: %w", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || pid <= 1 {
		return 0, fmt.Errorf("cannot end the cluster process: it is still starting; try again")
	}
	return pid, nil
}
