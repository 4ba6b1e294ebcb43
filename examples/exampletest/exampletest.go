// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

// Package exampletest is a model small enough to test the example charms in:
// it answers the hook tools that they use.
package exampletest

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/drawbridge-k8s/drawbridge/hooks"
	"github.com/drawbridge-k8s/drawbridge/hooks/hooktool"
)

// Juju is the model as one unit sees it. Hooks run one at a time.
type Juju struct {
	App, Unit string
	Leader    bool
	Dying     bool
	Config    map[string]any
	Relations map[string]*Relation // by "endpoint:id"
	Secrets   map[string]*Secret   // by bare id
	Params    map[string]any       // of the action

	Status, Message, Version string
	Results                  map[string]string // of the action
	Failure                  string            // of the action
	Writes                   []string          // tools that changed something

	secretCount int
}

// Relation is one relation: the remote application's name and all databags, by
// the name of their owner.
type Relation struct {
	Remote string
	Bags   map[string]map[string]string
}

// Secret is a secret of the model.
type Secret struct {
	Label   string
	Content map[string]string
	Granted string // the relation
}

// New returns a model with unit 0, the leader, of an application.
func New(app string) *Juju {
	return &Juju{App: app, Unit: app + "/0", Leader: true, Config: map[string]any{},
		Relations: map[string]*Relation{}, Secrets: map[string]*Secret{}}
}

// Relate adds a relation with what the remote application's databag holds.
func (j *Juju) Relate(id, remote string, bag map[string]string) *Relation {
	r := &Relation{Remote: remote, Bags: map[string]map[string]string{remote: bag, j.App: {}, j.Unit: {}}}
	j.Relations[id] = r
	return r
}

// Hook runs one hook and fails the test if that fails. The event is completed.
func (j *Juju) Hook(t testing.TB, handle hooks.Handler, e hooks.Event) {
	t.Helper()
	e.App, e.Unit, e.Model = j.App, j.Unit, "dev"
	ctx, cancel := context.WithTimeout(context.Background(), hooks.Budget)
	defer cancel()
	tools := hooktool.New(j)
	h := &hooks.Hook{
		Event: e, Tools: tools, Getenv: func(string) string { return "" },
		Log: slog.New(hooks.NewLogHandler(ctx, tools, slog.LevelInfo, os.Stderr)),
	}
	if err := handle(ctx, h); err != nil {
		t.Fatalf("%s: %v", e.Kind, err)
	}
}

// Run answers one call; it makes Juju a hooktool.Runner.
func (j *Juju) Run(_ context.Context, call hooktool.Call) ([]byte, error) {
	flags, args := parse(call.Args)
	switch call.Tool {
	case "relation-get", "relation-set", "relation-list":
		r := j.Relations[flags["-r"]]
		if r == nil {
			return nil, notFound(call.Tool)
		}
		return j.relation(r, call, flags, args)
	case "secret-add", "secret-get", "secret-info-get", "secret-grant", "secret-remove":
		return j.secret(call.Tool, flags, args)
	case "juju-log":
		return nil, nil
	case "relation-ids":
		var ids []string
		for id := range j.Relations {
			if strings.HasPrefix(id, args[0]+":") {
				ids = append(ids, id)
			}
		}
		return json.Marshal(ids)
	case "is-leader":
		return json.Marshal(j.Leader)
	case "config-get":
		return json.Marshal(j.Config)
	case "goal-state":
		status := map[bool]string{true: "dying", false: "active"}[j.Dying]
		return json.Marshal(map[string]any{"units": map[string]any{j.Unit: map[string]string{"status": status}}})
	case "status-get":
		return json.Marshal(map[string]string{"status": j.Status, "message": j.Message})
	case "action-get":
		return json.Marshal(j.Params)
	}
	return nil, j.write(call.Tool, args)
}

// write answers the tools that only change something of the unit.
func (j *Juju) write(tool string, args []string) error {
	switch tool {
	case "status-set":
		j.Status, j.Message = args[0], args[1]
	case "application-version-set":
		j.Version = args[0]
	case "action-fail":
		j.Failure = args[0]
	case "action-set":
		j.Results = map[string]string{}
		for _, arg := range args {
			key, value, _ := strings.Cut(arg, "=")
			j.Results[key] = value
		}
	default:
		return &hooktool.Error{Tool: tool, Code: 1, Message: "not in this model"}
	}
	j.Writes = append(j.Writes, tool)
	return nil
}

func (j *Juju) relation(r *Relation, call hooktool.Call, flags map[string]string, args []string) ([]byte, error) {
	switch call.Tool {
	case "relation-list":
		if _, app := flags["--app"]; app {
			return json.Marshal(r.Remote)
		}
		units := []string{}
		for owner := range r.Bags {
			if strings.Contains(owner, "/") && owner != j.Unit {
				units = append(units, owner)
			}
		}
		return json.Marshal(units)
	case "relation-get":
		return json.Marshal(r.Bags[args[1]])
	}
	changes := map[string]string{}
	if err := yaml.Unmarshal(call.Stdin, &changes); err != nil {
		return nil, err
	}
	owner := j.Unit
	if _, app := flags["--app"]; app {
		owner = j.App
	}
	for key, value := range changes {
		if r.Bags[owner][key] = value; value == "" {
			delete(r.Bags[owner], key)
		}
	}
	j.Writes = append(j.Writes, call.Tool)
	return nil, nil
}

func (j *Juju) secret(tool string, flags map[string]string, args []string) ([]byte, error) {
	if tool == "secret-add" {
		content, err := os.ReadFile(flags["--file"])
		if err != nil {
			return nil, err
		}
		j.secretCount++
		id := fmt.Sprintf("s%d", j.secretCount)
		j.Secrets[id] = &Secret{Label: flags["--label"]}
		j.Writes = append(j.Writes, tool)
		return []byte("secret:" + id + "\n"), yaml.Unmarshal(content, &j.Secrets[id].Content)
	}
	id := ""
	for name, s := range j.Secrets {
		if len(args) > 0 && strings.TrimPrefix(args[0], "secret:") == name || len(args) == 0 && flags["--label"] == s.Label {
			id = name
		}
	}
	s := j.Secrets[id]
	if s == nil {
		return nil, notFound(tool)
	}
	switch tool {
	case "secret-get":
		return json.Marshal(s.Content)
	case "secret-info-get":
		return json.Marshal(map[string]any{id: map[string]any{"revision": 1, "label": s.Label, "owner": "application"}})
	case "secret-grant":
		s.Granted = flags["--relation"]
	case "secret-remove":
		delete(j.Secrets, id)
	}
	j.Writes = append(j.Writes, tool)
	return nil, nil
}

func notFound(tool string) error {
	return &hooktool.Error{Tool: tool, Code: 1, Message: "not found"}
}

// parse splits arguments into flags and what follows them.
func parse(list []string) (flags map[string]string, args []string) {
	flags = map[string]string{}
	for len(list) > 0 {
		word := list[0]
		list = list[1:]
		switch {
		case word == "--":
			return flags, append(args, list...)
		case word == "--app" || word == "--refresh" || word == "--include-data":
			flags[word] = ""
		case strings.HasPrefix(word, "-") && word != "-" && len(list) > 0:
			flags[word], list = list[0], list[1:]
		default:
			args = append(args, word)
		}
	}
	return flags, args
}
