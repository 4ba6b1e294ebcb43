// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package pod

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// initRequest is what the Manager asks of pod-init.
type initRequest struct {
	// Hostname is set with the first request; nothing else is.
	Hostname string `json:"hostname,omitempty"`
	// Start is the name of a container to start. The container's control socket, standard output and
	// standard error come with the message.
	Start string `json:"start,omitempty"`
	// Kill is the name of a container to kill.
	Kill string `json:"kill,omitempty"`
}

// initAnswer is an answer of pod-init, or the news that a container has ended.
type initAnswer struct {
	Error string `json:"error,omitempty"`
	// Ended names the container of which container-init has ended, with all its processes.
	Ended string `json:"ended,omitempty"`
}

// initMain is the life of pod-init: process 1 of the pod. It ends when the Manager closes the connection.
func initMain(name string) error {
	control, err := startInit()
	if err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("cannot make mounts private: %w", err)
	}
	p := &podInit{name: name, control: control, pids: map[string]int{}}
	if p.spawner, err = newSpawner(func() error { return nil }); err != nil {
		return err
	}
	for {
		var request initRequest
		files, err := control.receive(&request)
		if err != nil {
			return nil
		}
		var answer initAnswer
		if err := p.handle(request, files); err != nil {
			answer.Error = err.Error()
		}
		closeAll(files)
		if err := control.send(answer); err != nil {
			return nil
		}
	}
}

// startInit prepares an init process and returns its control connection, which is file 3. No other
// inherited file reaches what it starts.
func startInit() (*conn, error) {
	unix.CloseOnExec(3)
	if err := unix.CloseRange(4, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return nil, fmt.Errorf("cannot close inherited files: %w", err)
	}
	unix.Umask(0o022)
	return newConn(os.NewFile(3, "control"))
}

// podInit is the state of pod-init.
type podInit struct {
	name    string
	control *conn
	spawner *spawner

	mu   sync.Mutex
	pids map[string]int
}

// handle serves one request.
func (p *podInit) handle(r initRequest, files []*os.File) error {
	switch {
	case r.Hostname != "":
		if err := unix.Sethostname([]byte(r.Hostname)); err != nil {
			return fmt.Errorf("cannot set host name: %w", err)
		}
		return nil
	case r.Start != "":
		if len(files) != 3 {
			return fmt.Errorf("internal error: %d files came with a container", len(files))
		}
		return p.start(r.Start, files)
	case r.Kill != "":
		p.mu.Lock()
		pid := p.pids[r.Kill]
		p.mu.Unlock()
		if pid == 0 {
			return nil
		}
		return p.spawner.signal(pid, unix.SIGKILL)
	}
	return nil
}

// start runs container-init in a mount and a pid namespace of its own.
func (p *podInit) start(name string, files []*os.File) error {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return fmt.Errorf("cannot start container %s: %w", name, err)
	}
	defer null.Close()
	args := []string{os.Args[0], ContainerInitCommand, p.name + "/" + name}
	p.mu.Lock()
	defer p.mu.Unlock()
	pid, status, err := p.spawner.start("/proc/self/exe", args, &os.ProcAttr{
		Dir: "/", Env: os.Environ(),
		Files: []*os.File{null, files[1], files[2], files[0]},
		Sys:   &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID, Setsid: true},
	})
	if err != nil {
		return fmt.Errorf("cannot start container %s: %w", name, err)
	}
	p.pids[name] = pid
	go func() {
		<-status
		p.mu.Lock()
		delete(p.pids, name)
		p.mu.Unlock()
		_ = p.control.send(initAnswer{Ended: name})
	}()
	return nil
}

// keptCapabilities is what processes in a container may have: what container runtimes give by
// default, without the making of devices.
var keptCapabilities = []uintptr{
	unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_FSETID, unix.CAP_KILL, unix.CAP_SETGID, unix.CAP_SETUID,
	unix.CAP_SETPCAP, unix.CAP_NET_BIND_SERVICE, unix.CAP_NET_RAW, unix.CAP_SYS_CHROOT, unix.CAP_AUDIT_WRITE, unix.CAP_SETFCAP,
}

// dropCapabilities takes from all processes that this thread starts from now on what could reach beyond the container. The
// thread keeps its own rights.
func dropCapabilities() error {
	keep := map[uintptr]bool{}
	for _, c := range keptCapabilities {
		keep[c] = true
	}
	for c := uintptr(0); c <= 63; c++ {
		if keep[c] {
			continue
		}
		if _, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, c, 0, 0, 0); err != nil {
			break
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil {
			return fmt.Errorf("cannot drop capability %d: %w", c, err)
		}
	}
	return nil
}

// IsCommand tells whether name is a hidden command that [Main] handles.
func IsCommand(name string) bool {
	return name == InitCommand || name == ContainerInitCommand
}

// Main runs a hidden command: args are its name and its arguments. It returns the exit code. A program that
// uses a [Manager] must call it early, before it starts anything else.
func Main(args []string) int {
	name := ""
	if len(args) > 1 {
		name = args[1]
	}
	var err error
	switch {
	case len(args) > 0 && args[0] == InitCommand:
		err = initMain(name)
	case len(args) > 0 && args[0] == ContainerInitCommand:
		var exit int
		if exit, err = containerMain(name); err == nil {
			return exit
		}
	default:
		err = fmt.Errorf("internal error: no hidden command in %q", strings.Join(args, " "))
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "ERROR %v\n", err)
		return 1
	}
	return 0
}

// initEnv is the environment of the init processes themselves.
func initEnv() []string { return []string{"PATH=" + defaultPath, "GOMAXPROCS=2", "GOTRACEBACK=single"} }

// newCommand returns a command that re-runs this program with a hidden command.
func newCommand(args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = initEnv()
	cmd.Dir = "/"
	return cmd
}
