// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package controller

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// StateVariable is the environment variable that names the state folder.
const StateVariable = "JUJULET_STATE"

// StateFolder returns the absolute path of the state folder: flag if it is not
// empty, else $JUJULET_STATE, else $XDG_DATA_HOME/jujulet, else
// ~/.local/share/jujulet. Symbolic links are resolved as far as the path
// exists, so that one folder has one name.
func StateFolder(flag string, getenv func(string) string) (string, error) {
	path := flag
	if path == "" {
		path = getenv(StateVariable)
	}
	if path == "" {
		if data := getenv("XDG_DATA_HOME"); data != "" {
			path = filepath.Join(data, "jujulet")
		} else if home := getenv("HOME"); home != "" {
			path = filepath.Join(home, ".local", "share", "jujulet")
		} else {
			return "", errors.New("cannot find the state folder: HOME is not set; give --state or set " + StateVariable)
		}
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("cannot find the state folder: %w", err)
	}
	return resolve(path), nil
}

// resolve follows symbolic links in the part of path that exists.
func resolve(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path
	}
	return filepath.Join(resolve(parent), filepath.Base(path))
}

// makeFolder makes a folder that only its owner may enter, and refuses one
// that somebody else owns.
func makeFolder(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return fmt.Errorf("cannot make folder %s: %w", path, err)
	}
	if err := os.Chmod(path, 0o700); err != nil {
		return fmt.Errorf("cannot protect folder %s: %w", path, err)
	}
	return nil
}
