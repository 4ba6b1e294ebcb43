// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package controller

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// runtimeName is the file in a state folder that says where the runtime
// folder is while the cluster is up: an ordinary user's depends on the
// environment, which another shell need not share.
const runtimeName = "runtime"

// maxRuntime is how long the path of a runtime folder may be, in bytes. A unix
// socket's may have 107, and the longest below it are those of agents.
const maxRuntime = 107 - len("/"+podsFolder+"/ctl/01234567/"+agentSocket)

// RuntimeFolder returns the runtime folder that belongs to a state folder: the
// one that it has while the cluster is up, else the one that it would get now.
func RuntimeFolder(state string) string {
	if recorded := recordedRuntime(state); recorded != "" {
		return recorded
	}
	folder, err := chooseRuntime(state, os.Geteuid(), os.Getenv)
	if err != nil {
		return filepath.Join(state, runtimeName) // nothing is there
	}
	return folder
}

// folderName is the name of the runtime folder of a state folder.
func folderName(state string) string { return "jujulet-" + shortName(state) }

// shortName stands for a name in the path of a socket: 8 bytes, whatever the
// length of the name.
func shortName(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:4])
}

// recordedRuntime returns what the state folder says, "" if nothing. No other
// name than its own is believed: down removes the folder.
func recordedRuntime(state string) string {
	text, err := os.ReadFile(filepath.Join(state, runtimeName))
	path := strings.TrimSpace(string(text))
	if err != nil || !filepath.IsAbs(path) || filepath.Base(path) != folderName(state) {
		return ""
	}
	return filepath.Clean(path)
}

// chooseRuntime returns where the runtime folder is to be: root's is in /run, an
// ordinary user's in $XDG_RUNTIME_DIR, else in the folder of temporary files.
func chooseRuntime(state string, uid int, getenv func(string) string) (string, error) {
	if uid == 0 {
		return filepath.Join("/run", folderName(state)), nil
	}
	var tooLong string
	for _, parent := range []string{getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/tmp"} {
		info, err := os.Stat(parent)
		if !filepath.IsAbs(parent) || err != nil || !info.IsDir() || unix.Access(parent, unix.W_OK|unix.X_OK) != nil {
			continue
		}
		// Resolved, as the mounts below it are.
		path := filepath.Join(resolve(filepath.Clean(parent)), folderName(state))
		if len(path) <= maxRuntime {
			return path, nil
		}
		tooLong = path
	}
	if tooLong == "" {
		return "", errors.New("cannot make the runtime folder: /tmp cannot be written to; set XDG_RUNTIME_DIR to a folder of yours")
	}
	return "", fmt.Errorf("cannot make the runtime folder: %s is longer than %d bytes, so that sockets below it cannot have names; "+
		"set XDG_RUNTIME_DIR to a folder with a shorter path", tooLong, maxRuntime)
}

// makeRuntime makes the runtime folder anew and records where it is.
func makeRuntime(cfg config) error {
	if err := removeRuntime(cfg.State, cfg.Runtime); err != nil {
		return err
	}
	// Not MkdirAll: in a folder that is everybody's, what is there already may be
	// somebody else's.
	for _, folder := range []string{cfg.Runtime, filepath.Join(cfg.Runtime, podsFolder)} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			return fmt.Errorf("cannot make the runtime folder: %w", err)
		}
	}
	if err := os.WriteFile(filepath.Join(cfg.State, runtimeName), []byte(cfg.Runtime+"\n"), 0o600); err != nil {
		return fmt.Errorf("cannot record the runtime folder: %w", err)
	}
	return nil
}

// removeRuntime removes a runtime folder, and the one that is recorded if that
// is another.
func removeRuntime(state, folder string) error {
	for _, path := range []string{recordedRuntime(state), folder} {
		if path == "" {
			continue
		}
		if err := checkOwner(path); err != nil {
			return err
		}
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("cannot remove the runtime folder: %w", err)
		}
	}
	if err := os.Remove(filepath.Join(state, runtimeName)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("cannot forget the runtime folder: %w", err)
	}
	return nil
}

// checkOwner refuses a folder that belongs to another user. One that is not
// there belongs to nobody.
func checkOwner(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot use the runtime folder: %w", err)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && os.Geteuid() != 0 && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("cannot use the runtime folder %s: it belongs to another user (%d); set XDG_RUNTIME_DIR to a folder of yours",
			path, stat.Uid)
	}
	return nil
}
