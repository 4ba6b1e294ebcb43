// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package network

import (
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
)

// LBDomain is the domain of the host names that the load balancer gives.
const LBDomain = "lb.jujulet.internal"

// recordTTL is the life of answers in seconds, as CoreDNS gives it.
const recordTTL = 5

// zone holds all names of one moment.
type zone struct {
	addresses map[string][]netip.Addr // by full lower-case name with its dot
	pointers  map[netip.Addr][]string
	parents   map[string]bool // names that exist because one below them does
	podDomain string          // "pod.<domain>."
}

// newZone returns an empty zone.
func newZone(domain string) *zone {
	return &zone{
		addresses: map[string][]netip.Addr{}, pointers: map[netip.Addr][]string{}, parents: map[string]bool{},
		podDomain: "pod." + dns.Fqdn(domain),
	}
}

// add enters a name.
func (z *zone) add(name string, addresses ...netip.Addr) {
	name = strings.ToLower(dns.Fqdn(name))
	for _, a := range addresses {
		if !slices.Contains(z.addresses[name], a) {
			z.addresses[name] = append(z.addresses[name], a)
		}
	}
	for i, end := dns.NextLabel(name, 0); !end; i, end = dns.NextLabel(name, i) {
		z.parents[name[i:]] = true
	}
}

// point enters the name of an address.
func (z *zone) point(a netip.Addr, name string) {
	name = strings.ToLower(dns.Fqdn(name))
	if !slices.Contains(z.pointers[a], name) {
		z.pointers[a] = append(z.pointers[a], name)
	}
}

// zone makes the zone of a state and of the load balancer's host names.
func (s *state) zone(balancers map[string][]netip.Addr) *zone {
	z := newZone(s.plan.Domain)
	suffix := ".svc." + s.plan.Domain
	z.add("kubernetes.default"+suffix, s.plan.APIServer)
	z.add("kube-dns.kube-system"+suffix, s.plan.DNS)
	for i := range s.services {
		svc := &s.services[i]
		name := svc.Name + "." + svc.Namespace + suffix
		if a, ok := clusterIP(svc); ok {
			z.add(name, a)
			z.point(a, name)
		}
		if svc.Spec.ClusterIP == "None" {
			s.headless(z, svc, name)
		}
	}
	for _, n := range s.nodes {
		if all := nodeAddresses(n); len(all) > 0 {
			z.add(n.Name, all[0])
		}
	}
	for name, addresses := range balancers {
		z.add(name, addresses...)
	}
	return z
}

// headless enters the names of a Service without an address: its own for all ready endpoints, and one for each of
// them.
func (s *state) headless(z *zone, svc *corev1.Service, name string) {
	for _, es := range s.endpoints[keyOf(svc)] {
		for _, e := range es.Endpoints {
			if !ready(e) && !svc.Spec.PublishNotReadyAddresses {
				continue
			}
			for _, text := range e.Addresses {
				a, err := netip.ParseAddr(text)
				if err != nil {
					continue
				}
				host := strings.ReplaceAll(text, ".", "-")
				if e.Hostname != nil && *e.Hostname != "" {
					host = *e.Hostname
				} else if e.TargetRef != nil && e.TargetRef.Kind == "Pod" {
					host = e.TargetRef.Name
				}
				z.add(name, a)
				z.add(host+"."+name, a)
				z.point(a, host+"."+name)
			}
		}
	}
}

// lookup answers one question: the records, and whether the name exists at all.
func (z *zone) lookup(q dns.Question) ([]dns.RR, bool) {
	name := strings.ToLower(q.Name)
	if strings.HasSuffix(name, ".in-addr.arpa.") {
		return z.reverse(name, q)
	}
	addresses, found := z.addresses[name]
	if rest, ok := strings.CutSuffix(name, "."+z.podDomain); ok && !found {
		host, _, _ := strings.Cut(rest, ".")
		if a, err := netip.ParseAddr(strings.ReplaceAll(host, "-", ".")); err == nil && strings.Count(rest, ".") == 1 {
			addresses, found = []netip.Addr{a}, true
		}
	}
	if !found {
		return nil, z.parents[name]
	}
	var records []dns.RR
	for _, a := range addresses {
		switch {
		case a.Is4() && (q.Qtype == dns.TypeA || q.Qtype == dns.TypeANY):
			records = append(records, &dns.A{Hdr: header(q.Name, dns.TypeA), A: a.AsSlice()})
		case a.Is6() && (q.Qtype == dns.TypeAAAA || q.Qtype == dns.TypeANY):
			records = append(records, &dns.AAAA{Hdr: header(q.Name, dns.TypeAAAA), AAAA: a.AsSlice()})
		}
	}
	return records, true
}

// reverse answers a question for the name of an address.
func (z *zone) reverse(name string, q dns.Question) ([]dns.RR, bool) {
	labels := strings.Split(strings.TrimSuffix(name, ".in-addr.arpa."), ".")
	slices.Reverse(labels)
	a, err := netip.ParseAddr(strings.Join(labels, "."))
	if err != nil || len(z.pointers[a]) == 0 {
		return nil, false
	}
	var records []dns.RR
	if q.Qtype == dns.TypePTR || q.Qtype == dns.TypeANY {
		for _, target := range z.pointers[a] {
			records = append(records, &dns.PTR{Hdr: header(q.Name, dns.TypePTR), Ptr: target})
		}
	}
	return records, true
}

// header makes the head of a record.
func header(name string, kind uint16) dns.RR_Header {
	return dns.RR_Header{Name: name, Rrtype: kind, Class: dns.ClassINET, Ttl: recordTTL}
}

// dnsServer is the cluster's name server. It knows all that there is, so any other name does not exist, and says so at
// once.
type dnsServer struct {
	plan Plan
	log  *slog.Logger
	zone atomic.Pointer[zone]

	mu      sync.Mutex
	servers []*dns.Server
	outside bool
}

// newDNSServer listens on the DNS address.
func newDNSServer(plan Plan, log *slog.Logger) (*dnsServer, error) {
	d := &dnsServer{plan: plan, log: log}
	d.zone.Store(newZone(plan.Domain))
	return d, d.listen(plan.DNS, func(string) bool { return true })
}

// set replaces all names.
func (d *dnsServer) set(z *zone) { d.zone.Store(z) }

// listenOutside answers the outside host, which knows the load balancer's names only.
func (d *dnsServer) listenOutside() error {
	d.mu.Lock()
	already := d.outside
	d.outside = true
	d.mu.Unlock()
	if already {
		return nil
	}
	return d.listen(d.plan.OutsideGateway, func(name string) bool { return dns.IsSubDomain(LBDomain+".", name) })
}

// listen serves UDP and TCP at port 53 of an address. Names that visible refuses do not exist there.
func (d *dnsServer) listen(a netip.Addr, visible func(string) bool) error {
	at := netip.AddrPortFrom(a, 53).String()
	packets, err := net.ListenPacket("udp4", at)
	if err != nil {
		return fmt.Errorf("cannot serve DNS: %w", err)
	}
	stream, err := net.Listen("tcp4", at)
	if err != nil {
		packets.Close()
		return fmt.Errorf("cannot serve DNS: %w", err)
	}
	handler := dns.HandlerFunc(func(w dns.ResponseWriter, m *dns.Msg) { d.answer(w, m, visible) })
	for _, s := range []*dns.Server{{PacketConn: packets, Handler: handler}, {Listener: stream, Handler: handler}} {
		ready := make(chan struct{})
		s.NotifyStartedFunc = func() { close(ready) }
		failed := make(chan error, 1)
		go func() { failed <- s.ActivateAndServe() }()
		select {
		case <-ready:
		case err := <-failed:
			return fmt.Errorf("cannot serve DNS: %w", err)
		}
		d.mu.Lock()
		d.servers = append(d.servers, s)
		d.mu.Unlock()
	}
	return nil
}

// answer answers one message.
func (d *dnsServer) answer(w dns.ResponseWriter, m *dns.Msg, visible func(string) bool) {
	reply := new(dns.Msg)
	reply.SetReply(m)
	reply.Authoritative, reply.RecursionAvailable, reply.Compress = true, true, true
	switch {
	case len(m.Question) != 1 || m.Opcode != dns.OpcodeQuery:
		reply.Rcode = dns.RcodeNotImplemented
	default:
		q := m.Question[0]
		var found bool
		if visible(strings.ToLower(q.Name)) {
			reply.Answer, found = d.zone.Load().lookup(q)
		}
		if !found {
			reply.Rcode = dns.RcodeNameError
		}
		if len(reply.Answer) == 0 {
			reply.Ns = []dns.RR{d.authority()}
		}
	}
	size := dns.MinMsgSize
	if opt := m.IsEdns0(); opt != nil {
		size = int(opt.UDPSize())
		reply.SetEdns0(uint16(dns.DefaultMsgSize), false)
	}
	if _, ok := w.RemoteAddr().(*net.TCPAddr); ok {
		size = dns.MaxMsgSize
	}
	reply.Truncate(size)
	if err := w.WriteMsg(reply); err != nil {
		d.log.Debug("cannot answer a DNS question", "error", err)
	}
}

// authority is the record that says how long a negative answer holds.
func (d *dnsServer) authority() dns.RR {
	domain := dns.Fqdn(d.plan.Domain)
	return &dns.SOA{
		Hdr: header(domain, dns.TypeSOA), Ns: "ns.dns." + domain, Mbox: "hostmaster." + domain,
		Serial: 1, Refresh: 7200, Retry: 1800, Expire: 86400, Minttl: 1,
	}
}

// close stops answering.
func (d *dnsServer) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.servers {
		_ = s.Shutdown() // it may have ended by itself
	}
	d.servers = nil
}
