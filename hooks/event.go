// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package hooks

import (
	"fmt"
	"path"
	"strconv"
	"strings"
)

// Kind is the kind of a hook, spelled as Juju spells it, without the name of the endpoint or container before it.
type Kind string

// The hooks of a sidecar charm (Juju 3.6). Action and Commands are not hooks but run through dispatch as well.
const (
	Install               Kind = "install"
	Start                 Kind = "start"
	ConfigChanged         Kind = "config-changed"
	UpgradeCharm          Kind = "upgrade-charm"
	Stop                  Kind = "stop"
	Remove                Kind = "remove"
	LeaderElected         Kind = "leader-elected"
	LeaderSettingsChanged Kind = "leader-settings-changed"
	UpdateStatus          Kind = "update-status"

	RelationCreated  Kind = "relation-created"
	RelationJoined   Kind = "relation-joined"
	RelationChanged  Kind = "relation-changed"
	RelationDeparted Kind = "relation-departed"
	RelationBroken   Kind = "relation-broken"

	StorageAttached  Kind = "storage-attached"
	StorageDetaching Kind = "storage-detaching"

	PebbleReady          Kind = "pebble-ready"
	PebbleCustomNotice   Kind = "pebble-custom-notice"
	PebbleCheckFailed    Kind = "pebble-check-failed"
	PebbleCheckRecovered Kind = "pebble-check-recovered"

	SecretChanged Kind = "secret-changed"
	SecretExpired Kind = "secret-expired"
	SecretRemove  Kind = "secret-remove"
	SecretRotate  Kind = "secret-rotate"

	// Action is a `juju run`; Event.Action names it.
	Action Kind = "action"
	// Commands is a `juju exec`; dispatch is not called for it by Juju, only by a person.
	Commands Kind = "commands"
	// Unknown is a hook of a kind this package does not know; it is handled like any other hook.
	Unknown Kind = "unknown"
)

// Event is what Juju says in the environment about the hook that is being run. Fields that do not belong to the kind are
// empty; RelationID is -1 outside relation hooks.
type Event struct {
	Kind Kind
	// Name is the full hook name, such as "database-relation-changed", or the action's name.
	Name string

	Unit, App        string
	Model, ModelUUID string
	JujuVersion      string
	CharmDir         string

	// Endpoint and RelationID name the relation of a relation hook; RemoteUnit is empty in created, broken and in
	// changes of the application databag.
	Endpoint      string
	RelationID    int
	RemoteUnit    string
	RemoteApp     string
	DepartingUnit string

	// Workload is the container of a pebble hook. Check names the check of a check hook.
	Workload                        string
	NoticeID, NoticeType, NoticeKey string
	Check                           string

	SecretID, SecretLabel string
	// SecretRevision is 0 unless the hook is secret-remove or secret-expired.
	SecretRevision int

	Storage string

	// Action is the name of the action that runs, ActionID its number.
	Action, ActionID string
}

// Relation returns the relation's full id, such as "database:7", or "" outside relation hooks.
func (e Event) Relation() string {
	if e.RelationID < 0 {
		return ""
	}
	return e.Endpoint + ":" + strconv.Itoa(e.RelationID)
}

// Breaking returns the id of the relation that is being broken in this hook.
func (e Event) Breaking() (relationID int, ok bool) {
	return e.RelationID, e.Kind == RelationBroken
}

// relationKinds, workloadKinds and storageKinds are the suffixes by which a hook's name tells its kind.
var (
	relationKinds = []Kind{RelationCreated, RelationJoined, RelationChanged, RelationDeparted, RelationBroken}
	workloadKinds = []Kind{PebbleReady, PebbleCustomNotice, PebbleCheckFailed, PebbleCheckRecovered}
	storageKinds  = []Kind{StorageAttached, StorageDetaching}
	plainKinds    = []Kind{Install, Start, ConfigChanged, UpgradeCharm, Stop, Remove, LeaderElected,
		LeaderSettingsChanged, UpdateStatus, SecretChanged, SecretExpired, SecretRemove, SecretRotate}
)

// ParseEvent reads Juju's environment. It fails when a variable that the hook's kind needs is missing or malformed,
// which no Juju does.
func ParseEvent(getenv func(string) string) (Event, error) {
	event := Event{
		Unit:        getenv("JUJU_UNIT_NAME"),
		Model:       getenv("JUJU_MODEL_NAME"),
		ModelUUID:   getenv("JUJU_MODEL_UUID"),
		JujuVersion: getenv("JUJU_VERSION"),
		CharmDir:    getenv("JUJU_CHARM_DIR"),
		RelationID:  -1,
	}
	if event.CharmDir == "" {
		event.CharmDir = getenv("CHARM_DIR")
	}
	app, number, ok := strings.Cut(event.Unit, "/")
	if _, err := strconv.Atoi(number); !ok || app == "" || err != nil {
		return Event{}, fmt.Errorf("cannot read the hook's environment: JUJU_UNIT_NAME is %q, not a unit", event.Unit)
	}
	event.App = app
	dispatchPath := getenv("JUJU_DISPATCH_PATH")
	event.Name = getenv("JUJU_HOOK_NAME")
	// A `juju exec` is an action too, of the name juju-exec and without a path; a person may run a hook from it.
	action := getenv("JUJU_ACTION_NAME")
	if path.Dir(dispatchPath) == "actions" || dispatchPath == "" && action != "" && action != "juju-exec" {
		if action == "" {
			action = path.Base(dispatchPath)
		}
		event.Kind, event.Name, event.Action, event.ActionID = Action, action, action, getenv("JUJU_ACTION_UUID")
		return event, nil
	}
	if event.Name == "" && dispatchPath != "" {
		event.Name = path.Base(dispatchPath)
	}
	if event.Name == "" {
		event.Kind = Commands
		return event, nil
	}
	return event, event.fill(getenv)
}

// fill sets the kind from the hook's name, and what belongs to the kind.
func (e *Event) fill(getenv func(string) string) error {
	for _, kind := range plainKinds {
		if e.Name == string(kind) {
			e.Kind = kind
			return e.fillSecret(getenv)
		}
	}
	if kind, prefix := cutKind(e.Name, relationKinds); kind != "" {
		e.Kind, e.Endpoint = kind, prefix
		return e.fillRelation(getenv)
	}
	if kind, prefix := cutKind(e.Name, workloadKinds); kind != "" {
		e.Kind, e.Workload = kind, prefix
		if name := getenv("JUJU_WORKLOAD_NAME"); name != "" {
			e.Workload = name
		}
		e.NoticeID, e.NoticeType = getenv("JUJU_NOTICE_ID"), getenv("JUJU_NOTICE_TYPE")
		e.NoticeKey, e.Check = getenv("JUJU_NOTICE_KEY"), getenv("JUJU_PEBBLE_CHECK_NAME")
		return nil
	}
	if kind, _ := cutKind(e.Name, storageKinds); kind != "" {
		e.Kind, e.Storage = kind, getenv("JUJU_STORAGE_ID")
		return nil
	}
	e.Kind = Unknown
	return nil
}

// fillRelation reads the variables of a relation hook.
func (e *Event) fillRelation(getenv func(string) string) error {
	full := getenv("JUJU_RELATION_ID")
	id, err := ParseRelationID(full)
	if err != nil {
		return fmt.Errorf("cannot read the hook's environment: %v", err)
	}
	e.RelationID = id
	if endpoint := getenv("JUJU_RELATION"); endpoint != "" {
		e.Endpoint = endpoint
	}
	e.RemoteUnit, e.RemoteApp = getenv("JUJU_REMOTE_UNIT"), getenv("JUJU_REMOTE_APP")
	e.DepartingUnit = getenv("JUJU_DEPARTING_UNIT")
	return nil
}

// fillSecret reads the variables of a secret hook; other hooks do not have them.
func (e *Event) fillSecret(getenv func(string) string) error {
	e.SecretID, e.SecretLabel = getenv("JUJU_SECRET_ID"), getenv("JUJU_SECRET_LABEL")
	if text := getenv("JUJU_SECRET_REVISION"); text != "" {
		revision, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("cannot read the hook's environment: JUJU_SECRET_REVISION is %q, not a number", text)
		}
		e.SecretRevision = revision
	}
	return nil
}

// ParseRelationID returns the number of a relation id such as "database:7". Juju never checks the part before the colon.
func ParseRelationID(full string) (int, error) {
	id, err := strconv.Atoi(full[strings.LastIndexByte(full, ':')+1:])
	if err != nil || id < 0 {
		return 0, fmt.Errorf("%q is not a relation id", full)
	}
	return id, nil
}

// cutKind finds the kind by which the name ends and returns it with what stands before.
func cutKind(name string, kinds []Kind) (Kind, string) {
	for _, kind := range kinds {
		if prefix, ok := strings.CutSuffix(name, "-"+string(kind)); ok {
			return kind, prefix
		}
	}
	return "", ""
}
