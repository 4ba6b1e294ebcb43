// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package render

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// Options say how a status is shown.
type Options struct {
	// Now is the moment of the status.
	Now time.Time
	// Zone is where times are shown; UTC selects juju's ISO forms instead.
	Zone *time.Location
	UTC  bool
	// Relations adds the section of integrations (tabular only).
	Relations bool
	// Storage adds the section of storage.
	Storage bool
	// Colour paints statuses for a terminal (tabular only).
	Colour bool
}

// sla is what juju shows for a model without a support contract.
const sla = "unsupported"

const (
	maxMessage = 120
	ellipsis   = "..."
)

// Tabular writes the status as `juju status` does: one section for the model and one each for what it has.
func Tabular(w io.Writer, s model.Status, o Options) error {
	sections := []*table{modelTable(s, o)}
	if len(s.Remotes) > 0 {
		sections = append(sections, remoteTable(s))
	}
	if len(s.Applications) > 0 {
		sections = append(sections, applicationTable(s))
		if units := unitTable(s); len(units.rows) > 1 {
			sections = append(sections, units)
		}
	}
	if len(s.Offers) > 0 {
		sections = append(sections, offerTable(s))
	}
	if o.Relations && len(shownRelations(s)) > 0 {
		sections = append(sections, relationTable(s))
	}
	if o.Storage && len(s.Storage) > 0 {
		sections = append(sections, storageTable(s))
	}
	for i, section := range sections {
		if i > 0 {
			if _, err := io.WriteString(w, "\n"); err != nil {
				return err
			}
		}
		if err := section.write(w, o.Colour); err != nil {
			return err
		}
	}
	return nil
}

func modelTable(s model.Status, o Options) *table {
	t := newTable("Model", "Controller", "Cloud/Region", "Version", "SLA", "Timestamp")
	t.add(plain(s.Model.Name), plain(s.Model.Controller), plain(s.Model.CloudRegion), plain(s.Model.Version), plain(sla),
		plain(o.timestamp()))
	return t
}

func (o Options) timestamp() string {
	if o.UTC {
		return o.Now.UTC().Format("15:04:05")
	}
	return o.Now.In(o.zone()).Format("15:04:05Z07:00")
}

func (o Options) zone() *time.Location {
	if o.Zone == nil {
		return time.UTC
	}
	return o.Zone
}

func applicationTable(s model.Status) *table {
	t := newTable("App", "Version", "Status", "Scale", "Charm", "Channel", "Rev", "Address", "Exposed", "Message")
	t.right[3], t.right[6] = true, true
	for _, name := range sortedNames(s.Applications) {
		a := s.Applications[name]
		t.add(plain(name), plain(a.Version), cell{a.Status.Status, statusColour(a.Status.Status)}, plain(scale(a)),
			plain(a.CharmName), plain(""), plain(strconv.Itoa(a.CharmRev)), plain(a.Address), plain("no"),
			plain(truncate(a.Status.Message)))
	}
	return t
}

// scale is the number of units, or current/desired while they differ.
func scale(a model.ApplicationStatus) string {
	if a.Current == a.Scale {
		return strconv.Itoa(a.Scale)
	}
	return fmt.Sprintf("%d/%d", a.Current, a.Scale)
}

func unitTable(s model.Status) *table {
	t := newTable("Unit", "Workload", "Agent", "Address", "Ports", "Message")
	for _, app := range sortedNames(s.Applications) {
		units := s.Applications[app].Units
		for _, name := range sortedNames(units) {
			u := units[name]
			shown := name
			if u.Leader {
				shown += "*"
			}
			t.add(plain(shown), cell{u.Workload.Status, statusColour(u.Workload.Status)},
				cell{u.Agent.Status, statusColour(u.Agent.Status)}, plain(u.Pod.Address), plain(strings.Join(u.Ports, ",")),
				plain(unitMessage(u)))
		}
	}
	return t
}

// unitMessage is the workload's message, behind the hook or action that runs now.
func unitMessage(u model.UnitStatus) string {
	message := u.Workload.Message
	if doing := agentDoing(u.Agent); doing != "" {
		message = fmt.Sprintf("(%s) %s", doing, message)
	}
	return truncate(message)
}

var (
	runningHook   = regexp.MustCompile(`^running (\S+) hook`)
	runningAction = regexp.MustCompile(`^running action (.+)$`)
)

func agentDoing(agent model.StatusValue) string {
	if agent.Status != "executing" {
		return ""
	}
	for _, pattern := range []*regexp.Regexp{runningHook, runningAction} {
		if match := pattern.FindStringSubmatch(agent.Message); match != nil {
			return match[1]
		}
	}
	return ""
}

// truncate cuts a message to juju's width in bytes, and never inside a character; a line break would break the table.
func truncate(message string) string {
	message = strings.ReplaceAll(message, "\n", " ")
	if len(message) <= maxMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessage-len(ellipsis)], "") + ellipsis
}

func relationTable(s model.Status) *table {
	t := newTable("Integration provider", "Requirer", "Interface", "Type", "Message")
	relations := shownRelations(s)
	slices.SortStableFunc(relations, func(a, b model.RelationStatus) int {
		pa, ra := ends(a)
		pb, rb := ends(b)
		return cmp.Or(cmp.Compare(pa.String(), pb.String()), cmp.Compare(ra.String(), rb.String()))
	})
	for _, r := range relations {
		provider, requirer := ends(r)
		message := cell{r.Status, yellow}
		if r.Status == "joined" {
			message = plain("")
		}
		t.add(plain(provider.String()), plain(requirer.String()), plain(provider.Interface), plain(relationType(provider)), message)
	}
	return t
}

// ends returns the provider and the requirer of a relation; a peer relation is both.
func ends(r model.RelationStatus) (provider, requirer model.EndpointRef) {
	switch len(r.Ends) {
	case 0:
		return provider, requirer
	case 1:
		return r.Ends[0], r.Ends[0]
	}
	if r.Ends[1].Role == model.Provider {
		return r.Ends[1], r.Ends[0]
	}
	return r.Ends[0], r.Ends[1]
}

func relationType(end model.EndpointRef) string {
	if end.Role == model.Peer {
		return "peer"
	}
	return "regular"
}
