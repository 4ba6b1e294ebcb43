// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package pod

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// ClusterOptions say how the cluster process is started.
type ClusterOptions struct {
	// Args are the arguments of the program, without its name: a hidden command of the caller's that calls [ClusterInit]
	// first.
	Args []string
	// Env is its environment; nil means that of this process.
	Env []string
	// Stdin, Stdout and Stderr may be nil for /dev/null. ExtraFiles become files 3 and up.
	Stdin, Stdout, Stderr *os.File
	ExtraFiles            []*os.File
}

// Cluster is the cluster process, as the process that started it sees it.
type Cluster struct {
	process *os.Process
	done    chan struct{}
	err     error
}

// StartCluster starts this program again as process 1 of new mount, network and pid namespaces, and of a user namespace if
// this process may not make those by itself. It is killed when ctx ends, and outlives the caller otherwise. An error for lack
// of rights says how to get them.
func StartCluster(ctx context.Context, o ClusterOptions) (*Cluster, error) {
	if err := Check(); err != nil {
		return nil, err
	}
	cmd := newCommand(o.Args...)
	cmd.Env = o.Env
	if o.Env == nil {
		cmd.Env = os.Environ()
	}
	files := []*os.File{o.Stdin, o.Stdout, o.Stderr}
	for i, f := range files {
		if f != nil {
			continue
		}
		null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		if err != nil {
			return nil, fmt.Errorf("cannot start cluster process: %w", err)
		}
		defer null.Close()
		files[i] = null
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = files[0], files[1], files[2], o.ExtraFiles
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID, Setsid: true,
	}
	ordinary, err := needsUserNamespace()
	if err != nil {
		return nil, err
	}
	if ordinary {
		userNamespace(cmd.SysProcAttr)
	}
	if err := cmd.Start(); err != nil {
		return nil, newHost().explain("cannot make namespaces for the cluster process", err)
	}
	c := &Cluster{process: cmd.Process, done: make(chan struct{})}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	go func() {
		c.err = cmd.Wait()
		stop()
		close(c.done)
	}()
	return c, nil
}

// PID returns the process id of the cluster process.
func (c *Cluster) PID() int { return c.process.Pid }

// Done is closed when the cluster process has ended, and with it all its descendants, mounts and links.
func (c *Cluster) Done() <-chan struct{} { return c.done }

// Wait waits for that end. The error is an *exec.ExitError if it did not exit with code 0.
func (c *Cluster) Wait() error {
	<-c.done
	return c.err
}

// Kill ends the cluster process at once and waits until nothing of it is left.
func (c *Cluster) Kill() {
	_ = c.process.Kill() // an error says that it has ended already
	<-c.done
}

// KillCluster ends a cluster process that another process started, and waits until it has gone. A process that is not
// there is not an error.
func KillCluster(ctx context.Context, pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot find process %d: %w", pid, err)
	}
	defer unix.Close(fd)
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("cannot kill process %d: %w", pid, err)
	}
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 50)
		if n == 1 {
			return nil
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("cannot wait for process %d: %w", pid, err)
		}
		if ctx.Err() != nil {
			return fmt.Errorf("cannot wait for process %d: %w", pid, ctx.Err())
		}
	}
}

// ClusterInit must be the first thing that the cluster process does: mounts of its own, a fresh /proc, the loopback
// device, forwarding, and the collecting of orphans. keep is the number of inherited files beyond standard error that
// stay open for this process; none reaches another process.
func ClusterInit(keep int) error {
	if os.Getpid() != 1 {
		return errors.New("internal error: the cluster process is not process 1 of a pid namespace")
	}
	for fd := 3; fd < 3+keep; fd++ {
		unix.CloseOnExec(fd)
	}
	if err := unix.CloseRange(uint(3+keep), ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("cannot close inherited files: %w", err)
	}
	unix.Umask(0o022)
	if err := os.Chdir("/"); err != nil {
		return fmt.Errorf("cannot enter root: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return newHost().explain("cannot make mounts private", err)
	}
	flags := uintptr(unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC)
	if err := unix.Mount("proc", "/proc", "proc", flags, ""); err != nil {
		return newHost().explain("cannot mount /proc", err)
	}
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(lo)
	}
	if err != nil {
		return fmt.Errorf("cannot bring up loopback: %w", err)
	}
	// Forwarding is per network namespace. Errors must reach who connects to an address that is not there; their
	// rate must not be limited, or some would have to wait.
	for file, value := range map[string]string{"ip_forward": "1", "icmp_ratelimit": "0"} {
		if err := os.WriteFile("/proc/sys/net/ipv4/"+file, []byte(value), 0o644); err != nil {
			return fmt.Errorf("cannot set %s: %w", file, err)
		}
	}
	go reapOrphans()
	return nil
}

// orphanAge is how long a dead child may wait for its parent's code before it counts as an orphan.
const orphanAge = 10 * time.Second

// reapOrphans collects dead children that nobody waits for. Processes that this process started are collected
// by what started them, soon after they died; so only what stays is taken.
func reapOrphans() {
	dead := map[int]time.Time{}
	for range time.Tick(orphanAge / 2) {
		now, seen := time.Now(), map[int]bool{}
		for _, pid := range deadChildren() {
			seen[pid] = true
			if dead[pid].IsZero() {
				dead[pid] = now
			}
			if now.Sub(dead[pid]) >= orphanAge {
				_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
			}
		}
		for pid := range dead {
			if !seen[pid] {
				delete(dead, pid)
			}
		}
	}
}

// deadChildren returns the zombies whose parent is this process.
func deadChildren() []int {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	var pids []int
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		// pid (name) state ppid ...: the name may hold anything.
		end := strings.LastIndexByte(string(text), ')')
		if end < 0 {
			continue
		}
		fields := strings.Fields(string(text[end+1:]))
		var pid int
		if len(fields) > 1 && fields[0] == "Z" && fields[1] == "1" {
			if _, err := fmt.Sscan(string(text), &pid); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// FindPebble returns the path of the Pebble daemon: the file "pebble" next to this program, else what
// the environment variable JUJULET_PEBBLE names.
func FindPebble(getenv func(string) string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("cannot find own program: %w", err)
	}
	beside := filepath.Join(filepath.Dir(self), "pebble")
	candidates := []string{beside}
	if named := getenv("JUJULET_PEBBLE"); named != "" {
		candidates = append(candidates, named)
	}
	for _, path := range candidates {
		info, err := os.Stat(path)
		if err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 {
			return filepath.EvalSymlinks(path)
		}
	}
	return "", fmt.Errorf("cannot find the Pebble daemon: there is no program at %s; build it in the checkout with "+
		"`CGO_ENABLED=0 go build -trimpath -o %s github.com/canonical/pebble/cmd/pebble`, or name it in JUJULET_PEBBLE",
		strings.Join(candidates, " or "), beside)
}
