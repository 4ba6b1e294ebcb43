// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package pod

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// containerSetup is what container-init is told first.
type containerSetup struct {
	Pod       string   `json:"pod"`
	Container string   `json:"container"`
	Root      string   `json:"root"`
	Base      string   `json:"base"`
	Hide      []string `json:"hide"`
	Binds     []Bind   `json:"binds"`
	Hosts     string   `json:"hosts"`
	Resolv    string   `json:"resolv"`
	Hostname  string   `json:"hostname"`
	Env       []string `json:"env"`
	// Quota is Options.Quota.
	Quota int64 `json:"quota"`
	// Rootless is set in a user namespace.
	Rootless *rootlessSetup `json:"rootless,omitempty"`
}

// enterRoot builds the container's root and makes it the root of this process, which must be process
// 1 of a mount and a pid namespace of its own. It returns warnings about what could not be shown.
func enterRoot(s containerSetup) ([]string, error) {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, fmt.Errorf("cannot make mounts private: %w", err)
	}
	target, upper := filepath.Join(s.Base, "root"), filepath.Join(s.Base, "upper")
	if err := errors.Join(mkdir(target, 0o755), mkdir(upper, 0o755)); err != nil {
		return nil, err
	}
	if err := unix.Mount("tmpfs", target, "tmpfs", unix.MS_NODEV, sized(s.Quota)); err != nil {
		return nil, fmt.Errorf("cannot mount root: %w", err)
	}
	b := &rootBuilder{target: target, upper: upper, hide: s.Hide, rootless: s.Rootless}
	var err error
	if s.Root == "" || s.Root == HostRoot {
		err = b.host()
	} else {
		err = b.folder(s.Root)
	}
	if err != nil {
		return nil, err
	}
	if err := errors.Join(mountProc(target), mountSys(target), mountDev(target)); err != nil {
		return nil, err
	}
	for _, m := range s.Binds {
		at, err := resolveIn(target, m.Target)
		if err != nil {
			return nil, err
		}
		if err := bind(m.Source, at, m.ReadOnly); err != nil {
			return nil, err
		}
	}
	if err := pivot(target); err != nil {
		return nil, err
	}
	return b.warnings, writeNames(s)
}

// sized are the options of a tmpfs that takes so many bytes.
func sized(bytes int64) string { return fmt.Sprintf("mode=755,size=%d", bytes) }

// pivot makes target the root and drops the old one.
func pivot(target string) error {
	if err := os.Chdir(target); err != nil {
		return fmt.Errorf("cannot enter root: %w", err)
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("cannot change root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("cannot leave old root: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return fmt.Errorf("cannot enter root: %w", err)
	}
	return nil
}

// mountProc mounts /proc with what could change the host's kernel made read-only or empty.
func mountProc(root string) error {
	proc := filepath.Join(root, "proc")
	if err := unix.Mount("proc", proc, "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("cannot mount /proc: %w", err)
	}
	for _, name := range []string{"bus", "fs", "irq", "sys", "sysrq-trigger"} {
		path := filepath.Join(proc, name)
		if _, err := os.Lstat(path); err != nil {
			continue
		}
		if err := unix.Mount(path, path, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("cannot mount /proc/%s: %w", name, err)
		}
		flags := uintptr(unix.MS_BIND | unix.MS_REMOUNT | unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC)
		if err := unix.Mount("", path, "", flags, ""); err != nil {
			return fmt.Errorf("cannot make /proc/%s read-only: %w", name, err)
		}
	}
	for _, name := range []string{"kcore", "keys", "latency_stats", "timer_list", "sched_debug"} {
		path := filepath.Join(proc, name)
		if _, err := os.Lstat(path); err != nil {
			continue
		}
		if err := unix.Mount("/dev/null", path, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("cannot mask /proc/%s: %w", name, err)
		}
	}
	return nil
}

// mountSys mounts /sys read-only; it shows the network namespace of this process.
func mountSys(root string) error {
	flags := uintptr(unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC)
	if err := unix.Mount("sysfs", filepath.Join(root, "sys"), "sysfs", flags, ""); err != nil {
		return fmt.Errorf("cannot mount /sys: %w", err)
	}
	return nil
}

// mountDev makes a /dev with the harmless devices, and terminals and shared memory of the container's own.
func mountDev(root string) error {
	dev := filepath.Join(root, "dev")
	if err := unix.Mount("tmpfs", dev, "tmpfs", unix.MS_NOSUID, "mode=755,size=64k"); err != nil {
		return fmt.Errorf("cannot mount /dev: %w", err)
	}
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		if err := bind("/dev/"+name, filepath.Join(dev, name), false); err != nil {
			return err
		}
	}
	pts, shm := filepath.Join(dev, "pts"), filepath.Join(dev, "shm")
	if err := errors.Join(mkdir(pts, 0o755), mkdir(shm, 0o777|os.ModeSticky)); err != nil {
		return err
	}
	options := "newinstance,ptmxmode=0666,mode=620"
	if err := unix.Mount("devpts", pts, "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, options); err != nil {
		return fmt.Errorf("cannot mount /dev/pts: %w", err)
	}
	if err := unix.Mount("tmpfs", shm, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777,size=64m"); err != nil {
		return fmt.Errorf("cannot mount /dev/shm: %w", err)
	}
	links := [][2]string{
		{"pts/ptmx", "ptmx"}, {"/proc/self/fd", "fd"},
		{"/proc/self/fd/0", "stdin"}, {"/proc/self/fd/1", "stdout"}, {"/proc/self/fd/2", "stderr"},
	}
	for _, l := range links {
		if err := os.Symlink(l[0], filepath.Join(dev, l[1])); err != nil {
			return fmt.Errorf("cannot make /dev/%s: %w", l[1], err)
		}
	}
	return nil
}

// resolveIn returns where path is below root when root is taken as "/", following links. What does not
// exist is taken as it is.
func resolveIn(root, path string) (string, error) {
	rest := slices.DeleteFunc(strings.Split(filepath.Clean("/"+path), "/"), func(s string) bool { return s == "" })
	at := "/"
	for links := 0; len(rest) > 0; {
		next := rest[0]
		rest = rest[1:]
		if next == ".." {
			at = filepath.Dir(at)
			continue
		}
		to, err := os.Readlink(filepath.Join(root, at, next))
		if err != nil {
			at = filepath.Join(at, next)
			continue
		}
		if links++; links > 40 {
			return "", fmt.Errorf("cannot resolve %s: too many links", path)
		}
		if filepath.IsAbs(to) {
			at = "/"
		}
		parts := slices.DeleteFunc(strings.Split(to, "/"), func(s string) bool { return s == "" || s == "." })
		rest = append(parts, rest...)
	}
	return filepath.Join(root, at), nil
}

// writeNames writes the files by which the container knows its own name and finds others.
func writeNames(s containerSetup) error {
	if err := os.MkdirAll("/etc", 0o755); err != nil {
		return fmt.Errorf("cannot make folder: %w", err)
	}
	return errors.Join(
		replaceFile("/etc/hosts", s.Hosts),
		replaceFile("/etc/resolv.conf", s.Resolv),
		replaceFile("/etc/hostname", s.Hostname+"\n"),
	)
}

// replaceFile puts a new file in the place of an old one, which may be a link.
func replaceFile(path, text string) error {
	temporary := path + ".new"
	if err := os.WriteFile(temporary, []byte(text), 0o644); err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	if err := os.Rename(temporary, path); err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	return nil
}
