// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/term"
	"gopkg.in/yaml.v3"
)

// The rules of output:
//
//   - results, and nothing else, go to standard output: a script may parse it;
//   - progress, notes and questions go to standard error, one line each, no capitals unless juju has them;
//   - an error is one line "ERROR <text>" on standard error, and what to do about it is a line "hint: <text>" below it;
//   - colour only on a terminal, and never with NO_COLOR set;
//   - --format json and yaml keep every name of juju's and sort what has no order of its own.

// infof writes progress to standard error: a line, or lines that end as they say. Juju 3.6 does not double a line's end.
func (a *app) infof(format string, args ...any) {
	if a.quiet {
		return
	}
	text := fmt.Sprintf(format, args...)
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	fmt.Fprint(a.Err, text)
}

// printf writes a result to standard output.
func (a *app) printf(format string, args ...any) { fmt.Fprintf(a.Out, format, args...) }

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// colour reports whether results may be coloured.
func (a *app) colour() bool {
	return a.Getenv("NO_COLOR") == "" && a.Getenv("TERM") != "dumb" && isTerminal(a.Out)
}

// format is a --format flag with a closed list of values.
type format struct {
	value   string
	allowed []string
}

// formatFlag adds --format; the first allowed value is the default.
func formatFlag(flags *pflag.FlagSet, allowed ...string) *format {
	f := &format{value: allowed[0], allowed: allowed}
	flags.Var(f, "format", "Specify output format ("+strings.Join(allowed, "|")+")")
	return f
}

// String returns the value.
func (f *format) String() string { return f.value }

// Type names the flag's values in help.
func (f *format) Type() string { return "format" }

// Set takes one of the allowed values.
func (f *format) Set(value string) error {
	if !slices.Contains(f.allowed, value) {
		return fmt.Errorf("unknown format %q", value)
	}
	f.value = value
	return nil
}

// writeValue prints a value as yaml or json; false if the format is another one.
func (f *format) writeValue(w io.Writer, value any) (bool, error) {
	switch f.value {
	case "json":
		encoder := json.NewEncoder(w)
		return true, encoder.Encode(value)
	case "yaml":
		return true, writeYAML(w, value)
	default:
		return false, nil
	}
}

func writeYAML(w io.Writer, value any) error {
	encoder := yaml.NewEncoder(w)
	encoder.SetIndent(2)
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("cannot write yaml: %w", err)
	}
	return encoder.Close()
}

// flagError words a flag's error as juju does.
func flagError(err error) error {
	var missing *pflag.NotExistError
	var needs *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	switch {
	case asError(err, &missing):
		return usageErrorf("option provided but not defined: %s", dashes(missing.GetSpecifiedName()))
	case asError(err, &needs):
		return usageErrorf("option needs an argument: %s", dashes(needs.GetSpecifiedName()))
	case asError(err, &invalid):
		return usageErrorf("invalid value %q for option %s: %v", invalid.GetValue(), dashes(invalid.GetFlag().Name), valueError(invalid))
	default:
		return usageErrorf("%v", err)
	}
}

// valueError is what is wrong with a flag's value, without the name of the function that found it.
func valueError(err *pflag.InvalidValueError) error {
	switch err.GetFlag().Value.Type() {
	case "int", "uint":
		return errors.New("expected a number")
	case "duration":
		return errors.New("expected a duration such as 90s or 5m")
	case "bool":
		return errors.New("expected true or false")
	default:
		return err.Unwrap()
	}
}

func dashes(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}
