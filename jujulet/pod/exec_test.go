// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package pod_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/drawbridge-k8s/drawbridge/jujulet/pod"
)

func TestExec_ExitAndOutput(t *testing.T) {
	p := start(t, newManager(t, nil), charmOnly())
	for _, test := range []struct {
		name, script string
		exit         int
		out          string
	}{
		{"success", "echo hello", 0, "hello"},
		{"exit code", "exit 42", 42, ""},
		{"ended by a signal", "kill -TERM $$", 143, ""},
		{"both outputs in order", "echo a; echo b >&2; echo c", 0, "a\nb\nc"},
		{"environment", "echo $HOME $HOSTNAME", 0, "/root app-0"},
		{"working folder", "pwd", 0, "/"},
		{"no input", "cat", 0, ""},
		{"a daemon that keeps its output does not hold the call", "sleep 30 & echo started", 0, "started"},
	} {
		t.Run(test.name, func(t *testing.T) {
			began := time.Now()
			out, exit := sh(t, p, pod.CharmContainer, test.script)
			require.Equal(t, test.exit, exit)
			require.Equal(t, test.out, out)
			require.Less(t, time.Since(began), 10*time.Second)
		})
	}
}

func TestExec_CommandCannotRun(t *testing.T) {
	p := start(t, newManager(t, nil), charmOnly())
	for _, test := range []struct {
		name    string
		in      string
		command pod.Command
		want    string
	}{
		{"no such program", pod.CharmContainer, pod.Command{Args: []string{"no-such-program"}}, `cannot find "no-such-program" in PATH`},
		{"no such file", pod.CharmContainer, pod.Command{Args: []string{"/no/such"}}, "no such file"},
		{"no program", pod.CharmContainer, pod.Command{}, "none is given"},
		{"no such folder", pod.CharmContainer, pod.Command{Args: []string{"true"}, Dir: "/nowhere"}, "working folder"},
		{"no such container", "gateway", pod.Command{Args: []string{"true"}}, "does not run"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := p.Exec(t.Context(), test.in, test.command)
			require.ErrorContains(t, err, test.want)
		})
	}
}

func TestExec_InputEnvironmentFolder(t *testing.T) {
	p := start(t, newManager(t, nil), charmOnly())
	var out bytes.Buffer
	big := strings.Repeat("0123456789abcdef", 1<<16)
	exit, err := p.Exec(t.Context(), pod.CharmContainer, pod.Command{
		Args: []string{"sh", "-c", "echo $X $PWD; cat"}, Env: []string{"X=1", "X=2"}, Dir: "/etc", Stdin: strings.NewReader(big), Stdout: &out,
	})
	require.NoError(t, err)
	require.Zero(t, exit)
	require.Equal(t, "2 /etc\n"+big, out.String())
}

func TestExec_CancelKillsTheGroup(t *testing.T) {
	p := start(t, newManager(t, nil), charmOnly())
	ctx, cancel := context.WithCancel(t.Context())
	read, write := io.Pipe()
	go func() {
		_, _ = read.Read(make([]byte, 64)) // the child has started
		cancel()
		_, _ = io.Copy(io.Discard, read)
	}()
	_, err := p.Exec(ctx, pod.CharmContainer, pod.Command{Args: []string{"sh", "-c", "sleep 987 & echo x; wait"}, Stdout: write})
	require.ErrorIs(t, err, context.Canceled)
	eventually(t, "the sleep is killed", func() bool {
		out, _ := sh(t, p, pod.CharmContainer, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
		return !strings.Contains(out, "sleep 987")
	})
}

func TestExec_DetachOutlivesTheCall(t *testing.T) {
	p := start(t, newManager(t, nil), charmOnly())
	exit, err := p.Exec(t.Context(), pod.CharmContainer, pod.Command{Args: []string{"sleep", "985"}, Detach: true})
	require.NoError(t, err)
	require.Zero(t, exit)
	out, _ := sh(t, p, pod.CharmContainer, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
	require.Contains(t, out, "sleep 985")
}

func TestSpawn_Signal(t *testing.T) {
	p := start(t, newManager(t, nil), charmOnly())
	read, write := io.Pipe()
	process, err := p.Spawn(t.Context(), pod.CharmContainer, pod.Command{
		Args: []string{"sh", "-c", "trap 'exit 7' USR1; echo ready; while :; do sleep 0.01; done"}, Stdout: write,
	})
	require.NoError(t, err)
	require.Positive(t, process.PID())
	_, err = read.Read(make([]byte, 16))
	require.NoError(t, err)
	require.NoError(t, process.Signal(unix.SIGUSR1))
	exit, err := process.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, 7, exit)
}

func TestExec_Terminal(t *testing.T) {
	p := start(t, newManager(t, nil), charmOnly())
	var out bytes.Buffer
	input, typed := io.Pipe()
	resize := make(chan pod.Size, 1)
	process, err := p.Spawn(t.Context(), pod.CharmContainer, pod.Command{
		Args: []string{"sh", "-c", "tty; stty size; read x; stty size; echo got $x"}, TTY: true, Size: pod.Size{Rows: 33, Cols: 99},
		Stdin: input, Stdout: &out, Resize: resize,
	})
	require.NoError(t, err)
	require.NoError(t, process.Resize(pod.Size{Rows: 20, Cols: 50}))
	_, err = typed.Write([]byte("word\n"))
	require.NoError(t, err)
	exit, err := process.Wait(t.Context())
	require.NoError(t, err)
	require.Zero(t, exit)
	require.Contains(t, out.String(), "/dev/pts/0")
	require.Contains(t, out.String(), "20 50")
	require.Contains(t, out.String(), "got word")
}

// Exit codes stay right, and nothing stays as a zombie, when many commands end and leave orphans at once.
func TestExec_ManyAtOnceWithOrphans(t *testing.T) {
	p := start(t, newManager(t, nil), charmOnly())
	var wait sync.WaitGroup
	results := make(chan string, 200)
	for i := range 200 {
		wait.Go(func() {
			want, args := i%100, []string{"sh", "-c", fmt.Sprintf("(sleep 0.0%d &) ; exit %d", i%10, i%100)}
			if i%20 == 0 {
				args = []string{"/proc/version"} // cannot be executed
			}
			exit, err := p.Exec(t.Context(), pod.CharmContainer, pod.Command{Args: args})
			if i%20 == 0 {
				if err == nil {
					results <- "a file that is no program was run"
				}
			} else if err != nil || exit != want {
				results <- fmt.Sprintf("got %d, %v; want %d", exit, err, want)
			}
		})
	}
	wait.Wait()
	close(results)
	for r := range results {
		t.Error(r)
	}
	eventually(t, "no zombies", func() bool {
		out, _ := sh(t, p, pod.CharmContainer, "cat /proc/[0-9]*/stat 2>/dev/null | grep -c ' Z '")
		return out == "0"
	})
}

func TestContainer_MainCommandEnds(t *testing.T) {
	var out bytes.Buffer
	p := start(t, newManager(t, nil), pod.Spec{Containers: []pod.Container{
		{Name: pod.CharmContainer},
		{Name: "job", Command: []string{"sh", "-c", "echo $WHO; sleep 983 & exit 3"}, Env: []string{"WHO=me"}, Stdout: &out},
	}})
	select {
	case <-p.ContainerDone("job"):
	case <-time.After(10 * time.Second):
		t.Fatal("the container has not ended")
	}
	require.Equal(t, []string{pod.CharmContainer}, p.Running())
	exit, ended := p.LastExit("job")
	require.True(t, ended)
	require.Equal(t, 3, exit)
	require.Equal(t, "me\n", out.String())
	_, err := p.Exec(t.Context(), "job", pod.Command{Args: []string{"true"}})
	require.ErrorContains(t, err, "does not run")
	require.NoError(t, p.StartContainer(t.Context(), "job"))
}

func TestContainer_RestartGetsAFreshRoot(t *testing.T) {
	p := start(t, newManager(t, nil), pod.Spec{Containers: []pod.Container{
		{Name: pod.CharmContainer}, {Name: "work", Workload: true, Command: []string{"sleep", "981"}},
	}})
	_, exit := sh(t, p, "work", "echo x > /etc/mine; echo x > /charm/container/shared")
	require.Zero(t, exit)
	require.Error(t, p.StartContainer(t.Context(), "work"), "it runs already")
	_, exit = sh(t, p, "work", "test -e /etc/mine")
	require.Zero(t, exit, "a refused start must not harm the running container")
	require.NoError(t, p.StopContainer(t.Context(), "work", time.Second))
	require.NoError(t, p.StopContainer(t.Context(), "work", time.Second))
	require.NoError(t, p.StartContainer(t.Context(), "work"))
	_, exit = sh(t, p, "work", "test ! -e /etc/mine && test -e /charm/container/shared")
	require.Zero(t, exit)
	_, err := os.Stat(filepath.Join(p.ContainerDir("work"), "shared"))
	require.NoError(t, err, "the shared folder is a folder of the cluster process")
}

func TestPod_Kill(t *testing.T) {
	m := newManager(t, nil)
	p := start(t, m, charmOnly())
	dir := filepath.Dir(p.JujuDir())
	failed := make(chan error, 1)
	process, err := p.Spawn(t.Context(), pod.CharmContainer, pod.Command{Args: []string{"sleep", "979"}})
	require.NoError(t, err)
	go func() {
		_, err := process.Wait(t.Context())
		failed <- err
	}()
	began := time.Now()
	p.Kill()
	require.Less(t, time.Since(began), 2*time.Second)
	require.ErrorContains(t, <-failed, "the pod has ended")
	<-p.Done()
	p.Kill()
	_, err = os.Stat(dir)
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = p.Exec(t.Context(), pod.CharmContainer, pod.Command{Args: []string{"true"}})
	require.ErrorContains(t, err, "the pod has ended")
	require.ErrorContains(t, p.StartContainer(t.Context(), pod.CharmContainer), "the pod has ended")
	start(t, m, charmOnly())
}

// A pod may be killed at any moment of its start or of a command: every call ends, with an error, and nothing is left.
func TestPod_KillAtAnyMoment(t *testing.T) {
	var dir string
	pids := make(chan int, 1)
	m := newManager(t, func(o *pod.Options) {
		dir = o.Dir
		o.Attach = func(pid int, _ pod.Spec) error { pids <- pid; return nil }
	})
	for i := range 25 {
		killed := make(chan struct{})
		go func() {
			defer close(killed)
			pid := <-pids
			time.Sleep(time.Duration(i) * 2 * time.Millisecond)
			_ = unix.Kill(pid, unix.SIGKILL)
		}()
		p, err := m.Start(t.Context(), pod.Spec{Name: "app-0", Containers: []pod.Container{
			{Name: pod.CharmContainer}, {Name: "work", Command: []string{"sleep", "965"}, Stdout: io.Discard},
		}})
		if err == nil {
			_, err = p.Exec(t.Context(), pod.CharmContainer, pod.Command{Args: []string{"sleep", "965"}})
			require.Error(t, err)
			<-p.Done()
		}
		<-killed
		require.Empty(t, podFolders(t, dir))
	}
}
