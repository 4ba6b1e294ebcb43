// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package controller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
)

// postKill ends a pod, an agent or a running hook by SIGKILL.
func (c *modelWorker) postKill(_ context.Context, r control.KillRequest) (none, error) {
	name, err := c.unitName(r.Unit)
	if err != nil {
		return none{}, err
	}
	c.mu.Lock()
	u := c.units[name]
	c.mu.Unlock()
	if u == nil {
		return none{}, &control.Error{Kind: control.KindConflict, Message: fmt.Sprintf("the pod of unit %q is not running", name)}
	}
	box, err := u.current()
	if err != nil {
		return none{}, err
	}
	switch r.Target {
	case control.KillPod:
		c.log.Info("killing pod", "unit", name)
		box.Kill()
		return none{}, nil
	case control.KillAgent:
		return none{}, killAll(fmt.Sprintf("agent of unit %q", name), agentProcesses(allProcesses(procFolder), c.info.Name, name))
	case control.KillHook:
		return none{}, killAll(fmt.Sprintf("hook of unit %q", name), hookProcesses(allProcesses(procFolder), c.info.Name, name))
	default:
		return none{}, invalid("cannot kill %q: expected pod, agent or hook", r.Target)
	}
}

// killAll kills processes; none is a refusal.
func killAll(what string, pids []int) error {
	if len(pids) == 0 {
		return &control.Error{Kind: control.KindConflict, Message: "no " + what + " is running"}
	}
	for _, pid := range pids {
		if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("cannot kill the %s: %w", what, err)
		}
	}
	return nil
}

// procFolder is where the cluster process sees all processes of all its pods,
// and no others.
const procFolder = "/proc"

// process is what is known of a process of the cluster.
type process struct {
	pid, parent int
	args        []string
	env         []string
}

// allProcesses reads the process table; processes that end meanwhile are left
// out.
func allProcesses(folder string) []process {
	entries, _ := os.ReadDir(folder)
	var all []process
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		base := filepath.Join(folder, entry.Name())
		stat, err1 := os.ReadFile(filepath.Join(base, "stat"))
		args, err2 := os.ReadFile(filepath.Join(base, "cmdline"))
		env, err3 := os.ReadFile(filepath.Join(base, "environ"))
		if errors.Join(err1, err2, err3) != nil {
			continue
		}
		all = append(all, process{pid: pid, parent: parentOf(stat), args: zeroList(args), env: zeroList(env)})
	}
	return all
}

// parentOf reads the parent from the text of /proc/<pid>/stat: the second field
// behind the name, which may hold anything.
func parentOf(stat []byte) int {
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(fields[1])
	return parent
}

// zeroList splits what the kernel ends with zero bytes.
func zeroList(data []byte) []string {
	return strings.Split(strings.TrimRight(string(data), "\x00"), "\x00")
}

// agentProcesses are the agents of a unit.
func agentProcesses(all []process, model, unit string) []int {
	var pids []int
	for _, p := range all {
		if slices.Contains(p.args, AgentCommand) && slices.Contains(p.args, "--model="+model) && slices.Contains(p.args, "--unit="+unit) {
			pids = append(pids, p.pid)
		}
	}
	return pids
}

// hookProcesses are the charm's processes that a unit's agent started for what
// runs now: those with a hook context whose parent has none.
func hookProcesses(all []process, model, unit string) []int {
	inHook := func(p process) bool {
		return slices.Contains(p.env, "JUJU_MODEL_NAME="+model) && slices.Contains(p.env, "JUJU_UNIT_NAME="+unit) &&
			slices.ContainsFunc(p.env, func(v string) bool { return strings.HasPrefix(v, "JUJU_CONTEXT_ID="+unit+"-") })
	}
	children := map[int]bool{}
	for _, p := range all {
		if inHook(p) {
			children[p.pid] = true
		}
	}
	var pids []int
	for _, p := range all {
		if children[p.pid] && !children[p.parent] && p.parent > 1 {
			pids = append(pids, p.pid)
		}
	}
	return pids
}
