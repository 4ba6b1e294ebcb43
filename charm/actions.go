// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package charm

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/drawbridge-k8s/drawbridge/connections"
	"github.com/drawbridge-k8s/drawbridge/hooks"
	"github.com/drawbridge-k8s/drawbridge/k8sservice"
	"github.com/drawbridge-k8s/drawbridge/relation"
)

// Actions of actions.yaml.
const (
	actionEndpoints = "get-endpoints"
	actionExplain   = "explain"
	actionReconcile = "reconcile"
)

// action runs an action. All but reconcile run the pass without writing anything.
func (c *Charm) action(ctx context.Context, h *hooks.Hook) error {
	p := c.newPass(ctx, h)
	defer p.close()
	switch h.Event.Action {
	case actionEndpoints, actionExplain:
		p.dry = true
	case connections.ActionGet, connections.ActionQuery:
		p.dry = true
	case actionReconcile:
		p.repair = true
	case connections.ActionResync:
	default:
		return h.Tools.ActionFail(ctx, "unknown action "+h.Event.Action)
	}
	if err := p.run(ctx); err != nil {
		return err
	}
	if isConnectionAction(h.Event.Action) {
		return p.connectionAction(ctx, h)
	}
	r := newResults()
	switch h.Event.Action {
	case actionEndpoints:
		p.reportEndpoints(r)
	case actionExplain:
		p.explain(r)
	case actionReconcile:
		p.reportStatus(r)
		p.reportExposure(r)
	}
	return h.Tools.ActionSet(ctx, r.done())
}

// results are what an action gives back: keys with dots for programs, and the same as text for people.
type results struct {
	keys map[string]string
	text strings.Builder
}

func newResults() *results { return &results{keys: map[string]string{}} }

// section starts a part of the text.
func (r *results) section(title string) { fmt.Fprintf(&r.text, "%s\n", title) }

// set adds a result and its line; an empty value is left out of both.
func (r *results) set(key, label, value string) {
	if value == "" {
		return
	}
	r.keys[key] = value
	fmt.Fprintf(&r.text, "  %s: %s\n", label, value)
}

// only adds a result without a line.
func (r *results) only(key, value string) {
	if value != "" {
		r.keys[key] = value
	}
}

// done returns the results, the text among them.
func (r *results) done() map[string]string {
	r.keys["text"] = strings.TrimRight(r.text.String(), "\n")
	return r.keys
}

// resultKey makes a relation id fit for the key of a result.
func resultKey(id string) string { return strings.ReplaceAll(id, ":", "-") }

// reportEndpoints says what is published to whom, and whether it answers now.
func (p *pass) reportEndpoints(r *results) {
	r.section("published")
	if !p.leader {
		readWrite, readOnly := relation.SplitAddresses(p.peer.Verified)
		r.set("published.endpoints", "endpoints", strings.Join(readWrite, ","))
		r.set("published.read-only-endpoints", "read-only-endpoints", strings.Join(readOnly, ","))
		r.set("note", "note", "only the leader may read what each client was given: run this on "+orSelf(p.peer.Leader, "the leader"))
	}
	for _, c := range p.clients {
		key := "clients." + resultKey(c.id)
		given := c.Given()
		endpoints := given["endpoints"]
		r.only(key+".application", c.app)
		r.only(key+".database", given["database"])
		r.only(key+".endpoints", endpoints)
		r.only(key+".read-only-endpoints", given["read-only-endpoints"])
		line := "nothing yet"
		if endpoints != "" {
			line = endpoints + ", read-only " + given["read-only-endpoints"]
		}
		fmt.Fprintf(&r.text, "  %s %s: %s\n", c.id, c.app, line)
	}
	if p.leader && len(p.clients) == 0 {
		r.set("note", "note", "no client related")
	}
	p.probeVerified()
	p.reportVerdicts(r)
}

// orSelf returns text, or instead if it is empty.
func orSelf(text, instead string) string {
	if text == "" {
		return instead
	}
	return text
}

// probeVerified probes what is published and was not probed by the pass: on a follower, and of an address that is not
// listed any more.
func (p *pass) probeVerified() {
	published := append([]relation.Address{}, p.peer.Verified...)
	for _, c := range p.clients {
		published = append(published, relation.BagAddresses(c.Own)...)
	}
	var due []relation.Address
	asked := map[string]bool{}
	for _, address := range published {
		if _, done := p.seen.verdicts[address.ReadWrite]; !done && !asked[address.ReadWrite] {
			asked[address.ReadWrite] = true
			due = append(due, address)
		}
	}
	if len(due) == 0 || p.backend.data.Password == "" {
		return
	}
	p.try(p.o.Session(p.backend.credentials()), due, 3*time.Second)
}

// reportVerdicts lists what was probed, with the time each probe took.
func (p *pass) reportVerdicts(r *results) {
	r.section("probes")
	if len(p.seen.verdicts) == 0 {
		r.set("probes.note", "note", "nothing to probe")
		return
	}
	if p.seen.unverifiable {
		r.set("probes.note", "note", "the address cannot be tried from inside; it counts when the cluster IP answers")
	}
	for i, address := range sortedKeys(p.seen.verdicts) {
		verdict := p.seen.verdicts[address]
		key := "probes." + strconv.Itoa(i)
		milliseconds := strconv.FormatInt(verdict.Took.Milliseconds(), 10)
		r.only(key+".address", address)
		r.only(key+".answers", strconv.FormatBool(verdict.OK))
		r.only(key+".milliseconds", milliseconds)
		r.only(key+".reason", verdict.Reason)
		word := "answers"
		if !verdict.OK {
			word = "does not answer: " + verdict.Reason
		}
		fmt.Fprintf(&r.text, "  %s %s (%s ms)\n", address, word, milliseconds)
	}
}

// explain says everything that decides about the exposure.
func (p *pass) explain(r *results) {
	p.reportStatus(r)
	if !p.leader {
		r.set("note", "note", "only the leader decides: run this on "+orSelf(p.peer.Leader, "the leader"))
		return
	}
	p.reportExposure(r)
	p.reportService(r)
	p.reportBackend(r)
	p.reportVerdicts(r)
	r.section("clients")
	for _, c := range p.clients {
		r.set("clients."+resultKey(c.id), c.id+" "+c.app, clientWords(c))
	}
	r.section("next")
	status, message := p.worst()
	if severity(status) > 0 {
		r.set("waits-for", "waits for", message)
	}
	if at := p.deadline(); !at.IsZero() {
		r.set("wakes-at", "a hook is asked for at", stamp(at))
	}
	r.set("retried-by", "retried by", "a notice of the watch within a second of a change; every hook; update-status")
}

// reportStatus repeats the unit's status, and every cause of it.
func (p *pass) reportStatus(r *results) {
	status, message := p.worst()
	r.section("status")
	r.set("status", "status", string(status))
	r.set("message", "message", message)
	for i, c := range p.causes {
		r.set("causes."+strconv.Itoa(i), string(c.status), c.text)
	}
}

// rowWords says what a row of the exposure's table means.
func rowWords(row relation.Row) string {
	switch row {
	case relation.RowGone:
		return "no backend"
	case relation.RowIncomplete:
		return "the backend or Kubernetes is incomplete; nothing is changed"
	case relation.RowNoAddress:
		return "pending: no address yet"
	case relation.RowAnswers:
		return "settled: published"
	case relation.RowPending:
		return "pending: no address answers yet"
	case relation.RowSilent:
		return "silent: clients keep what they have"
	}
	return "not decided"
}

// reportExposure says in which state the exposure is and since when.
func (p *pass) reportExposure(r *results) {
	r.section("exposure")
	r.set("exposure.state", "state", rowWords(p.row))
	r.set("exposure.row", "row", string(p.row))
	if p.peer.Pending {
		r.set("exposure.pending-since", "pending since", stamp(p.peer.PendingSince))
	}
	if d := p.state.Deferred; d != nil {
		r.set("exposure.deferred-by", "deferred by", d.Hook)
		r.set("exposure.deferred-since", "deferred since", stamp(d.Since))
	}
	readWrite, readOnly := relation.SplitAddresses(p.peer.Verified)
	r.set("exposure.verified", "verified", strings.Join(readWrite, ","))
	r.only("exposure.verified-read-only", strings.Join(readOnly, ","))
	listed, _ := relation.SplitAddresses(p.seen.listed)
	r.set("exposure.listed", "listed by Kubernetes", strings.Join(listed, ","))
	for i, address := range sortedKeys(p.state.Silent) {
		r.set("exposure.silent."+strconv.Itoa(i), "silent", address+" since "+stamp(p.state.Silent[address]))
	}
}

// reportService compares the Service wanted with the one there is.
func (p *pass) reportService(r *results) {
	s := &p.service
	r.section("service")
	r.set("service.name", "name", p.serviceName())
	if len(p.configErrs) == 0 {
		r.set("service.desired.type", "desired type", string(p.config.Mode.ServiceType()))
		r.only("service.desired.hash", s.hash)
	}
	if s.live == nil {
		r.set("service.live", "live", "none")
	} else {
		r.set("service.live.type", "live type", string(s.live.Spec.Type))
		r.only("service.live.uid", string(s.live.UID))
		r.only("service.live.cluster-ip", s.live.Spec.ClusterIP)
	}
	r.only("service.step", string(s.step))
	for i, difference := range s.drift {
		r.set("service.differences."+strconv.Itoa(i), "difference", differenceText(difference))
	}
}

// differenceText words a difference.
func differenceText(d k8sservice.Difference) string {
	return fmt.Sprintf("%s: want %q, have %q", d.Field, d.Want, d.Got)
}

// reportBackend says what is known of the backend.
func (p *pass) reportBackend(r *results) {
	b := &p.backend
	r.section("backend")
	r.set("backend.relation", "relation", b.id)
	r.set("backend.application", "application", b.app)
	r.set("backend.state", "state", string(b.state))
	r.set("backend.missing", "missing", b.missing)
	r.set("backend.endpoints", "endpoints", strings.Join(b.data.Endpoints, ","))
	if v := p.seen.direct; v != nil {
		r.set("backend.direct-milliseconds", "direct session, ms", strconv.FormatInt(v.Took.Milliseconds(), 10))
	}
}

// clientWords says how it stands with one client.
func clientWords(c *client) string {
	switch c.Decide() {
	case relation.ClientWithdraw:
		return "holds credentials that are not the current ones"
	case relation.ClientFollow:
		return "served, database " + c.Given()["database"]
	case relation.ClientSilent:
		return "has not asked for a database yet"
	case relation.ClientBad:
		return "cannot be served: " + c.RequestErr.Error()
	case relation.ClientHold:
		return "has not noticed yet that its old credentials are gone"
	}
	return "to be served when an address answers"
}
