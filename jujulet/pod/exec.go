// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package pod

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// outputDelay is how long output is still copied after a process has ended while others hold its output open.
const outputDelay = time.Second

// streams connects a process's files with readers and writers.
type streams struct {
	theirs []*os.File // closed here once the process has them
	ours   []*os.File
	done   chan struct{}
	copies int // that end when the process's output does
}

// input returns the process's end of an input.
func (s *streams) input(r io.Reader) (*os.File, error) {
	if f, ok := r.(*os.File); ok {
		return f, nil
	}
	if r == nil {
		return s.null(os.O_RDONLY)
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("cannot make a pipe: %w", err)
	}
	s.theirs, s.ours = append(s.theirs, read), append(s.ours, write)
	go func() {
		_, _ = io.Copy(write, r) // the process may not want it all
		write.Close()
	}()
	return read, nil
}

// output returns the process's end of an output.
func (s *streams) output(w io.Writer) (*os.File, error) {
	if f, ok := w.(*os.File); ok {
		return f, nil
	}
	if w == nil {
		return s.null(os.O_WRONLY)
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("cannot make a pipe: %w", err)
	}
	s.theirs, s.ours = append(s.theirs, write), append(s.ours, read)
	s.copy(w, read)
	return write, nil
}

// copy copies an output in the background.
func (s *streams) copy(w io.Writer, r *os.File) {
	if s.done == nil {
		s.done = make(chan struct{}, 2)
	}
	s.copies++
	go copyTo(w, r, s.done)
}

// null opens /dev/null.
func (s *streams) null(mode int) (*os.File, error) {
	f, err := os.OpenFile(os.DevNull, mode, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot open: %w", err)
	}
	s.theirs = append(s.theirs, f)
	return f, nil
}

// started closes the ends that belong to the process.
func (s *streams) started() {
	closeAll(s.theirs)
	s.theirs = nil
}

// abandon gives up all streams.
func (s *streams) abandon() { closeAll(s.ours) }

// finish waits until the output of a process that has ended is copied, but not for others that hold it open.
func (s *streams) finish() {
	timer := time.NewTimer(outputDelay)
	defer timer.Stop()
	for range s.copies {
		select {
		case <-s.done:
		case <-timer.C:
			closeAll(s.ours) // what is copied ends with this
			<-s.done
		}
	}
	closeAll(s.ours)
}

// Process is a process in a container.
type Process struct {
	conn     *conn
	pid      int
	streams  streams
	terminal *os.File
	exited   chan struct{}
	exit     int
	err      error
}

// Exec runs a command in a container and waits for its end. It returns the exit code, which is 128 and the number
// of the signal for a process that a signal ended; the error says that it could not be run or watched. When ctx
// ends first, the process and its group are killed. A detached command gives 0 as soon as it has started.
func (p *Pod) Exec(ctx context.Context, container string, c Command) (int, error) {
	process, err := p.Spawn(ctx, container, c)
	if err != nil {
		return -1, err
	}
	if c.Detach {
		process.Close()
		return 0, nil
	}
	return process.Wait(ctx)
}

// Spawn starts a command in a container. The process must be waited for, or closed.
func (p *Pod) Spawn(ctx context.Context, container string, c Command) (*Process, error) {
	in, err := p.container(container)
	if err != nil {
		return nil, err
	}
	process, err := in.spawn(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("cannot run a command in container %s of pod %s: %w", container, p.spec.Name, err)
	}
	return process, nil
}

// spawn starts a command.
func (in *container) spawn(ctx context.Context, c Command) (*Process, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	p := &Process{conn: ours, exited: make(chan struct{})}
	err = in.control.send(containerMessage{Exec: true}, theirs)
	theirs.Close()
	if err == nil {
		err = p.begin(ctx, c)
	}
	p.streams.started()
	if err != nil {
		ours.Close()
		p.streams.abandon()
		return nil, err
	}
	go p.follow()
	return p, nil
}

// begin sends the request and waits until the process runs.
func (p *Process) begin(ctx context.Context, c Command) error {
	stop := context.AfterFunc(ctx, func() { p.conn.Close() })
	defer stop()
	request := execRequest{Args: c.Args, Env: c.Env, Dir: c.Dir, Detach: c.Detach, TTY: c.TTY, Size: c.Size}
	var files []*os.File
	if !c.TTY {
		stdin, err1 := p.streams.input(c.Stdin)
		stdout, err2 := p.streams.output(c.Stdout)
		stderr, err3 := stdout, error(nil)
		if !same(c.Stdout, c.Stderr) {
			stderr, err3 = p.streams.output(c.Stderr)
		}
		if err := errors.Join(err1, err2, err3); err != nil {
			return err
		}
		files = []*os.File{stdin, stdout, stderr}
	}
	if err := p.conn.send(request, files...); err != nil {
		return err
	}
	var answer execAnswer
	received, err := p.conn.receive(&answer)
	if ctx.Err() != nil {
		closeAll(received)
		return ctx.Err()
	}
	if err != nil {
		return errPodEnded
	}
	if answer.Error != "" {
		return errors.New(answer.Error)
	}
	p.pid = answer.PID
	if c.TTY {
		if len(received) != 1 {
			return errors.New("internal error: no terminal came")
		}
		return p.useTerminal(received[0], c)
	}
	return nil
}

// same tells whether both are the same writer, so that they share one stream and keep the order of what is written.
func same(a, b io.Writer) (equal bool) {
	defer func() {
		if recover() != nil { // types that cannot be compared
			equal = false
		}
	}()
	return a != nil && a == b
}

// useTerminal connects the terminal.
func (p *Process) useTerminal(received *os.File, c Command) error {
	master, err := pollable(received)
	if err != nil {
		return err
	}
	p.terminal = master
	p.streams.ours = append(p.streams.ours, master)
	out := c.Stdout
	if out == nil {
		out = io.Discard
	}
	p.streams.copy(out, master)
	if c.Stdin != nil {
		go func() { _, _ = io.Copy(master, c.Stdin) }()
	}
	if c.Resize != nil {
		go func() {
			for {
				select {
				case size, ok := <-c.Resize:
					if !ok {
						return
					}
					_ = p.Resize(size)
				case <-p.exited:
					return
				}
			}
		}()
	}
	return nil
}

// pollable returns the same terminal as a file of which a read ends when it is closed.
func pollable(f *os.File) (*os.File, error) {
	defer f.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot use terminal: %w", err)
	}
	return os.NewFile(uintptr(fd), "terminal"), nil
}

// follow waits for the process's end.
func (p *Process) follow() {
	defer close(p.exited)
	for {
		var answer execAnswer
		files, err := p.conn.receive(&answer)
		closeAll(files)
		if err != nil {
			p.err = errPodEnded
			return
		}
		if answer.Exit != nil {
			p.exit = *answer.Exit
			return
		}
	}
}

// PID returns the process's number in its container.
func (p *Process) PID() int { return p.pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.exited }

// Wait waits for the end of the process and of its output. When ctx ends first, the process is killed with its group.
func (p *Process) Wait(ctx context.Context) (int, error) {
	defer p.conn.Close()
	select {
	case <-p.exited:
	case <-ctx.Done():
		_ = p.Signal(unix.SIGKILL)
		<-p.exited
		p.streams.finish()
		return -1, ctx.Err()
	}
	p.streams.finish()
	if p.err != nil {
		return -1, p.err
	}
	return p.exit, nil
}

// Signal sends a signal to the process and its group.
func (p *Process) Signal(sig unix.Signal) error {
	if err := p.conn.send(execSignal{Signal: int(sig)}); err != nil {
		return fmt.Errorf("cannot signal process %d: %w", p.pid, err)
	}
	return nil
}

// Resize sets the size of the process's terminal.
func (p *Process) Resize(s Size) error {
	if p.terminal == nil {
		return errors.New("cannot set the size of a terminal: there is none")
	}
	if err := setSize(p.terminal, s); err != nil {
		return fmt.Errorf("cannot set the size of a terminal: %w", err)
	}
	return nil
}

// Close lets go of the process. Unless it is detached, it is killed with its group.
func (p *Process) Close() {
	p.conn.Close()
	<-p.exited
	p.streams.abandon()
}
