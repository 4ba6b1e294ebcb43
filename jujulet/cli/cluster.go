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
		Example: `    jujulet cluster
    jujulet cluster lb --kind hostname --dns-delay 10s
    jujulet cluster get service drawbridge-k8s-service`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageErrorf("cannot %s the cluster: expected lb, node, fault, events, get, apply, delete or kubeconfig", args[0])
			}
			return nil
		},
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error {
			view, err := c.Cluster(ctx)
			if err != nil {
				return err
			}
			if written, err := f.writeValue(a.Out, documentOf(view)); written || err != nil {
				return err
			}
			return render.Cluster(a.Out, view)
		}),
	}
	f = formatFlag(cmd.Flags(), "tabular", "json")
	cmd.AddCommand(newClusterLB(a), newClusterNode(a), newClusterFault(a), newClusterEvents(a), newClusterGet(a),
		newClusterApply(a), newClusterDelete(a), newClusterKubeconfig(a))
	return cmd
}

// clusterDocument is the cluster as --format json prints it: with delays as durations, not as numbers of nanoseconds.
type clusterDocument struct {
	LoadBalancer struct {
		Kind        control.LBKind `json:"kind"`
		AssignDelay string         `json:"assign-delay"`
		AnswerDelay string         `json:"answer-delay"`
		DNSDelay    string         `json:"dns-delay"`
		Pool        string         `json:"pool"`
		Hold        bool           `json:"hold"`
		Break       bool           `json:"break"`
	} `json:"load-balancer"`
	Nodes    []control.Node    `json:"nodes"`
	Services []control.Service `json:"services"`
}

func documentOf(view control.Cluster) clusterDocument {
	d := clusterDocument{Nodes: view.Nodes, Services: view.Services}
	lb := view.LoadBalancer
	d.LoadBalancer.Kind, d.LoadBalancer.Pool, d.LoadBalancer.Hold, d.LoadBalancer.Break = lb.Kind, lb.Pool, lb.Hold, lb.Break
	d.LoadBalancer.AssignDelay = lb.AssignDelay.String()
	d.LoadBalancer.AnswerDelay = lb.AnswerDelay.String()
	d.LoadBalancer.DNSDelay = lb.DNSDelay.String()
	return d
}

type lbOptions struct {
	kind, pool, move, to, vanish, restore string
	assign, answer, dns                   time.Duration
	hold, broken                          bool
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
    jujulet cluster lb --pool none       # no address is left: an Event on the Service
    jujulet cluster lb --move drawbridge-k8s-service
    jujulet cluster lb --move drawbridge-k8s-service --to 10.64.140.60
    jujulet cluster lb --vanish drawbridge-k8s-service   # no address until --restore`,
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
	flags.StringVar(&o.to, "to", "", "The address for --move (default the next one of the pool)")
	flags.StringVar(&o.vanish, "vanish", "", "Take this Service's address away")
	flags.StringVar(&o.restore, "restore", "", "Let this Service have an address again after --vanish")
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
	change := control.LBChange{Move: o.move, MoveTo: o.to, Vanish: o.vanish, Restore: o.restore}
	if o.to != "" {
		if o.move == "" {
			return change, usageErrorf("--to needs --move")
		}
		if _, err := netip.ParseAddr(o.to); err != nil {
			return change, usageErrorf("invalid value %q for option --to: expected an address", o.to)
		}
	}
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
		if o.pool != "none" {
			if err := checkPool(o.pool); err != nil {
				return change, err
			}
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
		if _, err := netip.ParseAddr(external); external != "" && err != nil {
			return usageErrorf("invalid value %q for option --external-ip: expected an address", external)
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
			if len(args) == 0 {
				return nil
			}
			object = args[0]
			if kind, name, found := strings.Cut(object, "/"); !found || kind == "" || name == "" {
				return usageErrorf("invalid object %q: expected <kind>/<name>, such as Service/drawbridge-k8s-service", object)
			}
			return checkEmpty(args[1:])
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
	var managed bool
	var f *format
	cmd := &cobra.Command{
		Use:   "get <kind> [<name>]",
		Short: "Show an object, or all of a kind, as the Kubernetes API gives it",
		Long: `Show an object, or all of a kind, as the Kubernetes API gives it. As kubectl does, it leaves out who manages which
field unless asked. Other namespaces than the model's are not shown.`,
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
			if !managed {
				hideManagedFields(object)
			}
			_, err = f.writeValue(a.Out, object)
			return err
		}),
	}
	f = formatFlag(cmd.Flags(), "yaml", "json")
	cmd.Flags().BoolVar(&managed, "show-managed-fields", false, "Show metadata.managedFields too")
	return cmd
}

// hideManagedFields takes metadata.managedFields out of an object, or out of all objects of a list.
func hideManagedFields(object any) {
	fields, ok := object.(map[string]any)
	if !ok {
		return
	}
	if metadata, ok := fields["metadata"].(map[string]any); ok {
		delete(metadata, "managedFields")
	}
	items, _ := fields["items"].([]any)
	for _, item := range items {
		hideManagedFields(item)
	}
}

func newClusterKubeconfig(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "kubeconfig",
		Short:   "Print a kubeconfig for use inside the cluster (jujulet shell)",
		Example: "    jujulet cluster kubeconfig > kubeconfig",
		Args:    noArgs,
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error {
			text, err := c.Kubeconfig(ctx)
			if err == nil {
				a.printf("%s", text)
			}
			return err
		}),
	}
}
