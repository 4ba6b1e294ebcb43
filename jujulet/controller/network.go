// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package controller

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cluster/network"
	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
)

// startNetwork makes the network and keeps it in step with the API.
func (c *Controller) startNetwork(ctx context.Context, group *errgroup.Group) error {
	var err error
	c.net, err = network.New(network.Options{
		Plan:   c.plan,
		API:    networkAPI{c.admin, c.clock},
		LB:     network.LBSettings{Kind: network.LBVIP, Pool: network.DefaultPool()},
		Clock:  c.clock,
		Logger: c.log,
	})
	if err != nil {
		return fmt.Errorf("cannot make the network: %w", err)
	}
	group.Go(func() error { return c.net.Run(ctx) })
	return nil
}

// loadBalancer returns the settings of the load balancer.
func (c *Controller) loadBalancer() control.LBSettings { return lbView(c.net.LB().Settings()) }

// lbView turns settings into what a client is told.
func lbView(s network.LBSettings) control.LBSettings {
	return control.LBSettings{
		Kind: control.LBKind(s.Kind), AssignDelay: s.AssignDelay, AnswerDelay: s.AnswerDelay, DNSDelay: s.DNSDelay,
		Pool: formatPool(s.Pool), Hold: s.Hold, Break: s.Break,
	}
}

// postLoadBalancer changes the settings, then moves or takes an address.
func (c *modelWorker) postLoadBalancer(_ context.Context, r control.LBChange) (control.LBSettings, error) {
	lb := c.net.LB()
	settings := lb.Settings()
	if err := change(&settings, r); err != nil {
		return control.LBSettings{}, err
	}
	if err := lb.SetSettings(settings); err != nil {
		return control.LBSettings{}, invalid("%v", err)
	}
	if err := c.changeAddress(lb, r); err != nil {
		return control.LBSettings{}, invalid("%v", err)
	}
	return lbView(lb.Settings()), nil
}

// changeAddress moves, takes or gives back the address of one Service.
func (c *modelWorker) changeAddress(lb *network.LoadBalancer, r control.LBChange) error {
	if r.Move != "" {
		var options network.MoveOptions
		if r.MoveTo != "" {
			to, err := netip.ParseAddr(r.MoveTo)
			if err != nil {
				return invalid("invalid address %q", r.MoveTo)
			}
			options.To = to
		}
		if _, err := lb.Move(c.info.Name, r.Move, options); err != nil {
			return err
		}
	}
	if r.Vanish != "" {
		if err := lb.Vanish(c.info.Name, r.Vanish); err != nil {
			return err
		}
	}
	if r.Restore != "" {
		return lb.Restore(c.info.Name, r.Restore)
	}
	return nil
}

// change applies what is set in r.
func change(s *network.LBSettings, r control.LBChange) error {
	if r.Kind != nil {
		switch kind := network.LBKind(*r.Kind); kind {
		case network.LBVIP, network.LBProxy, network.LBHostname, network.LBMetalLB:
			s.Kind = kind
		default:
			return invalid("unknown load balancer %q: expected vip, proxy, hostname or metallb", *r.Kind)
		}
	}
	if r.Pool != nil {
		pool, err := parsePool(*r.Pool)
		if err != nil {
			return err
		}
		s.Pool = pool
	}
	set(&s.AssignDelay, r.AssignDelay)
	set(&s.AnswerDelay, r.AnswerDelay)
	set(&s.DNSDelay, r.DNSDelay)
	set(&s.Hold, r.Hold)
	set(&s.Break, r.Break)
	return nil
}

// set replaces a value if there is a new one.
func set[T any](target *T, value *T) {
	if value != nil {
		*target = *value
	}
}

// maxPool bounds a pool.
const maxPool = 254

// noPool is a pool that has no address to give.
const noPool = "none"

// parsePool reads addresses and ranges of them: "10.64.140.43-10.64.140.62"; "none" is a pool without any.
func parsePool(text string) ([]netip.Addr, error) {
	pool := []netip.Addr{} // nil would be the default
	if text == noPool {
		return pool, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		low, high, ranged := strings.Cut(part, "-")
		if !ranged {
			high = low
		}
		first, err1 := netip.ParseAddr(strings.TrimSpace(low))
		last, err2 := netip.ParseAddr(strings.TrimSpace(high))
		if err1 != nil || err2 != nil || !first.Is4() || !last.Is4() || last.Less(first) {
			return nil, invalid("invalid pool %q: expected IPv4 addresses or ranges such as 10.64.140.43-10.64.140.62", part)
		}
		for a := first; ; a = a.Next() {
			if len(pool) == maxPool {
				return nil, invalid("invalid pool %q: more than %d addresses", text, maxPool)
			}
			pool = append(pool, a)
			if a == last {
				break
			}
		}
	}
	return pool, nil
}

// formatPool writes addresses as ranges.
func formatPool(pool []netip.Addr) string {
	if len(pool) == 0 {
		return noPool
	}
	var parts []string
	for i := 0; i < len(pool); {
		j := i
		for j+1 < len(pool) && pool[j+1] == pool[j].Next() {
			j++
		}
		if j == i {
			parts = append(parts, pool[i].String())
		} else {
			parts = append(parts, pool[i].String()+"-"+pool[j].String())
		}
		i = j + 1
	}
	return strings.Join(parts, ",")
}
