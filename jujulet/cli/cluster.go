// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cli/render"
	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
)

func newCluster(a *app) *cobra.Command {
	var f *format
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "Show and change the embedded Kubernetes cluster",
		Long:  "Without a verb: the nodes, the load balancer and the Services.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageErrorf("cannot %s the cluster: expected lb, node, events, get or kubeconfig", args[0])
			}
			return nil
		},
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error {
			view, err := c.Cluster(ctx)
			if err != nil {
				return err
			}
			if written, err := f.writeValue(a.Out, view); written || err != nil {
				return err
			}
			return render.Cluster(a.Out, view)
		}),
	}
	f = formatFlag(cmd.Flags(), "tabular", "json")
	cmd.AddCommand(newClusterLB(a), newClusterNode(a), newClusterEvents(a), newClusterGet(a), newClusterKubeconfig(a))
	return cmd
}

type lbOptions struct {
	kind, pool, move, vanish string
	assign, answer, dns      time.Duration
	hold, broken             bool
}

func newClusterLB(a *app) *cobra.Command {
	o := &lbOptions{}
	cmd := &cobra.Command{
		Use:   "lb",
		Short: "Show and change how the load balancer behaves",
		Example: `    jujulet cluster lb --assign-delay 4s --answer-delay 4s
    jujulet cluster lb --kind hostname --dns-delay 10s
    jujulet cluster lb --hold            # assign no address until --hold=false
    jujulet cluster lb --break           # addresses stay and take no connections until --break=false
    jujulet cluster lb --move drawbridge-k8s-service`,
		Args: noArgs,
	}
	flags := cmd.Flags()
	flags.StringVar(&o.kind, "kind", "", "vip, proxy, hostname or metallb")
	flags.DurationVar(&o.assign, "assign-delay", 0, "From the wish to the address in the Service")
	flags.DurationVar(&o.answer, "answer-delay", 0, "From the assignment until the address takes connections")
	flags.DurationVar(&o.dns, "dns-delay", 0, "From the assignment until the name resolves (kind hostname)")
	flags.StringVar(&o.pool, "pool", "", "Addresses to assign, such as 10.64.140.43-10.64.140.62; \"none\" exhausts it")
	flags.BoolVar(&o.hold, "hold", false, "Assign nothing more")
	flags.BoolVar(&o.broken, "break", false, "Keep addresses and take no connections")
	flags.StringVar(&o.move, "move", "", "Give this Service another address")
	flags.StringVar(&o.vanish, "vanish", "", "Take this Service's address away")
	cmd.RunE = a.withClient(func(ctx context.Context, c *control.Client) error { return o.run(ctx, a, c, flags) })
	return cmd
}

func (o *lbOptions) run(ctx context.Context, a *app, c *control.Client, flags *pflag.FlagSet) error {
	change, err := o.change(flags)
	if err != nil {
		return err
	}
	settings, err := c.SetLoadBalancer(ctx, change)
	if err != nil {
		return err
	}
	return render.LoadBalancer(a.Out, settings)
}

// change has what was given on the command line; all else stays.
func (o *lbOptions) change(flags *pflag.FlagSet) (control.LBChange, error) {
	change := control.LBChange{Move: o.move, Vanish: o.vanish}
	if flags.Changed("kind") {
		kind := control.LBKind(o.kind)
		switch kind {
		case control.LBVIP, control.LBProxy, control.LBHostname, control.LBMetalLB:
		default:
			return change, usageErrorf("invalid value %q for option --kind: expected vip, proxy, hostname or metallb", o.kind)
		}
		change.Kind = &kind
	}
	for name, target := range map[string]struct {
		value *time.Duration
		field **time.Duration
	}{
		"assign-delay": {&o.assign, &change.AssignDelay},
		"answer-delay": {&o.answer, &change.AnswerDelay},
		"dns-delay":    {&o.dns, &change.DNSDelay},
	} {
		if !flags.Changed(name) {
			continue
		}
		if *target.value < 0 {
			return change, usageErrorf("invalid value %q for option --%s: must not be negative", target.value.String(), name)
		}
		*target.field = target.value
	}
	if flags.Changed("pool") {
		if o.pool == "none" {
			o.pool = ""
		} else if err := checkPool(o.pool); err != nil {
			return change, err
		}
		change.Pool = &o.pool
	}
	if flags.Changed("hold") {
		change.Hold = &o.hold
	}
	if flags.Changed("break") {
		change.Break = &o.broken
	}
	return change, nil
}

func checkPool(pool string) error {
	for part := range strings.SplitSeq(pool, ",") {
		for address := range strings.SplitSeq(part, "-") {
			if _, err := netip.ParseAddr(strings.TrimSpace(address)); err != nil {
				return usageErrorf("invalid value %q for option --pool: %q is not an address", pool, address)
			}
		}
	}
	return nil
}

func newClusterNode(a *app) *cobra.Command {
	var change control.NodeChange
	var ready bool
	var external string
	cmd := &cobra.Command{
		Use:     "node <name>",
		Short:   "Change a node",
		Example: "    jujulet cluster node node-1 --external-ip 203.0.113.7\n    jujulet cluster node node-1 --ready=false",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageErrorf("no node specified")
			}
			change.Name = args[0]
			return checkEmpty(args[1:])
		},
	}
	cmd.Flags().BoolVar(&ready, "ready", true, "Whether the node is ready")
	cmd.Flags().StringVar(&external, "external-ip", "", "The node's external address; empty removes it")
	cmd.RunE = a.withClient(func(ctx context.Context, c *control.Client) error {
		if cmd.Flags().Changed("ready") {
			change.Ready = &ready
		}
		if cmd.Flags().Changed("external-ip") {
			change.ExternalIP = &external
		}
		if change.Ready == nil && change.ExternalIP == nil {
			return usageErrorf("nothing to change: give --ready or --external-ip")
		}
		return c.SetNode(ctx, change)
	})
	return cmd
}

func newClusterEvents(a *app) *cobra.Command {
	var object string
	var f *format
	cmd := &cobra.Command{
		Use:     "events [<kind>/<name>]",
		Short:   "List Kubernetes events, oldest first",
		Example: "    jujulet cluster events Service/drawbridge-k8s-service",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				object = args[0]
			}
			return checkEmpty(args[min(1, len(args)):])
		},
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error {
			events, err := c.Events(ctx, object)
			if err != nil {
				return err
			}
			if written, err := f.writeValue(a.Out, events); written || err != nil {
				return err
			}
			return render.Events(a.Out, events, a.zone(false))
		}),
	}
	f = formatFlag(cmd.Flags(), "tabular", "json")
	return cmd
}

func newClusterGet(a *app) *cobra.Command {
	var kind, name string
	var f *format
	cmd := &cobra.Command{
		Use:   "get <kind> [<name>]",
		Short: "Show an object, or all of a kind, as the Kubernetes API gives it",
		Example: `    jujulet cluster get service drawbridge-k8s-service
    jujulet cluster get endpointslice --format json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageErrorf("no kind specified, such as service, pod or node")
			}
			kind = args[0]
			if len(args) > 1 {
				name = args[1]
			}
			return checkEmpty(args[min(2, len(args)):])
		},
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error {
			raw, err := c.Objects(ctx, kind, name)
			if err != nil {
				return err
			}
			var object any
			if err := json.Unmarshal(raw, &object); err != nil {
				return fmt.Errorf("cannot read the answer of the API: %w", err)
			}
			_, err = f.writeValue(a.Out, object)
			return err
		}),
	}
	f = formatFlag(cmd.Flags(), "yaml", "json")
	return cmd
}

func newClusterKubeconfig(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print a kubeconfig for use inside the cluster (jujulet shell)",
		Args:  noArgs,
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error {
			text, err := c.Kubeconfig(ctx)
			if err == nil {
				a.printf("%s", text)
			}
			return err
		}),
	}
}
