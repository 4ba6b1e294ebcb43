// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package hooktools

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// validStorageID is what Juju takes for the id of a storage instance.
var validStorageID = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]*[a-z][a-z0-9]*)*/(0|[1-9][0-9]*)$`)

// storageList lists the ids of the unit's storage instances, or those of one name.
func storageList(c *call) error {
	out := c.outputFlags("smart", "yaml", "json")
	args, err := c.parse()
	if err != nil {
		return err
	}
	name := ""
	if len(args) > 0 {
		name = args[0]
		if err := noArgs(args[1:]); err != nil {
			return err
		}
	}
	ids := []string{}
	for _, id := range slices.Sorted(maps.Keys(c.hook.Info.Storage)) {
		if own, _, _ := strings.Cut(id, "/"); name == "" || own == name {
			ids = append(ids, id)
		}
	}
	return c.write(out, ids)
}

// storageGet prints what is known of a storage instance: by default the one that
// the hook is about.
func storageGet(c *call) error {
	var id string
	out := c.outputFlags("smart", "yaml", "json")
	c.flags.text(&id, "s")
	args, err := c.parse()
	if err != nil {
		return err
	}
	storage, err := c.storage(id)
	if err != nil {
		return err
	}
	key := ""
	if len(args) > 0 {
		key = args[0]
		if err := noArgs(args[1:]); err != nil {
			return err
		}
	}
	values := map[string]string{"kind": storage.Kind, "location": storage.Location}
	if key == "" {
		return c.write(out, values)
	}
	value, ok := values[key]
	if !ok {
		return fmt.Errorf("invalid storage attribute %q", key)
	}
	return c.write(out, value)
}

// storage finds the instance of the option -s, or of the running hook.
func (c *call) storage(id string) (model.StorageView, error) {
	given := id != ""
	if !given && c.hook.Hook != nil {
		id = c.hook.Hook.StorageID
	}
	if id == "" {
		return model.StorageView{}, usagef("no storage instance specified")
	}
	if given && !validStorageID.MatchString(id) {
		return model.StorageView{}, usagef("invalid value %q for option -s: invalid storage ID %q", id, id)
	}
	s, ok := c.hook.Info.Storage[id]
	if !ok {
		return s, usagef("invalid value %q for option -s: storage attachment %q on %q not found", id, id, c.hook.Unit)
	}
	return s, nil
}

// storageAdd checks what is asked for as Juju does and refuses the rest: Juju 3.6
// on Kubernetes records such an instance, and nothing ever makes it.
func storageAdd(c *call) error {
	args, err := c.parse()
	if err != nil {
		return err
	}
	if len(args) == 0 {
		return usagef("storage add requires a storage directive")
	}
	specs, err := model.ParseStorageSpecs(args, false)
	if err != nil {
		return usagef("%v", err)
	}
	names := slices.Sorted(maps.Keys(specs))
	for _, name := range names {
		if specs[name] != (model.StorageSpec{Count: specs[name].Count}) {
			return usagef("only count can be specified for %q", name)
		}
	}
	// None can be added; the first one says why.
	name := names[0]
	declared, ok := c.hook.Info.StorageMeta[name]
	switch {
	case !ok:
		return fmt.Errorf("charm storage %q not found", name)
	case declared.CountMin == 1 && declared.CountMax == 1:
		return fmt.Errorf("cannot add storage %q: cannot attach, storage is singular", name)
	}
	return fmt.Errorf("cannot add storage %q: not supported for sidecar charms: a running unit on Kubernetes gets no further storage", name)
}
