// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

// Package databasetest starts a real MariaDB server for tests, on a folder of
// its own and a loopback port.
package databasetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drawbridge-k8s/drawbridge/database"
)

const startTimeout = 60 * time.Second

// Server is a running server. It ends with the test.
type Server struct {
	// Address is its "host:port" on loopback.
	Address string
	// Root may do everything.
	Root database.Credentials

	process *os.Process
}

// Start runs a server with these further options ("--max-connect-errors=5")
// until the test ends. A machine without MariaDB fails the test.
//
// Names of clients are not looked up unless the options ask for it with
// "--skip-name-resolve=0".
func Start(t testing.TB, options ...string) *Server {
	t.Helper()
	return start(t, "", options)
}

// StartWithHosts is Start with an /etc/hosts of the server's own (a mount that
// only the server sees, which needs root). Host names and connect errors are
// kept by a server only for clients whose addresses it can look up, and never
// for 127.0.0.1.
func StartWithHosts(t testing.TB, hosts string, options ...string) *Server {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("cannot give the database its own /etc/hosts: that needs root")
	}
	return start(t, hosts, options)
}

func start(t testing.TB, hosts string, options []string) *Server {
	t.Helper()
	for _, tool := range []string{"mariadb-install-db", "mariadbd"} {
		if _, err := find(tool); err != nil {
			t.Fatalf("cannot start a database: %v (Debian: apt-get install mariadb-server-core mariadb-client-core)", err)
		}
	}
	// Not t.TempDir: the path of a socket has at most 107 bytes.
	folder, err := os.MkdirTemp("", "mariadb-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	s := &Server{Address: FreeAddress(t), Root: database.Credentials{Username: "all", Password: database.NewPassword()}}
	install(t, folder)
	s.run(t, s.command(t, folder, hosts, options))
	return s
}

func find(tool string) (string, error) {
	if path, err := exec.LookPath(tool); err == nil {
		return path, nil
	}
	// Where an unprivileged user's PATH does not lead.
	return exec.LookPath("/usr/sbin/" + tool)
}

func install(t testing.TB, folder string) {
	t.Helper()
	tool, _ := find("mariadb-install-db")
	// Servers that share a folder for temporary tables remove each other's.
	output, err := exec.Command(tool, "--no-defaults", "--datadir="+filepath.Join(folder, "data"), "--tmpdir="+folder, "--user=root",
		"--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve",
		"--innodb-buffer-pool-size=8M", "--innodb-log-file-size=4M").CombinedOutput()
	if err != nil {
		t.Fatalf("cannot make a data folder: %v\n%s", err, output)
	}
}

// command prepares the server, and an account that may do everything.
func (s *Server) command(t testing.TB, folder, hosts string, options []string) *exec.Cmd {
	t.Helper()
	_, port, _ := net.SplitHostPort(s.Address)
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	initFile := write("init.sql", fmt.Sprintf("CREATE USER 'all'@'%%' IDENTIFIED BY '%s';\n"+
		"GRANT ALL PRIVILEGES ON *.* TO 'all'@'%%' WITH GRANT OPTION;\n", s.Root.Password))
	tool, _ := find("mariadbd")
	args := append([]string{tool, "--no-defaults", "--datadir=" + filepath.Join(folder, "data"), "--tmpdir=" + folder, "--user=root",
		"--bind-address=127.0.0.1", "--port=" + port, "--socket=" + filepath.Join(folder, "s"),
		"--init-file=" + initFile, "--skip-name-resolve=1", "--innodb-buffer-pool-size=8M", "--innodb-log-file-size=4M",
		"--pid-file=" + filepath.Join(folder, "pid")}, options...)
	if hosts == "" {
		return exec.Command(args[0], args[1:]...)
	}
	const script = `mount --make-rprivate / && mount --bind "$0" /etc/hosts && exec "$@"`
	server := exec.Command("sh", append([]string{"-c", script, write("hosts", hosts)}, args...)...)
	server.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	return server
}

// run starts the server and returns when it answers.
func (s *Server) run(t testing.TB, server *exec.Cmd) {
	t.Helper()
	log := &strings.Builder{}
	server.Stdout, server.Stderr = log, log
	if err := server.Start(); err != nil {
		t.Fatalf("cannot start mariadbd: %v", err)
	}
	s.process = server.Process
	ended := make(chan struct{})
	go func() { defer close(ended); server.Wait() }() //nolint:errcheck // killed below
	t.Cleanup(func() {
		server.Process.Signal(syscall.SIGCONT) //nolint:errcheck // it may have ended
		server.Process.Kill()                  //nolint:errcheck // it may have ended
		<-ended
	})
	deadline := time.Now().Add(startTimeout)
	for {
		err := s.Root.Session(context.Background(), s.Address)
		if err == nil {
			return
		}
		select {
		case <-ended:
			t.Fatalf("mariadbd ended:\n%s", log)
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatalf("mariadbd does not answer: %v", err)
		}
	}
}

// Pause stops the server as a stalled disk would; Resume lets it go on.
func (s *Server) Pause(t testing.TB) { s.signal(t, syscall.SIGSTOP) }

// Resume ends a Pause.
func (s *Server) Resume(t testing.TB) { s.signal(t, syscall.SIGCONT) }

func (s *Server) signal(t testing.TB, signal syscall.Signal) {
	t.Helper()
	if err := s.process.Signal(signal); err != nil {
		t.Fatal(err)
	}
}

// Query runs a statement as c, in a database when that is not "", and returns
// the rows' values as text. The test fails when the server refuses it.
func (s *Server) Query(t testing.TB, c database.Credentials, schema, statement string) [][]string {
	t.Helper()
	rows, err := c.Query(context.Background(), s.Address, schema, statement, 1000)
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return rows.Values
}

// FreeAddress returns a loopback address that nothing listens on now, with a
// port below those that the kernel gives to outgoing connections.
func FreeAddress(t testing.TB) string {
	t.Helper()
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 12000+rand.IntN(20000))
		listener, err := net.Listen("tcp", address)
		if err == nil {
			listener.Close()
			return address
		}
	}
	t.Fatal("cannot find a free port")
	return ""
}
