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

// footprint is what a cluster has on this machine: the namespaces of all its processes, by kind ("net:[4026532193]").
type footprint struct {
	state      string
	namespaces map[string]bool
}

func newFootprint(state string) *footprint {
	return &footprint{state: state, namespaces: map[string]bool{}}
}

// namespaceKinds are the kinds that pods have of their own.
var namespaceKinds = []string{"mnt", "net", "pid", "uts", "ipc"}

// collect adds the namespaces of a process and of all its descendants, less those of this process. It returns how many
// processes it saw.
func (f *footprint) collect(pid int) int {
	children := map[int][]int{}
	for child, parent := range parents() {
		children[parent] = append(children[parent], child)
	}
	own := namespacesOf(os.Getpid())
	seen := 0
	for todo := []int{pid}; len(todo) > 0; todo = todo[1:] {
		todo = append(todo, children[todo[0]]...)
		seen++
		for name := range namespacesOf(todo[0]) {
			if !own[name] {
				f.namespaces[name] = true
			}
		}
	}
	return seen
}

// left lists what is still there of the cluster.
func (f *footprint) left() []string {
	var all []string
	for pid := range parents() {
		for name := range namespacesOf(pid) {
			if f.namespaces[name] {
				line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
				all = append(all, fmt.Sprintf("process %d in %s: %s", pid, name, bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
				break
			}
		}
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if bytes.Contains(line, []byte(f.state)) && bytes.Contains(line, []byte("\x00__")) {
			all = append(all, fmt.Sprintf("process %d: %s", pid, bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
		}
	}
	runtime := controller.RuntimeFolder(f.state)
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(mounts)) {
		held := strings.Contains(line, f.state) || strings.Contains(line, runtime)
		for name := range f.namespaces {
			held = held || strings.Contains(line, name)
		}
		if held {
			all = append(all, "mount "+strings.TrimSpace(line))
		}
	}
	if _, err := os.Lstat(runtime); err == nil {
		all = append(all, "folder "+runtime)
	}
	return all
}

// requireGone waits a moment for the kernel to clear away the last processes, and fails with what stays.
func (f *footprint) requireGone(t *testing.T) {
	t.Helper()
	require.NotEmpty(t, f.namespaces, "nothing was collected while the cluster ran: the check would prove nothing")
	var left []string
	require.Eventuallyf(t, func() bool { left = f.left(); return len(left) == 0 }, 2*time.Second, 50*time.Millisecond,
		"left behind: %v", deferred{func() string { return strings.Join(left, "\n") }})
}

// deferred is a text that is made when it is printed.
type deferred struct{ text func() string }

func (d deferred) String() string { return d.text() }

// parents maps each process of this machine to its parent.
func parents() map[int]int {
	all := map[int]int{}
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil || len(fields) < 2 || fields[0] == "Z" {
			continue
		}
		all[pid], _ = strconv.Atoi(fields[1])
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
