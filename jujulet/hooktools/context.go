// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package hooktools

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// Backend is what hook tools ask of the model. *model.Model is one.
type Backend interface {
	Config(ctx context.Context, unit string) (map[string]any, error)
	ReadBag(ctx context.Context, unit string, relation int, owner string) (map[string]string, error)
	IsLeader(ctx context.Context, unit string) (bool, error)
	GoalState(ctx context.Context, unit string) (model.GoalState, error)
	CharmState(ctx context.Context, unit string) (map[string]string, error)
	OpenedPorts(ctx context.Context, unit string) ([]string, error)
	SetUnitStatus(ctx context.Context, unit string, v model.StatusValue) error
	SetAppStatus(ctx context.Context, unit string, v model.StatusValue) error
	UnitStatusValue(ctx context.Context, unit string) (model.StatusValue, error)
	AppStatusValue(ctx context.Context, unit string) (model.StatusValue, map[string]model.StatusValue, error)
	SetVersion(ctx context.Context, unit, version string) error
	ReadSecret(ctx context.Context, unit string, q model.SecretRead) (model.SecretValue, error)
	ManagedSecrets(ctx context.Context, unit string) ([]model.SecretMeta, error)
	LeaderSettings(ctx context.Context, unit string) (map[string]string, error)
	SetLeaderSettings(ctx context.Context, unit string, values map[string]string) error
	Resource(ctx context.Context, unit, name string) ([]byte, error)
	LogAction(ctx context.Context, unit, id, message string) error
}

// Options describe a hook context.
type Options struct {
	// ID is the context's id: tool calls with another are refused.
	ID      string
	Unit    string
	Backend Backend
	Info    *model.ContextInfo
	// Hook is the hook that runs; nil in actions and commands.
	Hook *model.HookInfo
	// Action is the action that runs, nil otherwise.
	Action *model.Action
	// Members are the units of each relation as delivered to the charm, the
	// running hook's own effect included.
	Members map[int][]string
	// Cache keeps remote unit databags from hook to hook.
	Cache *Cache
	// Log writes to the model's debug log.
	Log func(level, message string)
	// ResourceDir is where resource-get puts files.
	ResourceDir string
	// Token returns the pod's service-account token, for credential-get.
	Token func() (token, ca string, err error)
}

// Context is one run of a hook, an action or a command. It buffers what the run
// writes; Commit returns it.
type Context struct {
	Options
	relations map[int]model.RelationView

	mu       sync.Mutex
	isClosed bool
	calls    int

	leader   *bool // a "no" is sticky
	config   map[string]any
	own      map[bagID]map[string]string // own databags as read
	hookBags map[bagID]map[string]string // others, for this hook
	writes   map[bagID]map[string]string

	state       map[string]string // as read
	stateSet    map[string]string
	stateDelete map[string]bool
	openPorts   map[string]bool // true opens, false closes
	statuses    []model.StatusValue

	secrets secretBuffer

	results map[string]any
	failed  bool
	failMsg string
}

// bagID names a databag.
type bagID struct {
	relation int
	owner    string
}

// NewContext prepares a context.
func NewContext(o Options) *Context {
	c := &Context{
		Options: o, relations: map[int]model.RelationView{},
		own: map[bagID]map[string]string{}, hookBags: map[bagID]map[string]string{},
		writes: map[bagID]map[string]string{}, stateSet: map[string]string{}, stateDelete: map[string]bool{},
		openPorts: map[string]bool{}, secrets: newSecretBuffer(), results: map[string]any{},
	}
	if c.Cache == nil {
		c.Cache = NewCache()
	}
	for _, r := range o.Info.Relations {
		if r.InScope {
			c.relations[r.ID] = r
		}
	}
	return c
}

func (c *Context) countCall() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
}

func (c *Context) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isClosed = true
}

func (c *Context) closed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.isClosed
}

// Calls returns how many tool calls were made.
func (c *Context) Calls() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls
}

// isLeader asks the model, but a "no" holds for the whole context.
func (c *Context) isLeader(ctx context.Context) (bool, error) {
	if c.leader != nil && !*c.leader {
		return false, nil
	}
	leads, err := c.Backend.IsLeader(ctx, c.Unit)
	if err != nil {
		return false, err
	}
	c.leader = &leads
	return leads, nil
}

// Commit returns what the run has buffered, for the model to apply.
func (c *Context) Commit() model.HookCommit {
	out := model.HookCommit{Secrets: c.secrets.ops(), StateSet: c.stateSet}
	ids := slices.SortedFunc(maps.Keys(c.writes), func(a, b bagID) int {
		if a.relation != b.relation {
			return a.relation - b.relation
		}
		return compare(a.owner, b.owner)
	})
	for _, id := range ids {
		if len(c.writes[id]) == 0 {
			continue
		}
		out.Relations = append(out.Relations, model.RelationWrite{
			Relation: id.relation, App: id.owner == c.Info.App, Values: c.writes[id],
		})
	}
	out.StateDelete = slices.Sorted(maps.Keys(c.stateDelete))
	for _, p := range slices.Sorted(maps.Keys(c.openPorts)) {
		if c.openPorts[p] {
			out.OpenPorts = append(out.OpenPorts, p)
		} else {
			out.ClosePorts = append(out.ClosePorts, p)
		}
	}
	out.Journal.Statuses = c.statuses
	out.Journal.ToolCalls = c.Calls()
	return out
}

// Statuses are the status-set calls of the run.
func (c *Context) Statuses() []model.StatusValue { return c.statuses }

// ActionOutcome returns what action-set and action-fail have said.
func (c *Context) ActionOutcome() (results map[string]any, failed bool, message string) {
	return c.results, c.failed, c.failMsg
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// Cache keeps the databags of remote units across the hooks of one agent: Juju
// reads a member's databag again only after a hook about that unit.
type Cache struct {
	mu   sync.Mutex
	bags map[bagID]map[string]string
}

// NewCache returns an empty cache.
func NewCache() *Cache { return &Cache{bags: map[bagID]map[string]string{}} }

// Forget drops a unit's databag: a hook about it is about to run.
func (c *Cache) Forget(relation int, unit string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.bags, bagID{relation, unit})
}

// ForgetRelation drops all databags of a relation.
func (c *Cache) ForgetRelation(relation int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.bags, func(k bagID, _ map[string]string) bool { return k.relation == relation })
}

func (c *Cache) get(id bagID) (map[string]string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b, ok := c.bags[id]
	return b, ok
}

func (c *Cache) put(id bagID, b map[string]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bags[id] = b
}
