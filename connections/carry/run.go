// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package carry

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/drawbridge-k8s/drawbridge/connections"
	"github.com/drawbridge-k8s/drawbridge/hooks"
	"github.com/drawbridge-k8s/drawbridge/hooks/hooktool"
	"github.com/drawbridge-k8s/drawbridge/workload"
)

// Run ends the pass: it decides, brings the document and the databags up to date, and tells what has changed. An error
// means that the hook tools fail.
func (p *Pass) Run(ctx context.Context, own Own) (Report, error) {
	seen, read := p.wait(own.Hurry)
	if !read {
		return p.report, nil
	}
	if err := p.observe(ctx); err != nil {
		return p.report, err
	}
	p.report.Active = p.options.Set() || len(p.required) > 0 || len(p.provided) > 0 ||
		p.h.PeerBag[connections.KeyDesired] != "" || p.applied.Hash != ""
	box, err := p.h.Open(ctx)
	if err == nil {
		defer box.Close()
		err = p.readFile(ctx, box)
	}
	p.decide(own, seen)
	if err == nil {
		err = p.deliver(ctx, box, own)
	}
	p.container(err)
	err = nil
	switch {
	case !p.report.Active:
	case p.h.Dry:
		err = p.observeUnits(ctx, p.applied)
	default:
		err = p.record(ctx, own)
	}
	if err != nil {
		return p.report, err
	}
	p.describe(seen)
	return p.report, nil
}

// wait waits for the ConfigMaps. Something that is in a hurry does not wait for long: the next pass does it all then, and
// the watch goes on with what is desired.
func (p *Pass) wait(hurry bool) (seen map[string]connections.Seen, read bool) {
	patience := readWithin + time.Second
	if hurry {
		patience = hurryWithin
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case seen = <-p.reading:
		p.reading = nil
		return seen, true
	case <-timer.C:
	}
	p.report.WakeAt = p.h.Now
	p.report.Watch = map[string]string{}
	for _, item := range connections.ParseDesired(p.h.PeerBag[connections.KeyDesired]).Items {
		if item.Kind == connections.KindConfigMap {
			p.report.Watch[item.Name] = item.Digest
		}
	}
	return nil, false
}

// container notes that the container is not there, or refuses.
func (p *Pass) container(err error) {
	switch {
	case err == nil:
	case workload.NotReady(err):
		p.report.Down = true
	case p.report.Active:
		p.cause(hooktool.Waiting, "connections: cannot write the document yet; trying again")
		p.report.WakeAt = p.h.Now.Add(10 * time.Second)
		p.h.Log.Warn("cannot bring the document up to date", "error", err)
	}
}

func (p *Pass) cause(status hooktool.Status, format string, args ...any) {
	p.report.Causes = append(p.report.Causes, Cause{status, fmt.Sprintf(format, args...)})
}

// readFile reads the document in the container; one that cannot be read is none.
func (p *Pass) readFile(ctx context.Context, box Box) error {
	text, found, err := box.ReadFile(ctx, connections.Path)
	if err != nil || !found {
		return err
	}
	p.report.File = text
	if p.file, err = connections.ParseDocument(text); err != nil {
		p.h.Log.Warn("the document in the container is not one; writing it again", "error", err)
	}
	return nil
}

// decide makes the plan.
func (p *Pass) decide(own Own, seen map[string]connections.Seen) {
	e := p.h.Event
	in := connections.Input{
		App:      connections.App{Name: e.App, Model: e.Model, ModelUUID: e.ModelUUID, Category: p.options.Category},
		Unit:     p.unit(e.Unit),
		Services: own.Services,
		Options:  p.options,
		Seen:     seen,
		File:     p.file,
		Desired:  connections.ParseDesired(p.h.PeerBag[connections.KeyDesired]),
	}
	for _, r := range p.required {
		in.Remotes = append(in.Remotes, connections.Remote{App: r.app, Metadata: r.metadata})
	}
	p.report.Plan = connections.Decide(in)
	p.report.Desired = in.Desired.Next(p.report.Plan)
}

// deliver brings the file to the plan and runs the workload's hook.
func (p *Pass) deliver(ctx context.Context, box Box, own Own) error {
	plan, hook := p.report.Plan, p.options.Hook
	step := connections.DecideUnit(plan, p.file, p.report.File, p.applied, hook != "", p.h.Now)
	if plan.Hold || p.h.Dry {
		return nil
	}
	fresh := p.file == nil
	if step.Push || p.h.Resync {
		if err := p.push(ctx, box, plan.Text); err != nil {
			return err
		}
	}
	if fresh || p.h.Resync || p.h.Event.Kind == hooks.PebbleReady || p.h.Event.Kind == hooks.UpgradeCharm {
		p.pushTool(ctx, box)
	}
	if p.h.Resync && hook != "" {
		step.Hook, step.Exhausted = true, false
		if len(step.Changed) == 0 {
			for _, item := range plan.Items {
				step.Changed = append(step.Changed, item.Key())
			}
		}
	}
	var run *connections.HookRun
	var err error
	switch {
	case step.Hook && own.Hurry:
		p.report.WakeAt = p.h.Now
	case step.Hook:
		run, err = p.runHook(ctx, box, step)
	case step.Later:
		p.report.WakeAt = p.h.Now.Add(5 * time.Second)
	}
	p.applied = p.applied.After(plan, step, run, hook != "")
	return err
}

// push writes the document, and reads it again.
func (p *Pass) push(ctx context.Context, box Box, text []byte) error {
	if err := box.MakeDir(ctx, connections.Dir, modeDir); err != nil {
		return err
	}
	if err := box.Push(ctx, connections.Path, text, modeFile); err != nil {
		return err
	}
	now, found, err := box.ReadFile(ctx, connections.Path)
	if err != nil {
		return err
	}
	if !found || string(now) != string(text) {
		return errors.New("the document is not what was written")
	}
	p.report.File = now
	return nil
}

// toolMark is a file that says which connq is in the container.
const toolMark = connections.Dir + "/connq.sha256"

// pushTool brings connq into the container, unless the same one is there. Without it everything else works.
func (p *Pass) pushTool(ctx context.Context, box Box) {
	program, err := os.ReadFile(p.h.Tool)
	if p.h.Tool == "" || errors.Is(err, os.ErrNotExist) {
		return
	}
	if err == nil {
		sum := sha256.Sum256(program)
		err = pushOnce(ctx, box, program, hex.EncodeToString(sum[:]))
	}
	if err != nil {
		p.h.Log.Warn("cannot bring connq into the container", "error", err)
	}
}

func pushOnce(ctx context.Context, box Box, program []byte, sum string) error {
	mark, _, err := box.ReadFile(ctx, toolMark)
	if err != nil {
		return err
	}
	size, err := box.Size(ctx, connections.Tool)
	if err != nil || string(mark) == sum && size == int64(len(program)) {
		return err
	}
	if err := box.MakeDir(ctx, path.Dir(connections.Tool), modeTool); err != nil {
		return err
	}
	if err := box.Push(ctx, connections.Tool, program, modeTool); err != nil {
		return err
	}
	return box.Push(ctx, toolMark, []byte(sum), modeFile)
}

// runHook runs the workload's hook and returns what to record of it.
func (p *Pass) runHook(ctx context.Context, box Box, step connections.UnitStep) (*connections.HookRun, error) {
	plan := p.report.Plan
	timeout := p.options.HookTimeout
	if deadline, ok := ctx.Deadline(); ok {
		timeout = min(timeout, time.Until(deadline)-reserve)
	}
	if timeout <= 0 {
		p.report.WakeAt = p.h.Now
		return nil, nil
	}
	outcome, err := box.Execute(ctx, workload.Command{
		Args:        []string{p.options.Hook, "--reconnect", "--configmeta", connections.Path, "--changed", strings.Join(step.Changed, ",")},
		Environment: map[string]string{"CONNECTIONS_HASH": plan.Hash}, Timeout: timeout,
	})
	if err != nil {
		return nil, err
	}
	run := &connections.HookRun{Hash: plan.Hash, RC: outcome.Code, Timeout: outcome.Timeout, At: p.h.Now.UTC().Format(time.RFC3339)}
	if outcome.Code == 0 {
		return run, nil
	}
	run.Attempts, run.Changed = 1, step.Changed
	if before := p.applied.Hook; before != nil && before.Hash == plan.Hash && before.RC != 0 && !p.h.Resync {
		run.Attempts = before.Attempts + 1
	}
	p.h.Log.Warn("the workload's connections hook failed", "code", outcome.Code, "timeout", outcome.Timeout,
		"attempt", run.Attempts, "output", outcome.Output)
	if run.Attempts < connections.MaxAttempts {
		p.report.WakeAt = p.h.Now.Add(5 * time.Second)
	}
	return run, nil
}

// record writes the databags, only what differs.
func (p *Pass) record(ctx context.Context, own Own) error {
	if p.h.PeerID == "" {
		return nil
	}
	if text := p.applied.Text(); text != p.h.UnitBag[connections.KeyApplied] {
		if err := p.h.Tools.RelationSet(ctx, p.h.PeerID, map[string]string{connections.KeyApplied: text}); err != nil {
			return err
		}
	}
	if !p.h.Leader {
		return nil
	}
	given, err := p.provide(ctx, own)
	if err != nil {
		return err
	}
	if err := p.answer(ctx); err != nil {
		return err
	}
	if err := p.observeUnits(ctx, p.applied); err != nil {
		return err
	}
	announced := connections.ParseAnnounced(p.h.PeerBag[connections.KeyAnnounced])
	p.tell(ctx, own.Hurry, announced, announced.Announce(p.h.Event.App, p.report.Plan, given, p.report.Units))
	changes := map[string]string{}
	for key, text := range map[string]string{
		connections.KeyDesired: p.report.Desired.Text(), connections.KeyAnnounced: announced.Text(),
	} {
		if p.h.PeerBag[key] != text {
			changes[key] = text
		}
	}
	return p.h.Tools.RelationSetApp(ctx, p.h.PeerID, changes)
}

// provide shows our metadata to those who are related for it, and returns its digest by application.
func (p *Pass) provide(ctx context.Context, own Own) (map[string]string, error) {
	if len(p.provided) == 0 || p.options.Errs[connections.OptCategory] != nil {
		return nil, nil
	}
	text, err := connections.Metadata{
		Name: p.h.Event.App, Category: p.options.Category, DistroID: own.DistroID, Version: own.Version,
		Services: own.Services, Units: p.units(),
	}.Text()
	if err != nil {
		p.cause(hooktool.Blocked, "connections: %v", err)
		return nil, nil
	}
	given := map[string]string{}
	for _, id := range p.provided {
		app, err := p.h.Tools.RelationApp(ctx, id)
		if err == nil {
			err = set(ctx, p.h.Tools, p.h.Event.App, id, map[string]string{connections.KeyMetadata: text})
		}
		if err != nil && !refused(err) {
			return nil, err
		}
		if err == nil {
			sum := sha256.Sum256([]byte(text))
			given[app] = hex.EncodeToString(sum[:])[:16]
		}
	}
	return given, nil
}

// Publish shows metadata in every relation on the endpoint `connection`: all that an application needs that connects to
// nothing itself. Its leader calls it. Metadata that is too large is an error.
func Publish(ctx context.Context, h *hooks.Hook, goal hooktool.GoalState, m connections.Metadata) error {
	p := &Pass{h: Host{Event: h.Event, Tools: h.Tools, Log: h.Log, Goal: goal}}
	ids, err := p.relationIDs(ctx, connections.EndpointProvided)
	if err != nil || len(ids) == 0 {
		return err
	}
	text, err := m.Text()
	if err != nil {
		return err
	}
	for _, id := range ids {
		err := set(ctx, h.Tools, h.Event.App, id, map[string]string{connections.KeyMetadata: text})
		if err != nil && !refused(err) {
			return err
		}
	}
	return nil
}

// set writes our application databag in a relation where it differs.
func set(ctx context.Context, tools *hooktool.Client, app, id string, wanted map[string]string) error {
	own, err := tools.RelationGetApp(ctx, id, app)
	if err != nil {
		return err
	}
	return tools.RelationSetApp(ctx, id, difference(own, wanted))
}

func difference(have, want map[string]string) map[string]string {
	changes := maps.Clone(want)
	maps.DeleteFunc(changes, func(key, value string) bool { return have[key] == value })
	return changes
}

// answer tells the other applications whether they are connected.
func (p *Pass) answer(ctx context.Context) error {
	for _, r := range p.required {
		answer := p.report.Plan.Answers[r.app]
		if p.applied.Hash != p.report.Plan.Hash {
			answer.Applied = r.own["applied"] // not in our own workload yet
		}
		err := p.h.Tools.RelationSetApp(ctx, r.id, difference(r.own, answer.Bag()))
		if err != nil && !hooktool.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// describe turns what was found into causes and notes.
func (p *Pass) describe(seen map[string]connections.Seen) {
	r := &p.report
	var waiting []Cause
	for _, f := range r.Plan.Findings {
		if f.Blocked {
			p.cause(hooktool.Blocked, "%s", f.Text)
		} else {
			waiting = append(waiting, Cause{hooktool.Waiting, f.Text})
		}
		if f.State == connections.Stale {
			r.WakeAt = p.h.Now.Add(10 * time.Second)
		}
	}
	if run := p.applied.Hook; run != nil && run.RC != 0 && p.options.Hook != "" {
		why := fmt.Sprintf("rc %d", run.RC)
		if run.Timeout {
			why = "timeout"
		}
		if run.Attempts >= connections.MaxAttempts {
			p.cause(hooktool.Blocked, "connections hook failed (%s) %d times: run %s", why, run.Attempts, connections.ActionResync)
		} else {
			r.Notes = append(r.Notes, fmt.Sprintf("connections hook failed (%s), retry %d/%d", why, run.Attempts, connections.MaxAttempts))
		}
	}
	r.Causes = append(r.Causes, waiting...)
	done := 0
	for _, u := range r.Units {
		if u.Applied.Hash == r.Plan.Hash {
			done++
		}
	}
	if done < len(r.Units) && !r.Plan.Hold {
		r.Notes = append(r.Notes, fmt.Sprintf("connections: %d/%d units", done, len(r.Units)))
	}
	p.order(seen)
}

// order is what the watch is to compare with: for a ConfigMap that could not be read, what the document has of it.
func (p *Pass) order(seen map[string]connections.Seen) {
	if len(p.options.ConfigMaps) == 0 {
		return
	}
	p.report.Watch = map[string]string{}
	for _, n := range p.options.ConfigMaps {
		s := seen[n.Name]
		digest := ""
		if s.State == connections.OK && s.Map.Name != "" {
			digest = s.Map.Digest()
		}
		if i := slices.IndexFunc(p.report.Plan.Items, func(i connections.Item) bool {
			return i.Kind == connections.KindConfigMap && i.Name == n.Name
		}); digest == "" && s.State != connections.Missing && i >= 0 {
			digest = p.report.Plan.Items[i].Digest
		}
		p.report.Watch[n.Name] = digest
	}
}
