// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cli"
	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
)

var update = flag.Bool("update", false, "rewrite the golden parts of the scripts")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"jujulet": func() {
			os.Exit(cli.Main(context.Background(), cli.Environment{
				In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv,
				Now:         func() time.Time { return time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC) },
				Zone:        time.FixedZone("CET", 3600),
				Version:     "1.2.3",
				StateFolder: func(string, func(string) string) (string, error) { return os.Getenv("WORK"), nil },
				Socket:      func(state string) string { return filepath.Join(state, "control.sock") },
				Lifecycle:   lifecycle{},
			}, os.Args[1:]))
		},
	})
}

// lifecycle prints what it was asked for.
type lifecycle struct{}

func (lifecycle) Up(_ context.Context, o cli.UpOptions) error {
	_, err := os.Stdout.WriteString("up foreground=" + strconv.FormatBool(o.Foreground) + " update-status=" + o.UpdateStatus.String() + "\n")
	return err
}

func (lifecycle) Down(_ context.Context, o cli.DownOptions) error {
	_, err := os.Stdout.WriteString("down destroy=" + strconv.FormatBool(o.Destroy) + "\n")
	return err
}

// TestScripts runs each verb against a cluster process that answers with the files of the script: answers/<verb>.json is
// what a call gets, answers/<verb>.error a refusal (the kind, then the message), requests/<verb>.json what it was sent last, and requests/<verb>.model the model.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, scripts("testdata"))
}

// TestTraps are what a naive runner gets wrong, as far as the command line has a
// part in it.
func TestTraps(t *testing.T) {
	t.Run("trap-40 progress on standard error, results on standard output", func(t *testing.T) {
		testscript.Run(t, scripts("", "testdata/run.txtar"))
	})
}

// scripts are the parameters of a run of all scripts of a folder, or of some files.
func scripts(dir string, files ...string) testscript.Params {
	return testscript.Params{
		Dir:                 dir,
		Files:               files,
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			listener, err := net.Listen("unix", filepath.Join(e.WorkDir, "control.sock"))
			if err != nil {
				return err
			}
			server := &http.Server{Handler: answers(e.WorkDir)}
			go server.Serve(listener)
			e.Defer(func() { server.Close() })
			return os.Mkdir(filepath.Join(e.WorkDir, "requests"), 0o755)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	}
}

// exits CODE COMMAND... runs a command that must end with this exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("cannot run %q: %v", args[1], err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

func answers(dir string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		verb := strings.TrimPrefix(r.URL.Path, "/v1/")
		body, _ := io.ReadAll(r.Body)
		_ = os.WriteFile(filepath.Join(dir, "requests", verb+".model"), []byte(r.URL.Query().Get(control.ModelParameter)+"\n"), 0o644)
		var pretty bytes.Buffer
		if json.Indent(&pretty, body, "", "  ") == nil {
			pretty.WriteByte('\n')
			_ = os.WriteFile(filepath.Join(dir, "requests", verb+".json"), pretty.Bytes(), 0o644)
		}
		if text, err := os.ReadFile(filepath.Join(dir, "answers", verb+".error")); err == nil {
			kind, message, _ := strings.Cut(strings.TrimSuffix(string(text), "\n"), " ")
			w.WriteHeader(control.Kind(kind).HTTPStatus())
			_ = json.NewEncoder(w).Encode(control.Error{Kind: control.Kind(kind), Message: message})
			return
		}
		if r.Header.Get("Upgrade") != "" {
			echo(w)
			return
		}
		switch data, err := os.ReadFile(filepath.Join(dir, "answers", verb+".json")); {
		case err == nil:
			_, _ = w.Write(data)
		case verb == "changed":
			_, _ = io.WriteString(w, "1")
		default:
			_, _ = io.WriteString(w, "null")
		}
	})
}

// echo is a session whose command writes its input to both outputs and exits 7.
func echo(w http.ResponseWriter) {
	conn, stream, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+control.SessionProtocol+"\r\n\r\n")
	frames := control.NewFrames(bufio.NewReader(stream), conn)
	for {
		kind, payload, err := frames.Read()
		if err != nil {
			return
		}
		if kind != control.FrameStdin {
			continue
		}
		if len(payload) == 0 {
			_ = frames.Write(control.FrameExit, []byte(`{"code":7}`))
			return
		}
		_ = frames.Write(control.FrameStdout, append([]byte("out: "), payload...))
		_ = frames.Write(control.FrameStderr, append([]byte("err: "), payload...))
	}
}
