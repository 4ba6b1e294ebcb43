// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package pod

import (
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
)

// mainCommand returns the main command of a container, or nil if it has none.
func (p *Pod) mainCommand(spec Container) (*execRequest, error) {
	if len(spec.Command) > 0 {
		return &execRequest{Args: spec.Command, Dir: spec.Dir}, nil
	}
	if !spec.Workload {
		return nil, nil
	}
	if p.manager.options.Pebble == "" {
		return nil, errors.New("no Pebble daemon is known")
	}
	http := ":" + strconv.Itoa(p.HealthPort(spec.Name))
	return &execRequest{Args: []string{pebblePath, "run", "--create-dirs", "--hold", "--http", http, "--verbose"}, Dir: spec.Dir}, nil
}

// pebblePath is where a container finds Pebble.
const pebblePath = "/charm/bin/pebble"

// setup says how the container's root is made and what it is told.
func (p *Pod) setup(spec Container) (containerSetup, error) {
	p.mu.Lock()
	p.next++
	base := filepath.Join(p.base, "r"+strconv.Itoa(p.next))
	p.mu.Unlock()
	if err := mkdir(base, 0o755); err != nil {
		return containerSetup{}, err
	}
	s := containerSetup{
		Pod: p.spec.Name, Container: spec.Name, Root: spec.Root, Base: base, Hide: p.manager.options.Hide,
		Hosts: p.hosts(), Resolv: p.spec.Resolv.text(), Hostname: p.spec.Hostname, Binds: p.binds(spec),
		Rootless: p.manager.rootless, Quota: p.manager.options.Quota,
	}
	own := []string{"PATH=" + defaultPath, "HOME=/root", "HOSTNAME=" + p.spec.Hostname}
	s.Env = mergeEnv(own, spec.ImageEnv, p.spec.Env, p.containerEnv(spec), spec.Env)
	return s, nil
}

// containerEnv is the environment by which a container of Juju knows itself. Juju 3.6: ApplicationPodSpec.
func (p *Pod) containerEnv(spec Container) []string {
	switch {
	case spec.Name == CharmContainer:
		return []string{"JUJU_CONTAINER_NAMES=" + strings.Join(p.workloads(), ",")}
	case spec.Workload:
		return []string{
			"JUJU_CONTAINER_NAME=" + spec.Name, "PEBBLE=/charm/container/pebble",
			"PEBBLE_SOCKET=/charm/container/pebble.socket", "PEBBLE_COPY_ONCE=/var/lib/pebble/default",
		}
	}
	return nil
}

// binds lists what a container sees beside its root.
func (p *Pod) binds(spec Container) []Bind {
	var binds []Bind
	pebble := p.manager.options.Pebble
	switch {
	case spec.Name == CharmContainer:
		binds = append(binds,
			Bind{Source: filepath.Join(p.base, "c"), Target: "/charm/containers"},
			Bind{Source: p.JujuDir(), Target: "/var/lib/juju"})
		if p.spec.ControlDir != "" {
			binds = append(binds, Bind{Source: p.spec.ControlDir, Target: "/run/ctl"})
		}
	case spec.Workload:
		binds = append(binds, Bind{Source: p.ContainerDir(spec.Name), Target: "/charm/container"})
	}
	if pebble != "" && (spec.Workload || spec.Name == CharmContainer) {
		binds = append(binds, Bind{Source: pebble, Target: pebblePath, ReadOnly: true})
	}
	if len(p.spec.Token) > 0 {
		binds = append(binds, Bind{
			Source: p.accountDir(), Target: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true,
		})
	}
	return append(binds, spec.Binds...)
}

// hosts returns the content of /etc/hosts, with the pod's names as Kubernetes gives them.
func (p *Pod) hosts() string {
	var b strings.Builder
	b.WriteString("127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n")
	if p.spec.IP.IsValid() {
		b.WriteString(p.spec.IP.String() + "\t")
		if p.spec.Subdomain != "" {
			fmt.Fprintf(&b, "%s.%s.%s.svc.%s ", p.spec.Hostname, p.spec.Subdomain, p.spec.Namespace, p.spec.domain())
		}
		b.WriteString(p.spec.Hostname + "\n")
	}
	return b.String()
}

// domain is the cluster domain, taken from the search list.
func (s Spec) domain() string {
	for _, d := range s.Resolv.Search {
		if rest, ok := strings.CutPrefix(d, "svc."); ok {
			return strings.TrimSuffix(rest, ".")
		}
	}
	return "cluster.local"
}

// ClusterResolv returns the resolver configuration that Kubernetes gives to pods.
func ClusterResolv(namespace, domain string, servers ...netip.Addr) Resolv {
	return Resolv{
		Nameservers: servers,
		Search:      []string{namespace + ".svc." + domain, "svc." + domain, domain},
		Options:     []string{"ndots:5"},
	}
}

// text returns the content of /etc/resolv.conf.
func (r Resolv) text() string {
	var b strings.Builder
	for _, a := range r.Nameservers {
		fmt.Fprintf(&b, "nameserver %s\n", a)
	}
	if len(r.Search) > 0 {
		fmt.Fprintf(&b, "search %s\n", strings.Join(r.Search, " "))
	}
	if len(r.Options) > 0 {
		fmt.Fprintf(&b, "options %s\n", strings.Join(r.Options, " "))
	}
	return b.String()
}
