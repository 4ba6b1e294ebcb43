// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package tour

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

var start = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func at(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }

// Writes of a commit: the flag, and the client's databag (relation 4; relation 9 is somebody else's).
func flag(up bool) model.JournalWrite {
	w := model.JournalWrite{Relation: 0, Endpoint: peerEndpoint, Owner: "app", Bag: bridgeApp, Key: keyPending, Value: "true"}
	if !up {
		w.Value, w.Deleted = "", true
	}
	return w
}

func told(relation int, addresses string) model.JournalWrite {
	return model.JournalWrite{Relation: relation, Endpoint: "database", Owner: "app", Bag: bridgeApp, Key: keyEndpoints, Value: addresses}
}

func commit(ms int, writes ...model.JournalWrite) model.JournalEntry {
	return model.JournalEntry{Time: at(ms), Unit: "drawbridge-k8s/0", Hook: "gateway-pebble-custom-notice", Writes: writes}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	const lb, node0, node1 = "10.64.140.43:6446", "10.10.0.10:30446", "10.10.0.11:30446"
	clientBag := model.JournalWrite{Relation: 4, Endpoint: "database", Owner: "unit", Bag: "client-k8s/0", Key: "data", Value: "{}"}
	tests := map[string]struct {
		entries  []model.JournalEntry
		pending  bool
		answers  map[string]time.Time
		after    time.Duration
		moved    bool
		problems []string
	}{
		"pending, then told in the commit that lowers the flag": {
			entries: []model.JournalEntry{commit(200, flag(true)), commit(8150, flag(false), told(4, lb))},
			answers: map[string]time.Time{lb: at(8000)},
			after:   150 * time.Millisecond,
		},
		"answered in the hook that applied": {
			entries: []model.JournalEntry{commit(90, told(4, node0+","+node1))},
			answers: map[string]time.Time{node0: at(0), node1: at(40)},
			after:   90 * time.Millisecond,
		},
		"what others write does not count": {
			entries: []model.JournalEntry{commit(200, flag(true)), commit(300, clientBag), commit(400, told(9, lb)), commit(8100, flag(false), told(4, lb))},
			answers: map[string]time.Time{lb: at(8000)},
			after:   100 * time.Millisecond,
		},
		"too late": {
			entries:  []model.JournalEntry{commit(200, flag(true)), commit(10001, flag(false), told(4, lb))},
			answers:  map[string]time.Time{lb: at(8000)},
			after:    2001 * time.Millisecond,
			problems: []string{lb + " was published 2001 ms after it answered, more than 2000 ms"},
		},
		"exactly in time": {
			entries: []model.JournalEntry{commit(200, flag(true)), commit(10000, flag(false), told(4, lb))},
			answers: map[string]time.Time{lb: at(8000)},
			after:   2000 * time.Millisecond,
		},
		"before it answered": {
			entries:  []model.JournalEntry{commit(4000, told(4, lb))},
			answers:  map[string]time.Time{lb: at(8000)},
			after:    -4 * time.Second,
			problems: []string{lb + " was published 4000 ms before it answered"},
		},
		"one of two had not answered": {
			entries:  []model.JournalEntry{commit(100, told(4, node0+","+node1))},
			answers:  map[string]time.Time{node0: at(50), node1: at(170)},
			after:    -70 * time.Millisecond,
			problems: []string{node0 + "," + node1 + " was published 70 ms before it answered"},
		},
		"a later address joins before it answered": {
			entries:  []model.JournalEntry{commit(100, told(4, node0)), commit(150, told(4, node0+","+node1))},
			answers:  map[string]time.Time{node0: at(50), node1: at(170)},
			after:    50 * time.Millisecond,
			problems: []string{node0 + "," + node1 + " was published 20 ms before it answered"},
		},
		"never answered": {
			entries:  []model.JournalEntry{commit(100, told(4, lb))},
			problems: []string{lb + " was published and never answered in the client's network"},
		},
		"told while the flag is up": {
			entries:  []model.JournalEntry{commit(200, flag(true)), commit(8100, told(4, lb)), commit(8200, flag(false))},
			answers:  map[string]time.Time{lb: at(8000)},
			after:    100 * time.Millisecond,
			moved:    true,
			problems: []string{"the client's databag changed while the switch was pending"},
		},
		"told in the commit that raises the flag": {
			entries:  []model.JournalEntry{commit(8100, flag(true), told(4, lb)), commit(8200, flag(false))},
			answers:  map[string]time.Time{lb: at(8000)},
			after:    100 * time.Millisecond,
			moved:    true,
			problems: []string{"the client's databag changed while the switch was pending"},
		},
		"told while a flag from before is up": {
			entries:  []model.JournalEntry{commit(8100, told(4, lb))},
			pending:  true,
			answers:  map[string]time.Time{lb: at(8000)},
			after:    100 * time.Millisecond,
			moved:    true,
			problems: []string{"the client's databag changed while the switch was pending"},
		},
		"taken away while pending": {
			entries: []model.JournalEntry{commit(200, flag(true)),
				commit(300, model.JournalWrite{Relation: 4, Bag: bridgeApp, Key: keyEndpoints, Deleted: true}), commit(8100, flag(false), told(4, lb))},
			answers:  map[string]time.Time{lb: at(8000)},
			after:    100 * time.Millisecond,
			moved:    true,
			problems: []string{"the client's databag changed while the switch was pending"},
		},
		"never told": {
			entries:  []model.JournalEntry{commit(200, flag(true))},
			answers:  map[string]time.Time{lb: at(8000)},
			problems: []string{"nothing was published"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := judge(evidence{relation: 4, entries: test.entries, pending: test.pending, asked: start, answers: test.answers})
			require.Equal(t, test.problems, v.problems)
			require.Equal(t, test.moved, v.changedWhilePending)
			require.Equal(t, test.after, v.after)
		})
	}
}
