// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package hooktools

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

func TestTools_Storage(t *testing.T) {
	b := newBench(t)
	b.deploy("store", `name: store
summary: s
description: d
storage:
  data: {type: filesystem, location: /srv/data}
  logs: {type: filesystem}
  many: {type: filesystem, multiple: {range: 0-}}
`, "", 1)
	b.hook("store/0", &model.HookInfo{Kind: "storage-attached", StorageID: "logs/1"}, nil)
	require.Equal(t, "data/0\nlogs/1\n", b.ok("storage-list"))
	require.Equal(t, "[\"data/0\"]\n", b.ok("storage-list", "--format", "json", "data"))
	require.Equal(t, "[]\n", b.ok("storage-list", "--format", "json", "none"))
	require.Equal(t, "/var/lib/juju/storage/logs/0\n", b.ok("storage-get", "location"))
	require.Equal(t, "kind: filesystem\nlocation: /srv/data\n", b.ok("storage-get", "-s", "data/0"))
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"storage-get", "colour"}, 1, "ERROR invalid storage attribute \"colour\"\n"},
		{[]string{"storage-get", "-s", "data"}, 2, "ERROR invalid value \"data\" for option -s: invalid storage ID \"data\"\n"},
		{[]string{"storage-add"}, 2, "ERROR storage add requires a storage directive\n"},
		{[]string{"storage-add", "data=x"}, 2, "ERROR only count can be specified for \"data\"\n"},
		{[]string{"storage-add", "none"}, 1, "ERROR charm storage \"none\" not found\n"},
		{[]string{"storage-add", "data"}, 1, "ERROR cannot add storage \"data\": cannot attach, storage is singular\n"},
	} {
		r := b.run("", c.args[0], c.args[1:]...)
		require.Equal(t, c.code, r.Code, c.args)
		require.Equal(t, c.want, string(r.Stderr), c.args)
	}
	require.Contains(t, string(b.run("", "storage-get", "-s", "data/7").Stderr), `"data/7"`)
	require.Contains(t, string(b.run("", "storage-add", "many=2").Stderr), "not supported for sidecar charms")
	b.hook("store/0", &model.HookInfo{Kind: "install"}, nil)
	r := b.run("", "storage-get")
	require.Equal(t, "ERROR no storage instance specified\n", string(r.Stderr))
}
