// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package agent

import (
	"strconv"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// passed are the variables of the agent that charms are given, if set.
var passed = []string{
	"KUBERNETES_PORT", "KUBERNETES_PORT_443_TCP", "KUBERNETES_PORT_443_TCP_ADDR", "KUBERNETES_PORT_443_TCP_PORT",
	"KUBERNETES_PORT_443_TCP_PROTO", "KUBERNETES_SERVICE", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT",
	"KUBERNETES_SERVICE_PORT_HTTPS",
}

const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/charm/bin"

// environ is the closed list of variables of a charm process.
func (a *Agent) environ(r *run) []string {
	var env []string
	add := func(name, value string) { env = append(env, name+"="+value) }
	info := r.info.Info
	add("CHARM_DIR", a.paths.charm)
	add("JUJU_CHARM_DIR", a.paths.charm)
	add("JUJU_CONTEXT_ID", r.contextID)
	add("JUJU_AGENT_SOCKET_ADDRESS", r.socket)
	add("JUJU_AGENT_SOCKET_NETWORK", "unix")
	add("JUJU_UNIT_NAME", a.options.Unit)
	add("JUJU_MODEL_UUID", info.UUID)
	add("JUJU_MODEL_NAME", info.Name)
	add("JUJU_API_ADDRESSES", info.APIAddresses)
	for _, name := range []string{"JUJU_MACHINE_ID", "JUJU_PRINCIPAL_UNIT", "JUJU_AVAILABILITY_ZONE"} {
		add(name, "")
	}
	add("JUJU_SLA", "unsupported")
	add("JUJU_VERSION", info.Version)
	add("CLOUD_API_VERSION", info.KubernetesVersion)
	for _, name := range []string{"HTTP", "HTTPS", "FTP", "NO"} {
		add("JUJU_CHARM_"+name+"_PROXY", r.info.Proxies[name])
	}
	if r.info.Base.Name == "ubuntu" {
		add("APT_LISTCHANGES_FRONTEND", "none")
		add("DEBIAN_FRONTEND", "noninteractive")
		add("LANG", "C.UTF-8")
		add("TERM", "tmux-256color")
	}
	path := a.options.Getenv("PATH")
	if path == "" {
		path = defaultPath
	}
	add("PATH", a.paths.tools+":"+path)
	for _, name := range passed {
		if v := a.options.Getenv(name); v != "" {
			add(name, v)
		}
	}
	if r.hook == nil {
		add("JUJU_HOOK_NAME", "")
	} else {
		add("JUJU_HOOK_NAME", r.hook.Name())
		env = append(env, hookVars(*r.hook)...)
		if storage, ok := r.info.Storage[r.hook.StorageID]; ok {
			add("JUJU_STORAGE_ID", r.hook.StorageID)
			add("JUJU_STORAGE_LOCATION", storage.Location)
			add("JUJU_STORAGE_KIND", storage.Kind)
		}
	}
	if r.dispatchPath != "" {
		add("JUJU_DISPATCH_PATH", r.dispatchPath)
	}
	if r.action != nil {
		add("JUJU_ACTION_NAME", r.action.Name)
		add("JUJU_ACTION_UUID", r.action.ID)
		add("JUJU_ACTION_TAG", "action-"+r.action.ID)
	}
	return env
}

// hookVars are the variables that depend on the hook.
func hookVars(h model.HookInfo) []string {
	var env []string
	add := func(name, value string) { env = append(env, name+"="+value) }
	if h.Endpoint != "" {
		add("JUJU_RELATION", h.Endpoint)
		add("JUJU_RELATION_ID", h.Endpoint+":"+strconv.Itoa(h.RelationID))
		add("JUJU_REMOTE_UNIT", h.RemoteUnit)
		add("JUJU_REMOTE_APP", h.RemoteApp)
	}
	if h.Kind == "relation-departed" {
		add("JUJU_DEPARTING_UNIT", h.DepartingUnit)
	}
	if h.Workload != "" {
		add("JUJU_WORKLOAD_NAME", h.Workload)
	}
	switch h.Kind {
	case "pebble-custom-notice":
		add("JUJU_NOTICE_ID", h.NoticeID)
		add("JUJU_NOTICE_TYPE", h.NoticeType)
		add("JUJU_NOTICE_KEY", h.NoticeKey)
	case "pebble-check-failed", "pebble-check-recovered":
		add("JUJU_PEBBLE_CHECK_NAME", h.CheckName)
	}
	if h.SecretID != "" {
		add("JUJU_SECRET_ID", "secret:"+h.SecretID)
		add("JUJU_SECRET_LABEL", h.SecretLabel)
		if h.Kind == "secret-remove" || h.Kind == "secret-expired" {
			add("JUJU_SECRET_REVISION", strconv.Itoa(h.SecretRevision))
		}
	}
	return env
}
