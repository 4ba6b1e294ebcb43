// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package charm

import (
	"fmt"
	"math"
	"net/netip"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/drawbridge-k8s/drawbridge/k8sservice"
)

// Options of the charm, as `juju config` spells them.
const (
	optExposeExternal   = "expose-external"
	optAnnotations      = "loadbalancer-extra-annotations"
	optSourceRanges     = "loadbalancer-source-ranges"
	optClass            = "loadbalancer-class"
	optTrafficPolicy    = "external-traffic-policy"
	optNodePort         = "node-port"
	optReadOnlyNodePort = "read-only-node-port"
	optExternalHostname = "external-hostname"
	optProbeMode        = "probe-mode"
	optPendingTimeout   = "pending-timeout"
	optBackendRole      = "backend-role"
)

// DefaultPendingTimeout is used while the option pending-timeout is invalid.
const DefaultPendingTimeout = 15 * time.Minute

// maxRanges bounds loadbalancer-source-ranges.
const maxRanges = 1000

// Config is the charm's configuration, parsed. Invalid options hold their default.
type Config struct {
	Mode             k8sservice.Mode
	Annotations      map[string]string
	SourceRanges     []string
	Class            string
	TrafficPolicy    string
	NodePort         int32
	ReadOnlyNodePort int32
	ExternalHostname string
	// ProbeNone is probe-mode=none: no session is opened through the external address.
	ProbeNone      bool
	PendingTimeout time.Duration
	BackendRole    string
}

// ConfigError is an option that cannot be used.
type ConfigError struct {
	Option, Value string
	// Why says what is wrong with the value, where that is not plain from what is allowed.
	Why string
	// Allowed completes "allowed: ...".
	Allowed string
}

// Error names the option, its value and what is allowed.
func (e *ConfigError) Error() string {
	value := clipText(e.Value, 40)
	if e.Why != "" {
		return fmt.Sprintf("cannot use %s=%q: %s; allowed: %s", e.Option, value, e.Why, e.Allowed)
	}
	return fmt.Sprintf("cannot use %s=%q: allowed: %s", e.Option, value, e.Allowed)
}

// ParseConfig reads what config-get printed. Every option is checked in every mode; the errors are in the order of the
// option list, one for each option at fault.
func ParseConfig(raw map[string]any) (Config, []*ConfigError) {
	r := configReader{raw: raw}
	config := Config{
		Mode:          r.mode(),
		Annotations:   r.annotations(),
		SourceRanges:  r.ranges(),
		Class:         r.class(),
		TrafficPolicy: r.oneOf(optTrafficPolicy, "", "", "Cluster", "Local"),
	}
	config.NodePort, config.ReadOnlyNodePort = r.nodePorts()
	config.ExternalHostname = r.hostname()
	config.ProbeNone = r.oneOf(optProbeMode, "session", "session", "none") == "none"
	config.PendingTimeout = r.timeout()
	config.BackendRole = r.role()
	return config, r.errs
}

// invalid reports whether the option is among the errors.
func invalid(errs []*ConfigError, option string) bool {
	for _, err := range errs {
		if err.Option == option {
			return true
		}
	}
	return false
}

// configReader reads options and collects errors.
type configReader struct {
	raw  map[string]any
	errs []*ConfigError
}

func (r *configReader) fail(option, value, allowed string) {
	r.errs = append(r.errs, &ConfigError{Option: option, Value: value, Allowed: allowed})
}

// text returns a string option; a missing one is its default.
func (r *configReader) text(option, missing string) string {
	switch value := r.raw[option].(type) {
	case nil:
		return missing
	case string:
		return value
	default:
		return fmt.Sprint(value)
	}
}

func (r *configReader) oneOf(option, missing string, allowed ...string) string {
	value := r.text(option, missing)
	for _, item := range allowed {
		if value == item {
			return value
		}
	}
	names := make([]string, len(allowed))
	for i, item := range allowed {
		names[i] = item
		if item == "" {
			names[i] = "(empty)"
		}
	}
	r.fail(option, value, strings.Join(names, ", "))
	return allowed[0]
}

func (r *configReader) mode() k8sservice.Mode {
	return k8sservice.Mode(r.oneOf(optExposeExternal, string(k8sservice.False), string(k8sservice.False),
		string(k8sservice.NodePort), string(k8sservice.LoadBalancer)))
}

func (r *configReader) ranges() []string {
	value := r.text(optSourceRanges, "")
	var ranges []string
	for item := range strings.SplitSeq(value, ",") {
		item = strings.TrimSpace(item)
		if item == "" && strings.TrimSpace(value) == "" {
			continue
		}
		if _, err := netip.ParsePrefix(item); err != nil || len(ranges) == maxRanges {
			r.fail(optSourceRanges, value, "a comma-separated list of ranges such as 192.0.2.0/24, or nothing")
			return nil
		}
		ranges = append(ranges, item)
	}
	return ranges
}

func (r *configReader) class() string {
	value := r.text(optClass, "")
	if value != "" && len(validation.IsQualifiedName(value)) > 0 {
		r.fail(optClass, value, "a label-style name such as example.com/internal, or nothing")
		return ""
	}
	return value
}

func (r *configReader) nodePorts() (readWrite, readOnly int32) {
	const allowed = "0 (automatic), or a port from 1 to 65535"
	readWrite, readOnly = r.port(optNodePort, allowed), r.port(optReadOnlyNodePort, allowed)
	if readWrite != 0 && readWrite == readOnly {
		r.fail(optReadOnlyNodePort, fmt.Sprint(readOnly), "another port than "+optNodePort)
		return readWrite, 0
	}
	return readWrite, readOnly
}

func (r *configReader) port(option, allowed string) int32 {
	var number float64
	switch value := r.raw[option].(type) {
	case nil:
		return 0
	case float64:
		number = value
	case int:
		number = float64(value)
	default:
		number = -1
	}
	if number != math.Trunc(number) || number < 0 || number > 65535 {
		r.fail(option, fmt.Sprint(r.raw[option]), allowed)
		return 0
	}
	return int32(number)
}

func (r *configReader) hostname() string {
	value := r.text(optExternalHostname, "")
	if value != "" && len(validation.IsDNS1123Subdomain(strings.ToLower(value))) > 0 {
		r.fail(optExternalHostname, value, "a DNS name such as db.example.com, or nothing")
		return ""
	}
	return value
}

func (r *configReader) timeout() time.Duration {
	value := r.text(optPendingTimeout, DefaultPendingTimeout.String())
	timeout, err := time.ParseDuration(value)
	if err != nil || timeout <= 0 {
		r.fail(optPendingTimeout, value, "a duration above zero such as 90s, 15m or 1h")
		return DefaultPendingTimeout
	}
	return timeout
}

// isRole reports whether a name is what a role looks like to the database charms.
func isRole(name string) bool {
	for i, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || (r < '0' || r > '9') && r != '_' && r != '-') {
			return false
		}
	}
	return name != "" && len(name) <= 64
}

func (r *configReader) role() string {
	value := r.text(optBackendRole, "mysqlrouter")
	if !isRole(value) {
		r.fail(optBackendRole, value, "a role name such as mysqlrouter or charmed_router")
		return "mysqlrouter"
	}
	return value
}
