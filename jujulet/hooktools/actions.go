// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package hooktools

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var errNoAction = errors.New("not running an action")

// actionGet prints the parameters or the one at a dotted path.
func actionGet(c *call) error {
	out := c.outputFlags("smart", "yaml", "json")
	args, err := c.parse()
	if err != nil {
		return err
	}
	if len(args) > 1 {
		return noArgs(args[1:])
	}
	if c.hook.Action == nil {
		return errNoAction
	}
	var v any = c.hook.Action.Params
	if c.hook.Action.Params == nil {
		v = map[string]any{}
	}
	if len(args) == 1 {
		for key := range strings.SplitSeq(args[0], ".") {
			m, ok := v.(map[string]any)
			if !ok {
				v = nil
				break
			}
			v = m[key]
		}
	}
	return c.write(out, v)
}

var (
	resultKey      = regexp.MustCompile(`^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$`)
	reservedResult = []string{"stdout", "stderr", "stdout-encoding", "stderr-encoding"}
)

// actionSet adds results; dots in keys make maps.
func actionSet(c *call) error {
	args, err := c.parse()
	if err != nil {
		return err
	}
	type pair struct {
		path  []string
		value string
	}
	var pairs []pair
	for _, a := range args {
		key, value, ok := strings.Cut(a, "=")
		if !ok {
			return usagef("argument %q must be of the form key...=value", a)
		}
		path := strings.Split(key, ".")
		for _, segment := range path {
			if !resultKey.MatchString(segment) {
				return usagef("key %q must start and end with lowercase alphanumeric, and contain only lowercase alphanumeric and hyphens", segment)
			}
			if slices.Contains(reservedResult, segment) {
				return usagef("cannot set reserved action key %q", segment)
			}
		}
		pairs = append(pairs, pair{path, value})
	}
	if c.hook.Action == nil && len(pairs) > 0 {
		return errNoAction
	}
	for _, p := range pairs {
		setPath(c.hook.results, p.path, p.value)
	}
	return nil
}

func setPath(m map[string]any, path []string, value string) {
	for _, segment := range path[:len(path)-1] {
		next, ok := m[segment].(map[string]any)
		if !ok {
			next = map[string]any{}
			m[segment] = next
		}
		m = next
	}
	m[path[len(path)-1]] = value
}

// actionFail marks the action as failed; it goes on.
func actionFail(c *call) error {
	args, err := c.parse()
	if err != nil {
		return err
	}
	message := "action failed without reason given, check action for errors"
	if len(args) > 0 {
		message = args[0]
		if err := noArgs(args[1:]); err != nil {
			return err
		}
	}
	if c.hook.Action == nil {
		return errNoAction
	}
	c.hook.failed, c.hook.failMsg = true, message
	return nil
}

// actionLog adds a line to the action's log, at once.
func actionLog(c *call) error {
	args, err := c.parse()
	if err != nil {
		return err
	}
	if len(args) == 0 {
		return usagef("no message specified")
	}
	if c.hook.Action == nil {
		return errNoAction
	}
	return c.hook.Backend.LogAction(c.ctx, c.hook.Unit, c.hook.Action.ID, strings.Join(args, " "))
}

// jujuReboot is refused: there is no machine.
func jujuReboot(c *call) error {
	var now bool
	c.flags.boolean(&now, "now")
	args, err := c.parse()
	if err != nil {
		return err
	}
	if err := noArgs(args); err != nil {
		return err
	}
	if c.hook.Action != nil {
		//lint:ignore ST1005 the text is Juju's own
		return errors.New("juju-reboot is not supported when running an action.")
	}
	return fmt.Errorf("juju-reboot is not supported on a Kubernetes model")
}
