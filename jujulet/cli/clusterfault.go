// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
)

func newClusterFault(a *app) *cobra.Command {
	var add control.Fault
	var clear bool
	cmd := &cobra.Command{
		Use:   "fault",
		Short: "Show and set what the API answers wrongly on purpose",
		Long: `Without a flag: the faults that are set. Each answers requests of charms that fit its verb, resource and name; what
is not given fits all. The operator's own requests pass. Faults end with "jujulet down".`,
		Example: `    jujulet cluster fault --verb patch --resource services --answer 409 --times 3
    jujulet cluster fault --answer 429 --retry-after 5 --for 30s
    jujulet cluster fault --resource services --delay 5s      # slow, and then as usual
    jujulet cluster fault --answer timeout                    # no answer; "cut" ends the connection
    jujulet cluster fault --clear`,
		Args: noArgs,
	}
	flags := cmd.Flags()
	flags.StringVar(&add.Verb, "verb", "", "get, list, watch, create, update, patch, delete or deletecollection")
	flags.StringVar(&add.Resource, "resource", "", "A resource, such as services")
	flags.StringVar(&add.Name, "name", "", "The name of an object")
	flags.StringVar(&add.Answer, "answer", "", "A status such as 403, 404, 409, 422, 429, 500 or 503; timeout; cut")
	flags.IntVar(&add.RetryAfter, "retry-after", 0, "Seconds that the answer asks the client to wait")
	flags.DurationVar(&add.Delay, "delay", 0, "How long the request waits before it is answered")
	flags.IntVar(&add.Times, "times", 0, "How many requests it meets; 0 is all")
	flags.DurationVar(&add.For, "for", 0, "How long it lasts; 0 is until --clear")
	flags.BoolVar(&clear, "clear", false, "Remove all faults")
	cmd.RunE = a.withClient(func(ctx context.Context, c *control.Client) error {
		change := control.FaultChange{Clear: clear}
		if add != (control.Fault{}) {
			change.Add = &add
		}
		list, err := c.SetFault(ctx, change)
		if err != nil {
			return err
		}
		for _, f := range list {
			a.printf("%s\n", faultText(f))
		}
		if len(list) == 0 {
			a.infof("no faults")
		}
		return nil
	})
	return cmd
}

// faultText describes a fault in one line.
func faultText(f control.Fault) string {
	orAll := func(s string) string {
		if s == "" {
			return "*"
		}
		return s
	}
	text := fmt.Sprintf("%d: %s %s %s:", f.ID, orAll(f.Verb), orAll(f.Resource), orAll(f.Name))
	if f.Delay > 0 {
		text += fmt.Sprintf(" after %s", f.Delay)
	}
	if f.Answer != "" {
		text += " " + f.Answer
	}
	if f.RetryAfter > 0 {
		text += fmt.Sprintf(" (retry after %d s)", f.RetryAfter)
	}
	if f.Times > 0 {
		text += fmt.Sprintf(", %d more", f.Times)
	}
	if f.For > 0 {
		text += fmt.Sprintf(", for %s", f.For.Round(time.Second))
	}
	return text
}
