// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package charm

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/drawbridge-k8s/drawbridge/database"
	"github.com/drawbridge-k8s/drawbridge/hooks"
	"github.com/drawbridge-k8s/drawbridge/hooks/hooktool"
	"github.com/drawbridge-k8s/drawbridge/relation"
)

// backend is what was seen of the backend relation.
type backend struct {
	// id is the relation that counts, such as "backend-database:4"; empty when there is none.
	id    string
	state relation.BackendState
	app   string
	data  relation.Backend
	// own is our request, seen by the leader only.
	own map[string]string
	// missing says what an incomplete backend lacks.
	missing string
}

// number returns the id without the endpoint, as the peer databag has it.
func (b backend) number() string { return b.id[strings.LastIndexByte(b.id, ':')+1:] }

// key returns number as a number; -1 without a relation.
func (b backend) key() int {
	id, err := strconv.Atoi(b.number())
	if err != nil {
		return -1
	}
	return id
}

// credentials are those that the backend gave us.
func (b backend) credentials() database.Credentials {
	return database.Credentials{Username: b.data.Username, Password: b.data.Password}
}

// observe reads what every unit needs from Juju: leadership, configuration, the goal state, the peer databags, the state
// value, and the backend.
func (p *pass) observe(ctx context.Context) error {
	raw, err := p.tools.ConfigGet(ctx)
	if err != nil {
		return err
	}
	p.raw = raw
	p.config, p.configErrs = ParseConfig(raw)
	if p.leader, err = p.tools.IsLeader(ctx); err != nil {
		return err
	}
	if p.goal, err = p.tools.GoalState(ctx); err != nil {
		return err
	}
	for unit, status := range p.goal.Units {
		switch {
		case status != "dying":
			p.planned++
		case unit == p.event.Unit:
			p.dying = true
		}
	}
	stored, err := p.tools.StateGet(ctx)
	if err != nil {
		return err
	}
	p.stateText = stored[stateKey]
	if err := p.observePeers(ctx); err != nil {
		return err
	}
	p.state = parseState(p.stateText)
	if p.full() {
		p.startReading()
	}
	if p.full() && p.peer.Leader != p.event.Unit {
		// Another unit wrote this: what this unit may have remembered is of an earlier term.
		p.state, p.fresh = state{Sweep: true}, true
	}
	p.startConnecting()
	if p.full() && p.newPod() {
		p.state.Sweep = true // the backend may have begun anew while nobody looked, as all do when a machine starts again
	}
	return p.observeBackend(ctx)
}

// full reports whether the unit may do more than look after itself (table A of the state machine, first row).
func (p *pass) full() bool {
	return relation.DecideRight(relation.Situation{Peer: p.peerID != "", Leader: p.leader, Dying: p.dying}) != relation.RightObserve
}

// observePeers reads the peer application databag and the own unit's.
func (p *pass) observePeers(ctx context.Context) error {
	ids, err := p.tools.RelationIDs(ctx, endpointPeers)
	if err != nil || len(ids) == 0 {
		return err
	}
	p.peerID = ids[0]
	if p.peerBag, err = p.tools.RelationGetApp(ctx, p.peerID, p.event.App); err != nil {
		return err
	}
	if p.unitBag, err = p.tools.RelationGet(ctx, p.peerID, p.event.Unit); err != nil {
		return err
	}
	p.peer = relation.ParsePeer(p.peerBag)
	return nil
}

// observeBackend finds the backend relation that counts and reads its answer.
func (p *pass) observeBackend(ctx context.Context) error {
	ids, err := p.relationIDs(ctx, endpointBackend)
	if err != nil {
		return err
	}
	b := &p.backend
	if len(ids) == 0 {
		return p.absentBackend(ctx)
	}
	b.id, b.state = ids[len(ids)-1], relation.BackendIncomplete
	for _, id := range ids {
		if b.app, _, err = p.members(ctx, id); err != nil {
			return p.incomplete(err)
		}
	}
	bag, err := p.tools.RelationGetApp(ctx, b.id, b.app)
	if err != nil {
		return p.incomplete(err)
	}
	if p.full() {
		if b.own, err = p.tools.RelationGetApp(ctx, b.id, p.event.App); err != nil {
			return p.incomplete(err)
		}
	}
	if b.data, err = relation.ParseBackend(bag); err != nil {
		b.missing = "a usable answer: " + err.Error()
		return nil
	}
	if !p.full() && p.event.Kind != hooks.Action {
		return nil // a follower needs the endpoints alone
	}
	return p.observeSecrets(ctx)
}

// absentBackend tells a backend that is gone from one that Juju knows and this unit does not see yet.
func (p *pass) absentBackend(ctx context.Context) error {
	p.backend.state = relation.BackendGone
	_, breaking := p.event.Breaking()
	if breaking && p.event.Endpoint == endpointBackend || !p.hidden(endpointBackend) {
		return nil
	}
	// A client application is listed there as well if its own endpoint happens to have that name.
	ids, err := p.relationIDs(ctx, endpointClients)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if _, _, err := p.members(ctx, id); err != nil && !refusedByTool(err) {
			return err
		}
	}
	if p.hidden(endpointBackend) {
		p.backend.state = relation.BackendUnknown
	}
	return nil
}

// observeSecrets reads the secrets that the backend's answer names.
func (p *pass) observeSecrets(ctx context.Context) error {
	b := &p.backend
	if b.data.SecretUser != "" {
		content, err := p.tools.SecretGet(ctx, hooktool.SecretRef{ID: b.data.SecretUser, Refresh: true})
		if err != nil {
			b.missing = "its credentials, a secret that cannot be read yet"
			return p.incomplete(err)
		}
		b.data.UseUserSecret(content)
	}
	if b.data.SecretTLS != "" {
		content, err := p.tools.SecretGet(ctx, hooktool.SecretRef{ID: b.data.SecretTLS, Refresh: true})
		if err != nil {
			b.missing = "its TLS settings, a secret that cannot be read yet"
			return p.incomplete(err)
		}
		b.data.UseTLSSecret(content)
	}
	b.missing = b.data.Missing()
	if b.missing == "" {
		// Until the direct session has been tried, which the pass does later.
		b.state = relation.BackendReady
	}
	return nil
}

// incomplete takes an error that a tool itself reported (a relation that is going, a secret not granted yet) for an
// incomplete backend. Any other error means that the tools fail.
func (p *pass) incomplete(err error) error {
	if !refusedByTool(err) {
		return err
	}
	p.backend.state = relation.BackendIncomplete
	if p.backend.missing == "" {
		p.backend.missing = "an answer that can be read"
	}
	return nil
}

// refusedByTool reports whether a hook tool ran and said no, as against tools that cannot be reached.
func refusedByTool(err error) bool {
	var refused *hooktool.Error
	return errors.As(err, &refused)
}

// relationIDs returns an endpoint's relations, without the one that is being broken.
func (p *pass) relationIDs(ctx context.Context, endpoint string) ([]string, error) {
	ids, err := p.tools.RelationIDs(ctx, endpoint)
	if err != nil {
		return nil, err
	}
	breaking, broken := p.event.Breaking()
	if broken {
		p.see(p.event.RemoteApp)
	}
	var alive []string
	for _, id := range ids {
		if number, err := hooks.ParseRelationID(id); err != nil || broken && number == breaking && p.event.Endpoint == endpoint {
			continue
		}
		alive = append(alive, id)
	}
	return alive, nil
}

// members returns the application on the other side of a relation, and its units, and remembers the application as seen.
// Juju lists no application with the units, and has to be asked for it where there are none.
func (p *pass) members(ctx context.Context, id string) (app string, units []string, err error) {
	defer func() {
		if err == nil {
			p.see(app)
		}
	}()
	if units, err = p.tools.RelationUnits(ctx, id); err != nil {
		return "", nil, err
	}
	if len(units) > 0 {
		return units[0][:strings.LastIndexByte(units[0], '/')], units, nil
	}
	if id == p.event.Relation() && p.event.RemoteApp != "" {
		return p.event.RemoteApp, nil, nil
	}
	app, err = p.tools.RelationApp(ctx, id)
	return app, nil, err
}

// see remembers that an application is on the other side of a relation that this unit sees.
func (p *pass) see(app string) {
	if p.apps == nil {
		p.apps = map[string]bool{}
	}
	p.apps[app] = true
}

// hidden reports whether Juju lists an application on the endpoint that no relation seen by this unit belongs to, whatever
// its endpoint: goal-state lists an application under the names of both sides' endpoints (Juju 3.6), so a backend whose
// endpoint is called `database` stands among our clients.
func (p *pass) hidden(endpoint string) bool {
	for member := range p.goal.Relations[endpoint] {
		if !strings.Contains(member, "/") && !p.apps[member] {
			return true
		}
	}
	return false
}

// newPod reports whether the event is one of the first that a pod sees.
func (p *pass) newPod() bool {
	return p.event.Kind == hooks.Start || p.event.Kind == hooks.UpgradeCharm
}
