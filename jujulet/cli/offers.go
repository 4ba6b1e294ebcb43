// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cli/render"
	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

func newOffer(a *app) *cobra.Command {
	var url control.OfferURL
	var request control.OfferRequest
	cmd := &cobra.Command{
		Use:     "offer [<model>.]<application>:<endpoint>[,<endpoint> ...] [<offer name>]",
		Short:   "Offer application endpoints for use in other models",
		Example: "    jujulet offer mysql:database\n    jujulet offer prod.mysql:database sql",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageErrorf("an offer must at least specify application endpoint")
			}
			url = control.ParseOfferURL(args[0])
			if !isApplication(url.Offer) {
				return usageErrorf(`endpoints must conform to format "<application-name>:<endpoint-name>[,...]"`)
			}
			if url.Endpoint == "" {
				return usageErrorf("specify endpoints for %v", url.Offer)
			}
			request.Application, request.Endpoints = url.Offer, strings.Split(url.Endpoint, ",")
			if args = args[1:]; len(args) > 0 {
				request.Name, args = args[0], args[1:]
			}
			return checkEmpty(args)
		},
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error {
			if err := a.checkControllerName(ctx, c); err != nil {
				return err
			}
			if url.Qualified() {
				c = c.In(url.ModelRef())
			}
			made, err := c.Offer(ctx, request)
			if err != nil {
				return err
			}
			a.infof("Application %q endpoints [%s] available at %q", request.Application, strings.Join(request.Endpoints, ", "), made)
			return nil
		}),
	}
	a.controllerFlag(cmd)
	return cmd
}

// checkControllerName refuses another controller than the only one.
func (a *app) checkControllerName(ctx context.Context, c *control.Client) error {
	if a.controller == "" {
		return nil
	}
	all, err := c.Models(ctx)
	if err != nil {
		return err
	}
	return a.checkController(all)
}

func newOffers(a *app) *cobra.Command {
	var name, iface, application, user, allowed string
	var active bool
	var form *format
	cmd := &cobra.Command{
		Use:     "offers [<offer name>]",
		Aliases: []string{"list-offers"},
		Short:   "List the offers of the model",
		Example: "    jujulet offers\n    jujulet offers --format summary",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				name, args = args[0], args[1:]
			}
			return checkEmpty(args)
		},
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error {
			status, err := c.Status(ctx)
			if err != nil {
				return err
			}
			maps.DeleteFunc(status.Offers, func(key string, o model.OfferStatus) bool {
				return name != "" && key != name || application != "" && o.Application != application || active && len(o.Connections) == 0 ||
					iface != "" && !hasInterface(o, iface) || user != "" && user != control.User || allowed != "" && allowed != control.User
			})
			written, err := form.writeValue(a.Out, render.Offers(status, a.Now()))
			if err != nil || written {
				return err
			}
			if form.value == "summary" {
				return render.Table(a.Out, []string{"Offer", "Application", "Charm", "Connected", "Store", "URL", "Endpoint", "Interface", "Role"},
					render.OfferSummary(status), a.colour())
			}
			return render.Table(a.Out, []string{"Offer", "User", "Relation ID", "Status", "Endpoint", "Interface", "Role", "Ingress subnets"},
				render.OfferConnections(status), a.colour())
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&iface, "interface", "", "Only offers of this interface")
	flags.StringVar(&application, "application", "", "Only offers of this application")
	flags.StringVar(&user, "connected-user", "", "Only offers that this user uses")
	flags.StringVar(&allowed, "allowed-consumer", "", "Only offers that this user may use")
	flags.BoolVar(&active, "active-only", false, "Only offers that are in use")
	form = formatFlag(flags, "tabular", "summary", "json", "yaml")
	return cmd
}

func hasInterface(o model.OfferStatus, name string) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(o.Endpoints)), func(e model.Endpoint) bool { return e.Interface == name })
}

// offersOf returns offers by their full URLs: those of one model, or of all.
func offersOf(ctx context.Context, c *control.Client, all control.Models, ref string) (map[string]model.OfferStatus, error) {
	refs := []string{ref}
	if ref == "" {
		refs = nil
		for _, m := range all.Models {
			refs = append(refs, m.Name)
		}
	}
	out := map[string]model.OfferStatus{}
	for _, ref := range refs {
		status, err := c.In(ref).Status(ctx)
		if err != nil {
			return nil, err
		}
		for _, o := range status.Offers {
			out[all.Controller+":"+o.URL] = o
		}
	}
	return out, nil
}

func newFindOffers(a *app) *cobra.Command {
	var url, offer, iface string
	var form *format
	cmd := &cobra.Command{
		Use:     "find-offers [<controller>:][<user>/][<model>]",
		Short:   "Find offers of all models, or of one",
		Example: "    jujulet find-offers\n    jujulet find-offers admin/prod --interface mysql_client",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				if url != "" {
					return usageErrorf("URL term cannot be specified twice")
				}
				url, args = args[0], args[1:]
			}
			if offer != "" && url != "" {
				return usageErrorf("cannot specify both a URL term and offer term")
			}
			return checkEmpty(args)
		},
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error {
			all, err := c.Models(ctx)
			if err != nil {
				return err
			}
			ref := control.ParseOfferURL(url)
			if url != "" && !strings.Contains(url, ".") {
				ref = control.OfferURL{Model: url}
				if strings.TrimSuffix(strings.TrimSuffix(url, "/"), ":") == all.Controller {
					ref.Model = ""
				}
			}
			found, err := offersOf(ctx, c, all, ref.ModelRef())
			if err != nil {
				return err
			}
			maps.DeleteFunc(found, func(_ string, o model.OfferStatus) bool {
				return ref.Offer != "" && o.Name != ref.Offer || offer != "" && o.Name != offer || iface != "" && !hasInterface(o, iface)
			})
			if len(found) == 0 {
				return runErrorf("no matching application offers found")
			}
			return a.writeOffers(form, found, false)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&url, "url", "", "Only offers of this model")
	flags.StringVar(&offer, "offer", "", "Only offers of this name")
	flags.StringVar(&iface, "interface", "", "Only offers of this interface")
	form = formatFlag(flags, "tabular", "json", "yaml")
	return cmd
}

// writeOffers prints offers by their URLs.
func (a *app) writeOffers(form *format, found map[string]model.OfferStatus, describe bool) error {
	shown := map[string]render.FoundOffer{}
	for url, o := range found {
		shown[url] = render.Found(o, describe)
	}
	written, err := form.writeValue(a.Out, shown)
	if err != nil || written {
		return err
	}
	header, rows := []string{"Store", "URL", "Access", "Interfaces"}, [][]string{}
	if describe {
		header = []string{"Store", "URL", "Access", "Description", "Endpoint", "Interface", "Role"}
	}
	for _, url := range slices.Sorted(maps.Keys(shown)) {
		o := shown[url]
		store, path, _ := strings.Cut(url, ":")
		var interfaces []string
		row := []string{store, path, o.Access, strings.Join(strings.Fields(o.Description), " ")}
		for _, name := range slices.Sorted(maps.Keys(o.Endpoints)) {
			e := o.Endpoints[name]
			interfaces = append(interfaces, e.Interface+":"+name)
			if describe {
				rows = append(rows, append(row, name, e.Interface, e.Role))
				row = []string{"", "", "", ""}
			}
		}
		if !describe {
			slices.Sort(interfaces)
			rows = append(rows, []string{store, path, o.Access, strings.Join(interfaces, ", ")})
		}
	}
	return render.Table(a.Out, header, rows, a.colour())
}

func newShowOffer(a *app) *cobra.Command {
	var url control.OfferURL
	var form *format
	cmd := &cobra.Command{
		Use:     "show-offer [<controller>:][<user>/][<model>.]<offer>",
		Short:   "Show an offer",
		Example: "    jujulet show-offer admin/prod.mysql",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageErrorf("must specify endpoint URL")
			}
			url = control.ParseOfferURL(args[0])
			return checkEmpty(args[1:])
		},
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error {
			all, err := c.Models(ctx)
			if err != nil {
				return err
			}
			ref := url.ModelRef()
			if ref == "" {
				status, err := c.Status(ctx)
				if err != nil {
					return err
				}
				ref = status.Model.Name
			}
			found, err := offersOf(ctx, c, all, ref)
			if err != nil {
				return err
			}
			maps.DeleteFunc(found, func(_ string, o model.OfferStatus) bool { return o.Name != url.Offer })
			if len(found) == 0 {
				return runErrorf("application offer %q not found", control.User+"/"+shortModel(ref)+"."+url.Offer)
			}
			return a.writeOffers(form, found, true)
		}),
	}
	form = formatFlag(cmd.Flags(), "tabular", "json", "yaml")
	return cmd
}

// shortModel is a model's name without controller and user.
func shortModel(ref string) string { return ref[strings.LastIndexAny(ref, ":/")+1:] }

func newRemoveOffer(a *app) *cobra.Command {
	var urls []control.OfferURL
	var force, yes bool
	cmd := &cobra.Command{
		Use:     "remove-offer <offer> [<offer> ...]",
		Short:   "Remove offers",
		Example: "    jujulet remove-offer admin/prod.mysql\n    jujulet remove-offer mysql --force -y",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageErrorf("no offers specified")
			}
			for _, arg := range args {
				url := control.ParseOfferURL(arg)
				if url.Endpoint != "" {
					return usageErrorf("These offers contain endpoints. Only specify the offer name itself.\n -%s", arg)
				}
				urls = append(urls, url)
			}
			return nil
		},
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error {
			if force && !yes {
				fmt.Fprintf(a.Err, "WARNING! This command will remove offers: %d\nThis includes all relations to those offers.\n", len(urls))
				if err := a.confirm(); err != nil {
					return runErrorf("offer removal: %v", err)
				}
			}
			for _, url := range urls {
				at := c
				if url.Qualified() {
					at = c.In(url.ModelRef())
				}
				if err := at.RemoveOffer(ctx, control.RemoveOfferRequest{Name: url.Offer, Force: force}); err != nil {
					return err
				}
			}
			return nil
		}),
	}
	cmd.Flags().BoolVar(&force, "force", false, "Remove the relations to the offer, too")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "Do not ask for confirmation")
	return cmd
}

func newConsume(a *app) *cobra.Command {
	var url control.OfferURL
	text, alias := "", ""
	cmd := &cobra.Command{
		Use:     "consume [<controller>:][<user>/]<model>.<offer> [<alias>]",
		Short:   "Make an offer of another model known in this one",
		Example: "    jujulet consume admin/prod.mysql\n    jujulet consume prod.mysql sql",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageErrorf("no remote offer specified")
			}
			text, url = args[0], control.ParseOfferURL(args[0])
			switch {
			case !url.Qualified():
				return usageErrorf("application offer URL is missing application")
			case url.Endpoint != "":
				return usageErrorf("saas offer %q shouldn't include endpoint", text)
			}
			if args = args[1:]; len(args) > 0 {
				alias, args = args[0], args[1:]
				if !isApplication(alias) {
					return usageErrorf("invalid application name %q", alias)
				}
			}
			return checkEmpty(args)
		},
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error {
			name, err := c.Consume(ctx, control.ConsumeRequest{Model: url.ModelRef(), Offer: url.Offer, Alias: alias})
			if err != nil {
				return err
			}
			a.infof("Added %s as %s", text, name)
			return nil
		}),
	}
	return cmd
}

func newRemoveSAAS(a *app) *cobra.Command {
	var names []string
	cmd := &cobra.Command{
		Use:     "remove-saas <saas application> [<saas application> ...]",
		Short:   "Remove consumed offers from the model",
		Example: "    jujulet remove-saas mysql",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageErrorf("no SAAS application names specified")
			}
			for _, name := range args {
				if !isApplication(name) {
					return usageErrorf("invalid SAAS application name %q", name)
				}
			}
			names = args
			return nil
		},
		RunE: a.withClient(func(ctx context.Context, c *control.Client) error {
			for _, name := range names {
				if err := c.RemoveSAAS(ctx, name); err != nil {
					return err
				}
			}
			return nil
		}),
	}
	cmd.Flags().Bool("force", false, "Accepted: relations end in order")
	cmd.Flags().Bool("no-wait", false, "Accepted: relations end in order")
	return cmd
}
