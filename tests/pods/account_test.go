// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package pods

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// account is who runs jujulet.
type account struct {
	id     int      // user and group
	folder string   // for state folders and output
	env    []string // root has that of the tests
}

// asRoot is who runs the tests.
func asRoot() account { return account{folder: built.folder} }

// ordinaryID belongs to no user of any machine, not even in /etc/passwd.
const ordinaryID = 61235

// asOrdinary is a user with no rights at all, in no group, with nothing in the environment but PATH: no HOME, no session.
func asOrdinary(t *testing.T) account {
	t.Helper()
	a := account{id: ordinaryID, folder: filepath.Join(built.folder, "u-"+t.Name()), env: []string{"PATH=" + os.Getenv("PATH")}}
	require.NoError(t, os.Mkdir(a.folder, 0o700))
	require.NoError(t, os.Chown(a.folder, a.id, a.id))
	a.requireOrdinary(t)
	return a
}

// become makes a command one of this account.
func (a account) become(cmd *exec.Cmd) {
	cmd.Env = os.Environ()
	if a.id == 0 {
		return
	}
	cmd.Env, cmd.Dir = append([]string(nil), a.env...), "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(a.id), Gid: uint32(a.id)}}
}

// run runs a program and returns what it writes.
func (a account) run(t *testing.T, program string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	a.become(cmd)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// requireOrdinary fails if the account's processes have any right that an ordinary user's do not have.
func (a account) requireOrdinary(t *testing.T) {
	t.Helper()
	status, err := a.run(t, "cat", "/proc/self/status")
	require.NoError(t, err, status)
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapAmb"} {
		require.Regexp(t, `(?m)^`+set+`:\s+0+$`, status, "no capabilities")
	}
	ids := fmt.Sprintf(`:(\s+%d){4}$`, a.id)
	require.Regexp(t, `(?m)^Uid`+ids, status)
	require.Regexp(t, `(?m)^Gid`+ids, status)
	require.Regexp(t, `(?m)^Groups:\s*$`, status)
	_, err = a.run(t, "test", "-r", "/etc/shadow")
	require.Error(t, err, "it reads what is root's")
}

var uidPattern = regexp.MustCompile(`(?m)^Uid:\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)$`)

// requireProcessesOf fails if any process of a footprint is, for this machine, another user's.
func (f *footprint) requireProcessesOf(t *testing.T, who account) {
	t.Helper()
	require.NotEmpty(t, f.processes)
	for pid := range f.processes {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			continue // it has ended
		}
		for _, id := range uidPattern.FindStringSubmatch(string(status))[1:] {
			require.Equal(t, strconv.Itoa(who.id), id, "process %d: %s", pid, bytes.SplitN(status, []byte("\n"), 2)[0])
		}
	}
}

// requireNothingOf fails if the account has left anything in folders that are everybody's.
func requireNothingOf(t *testing.T, who account) {
	t.Helper()
	for _, folder := range []string{"/tmp", "/var/tmp", "/run", "/dev/shm"} {
		entries, err := os.ReadDir(folder)
		require.NoError(t, err)
		for _, e := range entries {
			info, err := e.Info()
			if err != nil {
				continue // it has gone
			}
			if stat, ok := info.Sys().(*syscall.Stat_t); ok {
				require.NotEqual(t, who.id, int(stat.Uid), "left in %s: %s", folder, e.Name())
			}
		}
	}
	for pid := range processes() {
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if match := uidPattern.FindStringSubmatch(string(status)); match != nil {
			require.NotEqual(t, strconv.Itoa(who.id), match[1], "left: process %d: %s", pid, strings.SplitN(string(status), "\n", 2)[0])
		}
	}
}
