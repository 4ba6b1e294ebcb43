// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package hooktools

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"gopkg.in/yaml.v3"
)

// relationSet buffers values for an own databag; an empty one deletes its key.
func relationSet(c *call) error {
	var app bool
	var file string
	rel := c.relationFlag()
	c.flags.boolean(&app, "app")
	c.flags.text(&file, "file")
	note := c.oldFormat("relation-set")
	args, err := c.parse()
	if err != nil {
		return err
	}
	r, err := rel.get()
	if err != nil {
		return err
	}
	given, err := keyValues(args, true)
	if err != nil {
		return err
	}
	note()
	values, err := c.settingsFile(file)
	if err != nil {
		return err
	}
	maps.Copy(values, given)
	id := bagID{r.ID, c.hook.Unit}
	if app {
		leads, err := c.hook.isLeader(c.ctx)
		if err != nil {
			return err
		}
		if !leads {
			return errors.New("cannot write relation settings")
		}
		id.owner = c.hook.Info.App
	}
	if len(values) > 0 {
		c.hook.setBag(id, values)
	}
	return nil
}

// settingsFile reads the flat YAML map of --file: "-" is standard input, a
// relative path is the client's.
func (c *call) settingsFile(name string) (map[string]string, error) {
	var raw []byte
	var err error
	switch {
	case name == "":
		return map[string]string{}, nil
	case name == "-":
		raw, err = c.readStdin()
	default:
		if !filepath.IsAbs(name) {
			name = filepath.Join(c.dir, name)
		}
		raw, err = os.ReadFile(name)
	}
	if err != nil {
		return nil, err
	}
	return flatYAML(raw)
}

// flatYAML reads a map of scalars whose values keep their source text; null is
// the empty string.
func flatYAML(raw []byte) (map[string]string, error) {
	out := map[string]string{}
	var doc yaml.Node
	if err := yaml.Unmarshal(raw, &doc); err != nil {
		return nil, err
	}
	if doc.Kind == 0 || len(doc.Content) == 0 {
		return out, nil
	}
	root := doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return out, nil
	}
	if root.Kind != yaml.MappingNode {
		return nil, mismatch(root, "map[string]string")
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		k, v := root.Content[i], root.Content[i+1]
		if v.Kind == yaml.AliasNode {
			v = v.Alias
		}
		for _, n := range []*yaml.Node{k, v} {
			if n.Kind != yaml.ScalarNode {
				return nil, mismatch(n, "string")
			}
		}
		if v.Tag == "!!binary" {
			if err := v.Decode(&v.Value); err != nil {
				return nil, err
			}
		}
		if v.Tag == "!!null" {
			out[k.Value] = ""
			continue
		}
		out[k.Value] = v.Value
	}
	return out, nil
}

// mismatch words a YAML type error as Juju's parser does.
func mismatch(n *yaml.Node, want string) error {
	got := map[yaml.Kind]string{yaml.SequenceNode: "!!seq", yaml.MappingNode: "!!map", yaml.ScalarNode: "!!str"}[n.Kind]
	if n.Kind == yaml.ScalarNode {
		got = n.Tag + " `" + strings.TrimSpace(n.Value) + "`"
	}
	return fmt.Errorf("yaml: unmarshal errors:\n  line %d: cannot unmarshal %s into %s", n.Line, got, want)
}
