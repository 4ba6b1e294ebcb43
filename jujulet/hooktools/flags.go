// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package hooktools

import (
	"fmt"
	"strconv"
	"strings"
)

// usageError is an error in how a tool was called: exit code 2.
type usageError struct{ message string }

func (e *usageError) Error() string { return e.message }

func usagef(format string, args ...any) error {
	return &usageError{message: fmt.Sprintf(format, args...)}
}

// errHelp asks for the usage text.
var errHelp = &usageError{message: "help requested"}

// flag is one option under one or more names; set receives its value.
type flag struct {
	boolean bool
	set     func(value string) error
}

// flags parses options as Juju's commands do: they may stand anywhere among the
// positional arguments until "--"; booleans take a value only after "=".
type flags struct {
	byName map[string]*flag
}

func newFlags() *flags { return &flags{byName: map[string]*flag{}} }

func (f *flags) add(fl *flag, names ...string) {
	for _, n := range names {
		f.byName[n] = fl
	}
}

// text adds an option with a value.
func (f *flags) text(p *string, names ...string) {
	f.add(&flag{set: func(v string) error { *p = v; return nil }}, names...)
}

// value adds an option whose value is checked by set.
func (f *flags) value(set func(string) error, names ...string) {
	f.add(&flag{set: set}, names...)
}

// boolean adds an option that is on or off.
func (f *flags) boolean(p *bool, names ...string) {
	f.add(&flag{boolean: true, set: func(v string) error {
		b, err := strconv.ParseBool(v)
		if err != nil {
			return fmt.Errorf("strconv.ParseBool: parsing %q: invalid syntax", v)
		}
		*p = b
		return nil
	}}, names...)
}

// dashed is an option's name as the user writes it.
func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// parse sets the options and returns the positional arguments.
func (f *flags) parse(args []string) ([]string, error) {
	var rest []string
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		var err error
		switch {
		case arg == "--":
			return append(rest, args...), nil
		case strings.HasPrefix(arg, "--"):
			args, err = f.long(arg[2:], args)
		case len(arg) > 1 && arg[0] == '-':
			args, err = f.short(arg[1:], args)
		default:
			rest = append(rest, arg)
		}
		if err != nil {
			return nil, err
		}
	}
	return rest, nil
}

func (f *flags) lookup(name string) (*flag, error) {
	fl, ok := f.byName[name]
	if ok {
		return fl, nil
	}
	if name == "help" || name == "h" {
		return nil, errHelp
	}
	return nil, usagef("option provided but not defined: %s", dashed(name))
}

func (f *flags) long(text string, args []string) ([]string, error) {
	name, value, given := strings.Cut(text, "=")
	fl, err := f.lookup(name)
	if err != nil {
		return nil, err
	}
	switch {
	case given:
	case fl.boolean:
		value = "true"
	case len(args) == 0:
		return nil, usagef("option needs an argument: %s", dashed(name))
	default:
		value, args = args[0], args[1:]
	}
	return args, apply(fl, name, value)
}

// short parses "-r", "-rVALUE" and clusters of booleans.
func (f *flags) short(text string, args []string) ([]string, error) {
	for i, r := range text {
		name := string(r)
		fl, err := f.lookup(name)
		if err != nil {
			return nil, err
		}
		if fl.boolean {
			if err := apply(fl, name, "true"); err != nil {
				return nil, err
			}
			continue
		}
		value := text[i+len(name):]
		if i+len(name) >= len(text) {
			if len(args) == 0 {
				return nil, usagef("option needs an argument: %s", dashed(name))
			}
			value, args = args[0], args[1:]
		}
		return args, apply(fl, name, value)
	}
	return args, nil
}

func apply(fl *flag, name, value string) error {
	if err := fl.set(value); err != nil {
		return usagef("invalid value %q for option %s: %v", value, dashed(name), err)
	}
	return nil
}

// integer adds an option with a whole number.
func (f *flags) integer(p *int, names ...string) {
	f.add(&flag{set: func(v string) error {
		n, err := strconv.ParseInt(v, 0, strconv.IntSize)
		if err != nil {
			return fmt.Errorf("strconv.ParseInt: parsing %q: invalid syntax", v)
		}
		*p = int(n)
		return nil
	}}, names...)
}

// oldFormat adds the --format of tools that print nothing; using it earns a note.
func (c *call) oldFormat(tool string) (note func()) {
	var format string
	c.flags.text(&format, "format")
	return func() {
		if format != "" {
			fmt.Fprintf(&c.stderr, "--format flag deprecated for command %q", tool)
		}
	}
}

// noArgs refuses positional arguments that a tool does not take.
func noArgs(args []string) error {
	if len(args) == 0 {
		return nil
	}
	quoted := make([]string, len(args))
	for i, a := range args {
		quoted[i] = strconv.Quote(a)
	}
	return usagef("unrecognized args: [%s]", strings.Join(quoted, " "))
}

// keyValues parses k=v arguments: key and value are trimmed, "" is ignored.
func keyValues(args []string, emptyValues bool) (map[string]string, error) {
	out := map[string]string{}
	for _, a := range args {
		if a == "" {
			continue
		}
		k, v, ok := strings.Cut(a, "=")
		k, v = strings.TrimSpace(k), strings.TrimSpace(v)
		if !ok || k == "" {
			return nil, usagef("expected \"key=value\", got %q", a)
		}
		if v == "" && !emptyValues {
			return nil, usagef("expected \"key=value\", got \"%s=\"", k)
		}
		if _, twice := out[k]; twice {
			return nil, usagef("key %q specified more than once", k)
		}
		out[k] = v
	}
	return out, nil
}
