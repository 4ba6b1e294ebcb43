// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

// Package hooktools serves Juju's hook tools: relation-get, status-set and the
// others, over Juju's own wire protocol (net/rpc with gob, method Jujuc.Main),
// and is the client that stands behind their names on PATH.
//
// The tools' flags, formats, exit codes and messages are those of Juju 3.6.
// Tools work on a Context, which buffers what a hook writes until it has
// succeeded.
package hooktools

import "slices"

// Names returns the names of all hook tools, sorted: each is to be on the PATH
// of a charm as a link to a program that runs ClientMain.
func Names() []string {
	names := []string{
		"action-fail", "action-get", "action-log", "action-set",
		"application-version-set", "close-port", "config-get", "credential-get",
		"goal-state", "is-leader", "juju-log", "juju-reboot", "k8s-raw-get",
		"k8s-raw-set", "k8s-spec-get", "k8s-spec-set", "leader-get", "leader-set",
		"network-get", "open-port", "opened-ports", "payload-register",
		"payload-status-set", "payload-unregister", "pod-spec-get", "pod-spec-set",
		"relation-get", "relation-ids", "relation-list", "relation-model-get",
		"relation-set", "resource-get", "secret-add", "secret-get", "secret-grant",
		"secret-ids", "secret-info-get", "secret-remove", "secret-revoke",
		"secret-set", "state-delete", "state-get", "state-set", "status-get",
		"status-set", "storage-add", "storage-get", "storage-list", "unit-get",
	}
	slices.Sort(names)
	return names
}

// IsTool says whether name is a hook tool.
func IsTool(name string) bool {
	return slices.Contains(Names(), name)
}
