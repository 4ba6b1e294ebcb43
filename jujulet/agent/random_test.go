// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package agent_test

import (
	"context"
	"fmt"
	"maps"
	"net/rpc"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/drawbridge-k8s/drawbridge/jujulet/agent"
	"github.com/drawbridge-k8s/drawbridge/jujulet/hooktools"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// history is a model with a few applications under random operations. Each
// unit's hooks are checked against the order that Juju guarantees.
type history struct {
	t      *rapid.T
	dir    string
	model  *model.Model
	clock  *clock
	charms map[string]*model.Charm
	agents map[string]*agent.Agent
	pods   map[string]string
	watch  map[string]*order
	fail   bool // the next hook fails
	write  int  // what hooks write; 0 writes nothing
}

// order is what one unit's charm has seen.
type order struct {
	hooks     []string
	installed bool
	owed      string                     // "id unit": relation-changed that must be next of its relation
	members   map[string]map[string]bool // by relation id; nil once broken
	broken    map[string]bool
	stopped   bool
}

func (h *history) charm(name, meta string) {
	dir := filepath.Join(h.dir, "src-"+name)
	files := map[string]string{
		"metadata.yaml": fmt.Sprintf("name: %s\nsummary: s\ndescription: d\n%s", name, meta), "dispatch": "#!/bin/sh\n",
		"config.yaml": "options:\n  a: {type: string}\n",
	}
	for f, text := range files {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			h.t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, f), []byte(text), 0o755); err != nil {
			h.t.Fatal(err)
		}
	}
	c, err := model.ReadCharm(dir)
	if err != nil {
		h.t.Fatal(err)
	}
	h.charms[name] = c
}

func vars(env []string) map[string]string {
	out := map[string]string{}
	for _, e := range env {
		k, v, _ := strings.Cut(e, "=")
		out[k] = v
	}
	return out
}

// run is the charm: it checks the order, and perhaps writes or fails.
func (h *history) run(_ context.Context, c agent.Command) (int, error) {
	env := vars(c.Env)
	unit, hook := env["JUJU_UNIT_NAME"], env["JUJU_HOOK_NAME"]
	if h.fail {
		h.fail = false
		return 1, nil
	}
	o := h.watch[unit]
	o.hooks = append(o.hooks, hook+" "+env["JUJU_REMOTE_UNIT"])
	h.check(o, unit, hook, env)
	if h.write > 0 && env["JUJU_RELATION_ID"] != "" && !strings.HasSuffix(hook, "-broken") {
		h.tool(env, "relation-set", fmt.Sprintf("k=%d", h.write))
		h.write = 0
	}
	return 0, nil
}

func (h *history) tool(env map[string]string, name string, args ...string) {
	client, err := rpc.Dial("unix", env["JUJU_AGENT_SOCKET_ADDRESS"])
	if err != nil {
		h.t.Fatal(err)
	}
	defer client.Close()
	var resp hooktools.ExecResponse
	err = client.Call("Jujuc.Main", hooktools.Request{ContextId: env["JUJU_CONTEXT_ID"], Dir: "/", CommandName: name, Args: args}, &resp)
	if err != nil || resp.Code != 0 {
		h.t.Fatalf("%s: %v %s", name, err, resp.Stderr)
	}
}

// check fails on an order of hooks that Juju never produces.
func (h *history) check(o *order, unit, hook string, env map[string]string) {
	id, remote := env["JUJU_RELATION_ID"], env["JUJU_REMOTE_UNIT"]
	bad := func(why string) {
		h.t.Fatalf("%s: %s %s %s: %s\n%s", unit, hook, id, remote, why, strings.Join(o.hooks, "\n"))
	}
	switch {
	case o.stopped && hook != "remove":
		if hook != "start" && hook != "upgrade-charm" && hook != "config-changed" {
			bad("after stop")
		}
	case !o.installed && hook != "install":
		bad("before install")
	case hook == "install" && o.installed:
		bad("installed twice")
	}
	o.installed = true
	o.stopped = hook == "stop"
	if id == "" {
		return
	}
	if o.broken[id] {
		bad("after broken")
	}
	if owedID, owedUnit, _ := strings.Cut(o.owed, " "); owedID == id {
		if !strings.HasSuffix(hook, "-changed") || remote != owedUnit {
			bad("instead of the changed that is owed for " + owedUnit)
		}
		o.owed = ""
	}
	m := o.members[id]
	switch {
	case strings.HasSuffix(hook, "-created"):
		if m != nil {
			bad("created twice")
		}
		o.members[id] = map[string]bool{}
	case m == nil:
		bad("before created")
	case strings.HasSuffix(hook, "-joined"):
		if m[remote] {
			bad("joined twice")
		}
		m[remote], o.owed = true, id+" "+remote
	case strings.HasSuffix(hook, "-changed"):
		if remote != "" && !m[remote] {
			bad("changed of a stranger")
		}
	case strings.HasSuffix(hook, "-departed"):
		if !m[remote] {
			bad("departed of a stranger")
		}
		delete(m, remote)
	case strings.HasSuffix(hook, "-broken"):
		if len(m) > 0 || strings.HasPrefix(hook, "mates") {
			bad("broken too early, or of peers")
		}
		o.broken[id] = true
	}
}

func (h *history) units() []string {
	s, err := h.model.Status()
	if err != nil {
		h.t.Fatal(err)
	}
	var out []string
	for _, app := range slices.Sorted(maps.Keys(s.Applications)) {
		out = append(out, slices.Sorted(maps.Keys(s.Applications[app].Units))...)
	}
	return out
}

// step runs one decision of a unit; it makes its agent and pod when needed.
func (h *history) step(unit string) string {
	if h.watch[unit] == nil {
		h.watch[unit] = &order{members: map[string]map[string]bool{}, broken: map[string]bool{}}
	}
	if h.pods[unit] == "" {
		root, err := os.MkdirTemp(h.dir, "p")
		if err != nil {
			h.t.Fatal(err)
		}
		h.pods[unit] = root
	}
	if h.agents[unit] == nil {
		a, err := agent.New(agent.Options{
			Controller: h.model, Unit: unit, Root: h.pods[unit], Runner: h.run, NoPebble: true, Tools: "-",
			Clock: h.clock.Now, Seed: uint64(len(h.watch)),
		})
		if err != nil {
			h.t.Fatal(err)
		}
		h.agents[unit] = a
	}
	ran, err := h.agents[unit].Step(context.Background())
	if err != nil {
		h.t.Fatal(err)
	}
	if ran == "dead" {
		if err := h.model.UnitGone(unit); err != nil {
			h.t.Fatal(err)
		}
		delete(h.watch, unit)
		delete(h.agents, unit)
		delete(h.pods, unit)
	}
	return ran
}

// settle lets time pass until nothing happens any more.
func (h *history) settle() {
	h.fail, h.write = false, 0
	for range 3000 {
		busy := false
		for _, u := range h.units() {
			busy = h.step(u) != "" || busy
		}
		if !busy {
			if !h.waiting() {
				return
			}
			h.clock.Add(10 * time.Minute)
		}
	}
	h.t.Fatal("does not settle")
}

// waiting says whether some failed hook waits for its retry.
func (h *history) waiting() bool {
	s, err := h.model.Status()
	if err != nil {
		h.t.Fatal(err)
	}
	for _, a := range s.Applications {
		for _, u := range a.Units {
			if u.Error != "" {
				return true
			}
		}
	}
	return false
}

// converged checks that what units have seen is what is there.
func (h *history) converged() {
	s, err := h.model.Status()
	if err != nil {
		h.t.Fatal(err)
	}
	for _, r := range s.Relations {
		if r.Life != model.Alive {
			h.t.Fatalf("relation %d is %s with %v", r.ID, r.Life, r.InScope)
		}
		for _, end := range r.Ends {
			id := fmt.Sprintf("%s:%d", end.Name, r.ID)
			for unit := range s.Applications[end.App].Units {
				var want []string
				for _, other := range r.InScope {
					app, _, _ := strings.Cut(other, "/")
					if other != unit && (app != end.App || len(r.Ends) == 1) {
						want = append(want, other)
					}
				}
				got := slices.Sorted(maps.Keys(h.watch[unit].members[id]))
				if !slices.Equal(got, want) {
					h.t.Fatalf("%s sees %v in %s, there are %v", unit, got, id, want)
				}
			}
		}
	}
}

func TestAgent_RandomHistories(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(base, "h")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(dir)
		h := &history{
			t: rt, dir: dir, clock: &clock{now: time.Unix(1e9, 0)}, charms: map[string]*model.Charm{},
			agents: map[string]*agent.Agent{}, pods: map[string]string{}, watch: map[string]*order{},
		}
		if h.model, err = model.Open(filepath.Join(dir, "m.db"), model.Options{NoSync: true, Clock: h.clock.Now}); err != nil {
			rt.Fatal(err)
		}
		defer h.model.Close()
		h.charm("srv", "provides: {db: pg}\npeers: {mates: m}\n")
		h.charm("cli", "requires: {db: pg}\npeers: {mates: m}\n")
		apps := []string{"srv", "cli"}
		rt.Repeat(map[string]func(*rapid.T){
			"deploy": func(rt *rapid.T) {
				app := rapid.SampledFrom(apps).Draw(rt, "app")
				h.model.Deploy(model.DeployArgs{Charm: h.charms[app], Units: rapid.IntRange(0, 2).Draw(rt, "units")})
			},
			"scale": func(rt *rapid.T) {
				h.model.Scale(rapid.SampledFrom(apps).Draw(rt, "app"), rapid.IntRange(0, 3).Draw(rt, "units"))
			},
			"integrate": func(*rapid.T) { h.model.Integrate("srv", "cli") },
			"separate":  func(*rapid.T) { h.model.RemoveRelation("srv", "cli") },
			"remove": func(rt *rapid.T) {
				if rapid.IntRange(0, 3).Draw(rt, "really") == 0 {
					h.model.RemoveApplication(rapid.SampledFrom(apps).Draw(rt, "app"))
				}
			},
			"config": func(rt *rapid.T) {
				h.model.SetConfig("srv", map[string]string{"a": rapid.StringN(0, 2, -1).Draw(rt, "a")})
			},
			"time":  func(*rapid.T) { h.clock.Add(7 * time.Second) },
			"fail":  func(*rapid.T) { h.fail = true },
			"write": func(rt *rapid.T) { h.write = rapid.IntRange(1, 9).Draw(rt, "value") },
			"bounce": func(rt *rapid.T) {
				if units := h.units(); len(units) > 0 {
					delete(h.agents, rapid.SampledFrom(units).Draw(rt, "unit"))
				}
			},
			"replace": func(rt *rapid.T) {
				if units := h.units(); len(units) > 0 {
					unit := rapid.SampledFrom(units).Draw(rt, "unit")
					delete(h.agents, unit)
					delete(h.pods, unit)
				}
			},
			"step": func(rt *rapid.T) {
				if units := h.units(); len(units) > 0 {
					unit := rapid.SampledFrom(units).Draw(rt, "unit")
					for range rapid.IntRange(1, 8).Draw(rt, "steps") {
						if h.step(unit) == "dead" {
							return
						}
					}
				}
			},
			"settle": func(*rapid.T) { h.settle(); h.converged() },
		})
		h.settle()
		h.converged()
	})
}
