// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/drawbridge-k8s/drawbridge/k8sservice"
)

// The test binary is the watch when it is started as one.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "watch" {
		watchProcess(os.Args[2])
		return
	}
	os.Exit(m.Run())
}

// watchProcess is a watch whose notices are lines of a file.
func watchProcess(dir string) {
	err := RunWatch(context.Background(), os.Stdin, WatchDeps{
		Dir: dir, Build: os.Getenv("TEST_BUILD"),
		Session:  func(Login) Session { return func(context.Context, string) error { return errRefused } },
		Cluster:  func(string) (*k8sservice.Client, error) { return nil, errors.New("no cluster") },
		Notifier: fileNotifier(filepath.Join(dir, "notices")),
	})
	if err != nil {
		_ = os.WriteFile(filepath.Join(dir, "failed"), []byte(err.Error()), 0o600)
	}
}

type fileNotifier string

func (f fileNotifier) Notify(context.Context) error {
	file, err := os.OpenFile(string(f), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = fmt.Fprintln(file, os.Getpid())
	return err
}

// yard is a folder with watches of its own.
type yard struct {
	t     *testing.T
	dir   string
	start Starter
}

func newYard(t *testing.T) *yard {
	t.Helper()
	y := &yard{t: t, dir: filepath.Join(t.TempDir(), "watch")}
	y.build("one")
	t.Cleanup(func() {
		require.NoError(t, StopWatch(context.WithoutCancel(t.Context()), y.dir))
		text, err := os.ReadFile(filepath.Join(y.dir, "failed"))
		require.ErrorIs(t, err, os.ErrNotExist, "%s", text)
	})
	return y
}

// build makes the next watch one of a build.
func (y *yard) build(name string) {
	program, err := os.Executable()
	require.NoError(y.t, err)
	y.start = ExecStarter(program, append(os.Environ(), "TEST_BUILD="+name, "JUJU_CONTEXT_ID=x", "JUJU_UNIT_NAME=db/0"))
}

func (y *yard) order(build string, secret int) Order {
	return Order{Build: build, App: "db", Service: "db-service", SecretID: "s", SecretRevision: secret,
		Login: Login{Username: "u", Password: "p4ssw0rd"}, Backend: []string{"192.0.2.1:3306"}}
}

func (y *yard) ensure(o Order) bool {
	y.t.Helper()
	ctx, cancel := context.WithTimeout(y.t.Context(), 20*time.Second)
	defer cancel()
	started, err := EnsureWatch(ctx, y.dir, o, y.start)
	require.NoError(y.t, err)
	return started
}

// pid returns the process that holds the lock, 0 for none.
func (y *yard) pid() int {
	y.t.Helper()
	lock, err := tryLock(y.dir)
	require.NoError(y.t, err)
	if lock != nil {
		lock.release()
		return 0
	}
	text, err := os.ReadFile(filepath.Join(y.dir, lockName))
	require.NoError(y.t, err)
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return pid
}

func (y *yard) until(what string, done func() bool) {
	y.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !done() {
		require.True(y.t, time.Now().Before(deadline), what)
		time.Sleep(2 * time.Millisecond)
	}
}

// watches counts the processes that are watches of this folder.
func (y *yard) watches() int {
	count := 0
	processes, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(y.t, err)
	for _, file := range processes {
		text, _ := os.ReadFile(file)
		if args := strings.Split(string(text), "\x00"); len(args) > 2 && args[1] == "watch" && args[2] == y.dir {
			if stat, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "stat")); !bytes.Contains(stat, []byte(") Z ")) {
				count++
			}
		}
	}
	return count
}

func TestEnsureWatch(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	require.True(t, y.ensure(y.order("one", 1)))
	first := y.pid()
	require.NotZero(t, first)
	require.False(t, y.ensure(y.order("one", 1)), "the same order")
	require.False(t, y.ensure(y.order("one", 2)), "another order")
	require.Equal(t, first, y.pid())

	y.build("two")
	require.True(t, y.ensure(y.order("two", 2)), "another build")
	require.NotEqual(t, first, y.pid())
	require.NotZero(t, y.pid())
	y.until("one watch is left", func() bool { return y.watches() == 1 })

	require.NoError(t, StopWatch(t.Context(), y.dir))
	require.Zero(t, y.pid())
	require.NoFileExists(t, filepath.Join(y.dir, socketName))
	require.NoError(t, StopWatch(t.Context(), y.dir), "none is fine")
	require.NoError(t, StopWatch(t.Context(), filepath.Join(y.dir, "never")))
	y.build("one")
}

// What Juju and other users may see of the process.
func TestEnsureWatch_Process(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	y.ensure(y.order("one", 1))
	proc := fmt.Sprintf("/proc/%d/", y.pid())
	for _, name := range []string{"cmdline", "environ"} {
		text, err := os.ReadFile(proc + name)
		require.NoError(t, err)
		require.NotContains(t, string(text), "p4ssw0rd")
		require.NotContains(t, string(text), "JUJU_CONTEXT_ID")
		if name == "environ" {
			require.Contains(t, string(text), "JUJU_UNIT_NAME=db/0")
		}
	}
	for _, fd := range []string{"1", "2"} {
		target, err := os.Readlink(proc + "fd/" + fd)
		require.NoError(t, err)
		require.Equal(t, "/dev/null", target)
	}
	session, err := unix.Getsid(y.pid())
	require.NoError(t, err)
	require.Equal(t, y.pid(), session, "a session of its own")
	cwd, err := os.Readlink(proc + "cwd")
	require.NoError(t, err)
	require.Equal(t, "/", cwd)
	files, err := os.ReadDir(y.dir)
	require.NoError(t, err)
	for _, file := range files {
		if file.Type().IsRegular() {
			text, err := os.ReadFile(filepath.Join(y.dir, file.Name()))
			require.NoError(t, err)
			require.NotContains(t, string(text), "p4ssw0rd", file.Name())
		}
		info, err := file.Info()
		require.NoError(t, err)
		require.Zero(t, info.Mode().Perm()&0o077, file.Name())
	}
}

func TestEnsureWatch_WakesTheCharm(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	o := y.order("one", 1)
	y.ensure(o)
	o.WakeAt = time.Now().Add(-time.Second)
	y.ensure(o)
	y.until("a notice", func() bool {
		text, _ := os.ReadFile(filepath.Join(y.dir, "notices"))
		return len(text) > 0
	})
}

// A watch that is killed is started again by the next hook, whatever it has
// left behind; one that hears nothing is ended first.
func TestEnsureWatch_AfterKills(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	y.ensure(y.order("one", 1))

	require.NoError(t, syscall.Kill(y.pid(), syscall.SIGKILL))
	y.until("it is dead", func() bool { return y.pid() == 0 })
	require.FileExists(t, filepath.Join(y.dir, socketName), "left behind")
	require.True(t, y.ensure(y.order("one", 1)))

	deaf := y.pid()
	require.NoError(t, syscall.Kill(deaf, syscall.SIGSTOP))
	begin := time.Now()
	require.True(t, y.ensure(y.order("one", 2)))
	require.Less(t, time.Since(begin), 10*time.Second)
	require.NotEqual(t, deaf, y.pid())
	y.until("one watch is left", func() bool { return y.watches() == 1 })

	require.NoError(t, os.Remove(filepath.Join(y.dir, socketName)))
	require.True(t, y.ensure(y.order("one", 3)), "one without its socket cannot take orders")
	y.until("one watch is left", func() bool { return y.watches() == 1 })

	require.NoError(t, syscall.Kill(y.pid(), syscall.SIGSTOP))
	require.NoError(t, StopWatch(t.Context(), y.dir))
	y.until("none is left", func() bool { return y.watches() == 0 })
}

// A hook that is killed right after it has started a watch leaves one that has
// no order, an old one, or is on its way: the next hook's order counts.
func TestEnsureWatch_HookKilled(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	for round := range 8 {
		read, write, err := os.Pipe()
		require.NoError(t, err)
		require.NoError(t, y.start(t.Context(), y.dir, read))
		if round%2 == 0 {
			text, _ := json.Marshal(y.order("one", 100+round))
			_, err = write.Write(text[:len(text)*round/8])
			require.NoError(t, err)
			if round%4 == 0 {
				_, _ = write.Write(text[len(text)*round/8:])
			}
		}
		write.Close()
		y.ensure(y.order("one", round))
		y.until("one watch is left", func() bool { return y.watches() == 1 })
		// The order given is the one that counts: the same again changes nothing.
		require.False(t, y.ensure(y.order("one", round)))
		if rand.IntN(2) == 0 {
			require.NoError(t, StopWatch(t.Context(), y.dir))
		}
		_ = os.Remove(filepath.Join(y.dir, "failed")) // an order cut short
	}
}

// Watches are killed at random moments, that of their start included; each
// hook finds or makes a working one, and there is never more than one.
func TestEnsureWatch_KilledAnywhere(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 25 {
		stop := make(chan struct{})
		done := make(chan struct{})
		delay := time.Duration(random.IntN(40)) * time.Millisecond
		go func() {
			defer close(done)
			select {
			case <-time.After(delay):
			case <-stop:
			}
			if text, err := os.ReadFile(filepath.Join(y.dir, lockName)); err == nil {
				if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && hasOpen(pid, filepath.Join(y.dir, lockName)) {
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
			}
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		_, err := EnsureWatch(ctx, y.dir, y.order("one", round), y.start)
		cancel()
		close(stop)
		<-done
		if err != nil {
			t.Logf("round %d: %v", round, err)
		}
		y.ensure(y.order("one", 1000+round))
		y.until("one watch is left", func() bool { return y.watches() == 1 })
	}
}

func TestEndHolder_SparesOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, lockName)
	bystander := exec.Command("sleep", "60")
	require.NoError(t, bystander.Start())
	t.Cleanup(func() { _ = bystander.Process.Kill(); _ = bystander.Wait() })
	for _, text := range []string{"", "x", "0", "1", strconv.Itoa(os.Getpid()), strconv.Itoa(bystander.Process.Pid), "999999999"} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		require.Error(t, endHolder(dir), text)
	}
	require.NoError(t, bystander.Process.Signal(syscall.Signal(0)))
}

func TestLock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lock, err := tryLock(dir)
	require.NoError(t, err)
	require.NotNil(t, lock)
	other, err := tryLock(dir)
	require.NoError(t, err)
	require.Nil(t, other)
	require.True(t, lock.valid(dir))
	require.NoError(t, os.Remove(filepath.Join(dir, lockName)))
	require.False(t, lock.valid(dir))
	other, err = tryLock(dir)
	require.NoError(t, err)
	require.NotNil(t, other)
	require.False(t, lock.valid(dir))
	lock.release()
	other.release()
}

func TestRunWatch_RefusesWhatIsNoOrder(t *testing.T) {
	t.Parallel()
	deps := WatchDeps{Dir: t.TempDir(), Build: "one"}
	for text, want := range map[string]string{
		"":                           "cannot read the watch's order",
		`{"login":{"password":"p4ss`: "cannot read the watch's order",
		`{"build":"two"}`:            `cannot take an order of build "two": this is "one"`,
	} {
		err := RunWatch(t.Context(), strings.NewReader(text), deps)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "p4ss")
	}
}

func TestWatch_LongFolder(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	y.dir = filepath.Join(y.dir, strings.Repeat("long-", 40))
	y.ensure(y.order("one", 1))
	require.NotZero(t, y.pid())
}

func TestWatchEnvironment(t *testing.T) {
	t.Parallel()
	got := watchEnvironment([]string{"PATH=/bin", "JUJU_CONTEXT_ID=x", "JUJU_RELATION_ID=y", "JUJU_UNIT_NAME=db/0", "KUBERNETES_SERVICE_HOST=h"})
	require.Equal(t, []string{"PATH=/bin", "JUJU_UNIT_NAME=db/0", "KUBERNETES_SERVICE_HOST=h"}, slices.DeleteFunc(got, func(s string) bool { return strings.HasPrefix(s, "GO") }))
}
