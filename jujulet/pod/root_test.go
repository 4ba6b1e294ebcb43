// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package pod_test

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/drawbridge-k8s/drawbridge/jujulet/pod"
	"github.com/drawbridge-k8s/drawbridge/jujulet/pod/podtest"
)

// twoContainers is a pod with a charm and a workload container, with all that Juju gives them.
func twoContainers(t *testing.T) (*pod.Pod, string) {
	t.Helper()
	hidden := filepath.Join("/var/tmp", filepath.Base(filepath.Dir(t.TempDir()))+"-hidden")
	require.NoError(t, os.MkdirAll(hidden, 0o755))
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(hidden)) })
	require.NoError(t, os.WriteFile(filepath.Join(hidden, "model.db"), []byte("secret"), 0o644))
	m := newManager(t, func(o *pod.Options) { o.Hide = []string{hidden} })
	control := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(control, "agent"), []byte("x"), 0o644))
	return start(t, m, pod.Spec{
		Name: "mysql-0", Subdomain: "mysql-endpoints", IP: netip.MustParseAddr("10.1.0.7"), Token: []byte("token-1"), CA: []byte("ca"),
		Env: []string{"KUBERNETES_SERVICE_HOST=10.152.183.1"}, ControlDir: control,
		Resolv: pod.ClusterResolv("dev", "cluster.local", netip.MustParseAddr("10.152.183.10")),
		Containers: []pod.Container{
			{Name: pod.CharmContainer}, {Name: "work", Workload: true, Command: []string{"sleep", "977"}},
		},
	}), hidden
}

func TestRoot_WhatContainersSee(t *testing.T) {
	p, hidden := twoContainers(t)
	require.NoError(t, os.WriteFile(filepath.Join(p.JujuDir(), "tools"), []byte("x"), 0o644))
	others := "65534"
	if podtest.Ordinary() {
		others = "chown: changing ownership of '/tmp/f': Invalid argument"
	}
	const account = "/var/run/secrets/kubernetes.io/serviceaccount"
	for _, test := range []struct {
		name, in, script, want string
	}{
		{"host name", "charm", "hostname; cat /etc/hostname", "mysql-0\nmysql-0"},
		{"hosts", "work", "grep mysql /etc/hosts", "10.1.0.7\tmysql-0.mysql-endpoints.dev.svc.cluster.local mysql-0"},
		{"resolver", "work", "cat /etc/resolv.conf", "nameserver 10.152.183.10\nsearch dev.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5"},
		{"account", "charm", "cat " + account + "/token; echo; cat " + account + "/ca.crt; echo; cat " + account + "/namespace", "token-1\nca\ndev"},
		{"account in a workload", "work", "cat " + account + "/token", "token-1"},
		{"account is read-only", "work", "echo x 2>/dev/null > " + account + "/token || echo refused", "refused"},
		{"Kubernetes", "work", "echo $KUBERNETES_SERVICE_HOST", "10.152.183.1"},
		{"control of the agent", "charm", "ls /run/ctl", "agent"},
		{"no control in a workload", "work", "ls /run/ctl 2>/dev/null || echo none", "none"},
		{"Juju's folder", "charm", "ls /var/lib/juju", "tools"},
		{"no Juju's folder in a workload", "work", "ls /var/lib/juju 2>/dev/null || echo none", "none"},
		{"private folders", "charm", "ls -A /root /home /tmp; ls -A /run", "/home:\n\n/root:\n\n/tmp:\nctl\nsecrets"},
		{"temporary folder", "work", "stat -c %a /tmp /dev/shm /", "1777\n1777\n755"},
		{"hidden folder", "charm", "ls -A " + hidden, ""},
		{"own processes only", "work", "cat /proc/1/comm | cut -c1-6; ls -d /proc/[0-9]* | wc -l", ""},
		{"own loopback only", "charm", "ls /sys/class/net", "lo"},
		{"devices", "charm", "echo x > /dev/null; head -c3 /dev/zero | wc -c; ls /dev | tr '\\n' ' '", "3\nfd full null ptmx pts random shm stderr stdin stdout tty urandom zero"},
		{"kernel settings are read-only", "charm", "echo x 2>/dev/null > /proc/sys/kernel/hostname || echo refused", "refused"},
		{"no key to the host's kernel", "charm", "echo h 2>/dev/null > /proc/sysrq-trigger || echo refused", "refused"},
		{"no devices can be made", "charm", "mknod /tmp/disk b 254 0 2>/dev/null || echo refused", "refused"},
		{"nothing can be mounted", "charm", "mount -t tmpfs tmpfs /mnt 2>/dev/null || echo refused", "refused"},
		{"process 1 cannot be read", "charm", "ls /proc/1/cwd/ 2>/dev/null || echo refused", "refused"},
		{"users can be switched", "charm", "touch /tmp/f && chown nobody /tmp/f && setpriv --reuid=65534 --clear-groups id -u", others},
		{"folders of the host", "work", "test -d /usr/bin && test -f /etc/passwd && test -L /proc/self && echo yes", "yes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			out, _ := sh(t, p, test.in, test.script)
			if test.want == "" && test.name == "own processes only" {
				require.Less(t, len(strings.Fields(out)), 3)
				require.NotContains(t, out, "systemd")
				return
			}
			require.Equal(t, test.want, out)
		})
	}
	require.NoError(t, p.SetToken([]byte("token-2")))
	out, _ := sh(t, p, "work", "cat "+account+"/token")
	require.Equal(t, "token-2", out)
}

// What one container writes is seen in no other, and not on the host.
func TestRoot_WritesStayInTheContainer(t *testing.T) {
	p, _ := twoContainers(t)
	name := filepath.Base(p.JujuDir()) + "-" + filepath.Base(t.TempDir()) + "-written-by-a-charm"
	for _, folder := range []string{"/etc", "/usr/bin", "/var/lib", "/opt", "/tmp", "/run", "/root", "/"} {
		path := filepath.Join(folder, name)
		_, exit := sh(t, p, "charm", "echo x > "+path)
		require.Zero(t, exit, path)
		_, exit = sh(t, p, "work", "test ! -e "+path)
		require.Zero(t, exit, path)
		_, err := os.Lstat(path)
		require.True(t, errors.Is(err, os.ErrNotExist) || podtest.Ordinary() && errors.Is(err, os.ErrPermission), "%s: %v", path, err)
	}
	_, exit := sh(t, p, "charm", "rm /etc/passwd && mv /etc/group /etc/group.old && echo x >> /etc/profile")
	require.Zero(t, exit)
	_, exit = sh(t, p, "work", "test -s /etc/passwd -a -s /etc/group")
	require.Zero(t, exit)
	_, err := os.Stat("/etc/passwd")
	require.NoError(t, err)
}

// A file system that is mounted below one of the host's folders is seen, writable, and stays as it is.
func TestRoot_Submounts(t *testing.T) {
	if podtest.Ordinary() {
		t.Skip("skipped: an ordinary user cannot mount on the machine; TestRootless_Submounts is in its place")
	}
	folder := filepath.Join("/opt", filepath.Base(t.TempDir())+"-mount")
	require.NoError(t, os.MkdirAll(folder, 0o755))
	require.NoError(t, unix.Mount("tmpfs", folder, "tmpfs", 0, ""))
	t.Cleanup(func() {
		require.NoError(t, errors.Join(unix.Unmount(folder, unix.MNT_DETACH), os.Remove(folder)))
	})
	require.NoError(t, os.MkdirAll(filepath.Join(folder, "deep"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "deep/file"), []byte("host"), 0o644))
	p := start(t, newManager(t, nil), charmOnly())
	file := filepath.Join(folder, "deep/file")
	out, _ := sh(t, p, "charm", "cat "+file+"; echo pod > "+file+"; cat "+file)
	require.Equal(t, "hostpod", out)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "host", string(text))
}

func TestRoot_Folder(t *testing.T) {
	root := t.TempDir()
	for _, folder := range []string{"etc", "usr", "var"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, folder), 0o755))
	}
	for _, folder := range []string{"bin", "lib", "lib64", "sbin"} {
		require.NoError(t, os.Symlink("usr/"+folder, filepath.Join(root, folder)))
	}
	require.NoError(t, os.Symlink("/run", filepath.Join(root, "var/run")))
	require.NoError(t, os.WriteFile(filepath.Join(root, "etc/release"), []byte("tiny"), 0o644))
	p := start(t, newManager(t, nil), pod.Spec{Token: []byte("t"), Containers: []pod.Container{
		{Name: pod.CharmContainer},
		{Name: "work", Workload: true, Root: root, Command: []string{"sleep", "973"},
			Binds: []pod.Bind{{Source: "/usr", Target: "/usr", ReadOnly: true}}},
	}})
	out, exit := sh(t, p, "work", "echo x > /etc/mine; cat /etc/release; ls / /run; touch /usr/x 2>/dev/null || echo refused")
	require.Zero(t, exit)
	require.Contains(t, out, "tiny")
	require.Contains(t, out, "charm")
	require.Contains(t, out, "secrets")
	require.NotContains(t, out, "opt")
	require.Contains(t, out, "refused")
	for _, name := range []string{"charm", "run", "etc/mine", "etc/hosts"} {
		_, err := os.Lstat(filepath.Join(root, name))
		require.ErrorIs(t, err, os.ErrNotExist, "the folder is not written to")
	}
	_, err := newManager(t, nil).Start(t.Context(), pod.Spec{Name: "x", Containers: []pod.Container{{Name: "work", Root: "/no/such"}}})
	require.ErrorContains(t, err, "cannot use root file system")
}

// No file that the launcher has open reaches a container.
func TestRoot_NoInheritedFiles(t *testing.T) {
	fd, err := unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY, 0) // stays open on exec
	require.NoError(t, err)
	defer unix.Close(fd)
	p := start(t, newManager(t, nil), pod.Spec{Containers: []pod.Container{
		{Name: pod.CharmContainer}, {Name: "main", Command: []string{"sh", "-c", "sleep 975"}},
	}})
	out, _ := sh(t, p, "charm", "ls -l /proc/self/fd | grep -c -- '->'")
	require.Equal(t, "4", out, "standard files and the folder that ls reads")
	out, _ = sh(t, p, "main", "until pgrep -xf 'sleep 975' >/dev/null; do :; done; ls /proc/$(pgrep -xf 'sleep 975')/fd | tr '\\n' ' '")
	require.Equal(t, "0 1 2", out)
}

func TestStart_FailureLeavesNothing(t *testing.T) {
	dir := ""
	m := newManager(t, func(o *pod.Options) {
		dir = o.Dir
		o.Attach = func(int, pod.Spec) error { return errors.New("no cable") }
	})
	_, err := m.Start(t.Context(), charmOnly())
	require.ErrorContains(t, err, "no cable")
	require.Empty(t, podFolders(t, dir))

	m = newManager(t, nil)
	for _, test := range []struct {
		container pod.Container
		want      string
	}{
		{pod.Container{Name: "a", Command: []string{"no-such-program"}}, "cannot find"},
		{pod.Container{Name: "a", Workload: true}, "no Pebble daemon is known"},
		{pod.Container{Name: "a", Binds: []pod.Bind{{Source: "/no/such", Target: "/x"}}}, "no such file"},
	} {
		_, err := m.Start(t.Context(), pod.Spec{Name: "p", Containers: []pod.Container{{Name: pod.CharmContainer}, test.container}})
		require.ErrorContains(t, err, test.want)
	}
}

// A container that writes without end meets its pod's limit: an error for it alone.
func TestRoot_Quota(t *testing.T) {
	m := newManager(t, func(o *pod.Options) { o.Quota = 8 << 20 })
	full := start(t, m, pod.Spec{Name: "full-0", Containers: []pod.Container{{Name: pod.CharmContainer}}})
	other := start(t, m, pod.Spec{Name: "other-0", Containers: []pod.Container{{Name: pod.CharmContainer}}})
	for _, folder := range []string{"/var/tmp", "/var/lib/juju", "/charm/containers", "/tmp", "/run", "/root"} {
		fill := "head -c 16M /dev/zero > " + folder + "/fill"
		out, exit := sh(t, full, pod.CharmContainer, fill)
		require.NotZero(t, exit, folder)
		require.Contains(t, out, "No space left on device", folder)
		out, exit = sh(t, other, pod.CharmContainer, "head -c 1M /dev/zero > "+folder+"/some && rm "+folder+"/some")
		require.Zero(t, exit, "%s: %s", folder, out)
		out, exit = sh(t, full, pod.CharmContainer, "rm "+folder+"/fill && head -c 1M /dev/zero > "+folder+"/some && rm "+folder+"/some")
		require.Zero(t, exit, "%s: %s", folder, out)
	}
}
