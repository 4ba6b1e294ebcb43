// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package hooktools

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	yaml "sigs.k8s.io/yaml/goyaml.v2"
)

// output is the --format and --output options of the tools that print a value.
type output struct {
	format string
	file   string
}

// outputFlags adds --format and --output; the first format is the default.
func (c *call) outputFlags(formats ...string) *output {
	o := &output{format: formats[0]}
	c.flags.value(func(v string) error {
		if !slices.Contains(formats, v) {
			return fmt.Errorf("unknown format %q", v)
		}
		o.format = v
		return nil
	}, "format")
	c.flags.text(&o.file, "o", "output")
	return o
}

// write prints the value, or writes it into the file of --output.
func (c *call) write(o *output, v any) error {
	raw, err := render(o.format, v)
	if err != nil {
		return err
	}
	if o.file == "" {
		c.stdout.Write(raw)
		return nil
	}
	name := o.file
	if !filepath.IsAbs(name) {
		name = filepath.Join(c.dir, name)
	}
	return os.WriteFile(name, raw, 0o644)
}

// render is Juju's rendering of a value.
func render(format string, v any) ([]byte, error) {
	switch format {
	case "json":
		var buf bytes.Buffer
		if err := json.NewEncoder(&buf).Encode(v); err != nil {
			return nil, err
		}
		return buf.Bytes(), nil
	case "yaml":
		return renderYAML(v)
	}
	switch t := v.(type) {
	case nil:
		return nil, nil
	case string:
		return line(t), nil
	case bool:
		if t {
			return line("True"), nil
		}
		return line("False"), nil
	case []string:
		return line(strings.Join(t, "\n")), nil
	case []any:
		if len(t) == 0 {
			return nil, nil
		}
	}
	return renderYAML(v)
}

func line(s string) []byte {
	if s == "" {
		return nil
	}
	return []byte(s + "\n")
}

func renderYAML(v any) ([]byte, error) {
	if v == nil {
		return nil, nil
	}
	return yaml.Marshal(v)
}
