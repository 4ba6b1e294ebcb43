// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package tour

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// MaxPublishDelay is how long after its first answer an address may stay unknown to the client.
const MaxPublishDelay = 2 * time.Second

// Keys of the databags that the tour reads.
const (
	keyEndpoints = "endpoints"
	keyPending   = "service-pending"
	keySecret    = "secret-user"
	keyDatabase  = "database"
)

// evidence is what is known of one switch when it is over.
type evidence struct {
	// relation is the id of the client's relation, entries what was committed since the switch was asked for.
	relation int
	entries  []model.JournalEntry
	// pending is the flag as it was before.
	pending bool
	// asked is when the switch was asked for.
	asked time.Time
	// answers has, for each address, when the client's network got its first answer, never before asked: an address that
	// answered already answers from then on.
	answers map[string]time.Time
}

// verdict is the judgement over one switch.
type verdict struct {
	// published is what the client was told first, and when; after counts from the first answer. It is negative when an
	// address was told that had not answered.
	published []string
	at        time.Time
	after     time.Duration
	// changedWhilePending says that a client's databag changed while the charm had its flag up.
	changedWhilePending bool
	problems            []string
}

// judge looks for the promises of the charm in the journal: the databag of the client does not move while a switch is
// pending, and then names addresses that answer, within MaxPublishDelay.
func judge(e evidence) verdict {
	v := verdict{changedWhilePending: movedWhilePending(e)}
	if v.changedWhilePending {
		v.problems = append(v.problems, "the client's databag changed while the switch was pending")
	}
	for _, entry := range e.entries {
		addresses := endpointsIn(entry, e.relation)
		if addresses == nil {
			continue
		}
		after, problem := delay(e, entry.Time, addresses)
		if v.published == nil {
			v.published, v.at, v.after = addresses, entry.Time, after
			if problem == "" && after > MaxPublishDelay {
				problem = fmt.Sprintf("%s was published %d ms after it answered, more than %d ms",
					strings.Join(addresses, ","), after.Milliseconds(), MaxPublishDelay.Milliseconds())
			}
		}
		if problem != "" {
			v.problems = append(v.problems, problem)
		}
	}
	if v.published == nil {
		v.problems = append(v.problems, "nothing was published")
	}
	return v
}

// delay is the time from the first answer of any of the addresses to the publication. Where one of them had not answered
// yet, it is that one's, and negative.
func delay(e evidence, at time.Time, addresses []string) (time.Duration, string) {
	var first, last time.Time
	for _, address := range addresses {
		answered, ok := e.answers[address]
		if !ok {
			return 0, fmt.Sprintf("%s was published and never answered in the client's network", address)
		}
		if first.IsZero() || answered.Before(first) {
			first = answered
		}
		if answered.After(last) {
			last = answered
		}
	}
	if early := at.Sub(last); early < 0 {
		return early, fmt.Sprintf("%s was published %d ms before it answered", strings.Join(addresses, ","), -early.Milliseconds())
	}
	return at.Sub(first), ""
}

// movedWhilePending finds a commit that wrote to the client's databag and left the flag up.
func movedWhilePending(e evidence) bool {
	pending := e.pending
	for _, entry := range e.entries {
		after := flagAfter(entry, pending)
		if after && writesTo(entry, e.relation) {
			return true
		}
		pending = after
	}
	return false
}

// flagAfter is the flag after a commit.
func flagAfter(entry model.JournalEntry, before bool) bool {
	for _, w := range entry.Writes {
		if w.Endpoint == peerEndpoint && w.Bag == bridgeApp && w.Key == keyPending {
			before = !w.Deleted && w.Value == "true"
		}
	}
	return before
}

// writesTo reports whether a commit changed the client's databag: the one of the application that answers the client.
func writesTo(entry model.JournalEntry, relation int) bool {
	return slices.ContainsFunc(entry.Writes, func(w model.JournalWrite) bool { return w.Relation == relation && w.Bag == bridgeApp })
}

// endpointsIn returns the addresses that a commit tells the client, nil if it tells none.
func endpointsIn(entry model.JournalEntry, relation int) []string {
	for _, w := range entry.Writes {
		if w.Relation == relation && w.Bag == bridgeApp && w.Key == keyEndpoints && !w.Deleted && w.Value != "" {
			return strings.Split(w.Value, ",")
		}
	}
	return nil
}
