// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package pods

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/jujulet/controller"
)

// footprint is what a cluster has on this machine, as it was seen last. All its processes are descendants of the cluster
// process, also those whose parents have died.
type footprint struct {
	state      string
	runtime    string          // its runtime folder
	processes  map[int]string  // when each began; numbers are used again
	namespaces map[string]bool // "net:[4026532193]"
}

func newFootprint(state string) *footprint { return &footprint{state: state} }

// namespaceKinds are the kinds that pods have of their own.
var namespaceKinds = []string{"mnt", "net", "pid", "uts", "ipc", "user"}

// collect looks at a cluster process and all its descendants.
func (f *footprint) collect(pid int) {
	all := processes()
	children := map[int][]int{}
	for child, p := range all {
		children[p.parent] = append(children[p.parent], child)
	}
	f.processes, f.namespaces, f.runtime = map[int]string{}, map[string]bool{}, controller.RuntimeFolder(f.state)
	own := namespacesOf(os.Getpid())
	for todo := []int{pid}; len(todo) > 0; todo = todo[1:] {
		todo = append(todo, children[todo[0]]...)
		p, ok := all[todo[0]]
		if !ok {
			continue
		}
		f.processes[todo[0]] = p.began
		for name := range namespacesOf(todo[0]) {
			if !own[name] {
				f.namespaces[name] = true
			}
		}
	}
}

// alive lists the processes that still live.
func (f *footprint) alive() []string {
	var all []string
	for pid, p := range processes() {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		named := bytes.Contains(line, []byte(f.state)) && bytes.Contains(line, []byte("\x00__"))
		if named || f.processes[pid] == p.began {
			all = append(all, fmt.Sprintf("process %d: %s", pid, bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
		}
	}
	return all
}

// left lists what is still there of the cluster.
func (f *footprint) left() []string {
	all := append(f.alive(), f.mounts()...)
	if _, err := os.Lstat(f.runtime); err == nil {
		all = append(all, "folder "+f.runtime)
	}
	return all
}

// mounts lists the mounts that are still there of the cluster.
func (f *footprint) mounts() []string {
	var all []string
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(mounts)) {
		held := strings.Contains(line, f.state) || strings.Contains(line, f.runtime)
		for name := range f.namespaces {
			held = held || strings.Contains(line, name)
		}
		if held {
			all = append(all, "mount "+strings.TrimSpace(line))
		}
	}
	return all
}

// text is what is left, to be read.
func (f *footprint) text() string { return strings.Join(f.left(), "\n") }

// requireGone waits a moment for the kernel to clear away the last processes, and fails with what stays.
func (f *footprint) requireGone(t *testing.T) {
	t.Helper()
	require.NotEmpty(t, f.processes, "nothing was collected while the cluster ran: the check would prove nothing")
	var left []string
	require.Eventuallyf(t, func() bool { left = f.left(); return len(left) == 0 }, 2*time.Second, 50*time.Millisecond,
		"left behind: %v", deferred{func() string { return strings.Join(left, "\n") }})
}

// deferred is a text that is made when it is printed.
type deferred struct{ text func() string }

func (d deferred) String() string { return d.text() }

// process is what the kernel tells of a process.
type process struct {
	parent int
	began  string // in ticks since the machine began
}

// processes are those of this machine, without the dead that nobody has waited for.
func processes() map[int]process {
	all := map[int]process{}
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // from the third on
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil || len(fields) < 20 || fields[0] == "Z" {
			continue
		}
		parent, _ := strconv.Atoi(fields[1])
		all[pid] = process{parent: parent, began: fields[19]}
	}
	return all
}

// namespacesOf returns the namespaces of a process.
func namespacesOf(pid int) map[string]bool {
	all := map[string]bool{}
	for _, kind := range namespaceKinds {
		if name, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", pid, kind)); err == nil {
			all[name] = true
		}
	}
	return all
}
