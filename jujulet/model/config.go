// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"maps"
	"strconv"
)

// trustOption is the application option that `juju trust` sets.
const trustOption = "trust"

// SetConfig sets options from their text, "trust" included: all of them or none.
func (m *Model) SetConfig(app string, values map[string]string) error {
	return m.changeConfig(app, func(a *appDoc, c *Charm) error {
		charm := maps.Clone(values)
		if text, ok := values[trustOption]; ok && !hasOption(c, trustOption) {
			v, err := strconv.ParseBool(text)
			if err != nil {
				return errf(Invalid, "option %q expected boolean, got %q", trustOption, text)
			}
			a.Trust = v
			delete(charm, trustOption)
		}
		parsed, err := parseOptions(c, charm)
		if err != nil {
			return err
		}
		maps.Copy(a.Settings, parsed)
		return nil
	})
}

// ResetConfig forgets the user's values of options.
func (m *Model) ResetConfig(app string, keys []string) error {
	return m.changeConfig(app, func(a *appDoc, c *Charm) error {
		for _, k := range keys {
			if k == trustOption && !hasOption(c, k) {
				a.Trust = false
				continue
			}
			if !hasOption(c, k) {
				return errf(Invalid, "unknown option %q", k)
			}
			delete(a.Settings, k)
		}
		return nil
	})
}

// SetTrust gives or takes the cluster-wide rights.
func (m *Model) SetTrust(app string, trust bool) error {
	return m.changeConfig(app, func(a *appDoc, _ *Charm) error {
		a.Trust = trust
		return nil
	})
}

func hasOption(c *Charm, name string) bool {
	_, ok := c.Config[name]
	return ok
}

// changeConfig lets f change an application; nothing is written if it fails.
func (m *Model) changeConfig(app string, f func(a *appDoc, c *Charm) error) error {
	return m.update(func(t *txn) error {
		a, err := t.app(app)
		if err != nil {
			return err
		}
		c, err := t.charm(a.Charm)
		if err != nil {
			return err
		}
		if a.Settings == nil {
			a.Settings = map[string]any{}
		}
		if err := f(a, c); err != nil {
			return err
		}
		return t.putApp(a)
	})
}

// settings merges the user's values over the defaults; nil values are included.
func settings(set map[string]any, c *Charm) map[string]any {
	out := map[string]any{}
	for name, o := range c.Config {
		out[name] = o.Default
		if v, ok := set[name]; ok {
			out[name] = v
		}
	}
	return out
}

// configValues is what `juju config` shows, by name.
func configValues(a *appDoc, c *Charm) []ConfigValue {
	out := []ConfigValue{}
	for _, name := range sortedKeys(c.Config) {
		o := c.Config[name]
		v := ConfigValue{Name: name, Type: o.Type, Description: o.Description, Default: o.Default, Source: "unset"}
		if o.Default != nil {
			v.Value, v.Source = o.Default, "default"
		}
		if set, ok := a.Settings[name]; ok {
			v.Value = set
			if o.Default == nil || !sameValue(set, o.Default) {
				v.Source = "user"
			}
		}
		out = append(out, v)
	}
	return out
}
