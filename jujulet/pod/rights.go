// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package pod

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Without the rights for it, namespaces can be made inside a user namespace: one at the level of the cluster process, in
// which the caller's user is user 0 and everything else lives. Whether that is so is decided here: by [StartCluster] with
// needsUserNamespace, and by all inside with inUserNamespace.

// neededCapabilities are what the cluster process must have.
var neededCapabilities = map[string]uint{
	"CAP_SYS_ADMIN": unix.CAP_SYS_ADMIN, "CAP_NET_ADMIN": unix.CAP_NET_ADMIN, "CAP_SYS_CHROOT": unix.CAP_SYS_CHROOT,
}

// missingCapabilities returns the sorted names of those that this process does not have.
func missingCapabilities() ([]string, error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return nil, fmt.Errorf("cannot read own capabilities: %w", err)
	}
	var missing []string
	for name, c := range neededCapabilities {
		if data[c/32].Effective&(1<<(c%32)) == 0 {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	return missing, nil
}

// needsUserNamespace tells whether the cluster process needs a user namespace: this one is not root, or not with all rights.
func needsUserNamespace() (bool, error) {
	if os.Geteuid() != 0 {
		return true, nil
	}
	missing, err := missingCapabilities()
	return len(missing) > 0, err
}

// inUserNamespace tells whether this process is in another user namespace than the kernel's first one, which maps every id to itself.
func inUserNamespace() (bool, error) {
	text, err := os.ReadFile("/proc/self/uid_map")
	if errors.Is(err, os.ErrNotExist) {
		return false, nil // a kernel without user namespaces
	}
	if err != nil {
		return false, fmt.Errorf("cannot read own user namespace: %w", err)
	}
	return !slices.Equal(strings.Fields(string(text)), []string{"0", "0", "4294967295"}), nil
}

// userNamespace adds a user namespace to what a process is started with. Only one id can be mapped without the help of
// programs that have more rights; so that is user and group 0 of all pods.
func userNamespace(sys *syscall.SysProcAttr) {
	sys.Cloneflags |= syscall.CLONE_NEWUSER
	sys.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
	sys.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
}

// Check tells whether this process may make namespaces, networks and overlays, as far as that shows without making any. The
// error names what is missing and the remedy. What the kernel refuses later is explained by [StartCluster] and [ClusterInit].
func Check() error {
	types, err := os.ReadFile("/proc/filesystems")
	if err != nil {
		return fmt.Errorf("cannot read kernel's file systems: %w", err)
	}
	if !strings.Contains(string(types), "\toverlay\n") {
		if _, err := os.Stat("/sys/module/overlay"); err != nil && !canLoadOverlay() {
			return errors.New("cannot overlay folders: the kernel has no overlay file system; load it with: sudo modprobe overlay")
		}
	}
	ordinary, err := needsUserNamespace()
	if err != nil || !ordinary {
		return err
	}
	return newHost().check()
}

// canLoadOverlay tells whether the kernel may load the overlay module by itself when it is first mounted.
func canLoadOverlay() bool {
	found, _ := filepath.Glob(filepath.Join("/lib/modules", kernelRelease(), "kernel/fs/overlayfs/overlay.ko*"))
	return len(found) > 0 || kernelRelease() == ""
}

// kernelRelease returns the kernel's version, such as "6.1.0-28-amd64"; "" if it cannot be read.
func kernelRelease() string {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return ""
	}
	return unix.ByteSliceToString(name.Release[:])
}

// host is what this machine tells about user namespaces.
type host struct {
	release string
	read    func(path string) (string, error)
}

// newHost is the machine that this process runs on.
func newHost() host {
	return host{release: kernelRelease(), read: func(path string) (string, error) {
		text, err := os.ReadFile(path)
		return strings.TrimSpace(string(text)), err
	}}
}

// setting returns the text of a kernel setting, "" if there is none of the name.
func (h host) setting(path string) string {
	text, err := h.read(path)
	if err != nil {
		return ""
	}
	return text
}

// asRoot is the remedy that always helps.
const asRoot = "or run jujulet as root"

// inContainer is the remedy for what a container's runtime forbids.
const inContainer = "start the container with --security-opt seccomp=unconfined --security-opt systempaths=unconfined " +
	"(podman: unmask=ALL), or with --privileged"

// The kernel's settings that forbid user namespaces to ordinary users.
const (
	userNamespacesMax   = "/proc/sys/user/max_user_namespaces"
	userNamespacesClone = "/proc/sys/kernel/unprivileged_userns_clone"
	appArmorRestricts   = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"
)

// check refuses what certainly cannot work.
func (h host) check() error {
	switch {
	case h.setting("/proc/self/uid_map") == "":
		return errors.New("cannot make namespaces: this kernel has no user namespaces; run jujulet as root")
	case h.setting(userNamespacesMax) == "0":
		return errors.New("cannot make namespaces: user.max_user_namespaces is 0; allow some with: " +
			"sudo sysctl -w user.max_user_namespaces=10000, " + asRoot)
	case h.setting(userNamespacesClone) == "0":
		return errors.New("cannot make namespaces: kernel.unprivileged_userns_clone is 0; allow them with: " +
			"sudo sysctl -w kernel.unprivileged_userns_clone=1, " + asRoot)
	case h.olderThan(5, 11):
		return fmt.Errorf("cannot overlay folders: an ordinary user needs Linux 5.11 or newer, and this is %s; run jujulet as root", h.release)
	}
	return nil
}

// olderThan compares the kernel's version; one that cannot be read is not older.
func (h host) olderThan(major, minor int) bool {
	parts := strings.FieldsFunc(h.release, func(r rune) bool { return r < '0' || r > '9' })
	if len(parts) < 2 {
		return false
	}
	a, err1 := strconv.Atoi(parts[0])
	b, err2 := strconv.Atoi(parts[1])
	return err1 == nil && err2 == nil && (a < major || a == major && b < minor)
}

// explain adds to a refusal of the kernel what most likely is its cause, and the remedy. The action is what was refused.
func (h host) explain(action string, err error) error {
	refused := errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES)
	switch {
	case errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EUSERS):
		return fmt.Errorf("%s: %w: the limit of user namespaces is reached (user.max_user_namespaces is %s); raise it with sysctl, %s",
			action, err, h.setting(userNamespacesMax), asRoot)
	case refused && h.setting(appArmorRestricts) == "1":
		return fmt.Errorf("%s: %w: kernel.apparmor_restrict_unprivileged_userns is 1; allow them with: "+
			"sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or with an AppArmor profile for jujulet that has \"userns,\", %s",
			action, err, asRoot)
	case refused && h.filtered():
		return fmt.Errorf("%s: %w: a seccomp filter is on, as in containers; %s", action, err, inContainer)
	case refused && h.covered():
		return fmt.Errorf("%s: %w: parts of /proc are covered, as in containers; %s", action, err, inContainer)
	case refused:
		return fmt.Errorf("%s: %w: user namespaces are forbidden here, as in a chroot or by a security module; %s", action, err, asRoot[len("or "):])
	}
	return fmt.Errorf("%s: %w", action, err)
}

// filtered tells whether a seccomp filter is on for this process.
func (h host) filtered() bool {
	for line := range strings.Lines(h.setting("/proc/self/status")) {
		if value, ok := strings.CutPrefix(line, "Seccomp:"); ok {
			return strings.TrimSpace(value) == "2"
		}
	}
	return false
}

// covered tells whether anything is mounted over a part of /proc. A process in a user namespace may not see what is below, and
// so may not mount a /proc of its own.
func (h host) covered() bool {
	mounts, err := parseMounts(strings.NewReader(h.setting("/proc/self/mountinfo")))
	return err == nil && slices.ContainsFunc(mounts, func(m mountPoint) bool { return m.path != "/proc" && under(m.path, "/proc") })
}
