// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package connections

import (
	"fmt"
	"slices"
	"strings"
)

// Seen is what reading one ConfigMap gave: OK, Missing, Forbidden or Stale (not readable now).
type Seen struct {
	State State
	Map   ConfigMap
	// Size is that of the content, also where Map was let go since all together are too large.
	Size int
	// Verb is what is forbidden.
	Verb string
}

// Remote is an application on the other side of a relation on the endpoint `connections`, and the text of its metadata,
// "" while there is none.
type Remote struct{ App, Metadata string }

// Input is all that a plan depends on.
type Input struct {
	App      App
	Unit     Unit
	Services map[string]Service
	Options  Options
	Seen     map[string]Seen // by ConfigMap
	Remotes  []Remote
	// File is the document in the container, nil when there is none or it cannot be read.
	File *Document
	// Desired is what the peer databag says.
	Desired Desired
}

// Finding is something that a person should know.
type Finding struct {
	State State
	Text  string
	// Blocked says that only a person can mend it; else it is a matter of waiting.
	Blocked bool
}

// Plan is what follows from an Input.
type Plan struct {
	Document Document
	Text     []byte
	Hash     string
	// Items are all that are asked for, with or without content, sorted.
	Items []Item
	// Findings are sorted by how much they matter.
	Findings []Finding
	// Answers are for the databags of remote applications.
	Answers map[string]Answer
	// Hold says that something cannot be read now and nothing is known of it from before: nothing is to be changed.
	Hold bool
	// NamesUnknown says that the list of ConfigMaps cannot be read: nothing counts as removed.
	NamesUnknown bool
}

// planner makes one plan.
type planner struct {
	in   Input
	plan Plan
	doc  *Connections
}

// Decide makes the plan. It changes nothing of its input, and gives the same plan for the same input.
func Decide(in Input) Plan {
	p := &planner{in: in}
	p.plan.Answers = map[string]Answer{}
	p.plan.Document = Document{
		Schema: Schema, App: in.App, Unit: in.Unit, Services: normalServices(in.Services),
		Connections: Connections{ConfigMaps: map[string]map[string]Entry{}, Clusters: map[string]Cluster{}, Problems: []Problem{}},
	}
	p.doc = &p.plan.Document.Connections
	p.configMaps()
	p.clusters()
	for _, option := range []string{OptConfigMaps, OptConnectable, OptCategory, OptHook, OptHookTimeout} {
		if err := in.Options.Errs[option]; err != nil {
			p.find(Finding{Invalid, err.Error(), true})
		}
	}
	p.finish()
	return p.plan
}

func (p *planner) find(f Finding) { p.plan.Findings = append(p.plan.Findings, f) }

// item adds an item, and what a reader in the container should know about it.
func (p *planner) item(i Item) {
	p.plan.Items = append(p.plan.Items, i)
	switch i.State {
	case OK, Absent, Stale, TooLarge:
		return
	}
	problem := Problem{i.Kind, i.Name, i.State}
	if i.State == Forbidden && i.Digest != "" {
		problem.State = Stale
	}
	p.doc.Problems = append(p.doc.Problems, problem)
}

// finish sorts, hashes and writes.
func (p *planner) finish() {
	slices.SortFunc(p.plan.Items, compareItems)
	slices.SortFunc(p.doc.Problems, func(a, b Problem) int {
		return compareItems(Item{Kind: a.Kind, Name: a.Name}, Item{Kind: b.Kind, Name: b.Name})
	})
	slices.SortStableFunc(p.plan.Findings, func(a, b Finding) int { return rank(a) - rank(b) })
	p.doc.Hash = HashOf(p.doc.Items())
	p.plan.Hash = p.doc.Hash
	p.plan.Text = p.plan.Document.Text()
}

// rank orders findings: the first is shown.
func rank(f Finding) int {
	order := []State{Invalid, Missing, Forbidden, TooLarge, Rejected, Pending, Stale}
	return slices.Index(order, f.State)
}

// configMaps decides about the ConfigMaps.
func (p *planner) configMaps() {
	if p.in.Options.Errs[OptConfigMaps] != nil {
		p.plan.NamesUnknown = true
		p.keepAll(nil)
		return
	}
	if p.tooLarge() {
		return
	}
	for _, n := range p.in.Options.ConfigMaps {
		p.configMap(n, p.in.Seen[n.Name])
	}
}

// keepAll takes the ConfigMaps of the file over as they are; of those listed in only, if it is not nil.
func (p *planner) keepAll(only map[string]State) {
	kept := map[string]bool{}
	if p.in.File != nil {
		for typ, entries := range p.in.File.Connections.ConfigMaps {
			for name, e := range entries {
				state, listed := only[name]
				if only != nil && !listed {
					continue
				}
				if state == "" {
					state = OK
				}
				kept[name] = true
				p.doc.add(typ, name, e)
				p.item(Item{Kind: KindConfigMap, Name: name, Type: typ, Digest: e.Digest, State: state})
			}
		}
	}
	for name, state := range only {
		if !kept[name] {
			p.item(Item{Kind: KindConfigMap, Name: name, State: state})
		}
	}
}

// tooLarge finds content that is larger than allowed; then the ConfigMaps stay as they are in the file.
func (p *planner) tooLarge() bool {
	total, over := 0, false
	states := map[string]State{}
	for _, n := range p.in.Options.ConfigMaps {
		size := p.in.Seen[n.Name].Size
		total += size
		states[n.Name] = TooLarge
		if size > MaxConfigMap {
			over = true
			p.find(Finding{TooLarge, fmt.Sprintf("connections: configmap %s is too large: %d > %d bytes", n.Name, size, MaxConfigMap), true})
		}
	}
	if total > MaxTotal {
		over = true
		p.find(Finding{TooLarge, fmt.Sprintf("connections: the configmaps are too large together: %d > %d bytes", total, MaxTotal), true})
	}
	if over {
		p.keepAll(states)
	}
	return over
}

// configMap decides about one ConfigMap.
func (p *planner) configMap(n Name, seen Seen) {
	item := Item{Kind: KindConfigMap, Name: n.Name, State: seen.State}
	switch seen.State {
	case OK:
		item.Type, item.Digest = seen.Map.Type(), seen.Map.Digest()
		p.doc.add(item.Type, n.Name, Entry{Data: seen.Map.Data, Binary: seen.Map.Binary, Labels: seen.Map.Labels, Digest: item.Digest})
	case Missing:
		if n.Optional {
			item.State = Absent
			break
		}
		p.find(Finding{Missing, fmt.Sprintf("connections: configmap %s not found", n.Name), true})
	case Forbidden:
		p.keep(&item)
		p.find(Finding{Forbidden, fmt.Sprintf("connections: configmap %s may not be read: grant %q (juju trust %s --scope=cluster)",
			n.Name, seen.Verb+" configmaps", p.in.App.Name), true})
	default:
		item.State = Stale
		if !p.keep(&item) {
			p.plan.Hold = true
			p.find(Finding{Stale, fmt.Sprintf("connections: cannot read configmap %s yet; trying again", n.Name), false})
		}
	}
	p.item(item)
}

// keep takes an item's content from the file.
func (p *planner) keep(item *Item) bool {
	if p.in.File == nil {
		return false
	}
	typ, e, found := p.in.File.Connections.find(item.Name)
	if found {
		item.Type, item.Digest = typ, e.Digest
		p.doc.add(typ, item.Name, e)
	}
	return found
}

// clusters decides about the connected applications.
func (p *planner) clusters() {
	done := map[string]bool{}
	for _, r := range slices.SortedFunc(slices.Values(p.in.Remotes), func(a, b Remote) int {
		// Of two relations with one application, the one that says something comes first.
		if d := strings.Compare(a.App, b.App); d != 0 {
			return d
		}
		return strings.Compare(b.Metadata, a.Metadata)
	}) {
		if !done[r.App] {
			done[r.App] = true
			p.cluster(r)
		}
	}
}

func (p *planner) cluster(r Remote) {
	item := Item{Kind: KindCluster, Name: r.App}
	defer func() { p.item(item) }()
	if r.Metadata == "" {
		item.State = Pending
		p.plan.Answers[r.App] = Answer{}
		p.find(Finding{Pending, fmt.Sprintf("connections: waiting for the metadata of %s", r.App), false})
		return
	}
	m, err := ParseMetadata(r.Metadata)
	if err != nil {
		item.State = Invalid
		p.keepCluster(&item)
		p.plan.Answers[r.App] = Answer{Status: "rejected", Reason: err.Error(), Applied: item.Digest}
		p.find(Finding{Rejected, fmt.Sprintf("connections: %s: %v", r.App, err), true})
		return
	}
	ok, why := p.accepts(r.App, m)
	if !ok {
		item.State = Rejected
		p.plan.Answers[r.App] = Answer{Status: "rejected", Reason: why}
		p.find(Finding{Rejected, fmt.Sprintf("connections: %s: %s", r.App, why), true})
		return
	}
	item.State = OK
	c := m.cluster(r.App)
	item.Digest = c.Digest
	p.doc.Clusters[r.App] = c
	p.plan.Answers[r.App] = Answer{Status: "accepted", Applied: c.Digest}
}

// accepts applies connectable-to; while that cannot be read, what was accepted stays so.
func (p *planner) accepts(app string, m Metadata) (ok bool, why string) {
	if p.in.Options.Errs[OptConnectable] == nil {
		return p.in.Options.Connectable.Accepts(m)
	}
	if p.in.File != nil {
		if _, there := p.in.File.Connections.Clusters[app]; there {
			return true, ""
		}
	}
	for _, item := range p.in.Desired.Items {
		if item.Kind == KindCluster && item.Name == app && item.State == OK {
			return true, ""
		}
	}
	return false, "connectable-to cannot be read"
}

func (p *planner) keepCluster(item *Item) {
	if p.in.File == nil {
		return
	}
	if c, there := p.in.File.Connections.Clusters[item.Name]; there {
		item.Digest = c.Digest
		p.doc.Clusters[item.Name] = c
	}
}
