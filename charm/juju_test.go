// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package charm

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/drawbridge-k8s/drawbridge/hooks/hooktool"
)

// fakeJuju is what one unit sees of Juju, behind the hook tools' own calls. Writes are undone when a hook fails, except
// those that Juju applies at once.
type fakeJuju struct {
	unit, app  string
	leader     bool
	units      map[string]string
	config     map[string]any
	relations  []*fakeRelation
	hidden     map[string][]string // applications that goal-state lists though no relation is seen
	secrets    map[string]*fakeSecret
	state      map[string]string
	status     string
	message    string
	version    string
	nextSecret int
	unreadable map[string]bool // secrets that may not be read
	calls      []string
	writes     []string
	logs       []string
	failAt     string // a tool that fails
	killAt     int    // the write at which the hook is killed; 0 for none
	results    map[string]string
	failure    string
	each       func(tool string) // is called with every call
}

type fakeRelation struct {
	id, endpoint, remote string
	units                []string
	model                string
	ownApp, ownUnit      map[string]string
	remoteApp            map[string]string
	remoteUnits          map[string]map[string]string
	broken               bool
}

type fakeSecret struct {
	label   string
	ours    bool
	content map[string]string
	granted map[string]bool
	rev     int
}

// number is the part of an id after the colon.
func (r *fakeRelation) number() string { return r.id[strings.LastIndexByte(r.id, ':')+1:] }

func newFakeJuju() *fakeJuju {
	return &fakeJuju{
		unit: "drawbridge-k8s/0", app: "drawbridge-k8s", leader: true,
		units:  map[string]string{"drawbridge-k8s/0": "active"},
		config: map[string]any{"expose-external": "false"},
		hidden: map[string][]string{}, secrets: map[string]*fakeSecret{}, state: map[string]string{},
		unreadable: map[string]bool{},
		status:     "maintenance", message: "installing charm software",
	}
}

// relate adds a relation.
func (j *fakeJuju) relate(id, endpoint, remote string, units ...string) *fakeRelation {
	r := &fakeRelation{id: id, endpoint: endpoint, remote: remote, units: units, model: "model-uuid",
		ownApp: map[string]string{}, ownUnit: map[string]string{}, remoteApp: map[string]string{},
		remoteUnits: map[string]map[string]string{}}
	for _, unit := range units {
		r.remoteUnits[unit] = map[string]string{}
	}
	j.relations = append(j.relations, r)
	return r
}

func (j *fakeJuju) relation(id string) *fakeRelation {
	number := id[strings.LastIndexByte(id, ':')+1:]
	for _, r := range j.relations {
		if r.number() == number {
			return r
		}
	}
	return nil
}

// snapshot copies what a failed hook must not change.
func (j *fakeJuju) snapshot() func() {
	bags := map[*map[string]string]map[string]string{}
	for _, r := range j.relations {
		bags[&r.ownApp] = maps.Clone(r.ownApp)
		bags[&r.ownUnit] = maps.Clone(r.ownUnit)
	}
	secrets := map[string]*fakeSecret{}
	for id, s := range j.secrets {
		clone := *s
		clone.content, clone.granted = maps.Clone(s.content), maps.Clone(s.granted)
		secrets[id] = &clone
	}
	state := maps.Clone(j.state)
	return func() {
		for bag, before := range bags {
			*bag = before
		}
		j.secrets, j.state = secrets, state
	}
}

// errKilled is what every call returns after the process was killed.
type errKilled struct{}

func (errKilled) Error() string { return "killed" }

func no(tool string, code int, format string, args ...any) error {
	return &hooktool.Error{Tool: tool, Code: code, Message: fmt.Sprintf(format, args...)}
}

// Run is hooktool.Runner.
func (j *fakeJuju) Run(_ context.Context, call hooktool.Call) ([]byte, error) {
	line := call.Tool + " " + strings.Join(call.Args, " ")
	if call.Tool == "juju-log" {
		j.logs = append(j.logs, line)
		return nil, nil
	}
	j.calls = append(j.calls, line)
	if j.each != nil {
		j.each(call.Tool)
	}
	if j.failAt != "" && strings.HasPrefix(line, j.failAt) {
		return nil, fmt.Errorf("cannot run %s: connection lost", call.Tool)
	}
	if isWrite(call.Tool) {
		if j.killAt > 0 && len(j.writes)+1 >= j.killAt {
			return nil, errKilled{}
		}
		j.writes = append(j.writes, line+" "+string(call.Stdin))
	}
	out, err := j.tool(call)
	if err != nil {
		return nil, err
	}
	if out == nil {
		return nil, nil
	}
	if text, ok := out.(rawText); ok {
		return []byte(text), nil
	}
	return json.Marshal(out)
}

type rawText string

func isWrite(tool string) bool {
	for _, suffix := range []string{"-set", "-add", "-remove", "-grant", "-revoke", "-delete"} {
		if strings.HasSuffix(tool, suffix) {
			return true
		}
	}
	return false
}

// flag returns the value after a flag, and whether it is there.
func flag(args []string, name string) (string, bool) {
	i := slices.Index(args, name)
	if i < 0 || i+1 >= len(args) {
		return "", i >= 0
	}
	return args[i+1], true
}

// positional are the arguments after `--`.
func positional(args []string) []string {
	i := slices.Index(args, "--")
	if i < 0 {
		return nil
	}
	return args[i+1:]
}

func (j *fakeJuju) tool(call hooktool.Call) (any, error) {
	args := call.Args
	rest := positional(args)
	switch call.Tool {
	case "config-get":
		return j.config, nil
	case "is-leader":
		return j.leader, nil
	case "goal-state":
		return j.goalState(), nil
	case "state-get":
		return j.state, nil
	case "state-set":
		maps.Copy(j.state, document(call.Stdin))
		return nil, nil
	case "state-delete":
		delete(j.state, rest[0])
		return nil, nil
	case "status-get":
		return map[string]string{"status": j.status, "message": j.message}, nil
	case "status-set":
		j.status, j.message = rest[0], rest[1]
		return nil, nil
	case "application-version-set":
		j.version = rest[0]
		return nil, nil
	case "action-set":
		j.results = map[string]string{}
		for _, pair := range rest {
			key, value, _ := strings.Cut(pair, "=")
			j.results[key] = value
		}
		return nil, nil
	case "action-get":
		return map[string]any{}, nil
	case "action-fail":
		j.failure = rest[0]
		return nil, nil
	case "network-get":
		return map[string]any{"bind-addresses": []any{map[string]any{"addresses": []any{map[string]any{"value": "10.1.0.5"}}}}}, nil
	}
	if strings.HasPrefix(call.Tool, "relation-") {
		return j.relationTool(call, args, rest)
	}
	return j.secretTool(call, args, rest)
}

func (j *fakeJuju) goalState() any {
	units, relations := map[string]any{}, map[string]map[string]any{}
	for unit, status := range j.units {
		units[unit] = map[string]string{"status": status}
	}
	add := func(endpoint, name string) {
		if relations[endpoint] == nil {
			relations[endpoint] = map[string]any{}
		}
		relations[endpoint][name] = map[string]string{"status": "joined"}
	}
	for _, r := range j.relations {
		if r.endpoint == endpointPeers || r.broken {
			continue
		}
		for _, endpoint := range []string{r.endpoint, "database"} { // the other side's endpoint is called so too
			add(endpoint, r.remote)
			for _, unit := range r.units {
				add(endpoint, unit)
			}
		}
	}
	for endpoint, apps := range j.hidden {
		for _, app := range apps {
			add(endpoint, app)
		}
	}
	return map[string]any{"units": units, "relations": relations}
}

func (j *fakeJuju) relationTool(call hooktool.Call, args, rest []string) (any, error) {
	if call.Tool == "relation-ids" {
		ids := []string{}
		for _, r := range j.relations {
			if r.endpoint == rest[0] && !r.broken {
				ids = append(ids, r.id)
			}
		}
		return ids, nil
	}
	id, _ := flag(args, "-r")
	r := j.relation(id)
	if r == nil {
		return nil, no(call.Tool, 2, "invalid value %q for option -r: relation not found", id)
	}
	_, app := flag(args, "--app")
	switch call.Tool {
	case "relation-list":
		if app {
			return r.remote, nil
		}
		return r.units, nil
	case "relation-model-get":
		return map[string]string{"uuid": r.model}, nil
	case "relation-get":
		return j.relationGet(call, r, app, rest[1])
	case "relation-set":
		bag := &r.ownUnit
		if app {
			if !j.leader {
				return nil, no(call.Tool, 1, "cannot write relation settings")
			}
			bag = &r.ownApp
		}
		changed := maps.Clone(*bag)
		for key, value := range document(call.Stdin) {
			changed[key] = value
			if value == "" {
				delete(changed, key)
			}
		}
		*bag = changed
		return nil, nil
	}
	return nil, no(call.Tool, 1, "unknown command: %s", call.Tool)
}

func (j *fakeJuju) relationGet(call hooktool.Call, r *fakeRelation, app bool, member string) (any, error) {
	switch {
	case app && member == j.app:
		if !j.leader && r.endpoint != endpointPeers {
			return nil, no(call.Tool, 1, "permission denied")
		}
		return r.ownApp, nil
	case app && member == r.remote:
		return r.remoteApp, nil
	case member == j.unit:
		return r.ownUnit, nil
	case r.remoteUnits[member] != nil:
		return r.remoteUnits[member], nil
	}
	return nil, no(call.Tool, 1, "permission denied")
}

func (j *fakeJuju) secretTool(call hooktool.Call, args, rest []string) (any, error) {
	label, _ := flag(args, "--label")
	find := func() (string, *fakeSecret, error) {
		for id, s := range j.secrets {
			if len(rest) > 0 && (rest[0] == id || rest[0] == "secret:"+id) || len(rest) == 0 && label != "" && s.ours && s.label == label {
				return id, s, nil
			}
		}
		return "", nil, no(call.Tool, 1, "secret %q not found", strings.Join(rest, label))
	}
	switch call.Tool {
	case "secret-add":
		if !j.leader {
			return nil, no(call.Tool, 1, "this unit is not the leader")
		}
		for _, s := range j.secrets {
			if s.ours && s.label == label {
				return nil, no(call.Tool, 1, "secret with label %q already exists", label)
			}
		}
		j.nextSecret++
		id := fmt.Sprintf("own%d", j.nextSecret)
		j.secrets[id] = &fakeSecret{label: label, ours: true, content: content(args), granted: map[string]bool{}, rev: 1}
		return rawText("secret:" + id + "\n"), nil
	case "secret-ids":
		ids := []string{}
		for id, s := range j.secrets {
			if s.ours {
				ids = append(ids, id)
			}
		}
		return ids, nil
	}
	id, s, err := find()
	if err != nil {
		return nil, err
	}
	switch call.Tool {
	case "secret-get":
		if j.unreadable[id] {
			return nil, no(call.Tool, 1, "permission denied")
		}
		return s.content, nil
	case "secret-info-get":
		if !s.ours {
			return nil, no(call.Tool, 1, "secret %q not found", id)
		}
		return map[string]any{id: map[string]any{"revision": s.rev, "label": s.label, "owner": "application"}}, nil
	case "secret-set":
		s.content, s.rev = content(args), s.rev+1
	case "secret-grant":
		relation, _ := flag(args, "--relation")
		s.granted[relation] = true
	case "secret-remove":
		delete(j.secrets, id)
	default:
		return nil, no(call.Tool, 1, "unknown command: %s", call.Tool)
	}
	return nil, nil
}

// content reads the file of secret-add and secret-set, as the agent does.
func content(args []string) map[string]string {
	path, _ := flag(args, "--file")
	text, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	return document(text)
}

func document(text []byte) map[string]string {
	values := map[string]string{}
	if err := yaml.Unmarshal(text, &values); err != nil {
		panic(err)
	}
	return values
}
