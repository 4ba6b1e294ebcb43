// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package charm

import (
	"encoding/json"
	"fmt"
	"time"
)

// stateKey is the key of the one value that is kept with state-set (controller-side: it survives the pod and wakes nobody).
const stateKey = "exposure"

// state is what the leader remembers between hooks and must wake nobody. The zero state is not stored at all. Its size
// does not grow with the number of hooks.
type state struct {
	// Deferred is set while the exposure is pending.
	Deferred *deferral `json:"deferred,omitempty"`
	// Silent says since when an address (read-write host:port) has been silent.
	Silent map[string]time.Time `json:"silent,omitempty"`
	// Refused holds the back-off of what is refused at present, by what it is.
	Refused map[string]refusal `json:"refused,omitempty"`
	// Altered is set while an accepted Service differs from what was asked for.
	Altered *alteration `json:"altered,omitempty"`
	// Unknown is since when a relation has been known to Juju but not to this unit.
	Unknown time.Time `json:"unknown,omitzero"`
	// Made are the ids of client relations for which a user was made and not dropped yet.
	Made []int `json:"made,omitempty"`
	// Stalled says that the direct session was not answered in time when it was tried last.
	Stalled bool `json:"stalled,omitempty"`
	// Sweep says that the users on the backend are to be compared with the clients.
	Sweep bool `json:"sweep,omitempty"`
}

// deferral says which hook left the exposure pending first.
type deferral struct {
	Hook  string    `json:"hook"`
	Since time.Time `json:"since"`
}

// refusal is the back-off of a refused request. At is the next deadline, Step what comes after it.
type refusal struct {
	At   time.Time     `json:"at"`
	Step time.Duration `json:"step"`
}

// alteration is what was wanted and what came back instead.
type alteration struct {
	Want string `json:"want"`
	Got  string `json:"got"`
}

const (
	firstRefusal = 30 * time.Second
	lastRefusal  = 10 * time.Minute
)

// next returns the refusal after one more refused attempt; the zero refusal is none before. Its deadline stays until it has passed, then the next is twice
// as far away.
func (r refusal) next(now time.Time) refusal {
	now = now.UTC().Truncate(time.Second)
	switch {
	case r.Step == 0:
		return refusal{At: now.Add(firstRefusal), Step: firstRefusal}
	case now.Before(r.At):
		return r
	}
	step := min(2*r.Step, lastRefusal)
	return refusal{At: now.Add(step), Step: step}
}

// parseState reads the value; one that cannot be read is a new beginning.
func parseState(text string) state {
	var s state
	if text == "" {
		return s
	}
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return state{Sweep: true}
	}
	return s
}

// text returns the value, "" for the zero state.
func (s state) text() string {
	encoded, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("internal error: the state does not encode: %v", err))
	}
	if string(encoded) == "{}" {
		return ""
	}
	return string(encoded)
}
