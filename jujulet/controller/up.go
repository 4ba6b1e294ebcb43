// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/pod"
)

// ClusterCommand is the hidden command that runs [Main].
const ClusterCommand = "__cluster"

// Names that a new state folder gets when none are asked for.
const (
	DefaultModel      = "dev"
	DefaultController = "jujulet"
)

// DefaultUpdateStatus is Juju's interval of update-status.
const DefaultUpdateStatus = 5 * time.Minute

// readyTimeout bounds the start of the cluster process.
const readyTimeout = 60 * time.Second

// dyingTimeout is how long a killed cluster process may take to be gone.
const dyingTimeout = 5 * time.Second

// downTimeout is how long the cluster process may take to end in order.
const downTimeout = 15 * time.Second

// UpOptions say what Up starts.
type UpOptions struct {
	// State is the state folder, from StateFolder. It is made if needed.
	State string
	// Model and Controller are names; "" is the default. They count when the
	// state folder is new.
	Model, Controller string
	// UpdateStatus is the mean interval of update-status; 0 is off.
	UpdateStatus time.Duration
	// Foreground keeps Up from returning until the cluster process has ended;
	// when ctx ends, Up ends it.
	Foreground bool
	// Ready, if set, is called when the cluster process is ready.
	Ready func(control.Info)
	// Log receives the cluster process's log in the foreground; nil discards
	// it. In the background the log is jujulet.log in the state folder.
	Log *os.File
	// Jujulet and Pebble are programs; "" finds this one and the one next to it.
	Jujulet, Pebble string
	// Version is that of jujulet.
	Version string
	// Debug adds detail to the log.
	Debug bool
	// Getenv reads the environment; nil is os.Getenv.
	Getenv func(string) string
}

// ErrRunning says that the state folder is in use by a cluster process.
var ErrRunning = errors.New("jujulet is running already")

// Up starts the cluster process of a state folder and returns when it is ready.
func Up(ctx context.Context, o UpOptions) error {
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	cfg, err := prepare(o)
	if err != nil {
		return err
	}
	lock, err := takeLock(ctx, cfg)
	if err != nil {
		return err
	}
	defer lock.Close() // the cluster process has its own by then
	if err := makeRuntime(cfg); err != nil {
		return err
	}
	if err := start(ctx, o, cfg, lock); err != nil {
		_ = removeRuntime(cfg.State, cfg.Runtime)
		return err
	}
	return nil
}

// takeLock takes the lock of the state folder. One that is held though nothing
// answers belongs to a process that is ending, and is waited for.
func takeLock(ctx context.Context, cfg config) (*os.File, error) {
	client := control.New(control.SocketPath(RuntimeFolder(cfg.State)))
	defer client.Close()
	for patience := time.Now().Add(dyingTimeout); ; {
		lock, err := lockState(cfg.State)
		if !errors.Is(err, ErrRunning) || time.Now().After(patience) {
			return lock, err
		}
		if _, alive := client.Info(ctx); alive == nil {
			return nil, err
		}
		if !sleep(ctx, 20*time.Millisecond) {
			return nil, ctx.Err()
		}
	}
}

// prepare checks what is needed and makes the state folder.
func prepare(o UpOptions) (config, error) {
	cfg := config{
		Version: o.Version, State: o.State, Model: o.Model, Controller: o.Controller,
		UpdateStatus: o.UpdateStatus, Jujulet: o.Jujulet, Pebble: o.Pebble, Debug: o.Debug,
	}
	if cfg.Model == "" {
		cfg.Model = DefaultModel
	}
	if cfg.Controller == "" {
		cfg.Controller = DefaultController
	}
	if o.UpdateStatus != 0 && (o.UpdateStatus < time.Second) {
		return cfg, fmt.Errorf("cannot use an update-status interval of %s: it must be off or at least 1s", o.UpdateStatus)
	}
	if err := pod.Check(); err != nil {
		return cfg, err
	}
	var err error
	if cfg.Runtime, err = chooseRuntime(o.State, os.Geteuid(), o.Getenv); err != nil {
		return cfg, err
	}
	if cfg.Jujulet == "" {
		if cfg.Jujulet, err = os.Executable(); err != nil {
			return cfg, fmt.Errorf("cannot find own program: %w", err)
		}
	}
	if cfg.Pebble == "" {
		if cfg.Pebble, err = pod.FindPebble(o.Getenv); err != nil {
			return cfg, err
		}
	}
	return cfg, makeFolder(cfg.State)
}

// start runs the cluster process and waits until it is ready, or in the
// foreground until it has ended.
func start(ctx context.Context, o UpOptions, cfg config, lock *os.File) error {
	argument, err := json.Marshal(cfg)
	if err != nil {
		return fmt.Errorf("cannot write the configuration: %w", err)
	}
	log, err := openLog(o, cfg)
	if err != nil {
		return err
	}
	if log != nil && log != o.Log {
		defer log.Close()
	}
	ours, theirs, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("cannot make a pipe: %w", err)
	}
	defer ours.Close()
	defer theirs.Close()
	// The process must outlive this one, and in the foreground end in order: its
	// context is not ctx.
	process, err := pod.StartCluster(context.WithoutCancel(ctx), pod.ClusterOptions{
		Args:       []string{ClusterCommand, string(argument)},
		Env:        []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "GOTRACEBACK=all"},
		Stdout:     log,
		Stderr:     log,
		ExtraFiles: []*os.File{theirs, lock},
	})
	if err != nil {
		return err
	}
	theirs.Close()
	if err := writeHolder(lock, process.PID()); err != nil {
		process.Kill()
		return err
	}
	if err := awaitReady(ctx, ours, process, cfg); err != nil {
		process.Kill()
		return err
	}
	return afterReady(ctx, o, cfg, process)
}

// afterReady tells the caller, and stays in the foreground.
func afterReady(ctx context.Context, o UpOptions, cfg config, process *pod.Cluster) error {
	client := control.New(control.SocketPath(cfg.Runtime))
	defer client.Close()
	if o.Ready != nil {
		info, err := client.Info(ctx)
		if err != nil {
			process.Kill()
			return err
		}
		o.Ready(info)
	}
	if !o.Foreground {
		return nil
	}
	select {
	case <-process.Done():
		_ = removeRuntime(cfg.State, cfg.Runtime)
		if err := process.Wait(); err != nil {
			return fmt.Errorf("the cluster process ended: %w", err)
		}
		return nil
	case <-ctx.Done():
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), downTimeout)
	defer cancel()
	if client.Shutdown(ending) == nil {
		select {
		case <-process.Done():
		case <-ending.Done():
		}
	}
	process.Kill()
	return removeRuntime(cfg.State, cfg.Runtime)
}

// openLog opens where the cluster process writes its log.
func openLog(o UpOptions, cfg config) (*os.File, error) {
	if o.Foreground {
		return o.Log, nil
	}
	log, err := os.OpenFile(filepath.Join(cfg.State, logName), os.O_CREATE|os.O_WRONLY|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open the log: %w", err)
	}
	return log, nil
}

// logName is the log in the state folder.
const logName = "jujulet.log"

// readyMessage is what the cluster process writes to its pipe, once.
type readyMessage struct {
	Error string `json:"error,omitempty"`
}

// awaitReady waits for the message of the cluster process.
func awaitReady(ctx context.Context, pipe *os.File, process *pod.Cluster, cfg config) error {
	type result struct {
		message readyMessage
		err     error
	}
	answer := make(chan result, 1)
	go func() {
		var r result
		r.err = json.NewDecoder(pipe).Decode(&r.message)
		answer <- r
	}()
	timer := time.NewTimer(readyTimeout)
	defer timer.Stop()
	select {
	case r := <-answer:
		switch {
		case errors.Is(r.err, io.EOF):
			<-process.Done()
			return fmt.Errorf("cannot start: the cluster process ended (%v); its log is %s", process.Wait(), filepath.Join(cfg.State, logName))
		case r.err != nil:
			return fmt.Errorf("cannot start: %w", r.err)
		case r.message.Error != "":
			return fmt.Errorf("cannot start: %s", r.message.Error)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return fmt.Errorf("cannot start: not ready after %s; the log is %s", readyTimeout, filepath.Join(cfg.State, logName))
	}
}
