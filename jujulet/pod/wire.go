// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package pod

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// maxMessage bounds one message in bytes: environment and arguments of a command fit easily.
const maxMessage = 16 << 20

// maxFiles is the largest number of files that travel with one message.
const maxFiles = 8

// conn sends and receives JSON messages, with open files attached, over a Unix stream socket. A
// message is four bytes of length, which carry the files, and the JSON text.
type conn struct {
	c     *net.UnixConn
	write sync.Mutex
}

// socketPair returns a connected pair: our end, and the end to hand to another process.
func socketPair() (*conn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make a socket pair: %w", err)
	}
	theirs := os.NewFile(uintptr(fds[1]), "control")
	ours, err := newConn(os.NewFile(uintptr(fds[0]), "control"))
	if err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return ours, theirs, nil
}

// newConn makes a conn of a socket's file, which it takes over.
func newConn(f *os.File) (*conn, error) {
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("cannot use control socket: %w", err)
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		c.Close()
		return nil, errors.New("cannot use control socket: not a Unix socket")
	}
	return &conn{c: u}, nil
}

// Close closes the connection.
func (c *conn) Close() error { return c.c.Close() }

// send writes one message with the given files, which stay open here.
func (c *conn) send(v any, files ...*os.File) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("cannot encode message: %w", err)
	}
	if len(text) > maxMessage {
		return fmt.Errorf("cannot send message: %d bytes are too many", len(text))
	}
	head := binary.BigEndian.AppendUint32(nil, uint32(len(text)))
	var rights []byte
	if len(files) > 0 {
		fds := make([]int, 0, len(files))
		for _, f := range files {
			fds = append(fds, int(f.Fd()))
		}
		rights = unix.UnixRights(fds...)
	}
	c.write.Lock()
	defer c.write.Unlock()
	if _, _, err := c.c.WriteMsgUnix(head, rights, nil); err != nil {
		return fmt.Errorf("cannot send message: %w", err)
	}
	if _, err := c.c.Write(text); err != nil {
		return fmt.Errorf("cannot send message: %w", err)
	}
	return nil
}

// receive reads one message into v and returns the files that came with it. The error is io.EOF
// when the other side has gone between messages.
func (c *conn) receive(v any) ([]*os.File, error) {
	var head [4]byte
	oob := make([]byte, unix.CmsgSpace(4*maxFiles))
	n, oobn, _, _, err := c.c.ReadMsgUnix(head[:], oob)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, io.EOF
	}
	files, err := filesOf(oob[:oobn])
	if err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(c.c, head[n:]); err != nil {
		closeAll(files)
		return nil, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > maxMessage {
		closeAll(files)
		return nil, fmt.Errorf("cannot receive message: %d bytes are too many", size)
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(c.c, text); err != nil {
		closeAll(files)
		return nil, err
	}
	if err := json.Unmarshal(text, v); err != nil {
		closeAll(files)
		return nil, fmt.Errorf("cannot decode message: %w", err)
	}
	return files, nil
}

// filesOf returns the files in a control message. They are closed on exec already.
func filesOf(oob []byte) ([]*os.File, error) {
	if len(oob) == 0 {
		return nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, fmt.Errorf("cannot receive files: %w", err)
	}
	var files []*os.File
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			closeAll(files)
			return nil, fmt.Errorf("cannot receive files: %w", err)
		}
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "received"))
		}
	}
	return files, nil
}

// closeAll closes all files.
func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
