// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package workload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/canonical/pebble/client"
)

// ErrNotReady means that a container's Pebble does not answer (yet).
var ErrNotReady = errors.New("the container is not ready")

// NotReady reports whether err means that the container is not ready yet: its
// Pebble does not answer.
func NotReady(err error) bool { return errors.Is(err, ErrNotReady) }

// defaultTimeout bounds the work with a container where ctx has no deadline.
const defaultTimeout = 10 * time.Second

// Container is a connection to the Pebble of one workload container. Only what
// Pebble 1.7 (Juju 3.4) has is used. All calls together are bounded by the
// deadline of the context given to Dial, 10 s when it has none, and each also
// by its own context. A call that finds Pebble gone gives ErrNotReady.
type Container struct {
	pebble *client.Client
}

// Dial connects to a Pebble socket. The caller closes the container. When
// nothing answers there the error is ErrNotReady, at once.
func Dial(ctx context.Context, socket string) (*Container, error) {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(defaultTimeout)
	}
	dialer := net.Dialer{Deadline: deadline}
	first, err := dialer.DialContext(ctx, "unix", socket)
	if err != nil {
		// Pebble's client would try again for seconds.
		return nil, fmt.Errorf("cannot connect to %s: %w", socket, ErrNotReady)
	}
	pebble, err := client.New(&client.Config{Socket: socket})
	if err != nil {
		first.Close()
		return nil, fmt.Errorf("cannot talk to %s: %w", socket, err)
	}
	spare := make(chan net.Conn, 1)
	spare <- first
	//lint:ignore SA1019 Pebble's client uses this one for websockets as well.
	pebble.Requester().Transport().Dial = func(string, string) (net.Conn, error) {
		select {
		case conn := <-spare:
			return conn, conn.SetDeadline(deadline)
		default:
		}
		conn, err := dialer.Dial("unix", socket)
		if err != nil {
			return nil, err
		}
		return conn, conn.SetDeadline(deadline)
	}
	return &Container{pebble: pebble}, nil
}

// Close ends the connection.
func (c *Container) Close() { c.pebble.CloseIdleConnections() }

// call runs fn, which Pebble's client gives no context, until ctx ends. What it
// then leaves behind ends with the deadline of its connection.
func (c *Container) call(ctx context.Context, verb string, fn func() error) error {
	done := make(chan error, 1)
	go func() { done <- fn() }()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err == nil {
		return nil
	}
	var lost client.ConnectionError
	if errors.As(err, &lost) && ctx.Err() == nil {
		return fmt.Errorf("cannot %s: %w", verb, ErrNotReady)
	}
	return fmt.Errorf("cannot %s: %w", verb, err)
}

// ReadFile reads a file of the container. One that is not there has no content
// and found false.
func (c *Container) ReadFile(ctx context.Context, path string) (content []byte, found bool, err error) {
	var buffer bytes.Buffer
	err = c.call(ctx, "read "+path, func() error {
		return c.pebble.Pull(&client.PullOptions{Path: path, Target: &buffer})
	})
	var refused *client.Error
	if errors.As(err, &refused) && refused.Kind == client.ErrorKindNotFound {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	return buffer.Bytes(), true, nil
}

// WriteFile replaces a file of the container in one step, and makes the folders
// above it. It compares first and reports whether it wrote.
func (c *Container) WriteFile(ctx context.Context, path, content string, mode fs.FileMode) (changed bool, err error) {
	old, found, err := c.ReadFile(ctx, path)
	if err != nil {
		return false, err
	}
	if found && string(old) == content {
		return false, nil
	}
	return true, c.call(ctx, "write "+path, func() error {
		return c.pebble.Push(&client.PushOptions{Path: path, Source: strings.NewReader(content), MakeDirs: true, Permissions: mode})
	})
}

// Push replaces a file of the container in one step, whatever it was. Its folder has to be there.
func (c *Container) Push(ctx context.Context, path string, content []byte, mode fs.FileMode) error {
	return c.call(ctx, "write "+path, func() error {
		return c.pebble.Push(&client.PushOptions{Path: path, Source: bytes.NewReader(content), Permissions: mode})
	})
}

// MakeDir makes a folder with a mode; one that is there already stays as it is.
func (c *Container) MakeDir(ctx context.Context, path string, mode fs.FileMode) error {
	return c.call(ctx, "make "+path, func() error {
		return c.pebble.MakeDir(&client.MakeDirOptions{Path: path, Permissions: mode, MakeParents: true})
	})
}

// Size returns the size of a file in bytes; one that is not there gives -1.
func (c *Container) Size(ctx context.Context, path string) (int64, error) {
	size := int64(-1)
	err := c.call(ctx, "look at "+path, func() error {
		infos, err := c.pebble.ListFiles(&client.ListFilesOptions{Path: path, Itself: true})
		if len(infos) == 1 {
			size = infos[0].Size()
		}
		return err
	})
	var refused *client.Error
	if errors.As(err, &refused) && refused.Kind == client.ErrorKindNotFound {
		return -1, nil
	}
	return size, err
}

// RemoveFile removes a file of the container; one that is not there is no error.
func (c *Container) RemoveFile(ctx context.Context, path string) error {
	err := c.call(ctx, "remove "+path, func() error {
		return c.pebble.RemovePath(&client.RemovePathOptions{Path: path})
	})
	var refused *client.Error
	if errors.As(err, &refused) && refused.Kind == client.ErrorKindNotFound {
		return nil
	}
	return err
}

// CommandError is a command that ended with another code than 0, or that the
// container does not have (Code 0).
type CommandError struct {
	Command string // its first word
	Code    int
	Output  string // what it said on stderr
}

func (e *CommandError) Error() string {
	if e.Code == 0 {
		return fmt.Sprintf("cannot run %s: %s", e.Command, e.Output)
	}
	return fmt.Sprintf("cannot run %s: it ended with code %d: %s", e.Command, e.Code, e.Output)
}

// Run runs a command in the container, with stdin as its input, and returns
// what it printed. A command that fails, or is not there, gives a
// *CommandError.
func (c *Container) Run(ctx context.Context, stdin string, command ...string) (stdout string, err error) {
	var out, problem bytes.Buffer
	err = c.call(ctx, "run "+command[0], func() error {
		options := &client.ExecOptions{Command: command, Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &problem}
		if deadline, ok := ctx.Deadline(); ok {
			options.Timeout = max(time.Until(deadline), time.Millisecond)
		}
		process, err := c.pebble.Exec(options)
		if err != nil {
			return err
		}
		return process.Wait()
	})
	if err == nil {
		return out.String(), nil
	}
	var failed *client.ExitError
	var refused *client.Error
	switch {
	case errors.As(err, &failed):
		return out.String(), &CommandError{Command: command[0], Code: failed.ExitCode(), Output: strings.TrimSpace(problem.String())}
	case errors.As(err, &refused):
		return "", &CommandError{Command: command[0], Output: refused.Message}
	}
	return "", err
}

// Command is a command for Execute.
type Command struct {
	Args        []string
	Environment map[string]string
	// Timeout is after which Pebble kills it; at least a millisecond.
	Timeout time.Duration
}

// Outcome is how a command ended.
type Outcome struct {
	// Code is the exit code, -1 when it was killed at its timeout or could not be started.
	Code    int
	Timeout bool
	// Output is the end of what it printed, at most maxTail bytes; or why it could not be started.
	Output string
}

// maxTail bounds what is kept of a command's output, in bytes.
const maxTail = 4 << 10

// Execute runs a command in the container and waits for its end. A command that fails is an Outcome, no error.
func (c *Container) Execute(ctx context.Context, command Command) (Outcome, error) {
	var output tail
	err := c.call(ctx, "run "+command.Args[0], func() error {
		process, err := c.pebble.Exec(&client.ExecOptions{
			Command: command.Args, Environment: command.Environment, Timeout: max(command.Timeout, time.Millisecond), Stdout: &output,
		})
		if err != nil {
			return err
		}
		return process.Wait()
	})
	var failed *client.ExitError
	var refused *client.Error
	switch {
	case err == nil:
		return Outcome{Output: output.text()}, nil
	case errors.As(err, &failed):
		return Outcome{Code: failed.ExitCode(), Output: output.text()}, nil
	case errors.As(err, &refused):
		return Outcome{Code: -1, Output: refused.Message}, nil
	case strings.Contains(err.Error(), "timed out"):
		return Outcome{Code: -1, Timeout: true, Output: output.text()}, nil
	}
	return Outcome{}, err
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

// Write keeps the end of all that was written.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p[max(0, len(p)-maxTail):]...)
	t.kept = append([]byte(nil), t.kept[max(0, len(t.kept)-maxTail):]...)
	return len(p), nil
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(strings.ToValidUTF8(string(t.kept), "?"))
}

// Service is the state of a service, as Pebble has it.
type Service struct {
	// Status is active, inactive, backoff or error; "" when Pebble's plan has no
	// such service.
	Status client.ServiceStatus
	// Since is when the status became so; zero where Pebble is too old to tell.
	Since time.Time
}

// Active reports whether the service runs.
func (s Service) Active() bool { return s.Status == client.StatusActive }

// Service returns the state of a service.
func (c *Container) Service(ctx context.Context, name string) (Service, error) {
	var found Service
	err := c.call(ctx, "look at service "+name, func() error {
		services, err := c.pebble.Services(&client.ServicesOptions{Names: []string{name}})
		for _, s := range services {
			if s.Name == name {
				found = Service{Status: s.Current, Since: s.CurrentSince}
			}
		}
		return err
	})
	if err != nil {
		return Service{}, err
	}
	return found, nil
}

// Apply brings a layer into Pebble's plan under a label, unless the plan has all
// of it already. Nothing is started: see Replan.
func (c *Container) Apply(ctx context.Context, label string, layer Layer) (changed bool, err error) {
	var plan []byte
	err = c.call(ctx, "read the plan", func() (err error) {
		plan, err = c.pebble.PlanBytes(&client.PlanOptions{})
		return err
	})
	if err != nil {
		return false, err
	}
	data, within, err := layer.compare(plan)
	if err != nil || within {
		return false, err
	}
	return true, c.call(ctx, "add layer "+label, func() error {
		return c.pebble.AddLayer(&client.AddLayerOptions{Combine: true, Label: label, LayerData: data})
	})
}

// Replan starts and restarts what the plan wants, and returns the change. Wait
// tells when it is done.
func (c *Container) Replan(ctx context.Context) (change string, err error) {
	return c.change(ctx, "replan", func() (string, error) { return c.pebble.Replan(&client.ServiceOptions{}) })
}

// Start starts a service, and returns the change. Wait tells when it is done.
func (c *Container) Start(ctx context.Context, name string) (change string, err error) {
	return c.change(ctx, "start "+name, func() (string, error) {
		return c.pebble.Start(&client.ServiceOptions{Names: []string{name}})
	})
}

// Stop stops a service, and returns the change. Wait tells when it is done.
func (c *Container) Stop(ctx context.Context, name string) (change string, err error) {
	return c.change(ctx, "stop "+name, func() (string, error) {
		return c.pebble.Stop(&client.ServiceOptions{Names: []string{name}})
	})
}

func (c *Container) change(ctx context.Context, verb string, fn func() (string, error)) (id string, err error) {
	err = c.call(ctx, verb, func() (err error) {
		id, err = fn()
		return err
	})
	if err != nil {
		return "", err
	}
	return id, nil
}

// ChangeError is a change that failed: a service that did not start.
type ChangeError struct {
	Message string // Pebble's, with the service's last output
}

func (e *ChangeError) Error() string { return e.Message }

// Wait waits up to limit for a change. A change that failed gives a
// *ChangeError; done is false when the time was too short.
func (c *Container) Wait(ctx context.Context, change string, limit time.Duration) (done bool, err error) {
	var seen *client.Change
	err = c.call(ctx, "wait for a change", func() (err error) {
		// Pebble answers a wait that times out with an error.
		if seen, err = c.pebble.WaitChange(change, &client.WaitChangeOptions{Timeout: limit}); err != nil {
			seen, err = c.pebble.Change(change)
		}
		return err
	})
	switch {
	case err != nil:
		return false, err
	case seen.Err != "":
		return true, &ChangeError{Message: seen.Err}
	}
	return seen.Ready, nil
}

// Signal sends a signal ("SIGUSR2") to a running service.
func (c *Container) Signal(ctx context.Context, name, signal string) error {
	return c.call(ctx, "signal "+name, func() error {
		return c.pebble.SendSignal(&client.SendSignalOptions{Signal: signal, Services: []string{name}})
	})
}

// Logs returns the last lines that a service printed.
func (c *Container) Logs(ctx context.Context, name string, lines int) (string, error) {
	var out strings.Builder
	err := c.call(ctx, "read logs", func() error {
		return c.pebble.Logs(&client.LogsOptions{Services: []string{name}, N: lines, WriteLog: func(entry client.LogEntry) error {
			_, err := io.WriteString(&out, strings.TrimRight(entry.Message, "\n")+"\n")
			return err
		}})
	})
	if err != nil {
		return "", err
	}
	return out.String(), nil
}
