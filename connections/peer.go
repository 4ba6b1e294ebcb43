// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package connections

import (
	"encoding/json"
	"slices"
	"time"
)

// Keys of the peer databags: the application's, which the leader writes, and each unit's own.
const (
	KeyDesired   = "connections-desired"
	KeyAnnounced = "connections-announced"
	KeyApplied   = "connections-applied"
)

// Desired is what the leader has found to be wanted. Revision is for people: it is one more than before whenever the hash
// differs, and decides nothing.
type Desired struct {
	Schema   int    `json:"schema"`
	Hash     string `json:"hash"`
	Revision int    `json:"revision"`
	Items    []Item `json:"items"`
}

// ParseDesired reads the value; one that cannot be read is none.
func ParseDesired(text string) Desired {
	var d Desired
	if json.Unmarshal([]byte(text), &d) != nil || d.Schema != Schema {
		return Desired{}
	}
	return d
}

// Next is what is desired after a plan. With nothing wanted and nothing desired before, that is nothing.
func (d Desired) Next(p Plan) Desired {
	if p.Hold || d.Hash == "" && len(p.Items) == 0 {
		return d
	}
	next := Desired{Schema: Schema, Hash: p.Hash, Revision: d.Revision, Items: append([]Item{}, p.Items...)}
	for i := range next.Items {
		if item := &next.Items[i]; item.State == Stale {
			item.State = OK // a moment of the API is not worth a write
		}
	}
	if next.Hash != d.Hash {
		next.Revision++
	}
	return next
}

// Text is the databag's value, "" for the zero value.
func (d Desired) Text() string {
	if d.Hash == "" {
		return ""
	}
	return string(canonical(d))
}

// Applied is what one unit has done. An unset hash means that nothing was ever applied.
type Applied struct {
	Schema int      `json:"schema"`
	Hash   string   `json:"hash"`
	Hook   *HookRun `json:"hook,omitempty"`
}

// HookRun is the last run of the workload's hook.
type HookRun struct {
	// Hash is the document's that it was run for.
	Hash string `json:"hash"`
	// RC is its exit code, -1 when it was killed at its timeout or could not be started.
	RC       int    `json:"rc"`
	Timeout  bool   `json:"timeout,omitempty"`
	At       string `json:"at,omitempty"` // RFC 3339, UTC
	Attempts int    `json:"attempts,omitempty"`
	// Changed are the items that it still has to be told of, after a run that failed.
	Changed []string `json:"changed,omitempty"`
}

// ParseApplied reads the value; one that cannot be read is none.
func ParseApplied(text string) Applied {
	var a Applied
	if json.Unmarshal([]byte(text), &a) != nil || a.Schema != Schema {
		return Applied{}
	}
	return a
}

// Text is the databag's value, "" for the zero value.
func (a Applied) Text() string {
	if a.Hash == "" {
		return ""
	}
	a.Schema = Schema
	return string(canonical(a))
}

// Attempts of the hook for one hash, and the least time between two.
const (
	MaxAttempts = 5
	retryAfter  = 5 * time.Second
)

// Empty is the hash of a document without connections.
var emptyHash = HashOf(nil)

// EmptyHash returns the hash of a document without connections.
func EmptyHash() string { return emptyHash }

// UnitStep is what a unit has to do.
type UnitStep struct {
	// Push says that the file is not the plan's.
	Push bool
	// Hook says that the workload's hook is due, for these items.
	Hook    bool
	Changed []string
	// Later says that the hook is due, but not yet; Exhausted that it has failed too often.
	Later, Exhausted bool
	// First says that this is the first delivery, which is no change to anybody.
	First bool
}

// DecideUnit compares the plan with the file, which is the truth, and with what the unit has recorded. hook says that one
// is configured.
func DecideUnit(p Plan, file *Document, text []byte, a Applied, hook bool, now time.Time) UnitStep {
	if p.Hold {
		return UnitStep{}
	}
	s := UnitStep{Push: file == nil || string(text) != string(p.Text)}
	s.First = a.Hash == "" && (file == nil || file.Connections.Hash == p.Hash)
	if !hook || s.First || a.hooked() == p.Hash {
		return s
	}
	run := a.Hook
	s.Changed = changedItems(file, p)
	if run != nil && run.Hash == p.Hash { // it has failed for this very document
		at, err := time.Parse(time.RFC3339, run.At)
		switch {
		case run.Attempts >= MaxAttempts:
			s.Exhausted = true
		case err == nil && now.Sub(at) < retryAfter && !now.Before(at):
			s.Later = true
		}
	}
	if run != nil {
		s.Changed = union(s.Changed, run.Changed)
	}
	if len(s.Changed) == 0 { // pushed by a hook that was lost: what it was is not known any more
		for _, item := range p.Items {
			s.Changed = append(s.Changed, item.Key())
		}
	}
	s.Hook = !s.Later && !s.Exhausted
	return s
}

// hooked is the hash that the workload's hook has been run for with success, or had not to be.
func (a Applied) hooked() string {
	switch {
	case a.Hook == nil:
		return a.Hash
	case a.Hook.RC != 0:
		return ""
	}
	return a.Hook.Hash
}

// After is the record after the file is the plan's, and after the hook, if one ran. With nothing connected and nothing
// recorded it stays unset.
func (a Applied) After(p Plan, s UnitStep, run *HookRun, hook bool) Applied {
	if a.Hash == "" && p.Hash == emptyHash {
		return a
	}
	before := a.hooked()
	a.Hash = p.Hash
	switch {
	case run != nil:
		a.Hook = run
	case !hook:
		a.Hook = nil
	case s.First:
		a.Hook = &HookRun{Hash: p.Hash}
	case s.Hook && a.Hook == nil: // due, and put off to the next hook
		a.Hook = &HookRun{Hash: before, Changed: s.Changed}
	case s.Hook && a.Hook.Hash != p.Hash:
		put := *a.Hook
		put.Changed = s.Changed
		a.Hook = &put
	}
	return a
}

// changedItems are those in which the plan differs from a file.
func changedItems(file *Document, p Plan) []string {
	if file == nil {
		return nil
	}
	before := map[string]string{}
	for _, item := range file.Connections.Items() {
		before[item.Key()] = item.Digest
	}
	var changed []string
	for _, item := range p.Document.Connections.Items() {
		if before[item.Key()] != item.Digest {
			changed = append(changed, item.Key())
		}
		delete(before, item.Key())
	}
	for key := range before {
		changed = append(changed, key)
	}
	slices.Sort(changed)
	return changed
}

func union(a, b []string) []string {
	all := append(slices.Clone(a), b...)
	slices.Sort(all)
	return slices.Compact(all)
}
