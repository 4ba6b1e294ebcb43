// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package charm

import (
	"context"
	"fmt"
	"strconv"

	"github.com/drawbridge-k8s/drawbridge/connections"
	"github.com/drawbridge-k8s/drawbridge/connections/carry"
	"github.com/drawbridge-k8s/drawbridge/hooks"
)

// connectionAction runs an action about connections, after the pass. Only resync-connections has written anything.
func (p *pass) connectionAction(ctx context.Context, h *hooks.Hook) error {
	if p.connecting == nil {
		return h.Tools.ActionFail(ctx, "this unit has no peers yet, or is going")
	}
	var results map[string]string
	var err error
	if h.Event.Action == connections.ActionQuery {
		results, err = carry.Query(ctx, h.Tools, p.connections)
		if err != nil {
			return h.Tools.ActionFail(ctx, err.Error())
		}
		return h.Tools.ActionSet(ctx, results)
	}
	r := newResults()
	p.reportConnections(r)
	return h.Tools.ActionSet(ctx, r.done())
}

// reportConnections lists the connections: what is wanted, and what each unit has.
func (p *pass) reportConnections(r *results) {
	report := p.connections
	r.section("connections")
	r.set("hash", "hash", report.Plan.Hash)
	if report.Desired.Hash != "" {
		r.set("desired", "desired by the leader", fmt.Sprintf("%s, revision %d", report.Desired.Hash, report.Desired.Revision))
		r.only("revision", strconv.Itoa(report.Desired.Revision))
	}
	for i, item := range report.Plan.Items {
		key := "items." + strconv.Itoa(i)
		r.only(key+".name", item.Key())
		r.only(key+".type", item.Type)
		r.only(key+".state", string(item.State))
		r.only(key+".digest", item.Digest)
		fmt.Fprintf(&r.text, "  %s %s %s %s\n", item.Key(), orSelf(item.Type, "-"), item.State, orSelf(connections.Short(item.Digest), "-"))
	}
	if len(report.Plan.Items) == 0 {
		r.set("note", "note", "nothing is connected")
	}
	r.section("units")
	for _, unit := range report.Units {
		word := "behind"
		if unit.Applied.Hash == report.Plan.Hash {
			word = "applied"
		}
		if run := unit.Applied.Hook; run != nil && run.RC != 0 {
			word += fmt.Sprintf(", connections hook failed (rc %d), attempt %d", run.RC, run.Attempts)
		}
		r.set("units."+podName(unit.Name), unit.Name, word)
	}
}
