// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package control

import (
	"os"

	"golang.org/x/sys/unix"
)

// isFolder reports whether path is a folder.
func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// signalName returns the name of a signal that a session passes on, or "".
func signalName(sig os.Signal) string {
	if s, ok := sig.(unix.Signal); ok {
		return unix.SignalName(s)
	}
	return ""
}
