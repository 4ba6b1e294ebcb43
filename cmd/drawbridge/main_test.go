// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRun(t *testing.T) {
	t.Parallel()
	hook := map[string]string{"JUJU_DISPATCH_PATH": "hooks/start", "JUJU_HOOK_NAME": "start"}
	for name, c := range map[string]struct {
		args           []string
		env            map[string]string
		want           int
		stdout, stderr string
	}{
		"version":              {[]string{"version"}, nil, 0, "drawbridge dev", ""},
		"help":                 {[]string{"--help"}, nil, 0, "watch", ""},
		"a person, no hook":    {nil, nil, 2, "", "run by Juju"},
		"unknown":              {[]string{"frobnicate"}, hook, 2, "", "run by Juju"},
		"watch without order":  {[]string{"watch", t.TempDir()}, nil, 1, "", "order"},
		"watch without folder": {[]string{"watch"}, nil, 2, "", "watch DIR"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			code := run(t.Context(), c.args, func(key string) string { return c.env[key] }, strings.NewReader(""), &stdout, &stderr)
			require.Equal(t, c.want, code, stderr.String())
			require.Contains(t, stdout.String(), c.stdout)
			require.Contains(t, stderr.String(), c.stderr)
		})
	}
}
