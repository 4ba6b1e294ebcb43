// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package hooktools

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// port is what open-port and close-port are about: one port, or a range, of a protocol.
type port struct {
	from, to int
	protocol string
}

// parsePort reads "80", "80/tcp", "80-90/udp" or "icmp".
func parsePort(text string) (port, error) {
	text = strings.ToLower(text)
	if text == "icmp" {
		return port{-1, -1, "icmp"}, nil
	}
	number, protocol, given := strings.Cut(text, "/")
	p := port{protocol: protocol}
	if !given {
		p.protocol = "tcp"
	}
	first, last, isRange := strings.Cut(number, "-")
	var err error
	if p.from, err = portNumber(first); err != nil {
		return port{}, err
	}
	p.to = p.from
	if isRange {
		if p.to, err = portNumber(last); err != nil {
			return port{}, err
		}
	}
	return p, p.check()
}

func portNumber(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, usagef("invalid port %q: %v", text, err)
	}
	return n, nil
}

func (p port) check() error {
	switch {
	case p.protocol == "icmp":
		return usagef("protocol \"icmp\" doesn't support any ports; got \"%d\"", p.from)
	case p.protocol != "tcp" && p.protocol != "udp":
		return usagef("invalid protocol %q, expected \"tcp\", \"udp\", or \"icmp\"", p.protocol)
	case p.from > p.to:
		return usagef("invalid port range %d-%d/%s", p.from, p.to, p.protocol)
	case p.from < 0 || p.to > 65535:
		return usagef("port range bounds must be between 0 and 65535, got %d-%d", p.from, p.to)
	}
	return nil
}

// single is the port as it is kept, "80/tcp"; what Kubernetes cannot open is refused.
func (p port) single() (string, error) {
	switch {
	case p.protocol == "icmp":
		return "icmp", nil // refused at the commit
	case p.from != p.to:
		return "", errors.New("port ranges are not supported for k8s applications, please specify a single port")
	case p.from == 0:
		return "", errors.New("port 0 cannot be opened on Kubernetes")
	}
	return fmt.Sprintf("%d/%s", p.from, p.protocol), nil
}

func changePort(c *call, tool string, open bool) error {
	var endpoints string
	c.flags.text(&endpoints, "endpoints")
	note := c.oldFormat(tool)
	args, err := c.parse()
	if err != nil {
		return err
	}
	if len(args) == 0 {
		return usagef("no port or range specified")
	}
	p, err := parsePort(args[0])
	if err != nil {
		return err
	}
	if err := noArgs(args[1:]); err != nil {
		return err
	}
	note()
	for e := range strings.SplitSeq(endpoints, ",") {
		if _, ok := c.hook.Info.Endpoints[strings.TrimSpace(e)]; endpoints != "" && !ok {
			return fmt.Errorf("endpoint %q not found", e)
		}
	}
	text, err := p.single()
	if err != nil {
		return err
	}
	c.hook.openPorts[text] = open
	return nil
}

// openPort buffers the opening of a port.
func openPort(c *call) error { return changePort(c, "open-port", true) }

// closePort buffers the closing of a port.
func closePort(c *call) error { return changePort(c, "close-port", false) }

// openedPorts lists the opened ports, this hook's changes included.
func openedPorts(c *call) error {
	var endpoints bool
	out := c.outputFlags("smart", "yaml", "json")
	c.flags.boolean(&endpoints, "endpoints")
	args, err := c.parse()
	if err != nil {
		return err
	}
	if err := noArgs(args); err != nil {
		return err
	}
	have, err := c.hook.Backend.OpenedPorts(c.ctx, c.hook.Unit)
	if err != nil {
		return err
	}
	ports := slices.Clone(have)
	for p, open := range c.hook.openPorts {
		switch i := slices.Index(ports, p); {
		case open && i < 0:
			ports = append(ports, p)
		case !open && i >= 0:
			ports = slices.Delete(ports, i, i+1)
		}
	}
	sortPorts(ports)
	if endpoints {
		for i := range ports {
			ports[i] += " (*)"
		}
	}
	if ports == nil {
		ports = []string{}
	}
	return c.write(out, ports)
}

// sortPorts orders by protocol, then by number.
func sortPorts(ports []string) {
	slices.SortFunc(ports, func(a, b string) int {
		na, pa, _ := strings.Cut(a, "/")
		nb, pb, _ := strings.Cut(b, "/")
		if pa != pb {
			return compare(pa, pb)
		}
		x, _ := strconv.Atoi(na)
		y, _ := strconv.Atoi(nb)
		return x - y
	})
}
