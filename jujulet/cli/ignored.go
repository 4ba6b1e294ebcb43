// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// Some of juju's flags have nothing to act on here. Those that change nothing a charm sees are taken and left alone, so
// that scripts written for juju run; those that would are refused by refused, with a reason.

// noEffect is the help of a flag that is taken and left alone.
const noEffect = "Taken for juju's sake; without effect here"

func ignoreBool(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		flags.Bool(name, false, noEffect)
		_ = flags.MarkHidden(name)
	}
}

func ignoreString(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		flags.String(name, "", noEffect)
		_ = flags.MarkHidden(name)
	}
}

// refusals are flags of juju that a verb cannot honour, each with the reason.
type refusals map[string]string

// add adds the flags; whatever value they are given is taken until check.
func (r refusals) add(flags *pflag.FlagSet) {
	for name := range r {
		flags.StringArray(name, nil, "Not supported: "+r[name])
		_ = flags.MarkHidden(name)
	}
}

// check refuses the first flag, by name, that was given.
func (r refusals) check(flags *pflag.FlagSet) error {
	var given []string
	flags.Visit(func(f *pflag.Flag) {
		if _, refused := r[f.Name]; refused {
			given = append(given, f.Name)
		}
	})
	if len(given) == 0 {
		return nil
	}
	slices.Sort(given)
	return runErrorf("%s", fmt.Sprintf("--%s is not supported here: %s", given[0], strings.TrimSpace(r[given[0]])))
}
