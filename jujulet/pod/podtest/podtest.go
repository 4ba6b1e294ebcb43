// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

// Package podtest runs the tests of a package in a cluster process, and fails them when that leaves anything behind on
// the host.
package podtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drawbridge-k8s/drawbridge/jujulet/pod"
)

// marker is the environment variable that tells the cluster process from the one on the host. Its value is the working
// folder.
const marker = "JUJULET_CLUSTER_TEST"

// Main is the body of a TestMain: os.Exit(podtest.Main(m)). The tests are run as process 1 of a cluster.
func Main(m *testing.M) int {
	if len(os.Args) > 1 && pod.IsCommand(os.Args[1]) {
		return pod.Main(os.Args[1:])
	}
	if folder := os.Getenv(ordinaryFolder); folder != "" && os.Geteuid() == 0 && os.Getenv(marker) == "" {
		return exitCode(dropRights(folder))
	}
	if dir := os.Getenv(marker); dir != "" {
		if err := inCluster(dir); err != nil {
			fmt.Fprintf(os.Stderr, "cannot start tests in a cluster process: %v\n", err)
			return 1
		}
		return m.Run()
	}
	code, err := onHost()
	if err != nil {
		return exitCode(err)
	}
	return code
}

// exitCode tells of an error and returns the exit code.
func exitCode(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintf(os.Stderr, "FAIL: %v\n", err)
	return 1
}

// inCluster prepares the cluster process. It ends when the process on the host does.
func inCluster(dir string) error {
	if err := pod.ClusterInit(1); err != nil {
		return err
	}
	parent := os.NewFile(3, "parent")
	go func() {
		_, _ = parent.Read(make([]byte, 1))
		os.Exit(1)
	}()
	return os.Chdir(dir)
}

// onHost runs this program again as a cluster process and looks at what it leaves.
func onHost() (int, error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM, unix.SIGQUIT)
	defer stop()
	dir, err := os.Getwd()
	if err != nil {
		return 0, err
	}
	if err := checkOrdinary(); err != nil {
		return 0, err
	}
	before, err := hostState()
	if err != nil {
		return 0, err
	}
	alive, ours, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer ours.Close()
	c, err := pod.StartCluster(ctx, pod.ClusterOptions{
		Args: os.Args[1:], Env: append(os.Environ(), marker+"="+dir),
		Stdout: os.Stdout, Stderr: os.Stderr, ExtraFiles: []*os.File{alive},
	})
	alive.Close()
	if err != nil {
		return 0, err
	}
	seen := watch(c)
	code := 0
	var exit *exec.ExitError
	if err := c.Wait(); errors.As(err, &exit) {
		code = max(exit.ExitCode(), 1)
	} else if err != nil {
		return 0, err
	}
	return code, seen.left(before)
}

// hostState returns the mounts and network links of the host.
func hostState() (string, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	links, err := filepath.Glob("/sys/class/net/*")
	return string(mounts) + strings.Join(links, " "), err
}

// traces are the processes that were seen. Their namespaces live no longer than they do, as nothing else holds them: a
// mount of one would be seen among the host's.
type traces struct {
	processes map[string]bool // by process.key
}

// watch looks at the cluster's processes until it ends.
func watch(c *pod.Cluster) *traces {
	t := &traces{processes: map[string]bool{}}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	t.look(c.PID())
	for {
		select {
		case <-c.Done():
			return t
		case <-tick.C:
			t.look(c.PID())
		}
	}
}

// look notes the descendants of the process root.
func (t *traces) look(root int) {
	members := map[int]bool{root: true}
	for changed := true; changed; {
		changed = false
		for _, p := range processes() {
			if members[p.parent] && !members[p.pid] {
				members[p.pid], changed = true, true
			}
			if !members[p.pid] {
				continue
			}
			t.processes[p.key()] = true
		}
	}
}

// left names what is still there after a moment.
func (t *traces) left(before string) error {
	var found []string
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		found = nil
		for _, p := range processes() {
			if t.processes[p.key()] {
				found = append(found, "process "+p.key())
			}
		}
		if now, err := hostState(); err != nil || now != before {
			found = append(found, "other mounts or network links than before")
		}
		if len(found) == 0 {
			if len(t.processes) == 0 {
				return errors.New("internal error: no process of the cluster was ever seen")
			}
			return nil
		}
	}
	slices.Sort(found)
	return fmt.Errorf("the tests left behind: %s", strings.Join(slices.Compact(found), ", "))
}

// process is a line of the process table.
type process struct {
	pid, parent int
	started     string
}

// key identifies a process also when its number is used again.
func (p process) key() string { return strconv.Itoa(p.pid) + " started " + p.started }

// processes reads the process table.
func processes() []process {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	var all []process
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		end := strings.LastIndexByte(string(text), ')')
		fields := strings.Fields(string(text[end+1:]))
		if len(fields) < 20 {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		parent, _ := strconv.Atoi(fields[1])
		all = append(all, process{pid: pid, parent: parent, started: fields[19]})
	}
	return all
}
