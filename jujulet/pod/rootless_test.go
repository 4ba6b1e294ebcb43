// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package pod_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/jujulet/pod"
	"github.com/drawbridge-k8s/drawbridge/jujulet/pod/podtest"
)

// ordinaryOnly skips a test of what only an ordinary user's pods have.
func ordinaryOnly(t *testing.T) {
	t.Helper()
	if !podtest.Ordinary() {
		t.Skip("skipped: root's pods show the machine's folders as they are; the run as an ordinary user has this test")
	}
}

// Though the machine's folders belong to root, pods of an ordinary user can change them, each for itself.
func TestRootless_MachinesFolders(t *testing.T) {
	ordinaryOnly(t)
	p := start(t, newManager(t, nil), pod.Spec{Containers: []pod.Container{{Name: pod.CharmContainer}, {Name: "work"}}})
	for _, test := range []struct{ name, script, want string }{
		{"they belong to the pod's root", "stat -c %u / /etc /var/lib /usr /usr/bin /etc/passwd | tr '\\n' ' '", "0 0 0 0 0 0"},
		{"append to a file", "echo x:x:1:1::/:/bin/sh >> /etc/passwd && tail -n1 /etc/passwd", "x:x:1:1::/:/bin/sh"},
		{"rewrite a file", "echo y > /etc/profile && cat /etc/profile", "y"},
		{"remove a folder", "rm -r /etc/apt && ls /etc/apt 2>/dev/null || echo gone", "gone"},
		{"make it again", "mkdir /etc/apt && ls -A /etc/apt", ""},
		{"change its mode", "chmod 700 /var/lib && stat -c %a /var/lib", "700"},
		{"add a program", "printf '#!/bin/sh\\necho run' > /usr/local/bin/p && chmod +x /usr/local/bin/p && p", "run"},
		{"replace a program", "cp /bin/true /usr/bin/new && mv /usr/bin/new /usr/bin/false && /usr/bin/false && echo replaced", "replaced"},
		{"not in place", "(echo x >> /usr/bin/env) 2>/dev/null || echo refused", "refused"},
		{"what only root may read", "cat /etc/shadow 2>/dev/null || echo refused", "refused"},
		{"no other user", "setpriv --reuid=65534 --clear-groups true 2>/dev/null || echo refused", "refused"},
		{"no other group", "chgrp 12 /tmp 2>&1 | grep -o 'Invalid argument'", "Invalid argument"},
		{"no devices", "mknod /tmp/disk b 254 0 2>/dev/null || echo refused", "refused"},
		{"no kernel settings", "(echo 1 > /proc/sys/net/ipv4/ip_forward) 2>/dev/null || echo refused", "refused"},
		{"a change of root", "chroot / echo changed", "changed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			out, _ := sh(t, p, "charm", test.script)
			require.Equal(t, test.want, out)
		})
	}
	out, exit := sh(t, p, "work", "stat -c %a /var/lib; grep -c '^x:' /etc/passwd; ls -d /etc/apt; ls /usr/local/bin/p")
	require.NotZero(t, exit, "nothing of that is seen in another container")
	require.Contains(t, out, "755\n0\n/etc/apt")
}

// A file system that root has mounted below one of the machine's folders cannot be taken away in a user namespace: the
// folder is composed of its parts.
func TestRootless_Submounts(t *testing.T) {
	ordinaryOnly(t)
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(t, err)
	require.Contains(t, string(mounts), podtest.Mounted())
	var log bytes.Buffer
	p := start(t, newManager(t, func(o *pod.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) }), charmOnly())
	require.NotContains(t, log.String(), "WARN", "nothing is missing that the user could have seen")
	file := filepath.Join(podtest.Mounted(), "deep/file")
	out, _ := sh(t, p, "charm", "cat "+file+"; echo pod > "+file+".new; mv "+file+".new "+file+"; cat "+file)
	require.Equal(t, "hostpod", out)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "host", string(text))

	// What the user may not enter is, in pods, an empty folder of theirs.
	for _, name := range []string{"private", "closed"} {
		path := filepath.Join(podtest.Mounted(), name)
		_, err = os.ReadDir(path)
		require.ErrorIs(t, err, os.ErrPermission)
		out, exit := sh(t, p, "charm", "cd "+path+" && ls -A && echo x > mine && ls && stat -c '%u %a' .")
		require.Zero(t, exit, out)
		require.Equal(t, "mine\n0 700", out)
	}

	// What is beside it is there too.
	out, exit := sh(t, p, "charm", "test -d /var/lib -a -d /var/tmp && touch /var/lib/x /var/x && stat -c %a /var/tmp")
	require.Zero(t, exit, out)
	require.Equal(t, "1777", out)
}
