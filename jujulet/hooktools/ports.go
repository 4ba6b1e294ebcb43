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

// parsePort reads "80", "80/tcp" or "icmp".
func parsePort(text string) (string, error) {
	text = strings.ToLower(text)
	if text == "icmp" || text == "-1/icmp" {
		return "icmp", nil
	}
	number, protocol, given := strings.Cut(text, "/")
	if !given {
		protocol = "tcp"
	}
	if protocol != "tcp" && protocol != "udp" {
		return "", usagef("protocol must be \"tcp\", \"udp\", or \"icmp\"; got %q", protocol)
	}
	if strings.Contains(number, "-") {
		return "", errors.New("port ranges are not supported for k8s applications, please specify a single port")
	}
	n, err := strconv.Atoi(number)
	if err != nil {
		return "", usagef("invalid port %q; expected <port>[/<protocol>] or <from>-<to>[/<protocol>]", number)
	}
	if n < 1 || n > 65535 {
		return "", usagef("port must be in the range [1, 65535]; got \"%d\"", n)
	}
	return fmt.Sprintf("%d/%s", n, protocol), nil
}

func changePort(c *call, open bool) error {
	var endpoints, format string
	c.flags.text(&endpoints, "endpoints")
	c.flags.text(&format, "format")
	args, err := c.parse()
	if err != nil {
		return err
	}
	if len(args) == 0 {
		return usagef("no port or range specified")
	}
	if err := noArgs(args[1:]); err != nil {
		return err
	}
	for e := range strings.SplitSeq(endpoints, ",") {
		if _, ok := c.hook.Info.Endpoints[e]; endpoints != "" && !ok {
			return fmt.Errorf("endpoint %q not found", e)
		}
	}
	port, err := parsePort(args[0])
	if err != nil {
		return err
	}
	c.hook.openPorts[port] = open
	return nil
}

// openPort buffers the opening of a port.
func openPort(c *call) error { return changePort(c, true) }

// closePort buffers the closing of a port.
func closePort(c *call) error { return changePort(c, false) }

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
