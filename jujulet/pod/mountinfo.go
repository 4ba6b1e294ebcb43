// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package pod

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// mountPoint is one line of /proc/self/mountinfo.
type mountPoint struct {
	path, fsType string
	readOnly     bool
}

// pseudoTypes are file systems that hold no files of their own; each container gets fresh ones or none.
var pseudoTypes = []string{
	"autofs", "binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts", "devtmpfs", "efivarfs",
	"fusectl", "hugetlbfs", "mqueue", "nsfs", "proc", "pstore", "rpc_pipefs", "securityfs", "selinuxfs", "sysfs", "tracefs",
}

// readMounts returns the mounts of this process in the order in which they were made; of several on
// one path only the last, which is the one seen.
func readMounts() ([]mountPoint, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("cannot read mounts: %w", err)
	}
	defer f.Close()
	return parseMounts(f)
}

// parseMounts reads the format of /proc/<pid>/mountinfo.
func parseMounts(r io.Reader) ([]mountPoint, error) {
	var mounts []mountPoint
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		left, right, ok := strings.Cut(lines.Text(), " - ")
		fields, types := strings.Fields(left), strings.Fields(right)
		if !ok || len(fields) < 6 || len(types) < 1 {
			return nil, fmt.Errorf("cannot read mounts: unexpected line %q", lines.Text())
		}
		m := mountPoint{
			path: unescapeMount(fields[4]), fsType: types[0],
			readOnly: slices.Contains(strings.Split(fields[5], ","), "ro"),
		}
		mounts = slices.DeleteFunc(mounts, func(o mountPoint) bool { return o.path == m.path })
		mounts = append(mounts, m)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("cannot read mounts: %w", err)
	}
	return mounts, nil
}

// unescapeMount undoes the kernel's octal escapes of blanks and backslashes.
func unescapeMount(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`, `\043`, "#").Replace(s)
}

// under tells whether path is folder or lies below it.
func under(path, folder string) bool {
	if folder == "/" {
		return filepath.IsAbs(path)
	}
	return path == folder || strings.HasPrefix(path, folder+"/")
}
