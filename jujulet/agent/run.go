// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package agent

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drawbridge-k8s/drawbridge/jujulet/hooktools"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// run is one process of the charm with its hook context.
type run struct {
	hook         *model.HookInfo
	action       *model.Action
	name         string // of the hook or the action
	contextID    string
	dispatchPath string // "" under juju-exec
	socket       string
	info         *model.ContextInfo
	context      *hooktools.Context
	stdout       *output // kept for actions
	stderr       *output
}

// outcome is what became of a run.
type outcome struct {
	exit    int
	handler string // for the log
	missing bool   // the charm has no handler
	err     error  // nil only for exit code 0
}

// newRun reads what a hook context needs and makes it, with a new id.
func (a *Agent) newRun(ctx context.Context, h *model.HookInfo, act *model.Action) (*run, error) {
	info, err := a.options.Controller.ContextInfo(ctx, a.options.Unit)
	if err != nil {
		return nil, fmt.Errorf("cannot make hook context: %w", err)
	}
	r := &run{hook: h, action: act, info: info}
	if h != nil {
		r.name = h.Name()
	} else {
		r.name = act.Name
		r.stdout, r.stderr = new(output), new(output)
	}
	var id [16]byte
	rand.Read(id[:])
	r.contextID = a.options.Unit + "-" + r.name + "-" + hex.EncodeToString(id[:])
	r.context = hooktools.NewContext(hooktools.Options{
		ID: r.contextID, Unit: a.options.Unit, Backend: a.options.Controller, Info: info,
		Hook: h, Action: act, Members: a.members(h), Cache: a.cache, ResourceDir: a.paths.resources,
		Log: func(level, message string) {
			a.log(ctx, "unit."+a.options.Unit+".juju-log", level, message)
		},
		Token: a.token,
	})
	return r, nil
}

// members are the delivered members of each relation, with the running hook's own
// effect: a unit is there from its joined hook on, and not in its departed hook.
func (a *Agent) members(h *model.HookInfo) map[int][]string {
	out := map[int][]string{}
	for id, st := range a.state.Relations {
		out[id] = sorted(st.Members)
	}
	if h == nil || h.RemoteUnit == "" {
		return out
	}
	list := slices.DeleteFunc(out[h.RelationID], func(u string) bool { return u == h.RemoteUnit })
	if h.Kind != "relation-departed" {
		list = append(list, h.RemoteUnit)
		slices.Sort(list)
	}
	out[h.RelationID] = list
	return out
}

// token reads the pod's own service-account token.
func (a *Agent) token() (token, ca string, err error) {
	dir := a.options.Root + "/var/run/secrets/kubernetes.io/serviceaccount/"
	raw, err := os.ReadFile(dir + "token")
	if err != nil {
		return "", "", err
	}
	pem, _ := os.ReadFile(dir + "ca.crt")
	return strings.TrimSpace(string(raw)), string(pem), nil
}

// errMissing says that the charm has no handler.
var errMissing = errors.New("missing")

// handler finds what runs: dispatch, or only without one the hook's own file.
func (a *Agent) handler(path string) (file, text string, err error) {
	if _, err := os.Stat(filepath.Join(a.paths.charm, "metadata.yaml")); err != nil {
		return "", "", errors.New("charm missing from disk")
	}
	for _, name := range []string{"dispatch", path} {
		file = filepath.Join(a.paths.charm, name)
		info, err := os.Stat(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		text = "hook dispatching script: dispatch"
		if name != "dispatch" {
			text = "explicit, bespoke hook script"
		}
		if err != nil {
			return "", text, err
		}
		if info.IsDir() || info.Mode()&0o111 == 0 {
			return "", text, fmt.Errorf("exec: %q: permission denied", file)
		}
		return file, text, nil
	}
	return "", "", errMissing
}

// dispatch runs the charm's handler with a server of hook tools for its time.
func (a *Agent) dispatch(ctx context.Context, r *run, path string) outcome {
	file, text, err := a.handler(path)
	if errors.Is(err, errMissing) {
		return outcome{missing: true, handler: "missing"}
	}
	if err != nil {
		return outcome{err: err, handler: text}
	}
	r.dispatchPath = path
	o := a.execute(ctx, r, Command{Path: file})
	o.handler = text
	return o
}

// execute runs a command in the run's context.
func (a *Agent) execute(ctx context.Context, r *run, c Command) outcome {
	listener, cleanup, err := listen(a.paths.socket)
	if err != nil {
		return outcome{err: err}
	}
	defer cleanup()
	r.socket = listener.Addr().String()
	hookCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	server, err := hooktools.Serve(hookCtx, listener, r.context)
	if err != nil {
		return outcome{err: err}
	}
	defer func() {
		cancel() // leftover calls end
		server.Close()
	}()
	a.setKill(cancel)
	defer a.setKill(nil)
	c.Dir, c.Env = a.paths.charm, a.environ(r)
	stdout, stderr := a.lines(ctx, r, "DEBUG", r.stdout), a.lines(ctx, r, "WARNING", r.stderr)
	c.Stdout, c.Stderr = stdout, stderr
	exit, err := a.options.Runner(hookCtx, c)
	stdout.Close()
	stderr.Close()
	if err == nil && exit != 0 {
		err = fmt.Errorf("exit status %d", exit)
	}
	if err != nil && hookCtx.Err() != nil {
		err = ErrTerminated
	}
	return outcome{exit: exit, err: err}
}

func (a *Agent) setKill(f context.CancelFunc) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.kill = f
}

// maxSocketPath is what a unix socket's address can hold, with room for a NUL.
const maxSocketPath = 104

// listen opens the socket of hook tools at path: made in a folder of its own and
// renamed into place, mode 0700. A path that is too long gets a short one.
func listen(path string) (net.Listener, func(), error) {
	dir := filepath.Dir(path)
	short := len(path)+12 > maxSocketPath
	if short {
		dir = ""
	}
	temp, err := os.MkdirTemp(dir, "s")
	if err != nil {
		return nil, nil, fmt.Errorf("cannot serve hook tools: %w", err)
	}
	made := filepath.Join(temp, "a")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: made, Net: "unix"})
	if err != nil {
		os.RemoveAll(temp)
		return nil, nil, fmt.Errorf("cannot serve hook tools: %w", err)
	}
	l.SetUnlinkOnClose(false)
	if err := os.Chmod(made, 0o700); err != nil {
		l.Close()
		os.RemoveAll(temp)
		return nil, nil, fmt.Errorf("cannot serve hook tools: %w", err)
	}
	if short {
		return l, func() { l.Close(); os.RemoveAll(temp) }, nil
	}
	err = os.Rename(made, path)
	os.RemoveAll(temp)
	if err != nil {
		l.Close()
		return nil, nil, fmt.Errorf("cannot serve hook tools: %w", err)
	}
	return namedListener{l, path}, func() { l.Close(); os.Remove(path) }, nil
}

// namedListener tells the path that its socket was renamed to.
type namedListener struct {
	net.Listener
	path string
}

// Addr is the socket's final path.
func (n namedListener) Addr() net.Addr { return &net.UnixAddr{Name: n.path, Net: "unix"} }
