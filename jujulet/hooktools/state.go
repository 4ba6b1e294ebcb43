// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package hooktools

import (
	"fmt"
	"maps"
)

// Bounds of one key and one value of state-set, in bytes.
const (
	maxStateKey   = 256
	maxStateValue = 64 << 10
)

// charmState returns the unit's state with this hook's changes over it.
func (c *call) charmState() (map[string]string, error) {
	h := c.hook
	if h.state == nil {
		s, err := h.Backend.CharmState(c.ctx, h.Unit)
		if err != nil {
			return nil, err
		}
		h.state = s
	}
	out := maps.Clone(h.state)
	for k := range h.stateDelete {
		delete(out, k)
	}
	maps.Copy(out, h.stateSet)
	return out, nil
}

// stateGet prints the state or one of its values.
func stateGet(c *call) error {
	var strict bool
	out := c.outputFlags("smart", "yaml", "json")
	c.flags.boolean(&strict, "strict")
	args, err := c.parse()
	if err != nil {
		return err
	}
	key := ""
	if len(args) > 0 {
		if args[0] != "-" {
			key = args[0]
		}
		if err := noArgs(args[1:]); err != nil {
			return err
		}
	}
	state, err := c.charmState()
	if err != nil {
		return err
	}
	if key == "" {
		if len(state) == 0 {
			state = nil
		}
		return c.write(out, state)
	}
	v, ok := state[key]
	if !ok && strict {
		return fmt.Errorf("%q not found", key)
	}
	return c.write(out, v)
}

// stateSet buffers values; an empty one is stored.
func stateSet(c *call) error {
	var file string
	c.flags.text(&file, "file")
	args, err := c.parse()
	if err != nil {
		return err
	}
	given, err := keyValues(args, true)
	if err != nil {
		return err
	}
	values, err := c.settingsFile(file)
	if err != nil {
		return err
	}
	maps.Copy(values, given)
	for k, v := range values {
		if len(k) > maxStateKey {
			return fmt.Errorf("max allowed key length (%d) exceeded", maxStateKey)
		}
		if len(v) > maxStateValue {
			return fmt.Errorf("max allowed value length (%d) exceeded", maxStateValue)
		}
	}
	for k, v := range values {
		delete(c.hook.stateDelete, k)
		c.hook.stateSet[k] = v
	}
	return nil
}

// stateDelete buffers the deletion of a key; a missing one is fine.
func stateDelete(c *call) error {
	args, err := c.parse()
	if err != nil {
		return err
	}
	if len(args) == 0 {
		return nil
	}
	if err := noArgs(args[1:]); err != nil {
		return err
	}
	delete(c.hook.stateSet, args[0])
	c.hook.stateDelete[args[0]] = true
	return nil
}
