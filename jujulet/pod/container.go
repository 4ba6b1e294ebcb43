// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package pod

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// containerMessage is what the Manager sends to container-init after its setup. The first of Main and
// Exec that is set counts.
type containerMessage struct {
	// Main starts the main command; standard output and standard error are those of container-init.
	Main *execRequest `json:"main,omitempty"`
	// Signal is sent to the main command.
	Signal int `json:"signal,omitempty"`
	// Exec says that a connection for one process comes with the message.
	Exec bool `json:"exec,omitempty"`
}

// containerAnswer is what container-init says.
type containerAnswer struct {
	Error    string   `json:"error,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	// Exit is the exit code of the main command; container-init ends then.
	Exit *int `json:"exit,omitempty"`
}

// execRequest is the first message on the connection of one process. Standard input, output and error come
// with it, unless it asks for a terminal.
type execRequest struct {
	Args   []string `json:"args"`
	Env    []string `json:"env,omitempty"`
	Dir    string   `json:"dir,omitempty"`
	Detach bool     `json:"detach,omitempty"`
	TTY    bool     `json:"tty,omitempty"`
	Size   Size     `json:"size,omitzero"`
}

// execSignal is a later message of the client of a process.
type execSignal struct {
	Signal int `json:"signal"`
}

// execAnswer tells the client of a process what became of it. With a terminal, its master comes with the pid.
type execAnswer struct {
	PID   int    `json:"pid,omitempty"`
	Exit  *int   `json:"exit,omitempty"`
	Error string `json:"error,omitempty"`
}

// containerMain is the life of container-init: process 1 of the container.
func containerMain(string) (int, error) {
	control, err := startInit()
	if err != nil {
		return 0, err
	}
	var setup containerSetup
	if _, err := control.receive(&setup); err != nil {
		return 0, fmt.Errorf("cannot set up container: %w", err)
	}
	answer := containerAnswer{}
	answer.Warnings, err = enterRoot(setup)
	c := &containerInit{env: setup.Env, control: control, exit: make(chan int, 1)}
	if err == nil {
		c.spawner, err = newSpawner(dropCapabilities)
	}
	if err != nil {
		answer.Error = err.Error()
	}
	if sendErr := control.send(answer); sendErr != nil || err != nil {
		return 1, nil
	}
	go c.serve()
	return <-c.exit, nil
}

// containerInit is the state of container-init.
type containerInit struct {
	env     []string
	control *conn
	spawner *spawner
	main    int
	exit    chan int
}

// serve handles the Manager's messages; the container ends with the connection.
func (c *containerInit) serve() {
	for {
		var m containerMessage
		files, err := c.control.receive(&m)
		if err != nil {
			c.exit <- 0
			return
		}
		switch {
		case m.Main != nil:
			c.startMain(*m.Main)
		case m.Exec && len(files) == 1:
			if client, err := newConn(files[0]); err == nil {
				go c.process(client)
			}
			continue
		case m.Signal != 0 && c.main != 0:
			_ = c.spawner.signal(c.main, unix.Signal(m.Signal))
		}
		closeAll(files)
	}
}

// startMain runs the main command. Its end is the container's end.
func (c *containerInit) startMain(r execRequest) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		_ = c.control.send(containerAnswer{Error: err.Error()})
		return
	}
	defer null.Close()
	if r.Dir != "" {
		_ = os.MkdirAll(r.Dir, 0o755) // an image need not have its working folder; what is wrong is found below
	}
	pid, status, err := c.start(r, []*os.File{null, os.Stdout, os.Stderr}, &syscall.SysProcAttr{Setsid: true})
	if err != nil {
		_ = c.control.send(containerAnswer{Error: err.Error()})
		return
	}
	c.main = pid
	_ = c.control.send(containerAnswer{})
	go func() {
		code := exitCode(<-status)
		_ = c.control.send(containerAnswer{Exit: &code})
		c.exit <- code
	}()
}

// start runs a process with the container's environment.
func (c *containerInit) start(r execRequest, files []*os.File, sys *syscall.SysProcAttr) (int, <-chan unix.WaitStatus, error) {
	if len(r.Args) == 0 {
		return 0, nil, errors.New("cannot run a command: none is given")
	}
	dir := r.Dir
	if dir == "" {
		dir = "/"
	}
	if info, err := os.Stat(dir); err != nil {
		return 0, nil, fmt.Errorf("cannot use working folder: %w", err)
	} else if !info.IsDir() {
		return 0, nil, fmt.Errorf("cannot use working folder: %s is not a folder", dir)
	}
	env := mergeEnv(c.env, r.Env)
	path, err := lookPath(r.Args[0], dir, env)
	if err != nil {
		return 0, nil, err
	}
	pid, status, err := c.spawner.start(path, r.Args, &os.ProcAttr{Dir: dir, Env: env, Files: files, Sys: sys})
	if err != nil {
		return 0, nil, fmt.Errorf("cannot run %s: %w", r.Args[0], err)
	}
	return pid, status, nil
}

// process serves the connection of one process.
func (c *containerInit) process(client *conn) {
	defer client.Close()
	var r execRequest
	files, err := client.receive(&r)
	if err != nil {
		return
	}
	pid, status, err := c.startProcess(client, r, files)
	closeAll(files)
	if err != nil {
		_ = client.send(execAnswer{Error: err.Error()})
		return
	}
	gone := make(chan struct{})
	go c.signals(client, pid, r.Detach, gone)
	code := exitCode(<-status)
	_ = client.send(execAnswer{Exit: &code})
	client.Close()
	<-gone
}

// startProcess starts the process and tells the client about it.
func (c *containerInit) startProcess(client *conn, r execRequest, files []*os.File) (int, <-chan unix.WaitStatus, error) {
	if r.TTY {
		master, slave, err := openTerminal(r.Size)
		if err != nil {
			return 0, nil, err
		}
		defer master.Close()
		defer slave.Close()
		sys := &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
		pid, status, err := c.start(r, []*os.File{slave, slave, slave}, sys)
		if err != nil {
			return 0, nil, err
		}
		_ = client.send(execAnswer{PID: pid}, master) // a client that has gone is noticed by signals
		return pid, status, nil
	}
	if len(files) != 3 {
		return 0, nil, fmt.Errorf("internal error: %d files came with a command", len(files))
	}
	sys := &syscall.SysProcAttr{Setpgid: !r.Detach, Setsid: r.Detach}
	pid, status, err := c.start(r, files, sys)
	if err != nil {
		return 0, nil, err
	}
	_ = client.send(execAnswer{PID: pid})
	return pid, status, nil
}

// signals passes the client's signals to the process's group. A client that goes takes it with it, unless it is
// detached.
func (c *containerInit) signals(client *conn, pid int, detached bool, gone chan<- struct{}) {
	defer close(gone)
	for {
		var s execSignal
		files, err := client.receive(&s)
		closeAll(files)
		if err != nil {
			if !detached {
				_ = c.spawner.signal(-pid, unix.SIGKILL)
			}
			return
		}
		_ = c.spawner.signal(-pid, unix.Signal(s.Signal))
	}
}

// openTerminal makes a terminal of the container.
func openTerminal(size Size) (master, slave *os.File, err error) {
	master, err = os.OpenFile("/dev/pts/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot open a terminal: %w", err)
	}
	fd := int(master.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil && size != (Size{}) {
		err = setSize(master, size)
	}
	if err == nil {
		slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		master.Close()
		return nil, nil, fmt.Errorf("cannot open a terminal: %w", err)
	}
	return master, slave, nil
}

// setSize sets the size of a terminal.
func setSize(master *os.File, s Size) error {
	raw, err := master.SyscallConn()
	if err != nil {
		return err
	}
	var set error
	if err := raw.Control(func(fd uintptr) {
		set = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: s.Rows, Col: s.Cols})
	}); err != nil {
		return err
	}
	return set
}
