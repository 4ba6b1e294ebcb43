// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	// deafAfter is how long a watch may hold the lock without taking an order
	// before it is ended. One that has just started needs some milliseconds.
	deafAfter = time.Second
	// goneAfter is how long a watch that was told to end, or killed, may take.
	goneAfter = 2 * time.Second
	// startAfter is how long a watch may take to start.
	startAfter = 5 * time.Second
	// lockWithin is how long one that starts waits for another to go. Hooks start
	// one only when they have seen the lock free.
	lockWithin = time.Second
)

// Starter starts the watch of a folder with stdin as its standard input and
// does not wait for it. It takes stdin over, and closes it here.
type Starter func(ctx context.Context, dir string, stdin *os.File) error

// keptVariables are those of Juju's environment that do not belong to one hook.
var keptVariables = [...]string{"JUJU_UNIT_NAME", "JUJU_MODEL_NAME", "JUJU_CHARM_DIR"}

// ExecStarter starts "<program> watch <dir>" in a session of its own, with the
// rest of its standard streams on /dev/null and the environment env, less
// what belongs to one hook (JUJU_CONTEXT_ID and the like): Juju would take
// the hook for unfinished while a process shares its streams.
func ExecStarter(program string, env []string) Starter {
	return func(_ context.Context, dir string, stdin *os.File) error {
		defer stdin.Close()
		cmd := exec.Command(program, "watch", dir) // outlives the hook's context
		cmd.Dir = "/"
		cmd.Stdin = stdin
		cmd.Env = watchEnvironment(env)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			return fmt.Errorf("cannot start the watch: %w", err)
		}
		return cmd.Process.Release()
	}
}

// watchEnvironment drops what belongs to one hook, and makes the process a
// small one.
func watchEnvironment(env []string) []string {
	kept := slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return strings.HasPrefix(name, "JUJU_") && !slices.Contains(keptVariables[:], name)
	})
	return append(kept, "GOMAXPROCS=1", "GOGC=40", "GOMEMLIMIT=18MiB")
}

// EnsureWatch makes a watch run in dir with this order: it hands the order to
// the one that runs, replaces one of another build or one that does not
// listen, or starts one. started says whether a process was started. When it
// returns without an error, a watch has the order.
func EnsureWatch(ctx context.Context, dir string, o Order, start Starter) (started bool, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return false, fmt.Errorf("cannot make the watch's folder: %w", err)
	}
	taken, err := handOver(ctx, dir, o)
	if err != nil || taken {
		return false, err
	}
	for ctx.Err() == nil {
		if err := launch(ctx, dir, o, start); err != nil {
			return true, err
		}
		// Another one may have been starting; whichever listens gets the order.
		deadline := time.Now().Add(startAfter)
		for time.Now().Before(deadline) && ctx.Err() == nil {
			r, err := talk(ctx, dir, message{Order: &o})
			if err == nil && r.OK {
				return true, nil
			}
			if err == nil && r.Going {
				break // it was of another build: ours did not get the lock
			}
			pause(ctx, nil, pollEvery)
		}
		if time.Now().After(deadline) {
			return true, errors.New("cannot start the watch: it does not take its order")
		}
	}
	return true, fmt.Errorf("cannot start the watch: %w", context.Cause(ctx))
}

// handOver gives the order to a watch that runs. If none takes it, none holds
// the lock when it returns.
func handOver(ctx context.Context, dir string, o Order) (taken bool, err error) {
	deadline := time.Now().Add(deafAfter)
	for ctx.Err() == nil {
		r, err := talk(ctx, dir, message{Order: &o})
		if err == nil && r.OK {
			return true, nil
		}
		lock, lockErr := tryLock(dir)
		switch {
		case lockErr != nil:
			return false, lockErr
		case lock != nil:
			lock.release()
			return false, nil
		case time.Now().After(deadline):
			return false, endAndWait(ctx, dir)
		}
		pause(ctx, nil, pollEvery)
	}
	return false, fmt.Errorf("cannot reach the watch: %w", context.Cause(ctx))
}

// launch starts a process and gives it the order on a pipe.
func launch(ctx context.Context, dir string, o Order, start Starter) error {
	read, write, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("cannot start the watch: %w", err)
	}
	defer write.Close()
	if err := start(ctx, dir, read); err != nil {
		return err
	}
	if err := write.SetWriteDeadline(time.Now().Add(startAfter)); err != nil {
		return fmt.Errorf("cannot start the watch: %w", err)
	}
	if err := json.NewEncoder(write).Encode(o); err != nil {
		// The text of the cause could hold nothing of the order; a process that
		// ends at once breaks the pipe.
		return fmt.Errorf("cannot give the watch its order: %w", err)
	}
	return nil
}

// Hanging asks the watch of dir, if one runs, on which addresses its sessions have been waiting for the server for
// minutes. A hook opens none there: one that it gives up, the server counts against our host once it goes on.
func Hanging(ctx context.Context, dir string) []string {
	r, err := talk(ctx, dir, message{Hanging: true})
	if err != nil {
		return nil
	}
	return r.Hanging
}

// StopWatch ends the watch of dir and waits until it has gone; without one it
// does nothing.
func StopWatch(ctx context.Context, dir string) error {
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	lock, err := tryLock(dir)
	if err != nil {
		return err
	}
	if lock != nil {
		lock.release()
		return nil
	}
	deadline := time.Now().Add(deafAfter)
	for ctx.Err() == nil {
		limit := pollEvery // it may be starting, or be gone by itself
		_, err := talk(ctx, dir, message{Stop: true})
		if err == nil {
			limit = goneAfter
		}
		lock, lockErr := waitLock(ctx, dir, limit)
		if lock != nil {
			lock.release()
		}
		if lock != nil || lockErr != nil {
			return lockErr
		}
		if err == nil || time.Now().After(deadline) {
			break
		}
	}
	return endAndWait(ctx, dir)
}

// endAndWait kills the watch of dir and waits until its lock is free.
func endAndWait(ctx context.Context, dir string) error {
	if err := endHolder(dir); err != nil {
		return err
	}
	lock, err := waitLock(ctx, dir, goneAfter)
	if err != nil {
		return err
	}
	if lock == nil {
		return errors.New("cannot end the watch: it has been killed and still holds its lock")
	}
	lock.release()
	return nil
}
