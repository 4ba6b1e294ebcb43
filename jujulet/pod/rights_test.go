// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package pod

import (
	"fmt"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// fakeHost is a machine with the settings of today's Debian, and some others.
func fakeHost(release string, others map[string]string) host {
	settings := map[string]string{
		"/proc/self/uid_map":                 "0 0 4294967295",
		"/proc/self/status":                  "Name:\tx\nSeccomp:\t0\nSeccomp_filters:\t0",
		"/proc/sys/user/max_user_namespaces": "96364",
	}
	for path, value := range others {
		settings[path] = value
	}
	return host{release: release, read: func(path string) (string, error) {
		value, ok := settings[path]
		if !ok || value == "absent" {
			return "", &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
		}
		return value, nil
	}}
}

// What is missing for an ordinary user is named, with the remedy, in one line.
func TestHost_Check(t *testing.T) {
	for _, test := range []struct {
		name, release string
		settings      map[string]string
		want          string
	}{
		{"Debian", "6.1.0-28-amd64", nil, ""},
		{"all that can be said is yes", "6.8.0-31-generic", map[string]string{
			"/proc/sys/kernel/unprivileged_userns_clone": "1", "/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1",
		}, ""},
		{"the oldest kernel", "5.11.0", nil, ""},
		{"a version that cannot be read", "", nil, ""},
		{"none in the kernel", "6.1.0", map[string]string{"/proc/self/uid_map": "absent"},
			"cannot make namespaces: this kernel has no user namespaces; run jujulet as root"},
		{"none allowed", "6.1.0", map[string]string{"/proc/sys/user/max_user_namespaces": "0"},
			"cannot make namespaces: user.max_user_namespaces is 0; allow some with: sudo sysctl -w user.max_user_namespaces=10000, or run jujulet as root"},
		{"none for ordinary users", "5.10.0-30-amd64", map[string]string{"/proc/sys/kernel/unprivileged_userns_clone": "0"},
			"cannot make namespaces: kernel.unprivileged_userns_clone is 0; allow them with: sudo sysctl -w kernel.unprivileged_userns_clone=1, or run jujulet as root"},
		{"no overlays in them", "5.10.0-30-amd64", nil,
			"cannot overlay folders: an ordinary user needs Linux 5.11 or newer, and this is 5.10.0-30-amd64; run jujulet as root"},
		{"no overlays in them, long ago", "4.19.0", nil,
			"cannot overlay folders: an ordinary user needs Linux 5.11 or newer, and this is 4.19.0; run jujulet as root"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := fakeHost(test.release, test.settings).check()
			if test.want == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, test.want)
		})
	}
}

// A refusal of the kernel is explained by what the machine tells of itself.
func TestHost_Explain(t *testing.T) {
	const seccomp = "Name:\tx\nNoNewPrivs:\t0\nSeccomp:\t2\nSeccomp_filters:\t1"
	for _, test := range []struct {
		name     string
		refusal  error
		settings map[string]string
		want     string
	}{
		{"Ubuntu", unix.EACCES, map[string]string{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1"},
			"cannot X: permission denied: kernel.apparmor_restrict_unprivileged_userns is 1; allow them with: " +
				"sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or with an AppArmor profile for jujulet that has \"userns,\", or run jujulet as root"},
		{"Ubuntu that allows it", unix.EPERM, map[string]string{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "0"},
			"cannot X: operation not permitted: user namespaces are forbidden here, as in a chroot or by a security module; run jujulet as root"},
		{"a container", unix.EPERM, map[string]string{"/proc/self/status": seccomp},
			"cannot X: operation not permitted: a seccomp filter is on, as in containers; start the container with " +
				"--security-opt seccomp=unconfined --security-opt systempaths=unconfined (podman: unmask=ALL), or with --privileged"},
		{"a container without one", unix.EPERM, map[string]string{"/proc/self/mountinfo": "22 27 0:21 / /proc rw - proc proc rw\n23 22 0:5 / /proc/kcore rw - tmpfs t rw"},
			"cannot X: operation not permitted: parts of /proc are covered, as in containers; start the container with " +
				"--security-opt seccomp=unconfined --security-opt systempaths=unconfined (podman: unmask=ALL), or with --privileged"},
		{"too many", unix.ENOSPC, map[string]string{"/proc/sys/user/max_user_namespaces": "5"},
			"cannot X: no space left on device: the limit of user namespaces is reached (user.max_user_namespaces is 5); raise it with sysctl, or run jujulet as root"},
		{"something else", unix.ENOMEM, map[string]string{"/proc/self/status": seccomp}, "cannot X: cannot allocate memory"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := fakeHost("6.8.0", test.settings).explain("cannot X", fmt.Errorf("fork/exec /proc/self/exe: %w", test.refusal))
			require.ErrorIs(t, err, test.refusal)
			require.EqualError(t, err, "cannot X: fork/exec /proc/self/exe: "+test.want[len("cannot X: "):])
			require.NotContains(t, err.Error(), "\n")
		})
	}
}
