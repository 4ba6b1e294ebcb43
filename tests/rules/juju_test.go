// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package rules

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// jujuRules says where Juju's rules are tested that a runner easily gets wrong (the
// traps) and the worked traces of a unit's life, each as a subtest of that name.
var jujuRules = map[string]string{
	"trap-1":  "jujulet/agent",      // the leader is told of its own write to the peer databag
	"trap-2":  "jujulet/agent",      // application-level changed comes before joined
	"trap-3":  "jujulet/agent",      // joined is followed by changed
	"trap-4":  "jujulet/agent",      // what survives a failed hook
	"trap-5":  "jujulet/agent",      // a flush fails after exit 0
	"trap-6":  "jujulet/agent",      // unchanged values and coalescing
	"trap-7":  "jujulet/hooktools",  // remote databags are cached
	"trap-8":  "jujulet/agent",      // relation-ids in broken, relation-list in departed
	"trap-9":  "jujulet/agent",      // no relation in install
	"trap-10": "jujulet/agent",      // start again, and an empty disk
	"trap-11": "jujulet/agent",      // addresses are the Service's
	"trap-12": "jujulet/hooktools",  // exit codes
	"trap-13": "jujulet/hooktools",  // missing keys are no errors
	"trap-14": "jujulet/hooktools",  // what is trimmed, what deletes
	"trap-15": "jujulet/hooktools",  // forms of flags
	"trap-16": "jujulet/hooktools",  // standard input is asked for only when read
	"trap-17": "jujulet/hooktools",  // a closed context refuses
	"trap-18": "jujulet/hooktools",  // files are read by the agent
	"trap-19": "jujulet/agent",      // the environment is a closed list
	"trap-20": "jujulet/agent",      // actions that fail
	"trap-21": "jujulet/agent",      // a failed workload hook is skipped and fired again
	"trap-22": "jujulet/agent",      // custom notices: whose, and what of them
	"trap-23": "jujulet/agent",      // notices do not wait for the poller of pebble-ready
	"trap-24": "jujulet/agent",      // in error actions run, hooks do not
	"trap-25": "jujulet/hooktools",  // not the leader is sticky
	"trap-26": "jujulet/agent",      // which changes of config fire
	"trap-27": "jujulet/agent",      // secret hooks
	"trap-28": "jujulet/agent",      // what a charm defers on disk dies with the pod
	"trap-29": "jujulet/agent",      // tools work in every dispatch
	"trap-30": "jujulet/agent",      // update-status is swallowed
	"trap-31": "jujulet/agent",      // order across relations is random
	"trap-32": "jujulet/controller", // opened ports on the Service
	"trap-33": "jujulet/model",      // application status is derived until set
	"trap-34": "jujulet/agent",      // messages of failed hooks
	"trap-35": "jujulet/model",      // the charm is packed again
	"trap-36": "jujulet/agent",      // a single unit's peer relation
	"trap-37": "jujulet/hooktools",  // databags are strings
	"trap-38": "jujulet/agent",      // leader-settings-changed at each start of a follower
	"trap-39": "jujulet/hooktools",  // goal-state has the own unit
	"trap-40": "jujulet/cli",        // progress on standard error, results on standard output

	"trace-T1": "jujulet/agent", "trace-T2": "jujulet/agent", "trace-T3": "jujulet/agent", "trace-T4": "jujulet/agent",
	"trace-T5": "jujulet/agent", "trace-T6": "jujulet/agent", "trace-T7": "jujulet/agent", "trace-T8": "jujulet/agent",
	"trace-T9": "jujulet/agent", "trace-T10": "jujulet/agent", "trace-T11": "jujulet/agent",
}

// Each trap and each trace has a test where the table says.
func TestJujusRulesAreTested(t *testing.T) {
	t.Parallel()
	wanted := map[string]bool{}
	for i := 1; i <= 40; i++ {
		wanted[fmt.Sprintf("trap-%d", i)] = true
	}
	for i := 1; i <= 11; i++ {
		wanted[fmt.Sprintf("trace-T%d", i)] = true
	}
	for name := range jujuRules {
		require.True(t, wanted[name], "%s is no rule", name)
	}
	found := subtests(t)
	for name := range wanted {
		where, listed := jujuRules[name]
		require.True(t, listed, "the table has no row for %s", name)
		if found[name] != where {
			t.Errorf("%s is to be tested in %s; found in %q", name, where, found[name])
		}
	}
}

// subtests returns the package of every subtest that is named after a rule.
func subtests(t *testing.T) map[string]string {
	t.Helper()
	name := regexp.MustCompile(`t\.Run\("(trap-\d+|trace-T\d+)[" ]`)
	root, found := repository(t), map[string]string{}
	err := filepath.WalkDir(filepath.Join(root, "jujulet"), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		where, err := filepath.Rel(root, filepath.Dir(path))
		require.NoError(t, err)
		for _, m := range name.FindAllStringSubmatch(string(data), -1) {
			require.Empty(t, found[m[1]], "%s is tested twice", m[1])
			found[m[1]] = filepath.ToSlash(where)
		}
		return nil
	})
	require.NoError(t, err)
	return found
}
