// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package workload

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Default ports and folder of the gateway.
const (
	ReadWritePort = 6446
	ReadOnlyPort  = 6447
	HealthPort    = 8404
	AdminPort     = 8405

	defaultFolder = "/etc/haproxy"
	configFile    = "haproxy.cfg"
	stateFile     = "servers.state"
)

// Gateway is what HAProxy is to do.
type Gateway struct {
	// ReadWrite and ReadOnly are the backend's endpoints ("host:port"). With
	// none at all the gateway runs and listens on neither port. The read-only
	// port falls back on the read-write endpoints.
	ReadWrite []string
	ReadOnly  []string
	// IPv6 makes the two ports listen on IPv6 as well. Ensure sets it where the
	// pod has IPv6.
	IPv6 bool
	// Ports are the ports; zero values mean the defaults. Only tests that share
	// one network need others.
	Ports Ports
	// Folder holds the gateway's files in the container; /etc/haproxy when "".
	Folder string
}

// Ports are the TCP ports of the gateway.
type Ports struct {
	ReadWrite int // 6446
	ReadOnly  int // 6447
	Health    int // 8404, loopback only
	Admin     int // 8405, loopback only, may only read
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*\.?$`)

// Validate says which endpoint is no "host:port" that HAProxy could take.
func (g Gateway) Validate() error {
	for _, endpoint := range slices.Concat(g.ReadWrite, g.ReadOnly) {
		if _, ok := parseServer(endpoint); !ok {
			return fmt.Errorf("cannot use backend endpoint %.100q: it is not host:port", endpoint)
		}
	}
	return nil
}

// Config is the text of the HAProxy configuration file. Equal gateways give
// equal texts, whatever the order of their endpoints. Endpoints that Validate
// refuses are left out. The text carries its own Hash, which HAProxy tells as
// its description.
func (g Gateway) Config() string {
	text := g.text()
	return strings.Replace(text, unhashed, hash(text), 1)
}

// Hash identifies the configuration.
func (g Gateway) Hash() string { return hash(g.text()) }

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:6])
}

const (
	unhashed = "{hash}"

	// Sessions may be idle longer than the server's wait_timeout of 8 h: the
	// server decides. Keep-alives every 2 min keep the entries of load
	// balancers, and find dead peers.
	globalText = `# Written by drawbridge-k8s; changes are overwritten.
global
    description %s
    maxconn 8192
    no strict-limits
    log stdout format raw local0 notice
    stats socket ipv4@127.0.0.1:%d level user
    server-state-file %s

defaults
    mode tcp
    log global
    option tcplog
    option dontlog-normal
    option clitcpka
    option srvtcpka
    clitcpka-idle 2m
    clitcpka-intvl 30s
    clitcpka-cnt 4
    srvtcpka-idle 2m
    srvtcpka-intvl 30s
    srvtcpka-cnt 4
    timeout connect 5s
    timeout check 2s
    timeout client 510m
    timeout server 510m
    load-server-state-from-file global

# Names are followed at run time. A cluster DNS that is away changes nothing.
resolvers kube
    parse-resolv-conf
    resolve_retries 3
    timeout resolve 500ms
    timeout retry 500ms
    hold valid 1s
    hold nx 2s
    hold obsolete 2s
    hold timeout 30m
    hold refused 30m
    hold other 30m

frontend health
    mode http
    bind 127.0.0.1:%d
    timeout client 5s
    monitor-uri /healthz
`

	serversText = `    balance leastconn
    default-server check inter 2s fastinter 500ms fall 3 rise 1 on-marked-down shutdown-sessions resolvers kube resolve-prefer ipv4 init-addr last,none
`
)

func (g Gateway) text() string {
	ports := g.Ports.orDefault()
	var b strings.Builder
	fmt.Fprintf(&b, globalText, unhashed, ports.Admin, path.Join(g.folder(), stateFile), ports.Health)
	readWrite, readOnly := servers(g.ReadWrite, nil), servers(g.ReadOnly, nil)
	if len(readWrite) > 0 {
		g.listen(&b, "read-write", ports.ReadWrite, readWrite, nil)
	}
	if len(readOnly) == 0 {
		readOnly = readWrite
	}
	if len(readOnly) > 0 {
		g.listen(&b, "read-only", ports.ReadOnly, readOnly, servers(g.ReadWrite, readOnly))
	}
	return b.String()
}

// listen writes one port and its servers; the backups are used while none of
// the others is up.
func (g Gateway) listen(b *strings.Builder, name string, port int, main, backups []server) {
	fmt.Fprintf(b, "\nfrontend %s\n    bind :%d\n", name, port)
	if g.IPv6 {
		fmt.Fprintf(b, "    bind :::%d v6only\n", port)
	}
	fmt.Fprintf(b, "    default_backend %s\n\nbackend %s\n%s", name, name, serversText)
	for _, s := range main {
		fmt.Fprintf(b, "    server %s %s\n", s.name, s.address)
	}
	for _, s := range backups {
		fmt.Fprintf(b, "    server %s %s backup\n", s.name, s.address)
	}
}

func (g Gateway) folder() string { return cmp.Or(g.Folder, defaultFolder) }

func (p Ports) orDefault() Ports {
	return Ports{
		ReadWrite: cmp.Or(p.ReadWrite, ReadWritePort),
		ReadOnly:  cmp.Or(p.ReadOnly, ReadOnlyPort),
		Health:    cmp.Or(p.Health, HealthPort),
		Admin:     cmp.Or(p.Admin, AdminPort),
	}
}

// server is one server line. Its name is that of the endpoint, so that what
// HAProxy remembers of a server is never taken for another.
type server struct{ name, address string }

// servers parses endpoints, without duplicates and those in except, sorted.
func servers(endpoints []string, except []server) []server {
	var out []server
	for _, endpoint := range endpoints {
		if s, ok := parseServer(endpoint); ok && !slices.Contains(except, s) {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b server) int { return strings.Compare(a.name, b.name) })
	return slices.Compact(out)
}

// parseServer takes only what cannot be anything else in HAProxy's language.
func parseServer(endpoint string) (server, bool) {
	host, port, err := net.SplitHostPort(endpoint)
	if err != nil {
		return server{}, false
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 {
		return server{}, false
	}
	port = strconv.FormatUint(number, 10)
	if ip, err := netip.ParseAddr(host); err == nil {
		if ip.Zone() != "" {
			return server{}, false
		}
		return server{name: ip.String() + ":" + port, address: net.JoinHostPort(ip.String(), port)}, true
	}
	// HAProxy asks for names as they stand, so the dot at the end says nothing.
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if !hostName.MatchString(host) || len(host) > 253 {
		return server{}, false
	}
	return server{name: host + ":" + port, address: host + ":" + port}, true
}
