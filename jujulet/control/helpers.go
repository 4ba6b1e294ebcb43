// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package control

import (
	"context"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// exists reports whether there is something at path.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// signalName returns the name of a signal that a session passes on, or "".
func signalName(sig os.Signal) string {
	if s, ok := sig.(unix.Signal); ok {
		return unix.SignalName(s)
	}
	return ""
}

// peer returns the process that listens on a unix socket, by its number in the
// caller's pid namespace: the process itself knows only its number in its own.
func peer(ctx context.Context, socket string) (int, error) {
	conn, err := dialSocket(ctx, socket)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return 0, fmt.Errorf("cannot find the cluster process: %w", err)
	}
	var cred *unix.Ucred
	var failure error
	err = raw.Control(func(fd uintptr) { cred, failure = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err != nil || failure != nil {
		return 0, fmt.Errorf("cannot find the cluster process: %v, %v", err, failure)
	}
	return int(cred.Pid), nil
}
