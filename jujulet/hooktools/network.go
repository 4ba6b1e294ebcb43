// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package hooktools

import (
	"errors"
	"fmt"
	"net/netip"
)

// networkAddress is one address of network-get. The empty fields are what Juju
// prints on Kubernetes.
type networkAddress struct {
	Hostname string `json:"hostname" yaml:"hostname"`
	Value    string `json:"value" yaml:"value"`
	CIDR     string `json:"cidr" yaml:"cidr"`
	// YAML output repeats the value.
	Address string `json:"-" yaml:"address"`
}

type networkInterface struct {
	MAC       string           `json:"mac-address" yaml:"mac-address"`
	Name      string           `json:"interface-name" yaml:"interface-name"`
	Addresses []networkAddress `json:"addresses" yaml:"addresses"`
	// YAML output repeats two keys in an older spelling.
	OldMAC  string `json:"-" yaml:"macaddress"`
	OldName string `json:"-" yaml:"interfacename"`
}

type networkInfo struct {
	Bind    []networkInterface `json:"bind-addresses,omitempty" yaml:"bind-addresses,omitempty"`
	Egress  []string           `json:"egress-subnets,omitempty" yaml:"egress-subnets,omitempty"`
	Ingress []string           `json:"ingress-addresses,omitempty" yaml:"ingress-addresses,omitempty"`
}

// networkGet prints the addresses of an endpoint: the pod's to bind to, the
// Service's to be reached at.
func networkGet(c *call) error {
	var bind, ingress, egress, primary bool
	out := c.outputFlags("smart", "yaml", "json")
	c.flags.boolean(&bind, "bind-address")
	c.flags.boolean(&ingress, "ingress-address")
	c.flags.boolean(&egress, "egress-subnets")
	c.flags.boolean(&primary, "primary-address")
	c.relationFlag()
	args, err := c.parse()
	if err != nil {
		return err
	}
	if len(args) == 0 {
		return usagef("no arguments specified")
	}
	if args[0] == "" {
		return usagef("no binding name specified")
	}
	if err := noArgs(args[1:]); err != nil {
		return err
	}
	_, known := c.hook.Info.Endpoints[args[0]]
	if !known && args[0] != "juju-info" {
		return fmt.Errorf("no network config found for binding %q", args[0])
	}
	info := c.networkInfo()
	if !bind && !ingress && !egress && !primary {
		return c.write(out, info)
	}
	if primary && (bind || ingress || egress) {
		return errors.New("--primary-address must be the only flag specified")
	}
	return c.writeNetwork(out, info, bind || primary, ingress, egress)
}

func (c *call) networkInfo() networkInfo {
	i := c.hook.Info
	info := networkInfo{Ingress: i.Ingress}
	if len(info.Ingress) == 0 && i.PodAddress != "" {
		info.Ingress = []string{i.PodAddress}
	}
	if i.PodAddress != "" {
		a := networkAddress{Value: i.PodAddress, Address: i.PodAddress}
		info.Bind = []networkInterface{{Addresses: []networkAddress{a}}}
	}
	if len(info.Ingress) > 0 {
		info.Egress = []string{subnet(info.Ingress[0])}
	}
	return info
}

// subnet is an address as a network of its own.
func subnet(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	return netip.PrefixFrom(ip, ip.BitLen()).String()
}

func (c *call) writeNetwork(out *output, info networkInfo, bind, ingress, egress bool) error {
	values := map[string]any{}
	if bind {
		v := ""
		if len(info.Bind) > 0 {
			v = info.Bind[0].Addresses[0].Value
		}
		values["bind-address"] = v
	}
	if ingress {
		v := ""
		if len(info.Ingress) > 0 {
			v = info.Ingress[0]
		}
		values["ingress-address"] = v
	}
	if egress {
		values["egress-subnets"] = info.Egress
	}
	if len(values) == 1 {
		for _, v := range values {
			return c.write(out, v)
		}
	}
	return c.write(out, values)
}

// unitGet prints the pod's address.
func unitGet(c *call) error {
	out := c.outputFlags("smart", "yaml", "json")
	args, err := c.parse()
	if err != nil {
		return err
	}
	if len(args) == 0 {
		return usagef("no setting specified")
	}
	if args[0] != "private-address" && args[0] != "public-address" {
		return usagef("unknown setting %q", args[0])
	}
	if err := noArgs(args[1:]); err != nil {
		return err
	}
	if args[0] == "public-address" {
		return errors.New("public address not found")
	}
	if c.hook.Info.PodAddress == "" {
		return errors.New("private address not found")
	}
	return c.write(out, c.hook.Info.PodAddress)
}
