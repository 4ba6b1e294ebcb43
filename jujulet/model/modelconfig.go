// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The keys of a model's configuration that have an effect here. All others that
// Juju has are kept and shown.
const (
	keyUpdateStatus = "update-status-hook-interval"
	keyLogging      = "logging-config"
	keyRetryHooks   = "automatically-retry-hooks"
)

// proxyKeys are the keys that charms see as JUJU_CHARM_<NAME>_PROXY.
var proxyKeys = map[string]string{
	"HTTP": "juju-http-proxy", "HTTPS": "juju-https-proxy", "FTP": "juju-ftp-proxy", "NO": "juju-no-proxy",
}

// noProxy is the default of what no proxy is used for.
const noProxy = "127.0.0.1,localhost,::1"

// everywhere is a list of all networks.
const everywhere = "0.0.0.0/0,::/0"

// configDefaults are Juju 3.6's keys with their defaults; the type of a key is
// that of its default. Keys of machine clouds stay, so that tools find them.
var configDefaults = map[string]any{
	"agent-metadata-url": "", "agent-stream": "released", "agent-version": JujuVersion,
	"apt-ftp-proxy": "", "apt-http-proxy": "", "apt-https-proxy": "", "apt-mirror": "", "apt-no-proxy": "",
	keyRetryHooks: true, "backup-dir": "", "charmhub-url": "https://api.charmhub.io", "cloudinit-userdata": "",
	"container-image-metadata-defaults-disabled": false, "container-image-metadata-url": "", "container-image-stream": "released",
	"container-inherit-properties": "", "container-networking-method": "", "default-base": "", "default-space": "",
	"development": false, "disable-network-management": false, "disable-telemetry": false, "egress-subnets": "",
	"enable-os-refresh-update": true, "enable-os-upgrade": true, "fan-config": "", "firewall-mode": "instance",
	"ftp-proxy": "", "http-proxy": "", "https-proxy": "", "ignore-machine-addresses": false,
	"image-metadata-defaults-disabled": false, "image-metadata-url": "", "image-stream": "released",
	"juju-ftp-proxy": "", "juju-http-proxy": "", "juju-https-proxy": "", "juju-no-proxy": noProxy,
	"logforward-enabled": false, keyLogging: "<root>=INFO", "logging-output": "", "lxd-snap-channel": "5.0/stable",
	"max-action-results-age": "336h", "max-action-results-size": "5G", "max-status-history-age": "336h",
	"max-status-history-size": "5G", "mode": "requires-prompts", "net-bond-reconfigure-delay": 17, "no-proxy": noProxy,
	"num-container-provision-workers": 4, "num-provision-workers": 16, "operator-storage": "", "provisioner-harvest-mode": "destroyed",
	"proxy-ssh": false, "resource-tags": "", "saas-ingress-allow": everywhere, "secret-backend": "auto",
	"snap-http-proxy": "", "snap-https-proxy": "", "snap-store-assertions": "", "snap-store-proxy": "", "snap-store-proxy-url": "",
	"ssh-allow": everywhere, "ssl-hostname-verification": true, "test-mode": false, "transmit-vendor-metrics": true,
	keyUpdateStatus: "5m", "workload-storage": "",
}

// configReadOnly are keys that cannot be set or reset afterwards, with the verb
// that sets them in Juju.
var configReadOnly = map[string]string{"agent-version": "upgrade-model", "charmhub-url": "add-model"}

// ModelConfigValue is one key of a model's configuration.
type ModelConfigValue struct {
	Value  any    `json:"value"`
	Source string `json:"source"` // default or model
}

// ModelConfig returns the model's configuration.
func (m *Model) ModelConfig() (map[string]ModelConfigValue, error) {
	out := map[string]ModelConfigValue{}
	for key, value := range configDefaults {
		out[key] = ModelConfigValue{Value: value, Source: "default"}
	}
	err := m.view(func(t *txn) error {
		d, err := t.model()
		if err != nil {
			return err
		}
		for key, value := range d.Config {
			out[key] = ModelConfigValue{Value: value, Source: "model"}
		}
		return nil
	})
	return out, err
}

// SetModelConfig resets keys, then sets others from text, and returns the keys
// that Juju does not know, sorted: it keeps them with a warning, and so do we.
func (m *Model) SetModelConfig(set map[string]string, reset []string) ([]string, error) {
	var unknown []string
	for _, key := range slices.Sorted(maps.Keys(set)) {
		if verb, fixed := configReadOnly[key]; fixed {
			return nil, errf(Invalid, "%q must be set via %q", key, verb)
		}
		if _, known := configDefaults[key]; !known {
			unknown = append(unknown, key)
		}
	}
	values, err := modelConfigValues(set)
	if err != nil {
		return nil, err
	}
	for _, key := range reset {
		if _, fixed := configReadOnly[key]; fixed {
			return nil, errf(Invalid, "cannot reset key %q", key)
		}
		if _, known := configDefaults[key]; !known {
			unknown = append(unknown, key)
		}
	}
	err = m.update(func(t *txn) error {
		d, err := t.model()
		if err != nil {
			return err
		}
		if d.Config == nil {
			d.Config = map[string]any{}
		}
		for _, key := range reset {
			delete(d.Config, key)
		}
		maps.Copy(d.Config, values)
		// Every agent looks again.
		for _, app := range keys(t, bucketApps, "") {
			t.touch(app)
		}
		return t.putModel(d)
	})
	if err != nil {
		return nil, err
	}
	return unknown, m.refreshLogLevels()
}

// modelConfigValues reads values by the types of their keys.
func modelConfigValues(set map[string]string) (map[string]any, error) {
	out := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(set)) {
		text := set[key]
		switch configDefaults[key].(type) {
		case bool:
			value, err := strconv.ParseBool(text)
			if err != nil {
				return nil, errf(Invalid, "%s: expected bool, got string(%q)", key, text)
			}
			out[key] = value
		case int:
			value, err := strconv.Atoi(text)
			if err != nil {
				return nil, errf(Invalid, "%s: expected number, got string(%q)", key, text)
			}
			out[key] = value
		default:
			out[key] = text
		}
	}
	if text, given := set[keyUpdateStatus]; given {
		interval, err := time.ParseDuration(text)
		if err != nil {
			return nil, errf(Invalid, "invalid update status hook interval in model configuration: %v", err)
		}
		if interval < time.Second {
			return nil, errf(Invalid, "update status hook frequency %v cannot be less than 1s", interval)
		}
	}
	if text, given := set[keyLogging]; given {
		if _, err := parseLogging(text); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// settingsOfModel are the model's settings that agents follow.
type settingsOfModel struct {
	updateStatus time.Duration // 0: not set
	noRetry      bool
	proxies      map[string]string // by the middle of the variable's name; only those set
}

// modelSettings reads what agents follow.
func (t *txn) modelSettings() (settingsOfModel, error) {
	var out settingsOfModel
	d, err := t.model()
	if err != nil {
		return out, err
	}
	if text, ok := d.Config[keyUpdateStatus].(string); ok {
		out.updateStatus, _ = time.ParseDuration(text)
	}
	if retry, ok := d.Config[keyRetryHooks].(bool); ok {
		out.noRetry = !retry
	}
	for name, key := range proxyKeys {
		if text, ok := d.Config[key].(string); ok {
			if out.proxies == nil {
				out.proxies = map[string]string{}
			}
			out.proxies[name] = text
		}
	}
	return out, nil
}

// logLevel is the least level that is kept of a module and those below it.
type logLevel struct{ module, level string }

// parseLogging reads "<root>=INFO;unit=DEBUG". Juju 3.6: the form of loggo.
func parseLogging(text string) ([]logLevel, error) {
	var out []logLevel
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ';' || r == ' ' || r == '\n' }) {
		module, level, ok := strings.Cut(part, "=")
		if !ok {
			if !slices.Contains(logLevels, strings.ToUpper(part)) {
				return nil, errf(Invalid, "logging-config: config value expected '=', found %q", part)
			}
			module, level = "<root>", part
		}
		level = strings.ToUpper(level)
		if level == "UNSPECIFIED" {
			continue
		}
		if !slices.Contains(logLevels, level) {
			return nil, errf(Invalid, "logging-config: unknown severity level %q", level)
		}
		if module == "<root>" || module == "" {
			module = ""
		}
		out = append(out, logLevel{module, level})
	}
	// The most special one counts.
	slices.SortStableFunc(out, func(a, b logLevel) int { return len(b.module) - len(a.module) })
	return out, nil
}

// refreshLogLevels makes the debug log follow the model's configuration.
func (m *Model) refreshLogLevels() error {
	var text string
	err := m.view(func(t *txn) error {
		d, err := t.model()
		if err == nil {
			text, _ = d.Config[keyLogging].(string)
		}
		return err
	})
	if err != nil {
		return err
	}
	levels, err := parseLogging(text)
	if err != nil {
		return fmt.Errorf("cannot read the model's configuration: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.levels = levels
	return nil
}

// leastLevel is the least level that the debug log keeps of a module.
func (m *Model) leastLevel(module string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range m.levels {
		rest, below := strings.CutPrefix(module, l.module)
		if below && (l.module == "" || rest == "" || rest[0] == '.' || rest[0] == '/') {
			return l.level
		}
	}
	return m.options.LogLevel
}
