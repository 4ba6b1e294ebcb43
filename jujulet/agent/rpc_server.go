// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/rpc"
	"sync"
	"time"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// Request is one call of an agent to its controller: arguments and results are
// JSON inside of net/rpc.
type Request struct {
	Method string
	Args   []byte
}

// Reply answers a Request. Failed replies carry the kind and message of the error.
type Reply struct {
	Result  []byte
	Failed  bool
	Kind    string
	Message string
}

// service is the RPC receiver "Agent"; its only method is Call.
type service struct {
	ctx     context.Context
	unit    string
	methods map[string]method
}

type method func(ctx context.Context, unit string, args []byte) (any, error)

// handle adapts a typed function to a method.
func handle[A, R any](f func(ctx context.Context, unit string, args A) (R, error)) method {
	return func(ctx context.Context, unit string, raw []byte) (any, error) {
		var args A
		if err := json.Unmarshal(raw, &args); err != nil {
			return nil, fmt.Errorf("cannot read arguments: %w", err)
		}
		return f(ctx, unit, args)
	}
}

// none is the argument or the result of calls without one.
type none struct{}

// get adapts a method that only reads by unit.
func get[R any](f func(ctx context.Context, unit string) (R, error)) method {
	return handle(func(ctx context.Context, unit string, _ none) (R, error) { return f(ctx, unit) })
}

// do adapts a method that only writes.
func do[A any](f func(ctx context.Context, unit string, args A) error) method {
	return handle(func(ctx context.Context, unit string, args A) (none, error) { return none{}, f(ctx, unit, args) })
}

// Call runs one method for the unit that the connection belongs to.
func (s *service) Call(req Request, reply *Reply) error {
	m, ok := s.methods[req.Method]
	if !ok {
		return fmt.Errorf("unknown method %q", req.Method)
	}
	result, err := m(s.ctx, s.unit, req.Args)
	if err != nil {
		reply.Failed, reply.Kind, reply.Message = true, string(model.KindOf(err)), err.Error()
		if errors.Is(err, model.ErrClosed) {
			reply.Kind = closedKind
		}
		return nil
	}
	reply.Result, err = json.Marshal(result)
	return err
}

// closedKind marks model.ErrClosed on the wire.
const closedKind = "closed"

// waitLimit bounds one WaitChange on the server: an agent asks again.
const waitLimit = time.Minute

// The arguments of the methods that have more than the unit.
type (
	bagArgs struct {
		Relation int    `json:"relation"`
		Owner    string `json:"owner"`
	}
	appStatus struct {
		App   model.StatusValue            `json:"app"`
		Units map[string]model.StatusValue `json:"units"`
	}
	failArgs struct {
		Entry model.JournalEntry `json:"entry"`
		Save  model.Save         `json:"save"`
	}
	actionLogArgs struct{ ID, Message string }
)

// methods is the table of what an agent may ask.
func methods(c Controller) map[string]method {
	return map[string]method{
		"Config": get(c.Config), "IsLeader": get(c.IsLeader), "GoalState": get(c.GoalState),
		"CharmState": get(c.CharmState), "OpenedPorts": get(c.OpenedPorts),
		"UnitStatusValue": get(c.UnitStatusValue), "ManagedSecrets": get(c.ManagedSecrets),
		"LeaderSettings": get(c.LeaderSettings), "Snapshot": get(c.Snapshot), "LoadState": get(c.LoadState),
		"ContextInfo": get(c.ContextInfo), "CharmArchive": handle((&archiveParts{source: c}).read),
		"ClaimLeadership": get(c.ClaimLeadership),

		"SetUnitStatus": do(c.SetUnitStatus), "SetAppStatus": do(c.SetAppStatus), "SetVersion": do(c.SetVersion),
		"SetLeaderSettings": do(c.SetLeaderSettings), "Save": do(c.Save), "AddLogs": do(c.AddLogs),
		"ReadSecret": handle(c.ReadSecret), "CommitHook": handle(c.CommitHook), "ActionInfo": handle(c.ActionInfo),
		"Resource": handle(c.Resource),

		"MarkDead": do(func(ctx context.Context, unit string, _ none) error { return c.MarkDead(ctx, unit) }),
		"ReadBag": handle(func(ctx context.Context, unit string, a bagArgs) (map[string]string, error) {
			return c.ReadBag(ctx, unit, a.Relation, a.Owner)
		}),
		"AppStatusValue": get(func(ctx context.Context, unit string) (appStatus, error) {
			v, units, err := c.AppStatusValue(ctx, unit)
			return appStatus{v, units}, err
		}),
		"LogAction": do(func(ctx context.Context, unit string, a actionLogArgs) error {
			return c.LogAction(ctx, unit, a.ID, a.Message)
		}),
		"FailHook": do(func(ctx context.Context, unit string, a failArgs) error {
			return c.FailHook(ctx, unit, a.Entry, a.Save)
		}),
		"WaitChange": handle(func(ctx context.Context, unit string, seen uint64) (uint64, error) {
			ctx, cancel := context.WithTimeout(ctx, waitLimit)
			defer cancel()
			g, err := c.WaitChange(ctx, unit, seen)
			if errors.Is(err, context.DeadlineExceeded) {
				return seen, nil
			}
			return g, err
		}),
	}
}

// Serve serves Controller to an agent of another process until the listener is
// closed or ctx ends. Its connections speak for that unit only.
func Serve(ctx context.Context, l net.Listener, c Controller, unit string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := rpc.NewServer()
	s := &service{ctx: ctx, unit: unit, methods: methods(c)}
	if err := server.RegisterName("Agent", s); err != nil {
		return fmt.Errorf("cannot serve agent: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	var mu sync.Mutex
	conns := map[net.Conn]bool{}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer func() {
		cancel()
		mu.Lock()
		defer mu.Unlock()
		for conn := range conns {
			conn.Close()
		}
	}()
	for {
		conn, err := l.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return nil
			}
			return fmt.Errorf("cannot serve agent: %w", err)
		}
		mu.Lock()
		conns[conn] = true
		mu.Unlock()
		wg.Go(func() {
			server.ServeConn(conn)
			mu.Lock()
			defer mu.Unlock()
			delete(conns, conn)
		})
	}
}
