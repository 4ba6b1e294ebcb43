// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package workload_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"github.com/drawbridge-k8s/drawbridge/database"
	"github.com/drawbridge-k8s/drawbridge/database/databasetest"
	"github.com/drawbridge-k8s/drawbridge/workload"
)

const (
	insideVariable = "WORKLOAD_TEST_INSIDE"
	// podIP stands for the pod of the gateway: a server counts nothing for 127.0.0.1.
	podIP = "10.99.0.1"
	// hurry divides all intervals.
	hurry = 60
)

// Ten minutes of probes four times a second, all intervals divided by 60, with
// HAProxy's own checks on: a server that looks names up and allows five connect
// errors counts none. As a control, six bare connects do lock the host out.
//
// It runs in a network namespace of its own, which has an address to count for.
func TestConnectErrors(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Fatal("cannot make a network namespace: that needs root")
	}
	inside := exec.Command(os.Args[0], "-test.run=^TestConnectErrorsInside$", "-test.v")
	inside.Env = append(os.Environ(), insideVariable+"=1")
	inside.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	output, err := inside.CombinedOutput()
	require.NoError(t, err, "%s", output)
	require.Contains(t, string(output), "--- PASS: TestConnectErrorsInside", "%s", output)
}

func TestConnectErrorsInside(t *testing.T) {
	if os.Getenv(insideVariable) == "" {
		t.Skip("a part of TestConnectErrors")
	}
	lo, err := netlink.LinkByName("lo")
	require.NoError(t, err)
	require.NoError(t, netlink.LinkSetUp(lo))
	address, err := netlink.ParseAddr(podIP + "/32")
	require.NoError(t, err)
	require.NoError(t, netlink.AddrAdd(lo, address))

	server := databasetest.StartWithHosts(t, podIP+" gateway.test\n", "--bind-address=0.0.0.0",
		"--skip-name-resolve=0", "--max-connect-errors=5", "--performance-schema=ON")
	direct := strings.Replace(server.Address, "127.0.0.1", podIP, 1)
	g := workload.Gateway{ReadWrite: []string{direct}}
	startHAProxy(t, g)
	sessions := database.NewSessions(t.Context(), server.Root)
	defer sessions.Close()
	addresses := []string{direct, fmt.Sprintf("%s:%d", podIP, workload.ReadWritePort), fmt.Sprintf("%s:%d", podIP, workload.ReadOnlyPort)}
	require.Eventually(t, func() bool { return sessions.Session(t.Context(), addresses[2]) == nil }, 10*time.Second, 10*time.Millisecond)

	worst, next := 0, time.Now()
	for cycle := range 2400 {
		for _, address := range addresses {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			require.NoError(t, sessions.Session(ctx, address), "cycle %d", cycle)
			cancel()
		}
		if cycle%100 == 0 {
			worst = max(worst, connectErrors(t, server))
		}
		next = next.Add(250 * time.Millisecond / hurry)
		time.Sleep(time.Until(next)) // the pace is what is tested
	}
	worst = max(worst, connectErrors(t, server))
	require.Less(t, worst, 5)
	require.Zero(t, connectErrors(t, server))
	require.NoError(t, server.Root.Session(t.Context(), addresses[1]), "a new client")
	t.Logf("%d connect errors at worst", worst)

	for i := range 6 {
		require.Eventually(t, func() bool {
			bareConnect(addresses[1])
			return connectErrors(t, server) > min(i, 4)
		}, 20*time.Second, 50*time.Millisecond)
	}
	err = server.Root.Session(t.Context(), addresses[1])
	require.Equal(t, database.CodeHostBlocked, database.Code(err), "%v", err)
}

// bareConnect connects and hangs up. One that HAProxy sees hang up before it has
// connected to the server itself does not count there.
func bareConnect(address string) {
	if conn, err := net.Dial("tcp", address); err == nil {
		conn.Close()
	}
}

// startHAProxy runs the gateway's configuration with its checks in a hurry.
func startHAProxy(t *testing.T, g workload.Gateway) {
	t.Helper()
	const pace = "inter 2s fastinter 500ms"
	require.Contains(t, g.Config(), pace)
	config := strings.ReplaceAll(g.Config(), pace, fmt.Sprintf("inter %dms fastinter %dms", 2000/hurry, 500/hurry))
	file := filepath.Join(t.TempDir(), "haproxy.cfg")
	require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
	command := exec.Command(haproxy(t), "-db", "-f", file)
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		command.Process.Kill() //nolint:errcheck // it may have ended
		command.Wait()         //nolint:errcheck // killed
	})
}

// connectErrors is the server's counter for the pod; a host that it does not
// keep has none.
func connectErrors(t *testing.T, s *databasetest.Server) int {
	t.Helper()
	rows := s.Query(t, s.Root, "", "SELECT SUM_CONNECT_ERRORS FROM performance_schema.host_cache WHERE IP = '"+podIP+"'")
	if len(rows) == 0 {
		return 0
	}
	n, err := strconv.Atoi(rows[0][0])
	require.NoError(t, err)
	return n
}
