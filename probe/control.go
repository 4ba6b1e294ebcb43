// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"
)

const (
	socketName = "watch.sock"
	pollEvery  = 5 * time.Millisecond
	// talkTimeout bounds one exchange with the watch, which answers at once.
	talkTimeout = time.Second
	// mostOrder bounds what is read as an order, in bytes.
	mostOrder = 16 << 20
)

// message is what a hook tells the watch: an order, or to end; or it asks which addresses hang.
type message struct {
	Order   *Order `json:"order,omitempty"`
	Stop    bool   `json:"stop,omitempty"`
	Hanging bool   `json:"hanging,omitempty"`
}

// reply is the watch's answer.
type reply struct {
	OK    bool `json:"ok"`    // the order is taken
	Going bool `json:"going"` // the watch ends: it was told to, or is of another build
	// Hanging are the addresses on which a login of the watch has been waiting for the server for minutes.
	Hanging []string `json:"hanging,omitempty"`
}

// withSocket calls use with an address of the watch's socket in dir. A path
// that is too long for an address is given by way of an open folder.
func withSocket(dir string, use func(address string) error) error {
	address := filepath.Join(dir, socketName)
	if len(address) < 100 {
		return use(address)
	}
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer folder.Close()
	return use(fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), socketName))
}

// listen makes the watch's socket. The caller holds the lock, so one that is
// there already is nobody's.
func listen(dir string) (*net.UnixListener, error) {
	if err := os.Remove(filepath.Join(dir, socketName)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("cannot listen for orders: %w", err)
	}
	var l *net.UnixListener
	err := withSocket(dir, func(address string) error {
		var err error
		l, err = net.ListenUnix("unix", &net.UnixAddr{Name: address, Net: "unix"})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot listen for orders: %w", err)
	}
	l.SetUnlinkOnClose(false) // its path may be one of ours alone
	if err := os.Chmod(filepath.Join(dir, socketName), 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("cannot listen for orders: %w", err)
	}
	return l, nil
}

// talk sends a message to the watch of dir.
func talk(ctx context.Context, dir string, m message) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, talkTimeout)
	defer cancel()
	var r reply
	err := withSocket(dir, func(address string) error {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "unix", address)
		if err != nil {
			return err
		}
		defer conn.Close()
		deadline, _ := ctx.Deadline()
		if err := conn.SetDeadline(deadline); err != nil {
			return err
		}
		if err := json.NewEncoder(conn).Encode(m); err != nil {
			return err
		}
		return json.NewDecoder(conn).Decode(&r)
	})
	return r, err
}

// request is a message that waits for its reply; who receives it sends one.
type request struct {
	message
	answer chan<- reply
}

// serve passes on what hooks say until l is closed.
func serve(ctx context.Context, l net.Listener, requests chan<- request) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		// One after the other: hooks of a unit do not run at once.
		answer(ctx, conn, requests)
	}
}

func answer(ctx context.Context, conn net.Conn, requests chan<- request) {
	defer conn.Close()
	if conn.SetDeadline(time.Now().Add(talkTimeout)) != nil {
		return
	}
	var m message
	if json.NewDecoder(io.LimitReader(conn, mostOrder)).Decode(&m) != nil {
		return
	}
	answers := make(chan reply, 1)
	select {
	case requests <- request{m, answers}:
	case <-ctx.Done():
		return
	}
	_ = json.NewEncoder(conn).Encode(<-answers) // the hook may be gone
}
