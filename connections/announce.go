// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package connections

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Reasons of the Kubernetes Events.
const (
	ReasonAdded       = "ConnectionAdded"
	ReasonConnectedTo = "ConnectedTo"
	ReasonChanged     = "ConnectionChanged"
	ReasonPropagating = "ConnectionPropagating"
	ReasonRemoved     = "ConnectionRemoved"
	ReasonProblem     = "ConnectionProblem"
	ReasonApplied     = "ConnectionsApplied"
	ReasonHookFailed  = "ConnectionsHookFailed"
)

// Notice is one Event to be made: on the application (its StatefulSet), or on a ConfigMap.
type Notice struct {
	// ConfigMap is the one that it is about; "" means the application.
	ConfigMap string
	Warning   bool
	Reason    string
	Message   string
	// Digest stands for what has happened: it makes the name of the Event.
	Digest string
}

// EventName is the name of the Event on an object: the same whenever the same thing is told again, so that a second one is
// refused by Kubernetes.
func (n Notice) EventName(object, uid string) string {
	sum := sha256.Sum256([]byte(n.Reason + "\x00" + uid + "\x00" + n.Digest))
	if len(object) > 230 {
		object = strings.TrimRight(object[:230], "-.")
	}
	return object + "." + hex.EncodeToString(sum[:])[:16]
}

// Announced is what has been told last, by item: its digest, and behind a "!" the state that was told as a problem.
type Announced map[string]string

// Keys of Announced that are no items.
const (
	announcedApplied = "applied"
	announcedHook    = "hook/"
	announcedGiven   = "provided/"
)

// ParseAnnounced reads the value; one that cannot be read is empty.
func ParseAnnounced(text string) Announced {
	a := Announced{}
	if json.Unmarshal([]byte(text), &a) != nil || a == nil {
		return Announced{}
	}
	return a
}

// Text is the databag's value.
func (a Announced) Text() string {
	if len(a) == 0 {
		return ""
	}
	return string(canonical(map[string]string(a)))
}

// News is what is to be told about one key of Announced, and its value afterwards ("": none).
type News struct {
	Key, Value string
	Notices    []Notice
}

// UnitRecord is what one unit has recorded.
type UnitRecord struct {
	Name    string
	Applied Applied
}

// Announce says what is to be told after a plan: for the items, in their order; then for the units. app is the application,
// given the metadata's digest by the application that we gave it to.
func (a Announced) Announce(app string, p Plan, given map[string]string, units []UnitRecord) []News {
	var news []News
	if !p.Hold {
		news = a.items(app, p)
	}
	for _, remote := range slices.Sorted(maps.Keys(given)) {
		key, digest := announcedGiven+remote, given[remote]
		if a[key] == digest {
			continue
		}
		n := News{Key: key, Value: digest}
		if a[key] != "" {
			n.Notices = []Notice{{Reason: ReasonPropagating, Message: fmt.Sprintf(messageTo, remote), Digest: remote + digest}}
		}
		news = append(news, n)
	}
	return append(news, a.units(p, units)...)
}

// The messages. Braces are part of them, as in KubeDirector.
const (
	messageAdded     = "%s {%s} connected"
	messageConnected = "connected to application {%s}"
	messageChanged   = "connected %s {%s} has changed; updating configmeta"
	messageTo        = "connected to application {%s}; updating it"
	messageRemoved   = "%s {%s} disconnected"
	messageFrom      = "disconnected from application {%s}"
	messageMissing   = "connected configmap {%s} does not exist"
	messageForbidden = "connected configmap {%s} may not be read: grant \"get configmaps\" (juju trust)"
	messageTooLarge  = "connected configmap {%s} is too large: more than %d bytes, or more than %d together with the others"
	messageRefused   = "cluster {%s} refused: %s"
	messageInvalid   = "cluster {%s} has sent metadata that cannot be read"
	messageApplied   = "configmeta %s applied on %d/%d units"
	messageHook      = "unit {%s}: connections hook exited %d"
	messageTimeout   = "unit {%s}: connections hook did not end in time"
)

// items compares the items with what was told.
func (a Announced) items(app string, p Plan) []News {
	var news []News
	listed := map[string]bool{}
	for _, item := range p.Items {
		listed[item.Key()] = true
		digest, _, _ := strings.Cut(a[item.Key()], "!")
		n := News{Key: item.Key()}
		switch item.State {
		case OK:
			n.Value, n.Notices = item.Digest, toldOf(app, item, digest)
		case Stale, Pending:
			continue
		case Absent:
			n.Notices = removed(app, item.Kind, item.Name, digest)
		default:
			n.Value = item.Digest + "!" + string(item.State)
			if _, told, _ := strings.Cut(a[item.Key()], "!"); told != string(item.State) {
				n.Notices = []Notice{{Warning: true, Reason: ReasonProblem, Message: problemMessage(item, p), Digest: item.Key() + "!" + string(item.State)}}
			}
		}
		if n.Value != a[item.Key()] {
			news = append(news, n)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(a)) {
		kind, name, _ := strings.Cut(key, "/")
		item := Kind(kind) == KindConfigMap || Kind(kind) == KindCluster
		if !item || listed[key] || p.NamesUnknown && Kind(kind) == KindConfigMap {
			continue
		}
		digest, _, _ := strings.Cut(a[key], "!")
		news = append(news, News{Key: key, Notices: removed(app, Kind(kind), name, digest)})
	}
	return news
}

// toldOf are the notices of an item that has content; told is the digest that was told last.
func toldOf(app string, item Item, told string) []Notice {
	var on, to Notice
	switch told {
	case item.Digest:
		return nil
	case "":
		on = Notice{Reason: ReasonAdded, Message: fmt.Sprintf(messageAdded, item.Kind, item.Name)}
		to = Notice{Reason: ReasonConnectedTo, Message: fmt.Sprintf(messageConnected, app)}
	default:
		on = Notice{Reason: ReasonChanged, Message: fmt.Sprintf(messageChanged, item.Kind, item.Name)}
		to = Notice{Reason: ReasonPropagating, Message: fmt.Sprintf(messageTo, app)}
	}
	on.Digest, to.Digest, to.ConfigMap = item.Digest, item.Digest, item.Name
	if item.Kind != KindConfigMap {
		return []Notice{on}
	}
	return []Notice{on, to}
}

// removed are the notices of an item that has gone, if it was told that it was there.
func removed(app string, kind Kind, name, told string) []Notice {
	if told == "" {
		return nil
	}
	on := Notice{Reason: ReasonRemoved, Message: fmt.Sprintf(messageRemoved, kind, name), Digest: told}
	if kind != KindConfigMap {
		return []Notice{on}
	}
	return []Notice{on, {ConfigMap: name, Reason: ReasonRemoved, Message: fmt.Sprintf(messageFrom, app), Digest: told}}
}

// problemMessage words what is wrong with an item.
func problemMessage(item Item, p Plan) string {
	switch item.State {
	case Missing:
		return fmt.Sprintf(messageMissing, item.Name)
	case Forbidden:
		return fmt.Sprintf(messageForbidden, item.Name)
	case TooLarge:
		return fmt.Sprintf(messageTooLarge, item.Name, MaxConfigMap, MaxTotal)
	case Rejected:
		return fmt.Sprintf(messageRefused, item.Name, p.Answers[item.Name].Reason)
	}
	return fmt.Sprintf(messageInvalid, item.Name)
}

// units tells that all units have applied what is wanted, and whose hook has failed.
func (a Announced) units(p Plan, units []UnitRecord) []News {
	var news []News
	done := 0
	for _, u := range units {
		if u.Applied.Hash == p.Hash {
			done++
		}
		key, n := announcedHook+u.Name, News{}
		if run := u.Applied.Hook; run != nil && run.RC != 0 {
			n.Value = Short(run.Hash) + "!" + fmt.Sprint(run.RC)
			message := fmt.Sprintf(messageHook, u.Name, run.RC)
			if run.Timeout {
				message = fmt.Sprintf(messageTimeout, u.Name)
			}
			n.Notices = []Notice{{Warning: true, Reason: ReasonHookFailed, Message: message, Digest: u.Name + n.Value}}
		}
		if n.Value != a[key] {
			n.Key = key
			news = append(news, n)
		}
	}
	told := cmp.Or(a[announcedApplied], emptyHash)
	if len(units) > 0 && done == len(units) && told != p.Hash && !p.Hold {
		news = append(news, News{Key: announcedApplied, Value: p.Hash, Notices: []Notice{{
			Reason: ReasonApplied, Message: fmt.Sprintf(messageApplied, Short(p.Hash), done, done), Digest: p.Hash}}})
	}
	return news
}
